"""
Which columns changed?
======================

Two months of one table: incomes rose, and height and weight no longer go together, since
one of them was joined by the wrong key. No single column shows the second.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import sotdd

rng = np.random.default_rng(0)


def month(rise, joined):
    """A table of people."""
    size = rng.normal(size=1500)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 1500),
            "income": rng.lognormal(10, 0.5, 1500) * rise,
            "visits": rng.poisson(3, 1500),
            "height": 172 + 9 * size,
            "weight": 74 + 11 * (0.8 * size + 0.6 * rng.normal(size=1500)),
            "member": rng.random(1500) < 0.3,
        }
    )
    if not joined:
        table["weight"] = rng.permutation(table["weight"])
    table["label"] = np.where(table.age + rng.normal(0, 8, 1500) > 45, "stays", "leaves")
    return table


march, april = month(1.0, joined=True), month(1.25, joined=False)
why = sotdd.explain(march, april)
why.test.changes

# %%

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
why.by_feature.plot(ax)
plt.show()

# %%
# Income makes one part of the distance, and height and weight *together* the other: each
# of them alone has the same distribution in both months. Columns that the test does not
# find to have changed have no share.
