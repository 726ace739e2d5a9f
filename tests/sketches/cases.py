"""Labelled datasets for sketches."""


def labelled(rng, n, d=6, classes=4, shift=0.0):
    labels = rng.integers(classes, size=n)
    return rng.normal(size=(n, d)) + 0.5 * labels[:, None] + shift, labels
