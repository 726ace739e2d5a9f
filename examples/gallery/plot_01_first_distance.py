"""
A first distance, and how it settles
====================================

Half of the handwritten digits that come with the package, against the other half with
noise on every pixel. Any arrays and any labels work; sizes and label sets may differ.
"""

import matplotlib.pyplot as plt
import numpy as np

import sotdd
from sotdd import demo

datasets = demo.datasets()
digits, noisy = datasets["digits"], datasets["noisy"]

found = sotdd.distance(digits, noisy)
found

# %%
# The distance is a mean over random projections, so it has an error, and the result
# carries it.

low, high = found.interval(0.95)
print(f"{found.value:.4f}, between {low:.4f} and {high:.4f} with 95 % confidence")

# %%
# How does the value settle with more projections? Eight seeds each, for the paper's plain
# mean over projections and for the controlled estimator, which is the default.

counts = [32, 64, 128, 256, 512, 1024]
figure, ax = plt.subplots()
for estimator, colour, offset in (("plain", "C1", 0.94), ("controlled", "C0", 1.06)):
    values = [
        [
            sotdd.distance(
                digits, noisy, n_projections=n, seed=seed, estimator=estimator
            ).value
            for seed in range(8)
        ]
        for n in counts
    ]
    for n, row in zip(counts, values, strict=True):
        ax.plot(
            np.full(8, n * offset),
            row,
            "o",
            color=colour,
            markersize=5,
            alpha=0.6,
            markeredgewidth=0,
        )
    ax.plot([], [], "o", color=colour, label=estimator)
ax.axhspan(low, high, color="C0", alpha=0.15, linewidth=0, label="95 % interval from 1,000")
ax.set(
    xscale="log",
    xlabel="projections",
    ylabel="distance, in units of the pooled spread",
    title="Eight seeds each",
    xticks=counts,
    xticklabels=counts,
)
ax.minorticks_off()
ax.grid(axis="y")
ax.legend()
plt.show()

# %%
# Both estimators settle on the same value; the controlled one needs far fewer projections.
