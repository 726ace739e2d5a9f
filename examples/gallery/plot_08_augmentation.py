"""
Which augmentation brings training data nearest to use?
=======================================================

Training images are clean; those in use come from another scanner, which blurs and turns
them a little. Which augmentation brings the training set nearest to the images in use?
The distance answers before anything is trained.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage

import sotdd
from sotdd.demo import digits

images, labels = digits()
images = images.astype(np.float32)
rng = np.random.default_rng(0)
train, used = np.array_split(rng.permutation(len(images)), 2)


def turn(batch, most):
    """Each image turned by a random angle of up to ``most`` degrees."""
    angles = rng.uniform(-most, most, len(batch))
    return np.stack(
        [
            ndimage.rotate(x, a, reshape=False, order=1)
            for x, a in zip(batch, angles, strict=True)
        ]
    )


def blur(batch, width):
    """Every image blurred."""
    return ndimage.gaussian_filter(batch, (0, width, width))


def shift(batch):
    """Each image moved by up to one pixel."""
    steps = rng.integers(-1, 2, size=(len(batch), 2))
    return np.stack(
        [ndimage.shift(x, s, order=0) for x, s in zip(batch, steps, strict=True)]
    )


in_use = turn(blur(images[used], 0.7), 12), labels[used]
clean = images[train]
candidates = {
    "as they are": clean,
    "turn": turn(clean, 15),
    "blur": blur(clean, 0.7),
    "blur and turn": turn(blur(clean, 0.6), 15),
    "shift": shift(clean),
    "noise": np.clip(clean + rng.normal(0, 3, clean.shape), 0, 16),
    "mirror": clean[:, :, ::-1],
}

ranking = sotdd.rank(
    in_use,
    {name: (batch, labels[train]) for name, batch in candidates.items()},
    n_projections=500,
    noise_floor=True,
)
ranking

# %%

figure = plt.figure(figsize=(8.5, 4.4))
grid = figure.add_gridspec(len(ranking), 2, width_ratios=(1, 9), wspace=0.02, hspace=0.15)
ax = figure.add_subplot(grid[:, 1])
nearest = ranking.lines[0]
ax.barh(
    [line.name for line in ranking],
    [line.distance.value for line in ranking],
    xerr=[line.distance.stderr for line in ranking],
    color=["C0" if line.rank == nearest.rank else "#a8cbe6" for line in ranking],
    error_kw={"ecolor": "#1d2733", "elinewidth": 1},
)
floor = nearest.distance.noise_floor
ax.axvline(floor, color="C1", linestyle=(0, (4, 3)), linewidth=1.2)
ax.annotate(
    "noise floor",
    (floor, -0.5),
    (4, 2),
    textcoords="offset points",
    color="C1",
    fontsize=9,
    annotation_clip=False,
)
ax.invert_yaxis()
ax.set(xlabel="distance to the images in use", title="Which augmentation comes nearest?")
ax.tick_params(axis="y", length=0)
ax.grid(axis="x")
for row, line in enumerate(ranking):
    shown = figure.add_subplot(grid[row, 0])
    shown.imshow(candidates[line.name][7], cmap="gray_r", vmin=0, vmax=16)
    shown.set_axis_off()
plt.show()

# %%
# Blur and turn together come nearest by far. They stay above the noise floor, since these
# strengths are not quite those of the scanner. The same comparison can choose among
# strengths.
