"""A gate in a pipeline: reference and batch meet in one task, and what follows depends on it."""

import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch
from scene import COLOURS, INK, QUIET

BOXES = {
    "train.ref": (0, 1, "made once", QUIET),
    "today.csv": (0, 0, "comes daily", QUIET),
    "gate": (2.2, 0.5, "p-value, distance", COLOURS[0]),
    "train": (4.4, 1, "passed", COLOURS[0]),
    "stop": (4.4, 0, "drift, with the reason", COLOURS[1]),
}
figure, ax = plt.subplots(figsize=(7.6, 2.5))
for start, end in (("train.ref", "gate"), ("today.csv", "gate"), ("gate", "train"), ("gate", "stop")):
    (x, y, *_), (u, v, *_) = BOXES[start], BOXES[end]
    ax.annotate("", (u - 0.75, v), (x + 0.75, y), arrowprops={"arrowstyle": "-|>", "color": BOXES[end][3]})
for name, (x, y, word, colour) in BOXES.items():
    ax.add_patch(
        FancyBboxPatch(
            (x - 0.66, y - 0.2), 1.32, 0.4, boxstyle="round,pad=0.06,rounding_size=0.1", facecolor="white",
            edgecolor=colour,
        )
    )  # fmt: skip
    ax.text(x, y + 0.07, name, ha="center", va="center", color=INK, fontsize=11, weight="bold")
    ax.text(x, y - 0.12, word, ha="center", va="center", color=QUIET, fontsize=8.5)
ax.set(xlim=(-0.85, 5.25), ylim=(-0.35, 1.35))
ax.axis("off")
