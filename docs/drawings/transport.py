"""The area between two quantile functions is what optimal transport costs."""

import matplotlib.pyplot as plt
import numpy as np
from scene import INK, QUIET, A, B, placed

a, b = np.sort(placed(*A)), np.sort(placed(*B))
n, m = len(a), len(b)
edges = np.unique(np.concatenate([np.arange(n + 1) / n, np.arange(m + 1) / m]).round(12))
middle, width = (edges[:-1] + edges[1:]) / 2, np.diff(edges)
left, right = a[(middle * n).astype(int)], b[(middle * m).astype(int)]
cost = float(np.sum(width * (left - right) ** 2))

figure, ax = plt.subplots(figsize=(6.8, 3.6))
ax.fill_between(
    edges, np.append(left, left[-1]), np.append(right, right[-1]), step="post", color="#1f5f99", alpha=0.16, linewidth=0
)
ax.stairs(a, np.arange(n + 1) / n, color="#1f5f99", baseline=None, linewidth=1.8)
ax.stairs(b, np.arange(m + 1) / m, color="#2f8f6b", baseline=None, linewidth=1.8)
for x, low, high in zip(middle, left, right, strict=True):
    ax.plot([x, x], [low, high], color=INK, linewidth=0.7, alpha=0.6)
ax.annotate(
    f"A, {n} points",
    (1, a[-1]),
    (6, 0),
    textcoords="offset points",
    va="center",
    color="#1f5f99",
    annotation_clip=False,
)
ax.annotate(
    f"B, {m} points",
    (1, b[-1]),
    (6, 0),
    textcoords="offset points",
    va="center",
    color="#2f8f6b",
    annotation_clip=False,
)
ax.annotate(f"mean of squared gaps: {cost:.3f}", (0.03, 0.94), xycoords="axes fraction", va="top", color=QUIET)
ax.set(xlim=(0, 1), xlabel="share of points up to here", ylabel="place on the line")
