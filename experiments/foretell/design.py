"""What is compared: families of sources and targets, fixed here before anything was measured.

A recipe says which pictures or texts a set holds and what is done to them. Content (the base and its classes), number
of classes, number of points, damage to the points and damage to the labels vary independently: the same content comes
with many points and few, the same number of points with many classes and few, the same pixels with right labels and
wrong ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

GREY, COLOUR, TEXT = "grey", "colour", "text"
FAMILIES = (GREY, COLOUR, TEXT)

BASES = {
    GREY: ("mnist", "fashion", "kmnist", "usps", "letters"),
    COLOUR: ("cifar", "tiny1", "tiny2", "tiny3", "tiny4"),
    TEXT: ("news", "encyclopaedia", "films", "places", "goods"),
}
TARGET_BASES = {**BASES, COLOUR: ("cifar", "tiny5", "tiny6", "tiny7")}
# What can happen to points, with strengths from slight to severe; those of two cores are fewer.
_ANY_PICTURE = (("noise", 0.2), ("noise", 0.5), ("blur", 1.5), ("blur", 3.0), ("inverted", 1.0))
_DAMAGE = {
    GREY: (*_ANY_PICTURE, ("turned", 0.5), ("faint", 0.7)),
    COLOUR: (*_ANY_PICTURE, ("grey", 1.0), ("faint", 0.7)),
    TEXT: (("dropped", 1.0), ("short", 1.0), ("noise", 0.5), ("noise", 1.0), ("noise", 2.0)),
}  # fmt: skip
_CORE_DAMAGE = {
    GREY: (("noise", 0.5), ("inverted", 1.0)),
    COLOUR: (("blur", 1.5), ("inverted", 1.0)),
    TEXT: (("dropped", 1.0), ("short", 1.0)),
}
_FEW_POINTS = {GREY: 300, COLOUR: 500, TEXT: 100}


@dataclass(frozen=True)
class Recipe:
    """A set to be made.

    Attributes
    ----------
    bases
        What it is made of; a mixture has two, whose classes stay apart.
    classes
        "all", or a part of the classes: "even", "odd", "first" and "second" half, "three".
    points
        At most this many, or None for all that the pool has (up to the design's limit).
    damage, strength
        What is done to the points.
    wrong
        The share of labels that are drawn anew at random: the same points under wrong labels.
    merged
        Into how many superclasses the classes are thrown together; zero for none.
    """

    bases: tuple[str, ...]
    classes: str = "all"
    points: int | None = None
    damage: str = "clean"
    strength: float = 0.0
    wrong: float = 0.0
    merged: int = 0

    @property
    def name(self) -> str:
        """What tells it from the others."""
        parts = ["+".join(self.bases)]
        parts += [self.classes] if self.classes != "all" else []
        parts += [str(self.points)] if self.points else []
        parts += [f"{self.damage} {self.strength:g}"] if self.damage != "clean" else []
        parts += [f"{100 * self.wrong:.0f}% wrong"] if self.wrong else []
        parts += [f"{self.merged} merged"] if self.merged else []
        return ", ".join(parts)


@dataclass(frozen=True)
class Design:
    """How much is done.

    Attributes
    ----------
    whole
        All variants, or the core ones alone.
    seeds
        Each draws new source networks, new examples of the target and a new head.
    shots
        Examples of each class of a target.
    source_points, test_points
        Of a source at most, and of a target to test on.
    source_steps, tuning_steps, head_steps, batch
        Of training; every source takes as many steps, whatever its size.
    width
        Channels of the colour network's first layer.
    distance_points, slow_points
        Of each set for sliced distances, and for those that solve a transport problem per pair.
    n_projections
        Of sliced distances.
    bases
        How many bases of each family.
    resamples
        Of the bootstrap, and shuffles.
    """

    whole: bool
    seeds: int = 5
    shots: tuple[int, ...] = (10, 40)
    source_points: int = 4000
    test_points: int = 1000
    source_steps: int = 300
    tuning_steps: int = 40
    head_steps: int = 100
    batch: int = 32
    width: int = 8
    distance_points: int = 500
    slow_points: int = 200
    n_projections: int = 500
    bases: int = 5
    resamples: int = 400


SIZES = {
    "full": Design(
        whole=True, source_steps=1500, tuning_steps=100, width=16, batch=64, distance_points=1000,
        slow_points=300, n_projections=1000,
    ),
    "cores": Design(whole=False),
    "smallest": Design(
        whole=False, seeds=2, shots=(5,), source_points=100, test_points=40, source_steps=3, tuning_steps=2,
        head_steps=3, batch=8, width=4, distance_points=30, slow_points=20, n_projections=32, bases=2,
        resamples=10,
    ),
}  # fmt: skip


def sources(family: str, design: Design) -> list[Recipe]:
    """The sets that networks are trained on first."""
    bases = BASES[family][: design.bases]
    found = [recipe for base in bases for recipe in _sources_of(Recipe((base,)), family, design)]
    mixed = [(a, b) for place, a in enumerate(bases) for b in bases[place + 1 :]]
    if not design.whole:
        mixed = [pair for pair in mixed if bases[0] in pair or bases[-1] in pair][:3]
    return [recipe for recipe in (*found, *(Recipe(pair) for pair in mixed)) if _possible(recipe)]


def _sources_of(plain: Recipe, family: str, design: Design) -> Iterator[Recipe]:
    few = _FEW_POINTS[family]
    yield plain
    yield replace(plain, points=few)
    yield replace(plain, classes="even")
    yield replace(plain, wrong=1.0)
    for damage, strength in _DAMAGE[family] if design.whole else _CORE_DAMAGE[family]:
        yield replace(plain, damage=damage, strength=strength)
    if design.whole:
        yield replace(plain, points=3 * few)
        yield replace(plain, classes="odd", points=3 * few)
        yield replace(plain, classes="first")
        yield replace(plain, classes="second", points=few)
        yield replace(plain, classes="three")
        yield replace(plain, wrong=0.25)
        yield replace(plain, wrong=0.5)
        yield replace(plain, merged=2)


def targets(family: str, design: Design) -> list[Recipe]:
    """The sets that every network is then tuned on; none of their pictures or texts is in a source."""
    bases = TARGET_BASES[family][: design.bases]
    found = [recipe for base in bases for recipe in _targets_of(Recipe((base,)), family, design)]
    found += [Recipe((a, b)) for a, b in pairwise(bases)][: 2 if design.whole else 1]
    return [recipe for recipe in found if _possible(recipe)]


def _targets_of(plain: Recipe, family: str, design: Design) -> Iterator[Recipe]:
    yield plain
    tiny = plain.bases[0].startswith("tiny")  # has too few pictures of a class to test on fewer classes
    if not design.whole:  # one more of every base: fewer classes and damaged points by turns
        second = TARGET_BASES[family].index(plain.bases[0]) % 2 == 0
        damage, strength = _CORE_DAMAGE[family][0]
        yield (
            replace(plain, classes="even") if second and not tiny else replace(plain, damage=damage, strength=strength)
        )
        return
    if not tiny:
        for part in ("even", "odd", "first", "second"):
            yield replace(plain, classes=part)
    for damage, strength in _DAMAGE[family] if tiny else _DAMAGE[family][1::2]:
        yield replace(plain, damage=damage, strength=strength)


def _possible(recipe: Recipe) -> bool:
    """Two classes cannot be split."""
    return recipe.classes == "all" or recipe.bases != ("films",)
