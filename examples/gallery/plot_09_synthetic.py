"""
Which generator makes the most realistic data?
==============================================

The breast cancer table of scikit-learn: 569 tumours, 30 columns, two classes. Five
generators are fitted to one half, and judged by how far their data are from the other
half, which they never saw.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

import sotdd

x, y = load_breast_cancer(return_X_y=True)
x = scale(np.log1p(x))
rng = np.random.default_rng(0)
train, held_out = np.array_split(rng.permutation(len(x)), 2)
x, y, real = x[train], y[train], (x[held_out], y[held_out])


def by_class(make):
    """Points of each class, as many as there are."""
    made = x.copy()
    for kind in np.unique(y):
        made[y == kind] = make(x[y == kind])
    return made


def gaussian(points, spread=1.0):
    """As many points from the normal law with the same mean and covariance."""
    return rng.multivariate_normal(
        points.mean(0), spread**2 * np.cov(points.T), size=len(points)
    )


generators = {
    "a normal law per class": (by_class(gaussian), y),
    "a narrow normal law per class": (by_class(lambda points: gaussian(points, 0.5)), y),
    "one normal law, labels by chance": (gaussian(x), rng.permutation(y)),
    "columns shuffled in a class": (
        by_class(lambda points: rng.permuted(points, axis=0)),
        y,
    ),
    "training rows once more": (x, y),
}

# %%
# All are measured together, so that one unit serves all. Some columns have long tails, so
# classes enter by their quantiles rather than by moments. The picture shows the distance of
# each, its noise floor, and how much of what is beyond noise is features.

matrix = sotdd.pairwise(
    {"real": real, **generators}, label_law="quantiles", noise_floor=True
)
ranking = matrix.rank("real")
for line in ranking:
    print(f"{line.name:<33} {line.distance}")

# %%

figure, ax = plt.subplots(figsize=(8.5, 3.8))
scaler = matrix.projections.scaler
for row, line in enumerate(ranking):
    why = sotdd.explain(generators[line.name], real, label_law="quantiles", scale=scaler)
    value, floor, first = line.distance.value, line.distance.noise_floor, row == 0
    if why.within_noise:
        ax.barh(line.name, value, color="C2", label="no difference found")
    else:
        told = row == len(ranking) - 1  # in the legend once
        ax.barh(line.name, value, color="C1", label="added by labels" if told else None)
        features = value * np.clip(why.features, 0, 1)
        ax.barh(line.name, features, color="C0", label="features" if told else None)
    ax.plot(
        [floor, floor],
        [row - 0.42, row + 0.42],
        color="#1d2733",
        label="noise floor" if first else None,
    )
ax.invert_yaxis()
ax.set(
    xlabel="distance to real data that no generator saw",
    title="How good are five generators?",
)
ax.tick_params(axis="y", length=0)
ax.grid(axis="x")
ax.legend(loc="upper right")
plt.show()

# %%
# Only for the training rows does the test find no difference. A normal law per class comes
# next, then columns shuffled within a class. Random labels, and points too close to the
# middle of their class, are far.
