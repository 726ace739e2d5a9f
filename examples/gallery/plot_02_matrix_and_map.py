"""
A matrix and a map
==================

Six datasets of small pictures: two halves of the handwritten digits that come with the package, the second half again with
noise, with even digits only and with labels dealt at random, and stripes as a stranger. All pairs are measured through the
same projections, so every dataset is projected and sorted once.
"""

import matplotlib.pyplot as plt

import sotdd
from sotdd import demo

matrix = sotdd.pairwise(demo.datasets(), noise_floor=True)
matrix

# %%
# The heat map puts near datasets side by side. The map places them in the plane, as near to each other as they were
# measured; its stress says how faithfully.

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.8), width_ratios=(1.15, 1))
matrix.plot(left)
matrix.map(right)
plt.show()

# %%
# The halves of one set are within noise of each other. Noise on the pixels, missing classes and wrong labels each move the
# dataset a little, in directions of their own; stripes are far from all of them.
