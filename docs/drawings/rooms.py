"""The rooms in their layers: who imports whom, and which way one distance goes. Counted from the code as it is."""

import matplotlib.pyplot as plt
import numpy as np
from benchmarks.house import imports, layers, room_of, rooms, walk
from matplotlib.patches import FancyBboxPatch
from scene import INK, QUIET, RULE

import sotdd

ACCENT = "#1f5f99"
WIDTH, HEIGHT = 1.5, 0.62  # of a box
HOLDS = {
    "commands": "parse, call, print",
    "integrations": "doors to other libraries",
    "pictures": "plots, page, report",
    "measure": "the verbs",
    "sketches": "data seen once",
    "peers": "other distances",
    "gradients": "loss and flow",
    "engines": "the arithmetic",
    "results": "the frozen nouns",
    "projections": "laws, recipe, scaler",
    "inputs": "sources → LabelledData",
    "kernels": "compiled loops",
    "basics": "errors, checks, words",
}

rng = np.random.default_rng(0)
a, b = ((rng.normal(size=(n, 4)), rng.integers(3, size=n)) for n in (200, 300))
went = {
    (room_of(one.replace("/", ".")), room_of(other.replace("/", ".")))
    for one, other in walk(lambda: sotdd.distance(a, b)).steps
}
entered = {room for step in went for room in step}

known = set(rooms())
floors = [[room for room in layer if room in known] for layer in layers()]
# A room that has a floor to itself stands to the left or to the right by turns, so that arrows past it can be seen.
places = {
    room: (2.4 * (number - (len(floor) - 1) / 2) + (0.95 * (-1) ** level if len(floor) == 1 else 0), -1.12 * level)
    for level, floor in enumerate(floors)
    for number, room in enumerate(floor)
}

figure, ax = plt.subplots(figsize=(8.6, 9.2))
# Every room imports the basics, which goes without an arrow.
counts = {pair: count for pair, count in imports().items() if set(pair) <= known - {"basics"}}
for pass_over in (False, True):  # the way of a distance lies on top
    for (one, other), count in sorted(counts.items()):
        on_the_way = (one, other) in went
        if on_the_way != pass_over:
            continue
        (x, y), (u, v) = places[one], places[other]
        levels = round((y - v) / 1.12)
        bend = 0.0 if levels <= 1 else 0.12 * (1 if x + u > 0 else -1)
        ax.annotate(
            "", (u, v + HEIGHT / 2), (x, y - HEIGHT / 2),
            arrowprops={
                "arrowstyle": "-|>", "color": ACCENT if on_the_way else RULE,
                "linewidth": 0.6 + 0.12 * min(count, 12) if not on_the_way else 1.6, "mutation_scale": 9,
                "shrinkA": 0, "shrinkB": 0, "connectionstyle": f"arc3,rad={bend}",
            }, zorder=2 if on_the_way else 1,
        )  # fmt: skip
for room, (x, y) in places.items():
    ax.add_patch(
        FancyBboxPatch(
            (x - WIDTH / 2, y - HEIGHT / 2), WIDTH, HEIGHT, boxstyle="round,pad=0.06,rounding_size=0.1",
            facecolor="white", edgecolor=ACCENT if room in entered else QUIET,
            linewidth=1.6 if room in entered else 0.9, zorder=3,
        )
    )  # fmt: skip
    ax.text(x, y + 0.1, room, ha="center", va="center", color=INK, fontsize=11, weight="bold", zorder=4)
    ax.text(x, y - 0.17, HOLDS[room], ha="center", va="center", color=QUIET, fontsize=8, zorder=4)
ax.set(xlim=(-3.6, 3.6), ylim=(-1.12 * (len(floors) - 1) - 0.6, 0.6))
ax.axis("off")
