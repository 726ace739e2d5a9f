"""The projected points, and the same after each class was shifted by its term."""

import matplotlib.pyplot as plt
import numpy as np
from scene import COLOURS, INK, PSI, QUIET, RULE, A, placed, projected, terms

points, labels = A
t = projected(points)
before, after = PSI[0] * t, placed(points, labels)
figure, ax = plt.subplots(figsize=(6.4, 2.6))
for height, values in ((1.0, before), (0.0, after)):
    ax.axhline(height, color=RULE, linewidth=1, zorder=0)
    ax.scatter(
        values, np.full(len(values), height), s=46, c=COLOURS[labels], edgecolor="white", linewidth=0.8, zorder=3
    )
for start, end, kind in zip(before, after, labels, strict=True):
    ax.plot([start, end], [0.94, 0.06], color=COLOURS[kind], linewidth=0.8, alpha=0.35, zorder=1)
for kind, (name, term) in enumerate(zip(("cat", "dog"), terms(t, labels), strict=True)):
    middle = (before[labels == kind].mean() + after[labels == kind].mean()) / 2
    ax.annotate(
        f"{term:+.2f}, the term of “{name}”".replace("-", "−"), (middle, 0.5), ha="center", va="center",
        color=COLOURS[kind],
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 2},
    )  # fmt: skip
for height, text in ((1.0, "ψ₁ t"), (0.0, "ψ₁ t + term")):
    ax.annotate(
        text,
        (0, height),
        (-6, 0),
        ("axes fraction", "data"),
        textcoords="offset points",
        ha="right",
        va="center",
        color=INK,
    )
ax.set(yticks=[], ylim=(-0.3, 1.3))
ax.spines[["left"]].set_visible(False)
ax.tick_params(colors=QUIET)
