"""Datasets for catalogs."""

SMALL = {"n_quantiles": 32}


def labelled(rng, n=200, shift=0.0, classes=3):
    labels = rng.integers(classes, size=n)
    return rng.normal(size=(n, 4)) * rng.uniform(0.5, 1.5, size=4) + 0.3 * labels[:, None] + shift, labels
