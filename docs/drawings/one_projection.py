"""A labelled dataset in the plane, and its points dropped onto one line."""

import matplotlib.pyplot as plt
import numpy as np
from scene import COLOURS, INK, QUIET, RULE, THETA, A, projected

points, labels = A
t = projected(points)
foot = t[:, None] * THETA
figure, ax = plt.subplots(figsize=(6.4, 4.4))
line = np.array([[-2.3], [2.4]]) * THETA
ax.annotate("", line[1], line[0], arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 1.4})
ax.annotate("direction θ", line[1], (-4, 8), textcoords="offset points", ha="right", color=INK)
for start, end in zip(points, foot, strict=True):
    ax.plot(*np.stack([start, end]).T, color=RULE, linewidth=1, zorder=1)
ax.scatter(*points.T, s=48, c=COLOURS[labels], edgecolor="white", linewidth=0.8, zorder=3)
ax.scatter(*foot.T, s=30, c=COLOURS[labels], marker="|", linewidth=2, zorder=3)
ax.annotate("x", points[2], (-12, 6), textcoords="offset points", color=QUIET, style="italic", fontsize=12)
ax.annotate("t = θ·x", foot[2], (4, -18), textcoords="offset points", color=QUIET, style="italic", fontsize=12)
ax.annotate("class “cat”", (-2.1, 0.85), color=COLOURS[0])
ax.annotate("class “dog”", (1.35, -0.75), color=COLOURS[1])
ax.set(aspect="equal", xticks=[], yticks=[], xlim=(-2.4, 2.5), ylim=(-1.3, points[:, 1].max() + 0.2))
ax.spines[:].set_visible(False)
