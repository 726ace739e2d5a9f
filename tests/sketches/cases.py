"""Labelled datasets for sketches, and ways to go over them."""

import itertools

import sotdd


def labelled(rng, n, d=6, classes=4, shift=0.0):
    labels = rng.integers(classes, size=n)
    return rng.normal(size=(n, d)) + 0.5 * labels[:, None] + shift, labels


def in_batches(data, edges):
    x, y = data
    return [(x[a:b], y[a:b]) for a, b in itertools.pairwise([0, *edges, len(x)])]


def two_passes(batches, projections):
    statistics = sotdd.ClassStatistics(projections)
    for batch in batches:
        statistics.add(*batch)
    builder = sotdd.SketchBuilder(projections, statistics)
    for batch in batches:
        builder.add(*batch)
    return builder.finish()
