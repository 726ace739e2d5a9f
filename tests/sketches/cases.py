"""Labelled datasets for sketches, and ways to go over them."""

import itertools

import numpy as np


def labelled(rng, n, d=6, classes=4, shift=0.0):
    labels = rng.integers(classes, size=n)
    return rng.normal(size=(n, d)) + 0.5 * labels[:, None] + shift, labels


def in_batches(data, edges):
    x, y = data
    return [(x[a:b], y[a:b]) for a, b in itertools.pairwise([0, *edges, len(x)])]


def assert_same_controls(a, b):
    np.testing.assert_allclose(a.gaussian_moments, b.gaussian_moments, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(a.direction_moments, b.direction_moments, rtol=1e-5, atol=1e-7)
    for name in ("even", "between", "mean", "dimensions"):
        np.testing.assert_allclose(getattr(a.point_moments, name), getattr(b.point_moments, name), rtol=1e-6, atol=1e-8)
