"""
Which mixture of my sources looks like this dataset?
====================================================

A shop has orders of four regions. A new batch does not say where its orders come from: 60 %
are from the north and 40 % from the east. What does the mixture say?
"""

import matplotlib.pyplot as plt
import numpy as np

import sotdd

rng = np.random.default_rng(0)
regions = ("north", "east", "south", "west", "abroad")
centres = dict(zip(regions, 1.5 * rng.normal(size=(5, 8)), strict=True))


def orders(region, n):
    """Rows of eight numbers from one region, without labels."""
    return centres[region] + rng.normal(size=(n, 8))


sources = {region: orders(region, 1500) for region in regions[:4]}
batch = np.concatenate([orders("north", 1200), orders("east", 800)])
mixture = sotdd.mix(batch, sources)
mixture

# %%

figure, ax = plt.subplots(figsize=(7, 3.2))
mixture.plot(ax)
plt.show()

# %%
# Orders that are like none of the sources are left over. Here are some from abroad:

odd = np.concatenate([batch, orders("abroad", 400)])
print(sotdd.mix(odd, sources).left_over)
