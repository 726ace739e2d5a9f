"""What a gate does: training data become a reference, batches are checked against it, and an exit code decides."""

import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch
from scene import COLOURS, INK, QUIET

figure, axes = plt.subplots(figsize=(8.6, 2.5))
boxes = {
    "train.parquet": (-0.8, 1.1, QUIET),
    "train.ref": (2.5, 1.1, COLOURS[0]),
    "monday.parquet": (2.5, 0.0, QUIET),
    "sotdd check": (5.0, 0.55, COLOURS[0]),
    "0  passed": (7.7, 1.3, COLOURS[2]),
    "1  drift": (7.7, 0.55, COLOURS[1]),
    "2  undecided": (7.7, -0.2, COLOURS[4]),
}
for text, (x, y, colour) in boxes.items():
    shape = FancyBboxPatch((x, y), 1.6, 0.42, "round,pad=0.05", facecolor="white", edgecolor=colour, linewidth=1.4)
    axes.add_patch(shape)
    axes.text(x + 0.8, y + 0.21, text, ha="center", va="center", color=INK, fontsize=9)
arrows = [
    ("train.parquet", "train.ref", "sotdd reference"),
    ("train.ref", "sotdd check", ""),
    ("monday.parquet", "sotdd check", ""),
    *(("sotdd check", text, "") for text in list(boxes)[4:]),
]
for start, end, text in arrows:
    (x0, y0, _), (x1, y1, _) = boxes[start], boxes[end]
    arrow = {"arrowstyle": "->", "color": QUIET, "shrinkA": 2, "shrinkB": 2}
    axes.annotate("", (x1 - 0.08, y1 + 0.21), (x0 + 1.68, y0 + 0.21), arrowprops=arrow)
    if text:
        axes.text((x0 + x1 + 1.6) / 2, y0 + 0.32, text, ha="center", va="bottom", color=QUIET, fontsize=7)
axes.text(5.8, 0.4, "and a report", ha="center", va="top", color=QUIET, fontsize=8)
axes.set(xlim=(-1.0, 9.6), ylim=(-0.5, 2.0))
axes.axis("off")
