"""Whether `sotdd.explain` names what differs, and nothing where nothing does."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

import sotdd
from benchmarks.decision_data import Source, equal_shares
from benchmarks.decision_power import share
from benchmarks.ordinary import Dataset

_CLASSES = 5


def classes_apart(d: int) -> Source:
    """Five normal classes about six standard deviations apart in any dimension; in the plane on a grid."""
    centres = np.random.default_rng(5).normal(size=(_CLASSES, d)) * 6 / np.sqrt(2 * d)
    if d == 2:
        centres = np.array([(5.0 * (i % 3), 5.0 * (i // 3)) for i in range(_CLASSES)])
    return Source(equal_shares(_CLASSES), lambda rng, labels: centres[labels] + rng.normal(size=(len(labels), d)))


def moved(data: Dataset) -> Dataset:
    """Class 0 moved by one and a half standard deviations."""
    features, labels = data
    return features + 1.5 / np.sqrt(features.shape[1]) * (labels == 0)[:, None], labels


def missing(data: Dataset) -> Dataset:
    """Class 0 is not there."""
    return data[0][data[1] > 0], data[1][data[1] > 0]


def swapped(data: Dataset) -> Dataset:
    """Classes 0 and 1 under each other's names."""
    return data[0], np.where(data[1] < 2, 1 - data[1], data[1])


def lost(why: sotdd.results.Explanation) -> list[Hashable]:
    """Classes of the first dataset without a counterpart."""
    return [line.label for line in why.lines(0) if line.counterpart is None]


def moves(why: sotdd.results.Explanation) -> list[Hashable]:
    """Classes that have moved and kept their counterpart."""
    return [line.label for line in why.lines(0) if line.moved and line.label == line.counterpart]


# What differs, and whether an explanation says it.
CAUSES: dict[str, tuple[Callable[[Dataset], Dataset], Callable[[sotdd.results.Explanation], bool]]] = {
    "nothing": (lambda data: data, lambda why: why.within_noise),
    "one class moved 1.5 sd": (moved, lambda why: 0 in moves(why)),
    "one class missing": (missing, lambda why: lost(why) == [0]),
    "two names swapped": (swapped, lambda why: why.renamed == ((0, 1), (1, 0))),
}


def causes(simulations: int, n: int = 300, dimensions: tuple[int, ...] = (2, 20, 500)) -> list[list[str]]:
    """How often an explanation says what differs; of nothing, that it is noise."""
    lines = [["what differs", *(f"{d} features" for d in dimensions)]]
    for name, (change, says) in CAUSES.items():
        cells = []
        for d in dimensions:
            found = []
            for simulation in range(simulations):
                first, second = classes_apart(d).pair(np.random.default_rng(simulation), (n, n))
                found.append(says(sotdd.explain(first, change(second), n_projections=128, seed=simulation)))
            cells.append(share(found))
        lines.append([name, *cells])
        print(lines[-1], flush=True)
    return lines
