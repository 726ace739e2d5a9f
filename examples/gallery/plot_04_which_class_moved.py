"""
Which class moved?
==================

In the second half of the digits every 3 is mirrored, as if a scanner had been set up
wrongly for some of the pages. The distance says that something differs;
:func:`sotdd.explain` says what.
"""

import matplotlib.pyplot as plt
import numpy as np

import sotdd
from sotdd.demo import digits

images, labels = digits()
order = np.random.default_rng(0).permutation(len(images))
first, second = np.array_split(order, 2)

changed, names = images[second].copy(), labels[second]
changed[names == 3] = changed[names == 3][:, :, ::-1]

before = sotdd.open_dataset((images[first], labels[first]), name="before")
after = sotdd.open_dataset((changed, names), name="after")
why = sotdd.explain(before, after, n_projections=500)
print(why)

# %%
# On the left the distance of every class to every other; counterparts are framed. On the
# right the share of the squared distance that the points of each class carry.

figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.6), width_ratios=(1.25, 1))
why.plot(left)
lines = sorted(why.lines(1), key=lambda line: line.label)
right.barh(
    [str(line.label) for line in lines],
    [100 * line.share for line in lines],
    color=["C1" if line == why.lines(1)[0] else "C0" for line in lines],
)
right.invert_yaxis()
right.set(
    xlabel="% of the squared distance, by digit of “after”",
    title="Where the distance comes from",
)
right.grid(axis="x")
right.tick_params(axis="y", length=0)
plt.show()

# %%
# The mirrored 3 is farther from the true 3 than any other digit is from its own kind, and
# carries the largest share: it is the class to look at.
