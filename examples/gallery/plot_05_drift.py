"""
Drift over time
===============

A pipeline receives batches of 60 digits. The reference is fitted once, and keeps quantile
functions and what chance gives, no images. From batch 12 on the pen slowly runs dry.
"""

import matplotlib.pyplot as plt
import numpy as np

import sotdd
from sotdd.demo import digits

images, labels = digits()
rng = np.random.default_rng(1)
order = rng.permutation(len(images))
known, later = order[:900], order[900:]

reference = sotdd.DriftReference.fit(
    (images[known], labels[known]), batch_size=60, n_batches=299
)
reference

# %%

days, tests = np.arange(28), []
for day in days:
    rows = rng.choice(later, 60, replace=False)
    ink = 1.0 - 0.035 * max(0, day - 11)
    tests.append(reference.test((ink * images[rows], labels[rows])))

# %%
# The band is where 90 % of batches of the reference itself lie.

low, high = tests[0].quantiles((0.05, 0.95)).values()
distances = np.array([found.distance for found in tests])
alarm = np.array([found.rejects(0.01) for found in tests])

figure, ax = plt.subplots(figsize=(8.5, 4.0))
ax.axhspan(
    low, high, color="C0", alpha=0.15, linewidth=0, label="90 % of batches of the reference"
)
ax.axvline(11.5, color="C2", linewidth=1, linestyle=(0, (4, 3)))
ax.annotate(
    "the pen begins to run dry",
    (11.5, 0.97),
    (-6, 0),
    ("data", "axes fraction"),
    textcoords="offset points",
    ha="right",
    va="top",
    color="C2",
    fontsize=9,
)
ax.plot(days, distances, color="C2", linewidth=1, zorder=2)
ax.plot(days[~alarm], distances[~alarm], "o", color="C0", label="p > 1 %")
ax.plot(days[alarm], distances[alarm], "o", color="C1", label="p ≤ 1 %: alarm")
ax.set(
    xlabel="batch",
    ylabel="distance to the reference",
    title="Batches of 60 digits, one after another",
)
ax.grid(axis="y")
ax.legend(loc="upper left", bbox_to_anchor=(0, 0.9))
plt.show()

first = int(days[alarm & (days > 11)][0])
left = 1 - 0.035 * (first - 11)
print(f"the first alarm after the change: batch {first}, with {left:.0%} of the ink")

# %%
# Batches stay in the band while nothing happens, and leave it for good some batches after
# the change; how many depends on the size of a batch.
