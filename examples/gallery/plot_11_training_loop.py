"""
A network that learns by the distance
=====================================

A sensor was replaced, and its measurements come out turned and stretched. A small network
learns to map them back, from batches of both sensors: there are no pairs of points, only
two labelled datasets. The loss is the distance between them.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

import sotdd
from sotdd.gradients import sotdd_loss

rng = np.random.default_rng(0)
centres = np.array([[0.0, 0.0], [5.0, 1.0], [1.0, 4.0]])


def measured(n, turn=0.0, stretch=(1.0, 1.0)):
    """Points of three classes as a sensor gives them."""
    labels = rng.integers(3, size=n)
    points = centres[labels] + rng.normal(0, 0.6, size=(n, 2))
    turned = points @ np.array(
        [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
    )
    return (turned * stretch).astype(np.float32), labels


old, new = measured(2000), measured(2000, turn=0.7, stretch=(1.6, 0.7))
sotdd.distance(old, new, noise_floor=True)

# %%
# The projections are drawn once, from the sensor that the other shall look like: the
# scale of a loss must not change while it falls. Two loaders hand out batches of 256
# points.

projections = sotdd.Projections.fit([old], n_projections=128, seed=0)
batches = [
    DataLoader(
        TensorDataset(*map(torch.as_tensor, data)),
        batch_size=256,
        shuffle=True,
        drop_last=True,
    )
    for data in (old, new)
]

torch.manual_seed(0)
network = torch.nn.Sequential(
    torch.nn.Linear(2, 32), torch.nn.SiLU(), torch.nn.Linear(32, 2)
)
optimiser = torch.optim.Adam(network.parameters(), lr=0.01)

losses = []
for _epoch in range(20):
    for (x, y), (x_new, y_new) in zip(*batches, strict=False):
        optimiser.zero_grad()
        loss = sotdd_loss(network(x_new), y_new, x, y, projections)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())

with torch.no_grad():
    mapped = network(torch.as_tensor(new[0])).numpy(), new[1]

after = sotdd.distance(old, mapped, projections=projections, noise_floor=True)
after

# %%

colours = np.array(["#1f5f99", "#c05a12", "#4d8f57"])
figure, axes = plt.subplots(1, 4, figsize=(13, 3.2), width_ratios=(1, 1, 1, 1.2))
for ax, (points, labels), title in zip(
    axes,
    (old, new, mapped),
    ("old sensor", "new sensor", "new sensor, mapped"),
    strict=False,
):
    ax.scatter(*points.T, s=3, c=colours[labels], linewidths=0)
    ax.set(xlim=(-4, 12), ylim=(-4, 7), xticks=[], yticks=[], aspect="equal", title=title)
    ax.spines[:].set_visible(False)
axes[-1].plot(losses)
axes[-1].set(yscale="log", xlabel="step", title="loss: squared distance of batches")
axes[-1].grid()
plt.show()

# %%
# The classes lie where they lay before. The loss ends where batches of one sensor would:
# two batches of 256 points are never the same.
