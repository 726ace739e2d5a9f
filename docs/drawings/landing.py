"""How far five datasets are from the digits, with some of their pictures: to be read on a phone."""

import matplotlib.pyplot as plt
import numpy as np
from scene import COLOURS, INK, QUIET

import sotdd
from sotdd.demo import datasets

SHOWN = 5  # pictures of each

some = datasets()
digits = some.pop("digits")
order = list(sotdd.rank(digits, some))
figure, (left, right) = plt.subplots(1, 2, figsize=(5.4, 3.5), width_ratios=(1.05, 1), sharey=True)
for row, line in enumerate(order):
    images, labels = some[line.name]
    strip = np.hstack([np.pad(images[3 * k + 1], 1, constant_values=0) for k in range(SHOWN)])
    left.imshow(strip, extent=(0, SHOWN, row + 0.28, row - 0.36), cmap="Greys", vmin=0, vmax=16, aspect="auto")
    names = "  ".join(str(labels[3 * k + 1])[:1] for k in range(SHOWN)) if line.name == "shuffled" else ""
    left.text(
        0, row - 0.42, f"{line.name}{': labels ' + names if names else ''}", fontsize=11.5, color=INK, va="bottom"
    )
    value = line.distance.value
    right.barh(row, value, height=0.55, color=COLOURS[1 if value > 1 else 0])
    right.text(value + 0.02 if value < 1 else value - 0.03, row, f"{value:.2f}", fontsize=12, va="center",
               ha="left" if value < 1 else "right", color=INK if value < 1 else "white")  # fmt: skip
left.set(xlim=(0, SHOWN), ylim=(len(order) - 0.6, -0.8))
for ax in (left, right):
    ax.axis("off")
right.set_title("distance from digits", fontsize=11.5, color=QUIET, loc="left", fontweight="normal")
