"""Placed points of both datasets on the line, and their quantile functions."""

import matplotlib.pyplot as plt
import numpy as np
from scene import COLOURS, QUIET, RULE, A, B, placed

figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.2), width_ratios=(1, 1.15))
for height, (name, (points, labels), shades) in enumerate((("B", B, slice(2, None)), ("A", A, slice(0, None)))):
    values = placed(points, labels)
    colours = COLOURS[shades][labels]
    left.axhline(height, color=RULE, linewidth=1, zorder=0)
    left.scatter(values, np.full(len(values), height), s=40, c=colours, edgecolor="white", linewidth=0.7, zorder=3)
    order = np.argsort(values)
    n = len(values)
    right.stairs(
        values[order], np.arange(n + 1) / n, color="#1f5f99" if name == "A" else "#2f8f6b", linewidth=1, baseline=None
    )
    right.scatter(
        (np.arange(n) + 0.5) / n, values[order], s=26, c=colours[order], edgecolor="white", linewidth=0.6, zorder=3
    )
    right.annotate(name, (1, values[order][-1]), (5, 0), textcoords="offset points", va="center", color=QUIET)
left.set(yticks=[0, 1], yticklabels=["B", "A"], ylim=(-0.6, 1.6), title="on the line")
left.spines[["left"]].set_visible(False)
left.tick_params(axis="y", length=0)
right.set(xlabel="share of points up to here", xlim=(0, 1), title="sorted: two quantile functions")
