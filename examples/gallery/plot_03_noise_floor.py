"""
Is this distance more than chance?
==================================

Two samples of one source are never at distance zero. How far apart they are by chance
depends on their size. With ``noise_floor=True`` a distance comes with that floor: what
random splits of the pooled points give, through the same projections.
"""

import matplotlib.pyplot as plt
import numpy as np

import sotdd
from sotdd.demo import digits

images, labels = digits()
rng = np.random.default_rng(0)
order = rng.permutation(len(images))

sizes = [50, 100, 200, 400, 800]
alike, faded, floors, limits = [], [], [], []
for n in sizes:
    a, b = order[:n], order[-n:]
    same = sotdd.distance(
        (images[a], labels[a]), (images[b], labels[b]), n_projections=300, noise_floor=True
    )
    less_ink = sotdd.distance(
        (images[a], labels[a]),
        (0.93 * images[b], labels[b]),
        n_projections=300,
        noise_floor=True,
    )
    alike.append(same)
    faded.append(less_ink)
    floors.append(less_ink.noise_floor)
    limits.append(less_ink.noise.limit(0.95))
for n, found in zip(sizes, faded, strict=True):
    print(f"{n:>4} points: {found.value / found.noise_floor:.2f} times the floor")

# %%

figure, ax = plt.subplots()
ax.fill_between(sizes, 0, limits, color="C0", alpha=0.15, linewidth=0, label="within noise")
ax.plot(
    sizes, floors, color="C0", linestyle=(0, (4, 3)), linewidth=1.2, label="noise floor"
)
ax.plot(
    sizes,
    [found.value for found in alike],
    "o",
    color="C0",
    label="other digits of the same source",
)
ax.plot(
    sizes,
    [found.value for found in faded],
    "s",
    color="C1",
    label="other digits, with 7 % less ink",
)
ax.set(
    xscale="log",
    xticks=sizes,
    xticklabels=sizes,
    ylim=(0, None),
    xlabel="points in each sample",
    ylabel="distance, in units of the pooled spread",
    title="More points lower the floor",
)
ax.minorticks_off()
ax.grid(axis="y")
ax.legend()
plt.show()

# %%
# The same loss of ink is near the edge of chance with a hundred digits and far beyond it
# with eight hundred: whether a distance is small is a question about the floor, not about
# the number.
