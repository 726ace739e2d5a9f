"""The 200 classes of Tiny-ImageNet in ten families of twenty, by what they show."""

from __future__ import annotations

_LINES = {
    "mammals": (
        "Chihuahua, Yorkshire terrier, golden retriever, Labrador retriever, German shepherd, standard poodle, tabby, "
        "Persian cat, Egyptian cat, cougar, lion, hog, ox, bison, bighorn, gazelle, Arabian camel, orangutan, "
        "chimpanzee, African elephant"
    ),
    "insects and other small animals": (
        "trilobite, scorpion, black widow, tarantula, centipede, snail, slug, American lobster, spiny lobster, "
        "ladybug, fly, bee, grasshopper, walking stick, cockroach, mantis, dragonfly, monarch, "
        "sulphur butterfly, spider web"
    ),
    "other animals": (
        "goldfish, European fire salamander, bullfrog, tailed frog, American alligator, boa constrictor, goose, koala, "
        "jellyfish, brain coral, sea slug, black stork, king penguin, albatross, dugong, brown bear, sea cucumber, "
        "guinea pig, baboon, lesser panda"
    ),
    "vehicles and machines": (
        "beach wagon, bullet train, cannon, convertible, crane, freight car, go-kart, gondola, jinrikisha, lawn mower, "
        "lifeboat, limousine, moving van, parking meter, police van, projectile, school bus, sports car, tractor, "
        "trolleybus"
    ),
    "buildings": (
        "altar, bannister, barn, beacon, birdhouse, cliff dwelling, dam, flagpole, fountain, maypole, obelisk, "
        "picket fence, pole, steel arch bridge, suspension bridge, thatch, triumphal arch, turnstile, viaduct, "
        "water tower"
    ),
    "things worn": (
        "academic gown, apron, backpack, bikini, bow tie, cardigan, Christmas stocking, fur coat, gasmask, kimono, "
        "military uniform, miniskirt, neck brace, poncho, sandal, sock, sombrero, sunglasses, swimming trunks, vestment"
    ),
    "food": (
        "butcher shop, confectionery, plate, guacamole, ice cream, ice lolly, pretzel, mashed potato, cauliflower, "
        "bell pepper, mushroom, orange, lemon, banana, pomegranate, meat loaf, pizza, potpie, espresso, acorn"
    ),
    "household": (
        "barrel, bathtub, beaker, beer bottle, broom, bucket, candle, chest, dining table, frying pan, lampshade, "
        "pill bottle, plunger, pop bottle, refrigerator, teapot, torch, water jug, wok, wooden spoon"
    ),
    "devices and instruments": (
        "abacus, binoculars, brass, cash machine, CD player, computer keyboard, drumstick, hourglass, iPod, "
        "magnetic compass, oboe, organ, pay-phone, reel, remote control, scoreboard, sewing machine, space heater, "
        "stopwatch, syringe"
    ),
    "landscapes, sport and the rest": (
        "barbershop, basketball, chain, comic book, desk, dumbbell, nail, potter's wheel, punching bag, rocking chair, "
        "rugby ball, snorkel, teddy, umbrella, volleyball, alp, cliff, coral reef, lakeside, seashore"
    ),
}
FAMILIES: dict[str, tuple[str, ...]] = {name: tuple(line.split(", ")) for name, line in _LINES.items()}
