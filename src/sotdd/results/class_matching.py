"""Which class of one dataset is which of the other: one to one, by distances with chance taken off."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from sotdd.results.class_comparison import ClassComparison

# Classes this unlikely by chance alone differ.
LEVEL = 0.05

# When classes are matched, distances up to this many deviations above what chance gives count as zero.
_WITHIN_NOISE = 2.0

Pair = tuple[int, int]


@dataclass(frozen=True)
class ClassMatches:
    """Pairs of classes, and how often chance alone would put them this far apart.

    Attributes
    ----------
    pairs
        Rows and columns of the classes that belong together; the larger dataset has classes left over.
    p_values
        Of those pairs, and of others that were asked about: those that share a name.
    """

    pairs: tuple[Pair, ...]
    p_values: dict[Pair, float]

    def differ(self, pair: Pair) -> bool:
        """Whether two classes are farther apart than chance puts samples of one class."""
        return self.p_values[pair] <= LEVEL


def match_classes(comparison: ClassComparison, classes: Sequence[Sequence[Hashable]]) -> list[Pair]:
    """Pair the classes of two datasets one to one, so that little is left to explain.

    What counts of a pair is the root of the distance beyond noise: one class far away explains more simply than
    many classes that each move a little. Where noise leaves a choice, classes of one name go together.
    """
    from scipy.optimize import linear_sum_assignment

    beyond = comparison.excess - _WITHIN_NOISE * comparison.jitter * comparison.floors
    apart = np.maximum(beyond, 0.0) ** (1 / (2 * comparison.p))
    unit = float(apart.max()) or 1.0
    preference = 1e-6 * unit * (comparison.distances / (float(comparison.distances.max()) or 1.0))
    for i, j in same_names(classes):
        preference[i, j] = -1e-6 * unit
    rows, columns = linear_sum_assignment(apart + preference)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def same_names(classes: Sequence[Sequence[Hashable]]) -> list[Pair]:
    """Rows and columns of the classes that have one name on both sides."""
    first, second = classes
    column = {label: j for j, label in enumerate(second)}
    return [(i, column[label]) for i, label in enumerate(first) if label in column]
