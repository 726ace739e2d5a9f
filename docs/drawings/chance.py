"""Two tables beside what chance gives: the test that an expectation rests on."""

import matplotlib.pyplot as plt
import numpy as np
from scene import COLOURS, INK, QUIET

import sotdd

rng = np.random.default_rng(0)
reference = sotdd.DriftReference.fit(rng.normal(size=(2000, 6)))
figure, axes = plt.subplots(1, 2, figsize=(8.2, 2.9), sharex=True, sharey=True)
for ax, shift, word in zip(axes, (0, 1 / 3), ("success", "failure"), strict=True):
    found = reference.test(rng.normal(shift, 1, size=(200, 6)))
    ax.hist(found.null_distances, bins=24, color=QUIET, alpha=0.45, label="permutations")
    ax.axvline(found.distance, color=COLOURS[int(shift > 0)], linewidth=2.4, label="the table")
    ax.set(title=f"{word}: p = {found.p_value:.3g}", xlabel="distance", yticks=[])
    ax.spines["left"].set_visible(False)
axes[0].legend(labelcolor=INK)
