"""
Which of nine datasets are alike?
=================================

Nine datasets of small pictures: two halves of the handwritten digits that come with the
package, and the second half with more and more noise, more and more blur, and more and
more wrong labels. All pairs are measured through the same projections, so every dataset
is projected and sorted once.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage

import sotdd
from sotdd.demo import digits

images, labels = digits()
rng = np.random.default_rng(0)
first, second = np.array_split(rng.permutation(len(images)), 2)
others, kinds = images[second].astype(float), labels[second]


def mislabelled(share):
    """Labels of which this share is shuffled."""
    wrong = kinds.copy()
    rows = rng.choice(len(kinds), int(share * len(kinds)), replace=False)
    wrong[rows] = rng.permutation(wrong[rows])
    return wrong


datasets = {"digits": (images[first], labels[first]), "more digits": (others, kinds)}
for strength in (2, 4):
    datasets[f"noise {strength}"] = (
        np.clip(others + rng.normal(0, strength, others.shape), 0, 16),
        kinds,
    )
for width in (0.5, 0.7, 1.0):
    datasets[f"blur {width}"] = ndimage.gaussian_filter(others, (0, width, width)), kinds
for share in (0.5, 1.0):
    datasets[f"{share:.0%} wrong labels"] = others, mislabelled(share)

matrix = sotdd.pairwise(datasets, noise_floor=True)
for line in matrix.rank("digits"):
    print(f"{line.rank:>2}  {line.name:<18} {line.distance}")

# %%
# The heat map puts near datasets side by side. The map places them in the plane, as near
# to each other as they were measured; its stress says how faithfully.

figure, (left, right) = plt.subplots(1, 2, figsize=(14, 5.2), width_ratios=(1, 1.05))
matrix.plot(left)
matrix.map(right)
plt.show()

# %%
# The halves of one set are within noise of each other. Noise, blur and wrong labels lead
# away from them in three directions, and each farther with its strength.
