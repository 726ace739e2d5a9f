"""Columns of many kinds, and frames of them."""

import numpy as np
import pandas as pd


def mixed(rng, n=3000):
    """Columns of many kinds."""
    return np.column_stack(
        [
            rng.normal(5, 3, n),
            rng.lognormal(10, 1.5, n),
            rng.standard_t(1.2, n),
            rng.integers(0, 2, n),
            rng.random(n) < 0.01,
            rng.poisson(0.02, n),
            np.full(n, 1.7e18),
            rng.normal(1e8, 1e-2, n),
        ]
    ).astype(np.float64)


def table(x, **more):
    return pd.DataFrame(x, columns=[f"c{k}" for k in range(x.shape[1])]).assign(label=0, **more)
