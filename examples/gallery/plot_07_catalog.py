"""
Which of 120 datasets is most like mine?
========================================

A catalog of 120 datasets: every choice of three digits, 40 images of each. Which of them
are most like a new dataset of 3s, 8s and 9s, made of images that no entry has?
"""

import tempfile
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Patch

import sotdd
from sotdd.demo import digits

images, labels = digits()
rows = [np.flatnonzero(labels == kind) for kind in range(10)]


def pick(kinds, part):
    """Images of some digits, under names that say nothing."""
    chosen = np.concatenate([rows[kind][part] for kind in kinds])
    return images[chosen], np.repeat(["a", "b", "c"], len(chosen) // 3)


projections = sotdd.Projections.fit([(images, labels)], n_projections=200)
choices = list(combinations(range(10), 3))
sketches = {
    " ".join(map(str, kinds)): sotdd.sketch(pick(kinds, slice(40)), projections)
    for kinds in choices
}

query = {3, 8, 9}
with tempfile.TemporaryDirectory() as folder:
    catalog = sotdd.Catalog(folder)
    catalog.add_many(sketches)
    hits = catalog.nearest(pick(sorted(query), slice(40, 80)), k=12)
hits

# %%

common = [len(query & {int(kind) for kind in hit.name.split()}) for hit in hits]
colours = {3: "#0b2f57", 2: "#1f5f99", 1: "#a8cbe6", 0: "#d5dbe1"}
figure, ax = plt.subplots(figsize=(7.5, 4.6))
ax.barh(
    [hit.name for hit in hits],
    [hit.distance.value for hit in hits],
    xerr=[hit.distance.stderr for hit in hits],
    color=[colours[n] for n in common],
    error_kw={"ecolor": "#1d2733", "elinewidth": 1},
)
ax.invert_yaxis()
ax.set(
    xlim=(0, 0.5),
    xlabel="distance to 3 8 9",
    ylabel="entry",
    title="The twelve nearest of 120",
)
ax.grid(axis="x")
ax.tick_params(axis="y", length=0)
kinds = sorted(set(common), reverse=True)
ax.legend(
    [Patch(color=colours[n]) for n in kinds], [f"{n} digits in common" for n in kinds]
)
plt.show()

# %%
# The entry with the same digits comes first, then those that share two. Label names play no
# part: the catalog compares the images and how labels group them.
