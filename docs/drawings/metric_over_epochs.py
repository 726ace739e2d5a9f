"""A generator that learns: the metric after every epoch, with its interval, down to the noise floor."""

import matplotlib.pyplot as plt
import torch
from scene import COLOURS, QUIET

import sotdd
from sotdd.demo import digits
from sotdd.integrations.torchmetrics import SlicedOTDatasetDistance

images, labels = (torch.as_tensor(part) for part in digits())
real, other = images[::2].flatten(1).float(), images[1::2].flatten(1).float()
metric = SlicedOTDatasetDistance(
    sotdd.Projections.fit([(real, labels[::2])], n_projections=500), reset_real_features=False
)
metric.update(real, labels[::2], real=True)
noise = torch.randn(other.shape, generator=torch.Generator().manual_seed(0))
found = []
for epoch in range(10):
    share = 0.6**epoch  # of noise in what the generator makes
    made = (1 - share) * other + share * 16 * noise.abs()
    metric.update(made, labels[1::2], real=False)
    metric.compute()
    found.append(metric.result)
    metric.reset()

figure, ax = plt.subplots(figsize=(7.2, 3.4))
epochs = range(1, len(found) + 1)
low, high = zip(*(one.interval(0.95) for one in found), strict=True)
ax.fill_between(epochs, low, high, color=COLOURS[0], alpha=0.25, linewidth=0)
ax.plot(epochs, [one.value for one in found], color=COLOURS[0], marker="o", markersize=4)
floor = found[-1].noise_floor
ax.axhline(floor, color=QUIET, linewidth=1, linestyle="--")
ax.text(1, floor * 1.08, "two samples of one source", color=QUIET, fontsize=9, va="bottom")
ax.set(yscale="log", xlabel="epoch", ylabel="distance to the real digits", xticks=list(epochs))
