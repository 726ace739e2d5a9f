"""A network that learns by the distance, which is its loss.

A sensor was replaced, and its measurements come out turned and stretched. A small network learns to map them back, from
batches of both sensors: there are no pairs of points, only two labelled datasets. Draws ``learn_by_distance.png``:

    python examples/learn_by_distance.py
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, TensorDataset

import sotdd
from sotdd.gradients import sotdd_loss

rng = np.random.default_rng(0)
centres = np.array([[0.0, 0.0], [5.0, 1.0], [1.0, 4.0]])


def measure_points(
    n: int, turn: float = 0.0, stretch: tuple[float, float] = (1.0, 1.0)
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Points of three classes as a sensor gives them."""
    labels = rng.integers(3, size=n)
    points = centres[labels] + rng.normal(0, 0.6, size=(n, 2))
    turned = points @ np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    return (turned * stretch).astype(np.float32), labels


old, new = measure_points(2000), measure_points(2000, turn=0.7, stretch=(1.6, 0.7))
print("before:", sotdd.distance(old, new, noise_floor=True))

# Projections are sampled once, from the sensor that the other shall look like: the scale of a loss must not change
# while it falls. Two loaders hand out batches of 256 points.

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
network = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.SiLU(), torch.nn.Linear(32, 2))
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

print("after:", sotdd.distance(old, mapped, projections=projections, noise_floor=True))

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
# The loss ends where batches of one sensor would: two batches of 256 points are never the same.
figure.savefig("learn_by_distance.png")
