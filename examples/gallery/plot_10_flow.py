"""
Which points move where, if one dataset becomes another?
========================================================

The distance has a gradient, so gradient descent can move one labelled dataset towards
another. Here a ring in two colours flows into two moons. Nothing says which point should go
where, or which class should become which.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import sotdd

rng = np.random.default_rng(0)
angle = 2 * np.pi * np.arange(300) / 300
ring = (
    np.stack([np.cos(angle), np.sin(angle)], axis=1) + rng.normal(0, 0.04, size=(300, 2)),
    (angle > np.pi).astype(int),
)
moons = make_moons(300, noise=0.06, random_state=0)

flow = sotdd.flow(
    ring, moons, steps=80, n_projections=128, snapshots=[0, 1, 2, 4, 8, 16, 32, 80]
)
flow

# %%

colours = np.array(["#1f5f99", "#c05a12"])
shown = [flow.snapshots[place] for place in (0, 2, 4, 7)]
figure, axes = plt.subplots(1, 5, figsize=(13, 3.0), width_ratios=(1, 1, 1, 1, 1.25))
for ax, snapshot in zip(axes, shown, strict=False):
    ax.scatter(*moons[0].T, s=6, c="#e3e7eb", linewidths=0)
    ax.scatter(*snapshot.features.T, s=6, c=colours[snapshot.labels], linewidths=0)
    ax.set(
        xlim=(-1.5, 2.4),
        ylim=(-1.6, 1.6),
        xticks=[],
        yticks=[],
        aspect="equal",
        title=f"step {snapshot.step}",
    )
    ax.spines[:].set_visible(False)
axes[-1].plot(flow.steps, flow.distances, "o-", markersize=4)
axes[-1].set(xscale="symlog", yscale="log", xlabel="step", title="distance to the moons")
axes[-1].set_xticks([0, 1, 10, 80], ["0", "1", "10", "80"])
axes[-1].set_yticks([0.02, 0.05, 0.1, 0.2, 0.4], ["0.02", "0.05", "0.1", "0.2", "0.4"])
axes[-1].minorticks_off()
axes[-1].grid()
plt.show()

# %%
# The distance falls by more than an order of magnitude, and each half of the ring has
# become one moon: points moved, and labels stayed with them.
