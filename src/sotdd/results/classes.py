"""The classes of two datasets: how far apart they are, what transport moves between them, and which is which."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.text import json_label, json_number, shown, with_error

Doubles = NDArray[np.float64]
Pair = tuple[int, int]

# Classes this unlikely by chance alone differ.
LEVEL = 0.05

# When classes are matched, distances up to this many deviations above what chance gives count as zero.
_WITHIN_NOISE = 2.0


@dataclass(frozen=True, eq=False)
class ClassComparison:
    """The classes of a dataset a beside those of a dataset b, as the projections see them.

    Every projection counts by its importance, as it does in the distance of the datasets.

    Attributes
    ----------
    distances, stderr
        (C, C') the sliced distance between each class of a and of b, and its standard error.
    within
        (C, C) and (C', C'): the same between the classes of one dataset; infinite on the diagonal.
    coupling
        (C, C') the share of all points that optimal transport moves from class to class; adds up to one.
    costs
        (C, C') the share of W_p^p that those moves cost; adds up to one, or is zero throughout
        where nothing has to move.
    sizes
        (C,) and (C',): how many points each class has.
    units
        (C,) and (C',): W_p^p of samples of n and m points of a class, by chance, is this times
        (1/n + 1/m)^(p/2). From the halves of each class.
    jitter
        Standard deviation of such a cost from sample to sample, as a share of it.
    p
        The order of transport.
    """

    distances: Doubles
    stderr: Doubles
    within: tuple[Doubles, Doubles]
    coupling: Doubles
    costs: Doubles
    sizes: tuple[NDArray[np.int64], NDArray[np.int64]]
    units: tuple[Doubles, Doubles]
    jitter: float
    p: float

    @property
    def floors(self) -> Doubles:
        """(C, C') the W_p^p that two samples of one class would have, of the sizes of each two classes."""
        return self._floors(0, 1)

    @property
    def excess(self) -> Doubles:
        """(C, C') W_p^p between classes less their floors; near zero for samples of one class."""
        excess: Doubles = self.distances**self.p - self.floors
        return excess

    @property
    def own_excess(self) -> tuple[Doubles, Doubles]:
        """(C,) and (C',): the excess between each class and the nearest other class of its own dataset."""
        first, second = (
            (matrix**self.p - self._floors(side, side)).min(axis=1) for side, matrix in enumerate(self.within)
        )
        return first, second

    def _floors(self, one: int, other: int) -> Doubles:
        """Floors between the classes of two sides: the mean of the two classes' own."""
        shrink = (1 / self.sizes[one][:, None] + 1 / self.sizes[other][None, :]) ** (self.p / 2)
        floors: Doubles = (self.units[one][:, None] + self.units[other][None, :]) / 2 * shrink
        return floors


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


@dataclass(frozen=True)
class ClassLine:
    """One class: its size, what is nearest to it on the other side, its share of the distance and that of chance."""

    label: Hashable
    n_points: int
    nearest: Hashable
    distance: float
    stderr: float
    share: float
    by_chance: float
    has_counterpart: bool
    moved: bool

    @property
    def is_named(self) -> bool:
        """Whether a reader should look at it: it has moved, or has no counterpart."""
        return self.moved or not self.has_counterpart

    def cells(self) -> tuple[str, ...]:
        """As text, under the header of the table."""
        return (
            shown(self.label),
            f"{self.n_points:,}",
            f"{self.share:.0%}",
            f"{self.by_chance:.0%}",
            shown(self.nearest),
            with_error(self.distance, self.stderr),
            "none" if not self.has_counterpart else "moved" if self.moved else "yes",
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "label": json_label(self.label),
            "n_points": self.n_points,
            "share": self.share,
            "share_by_chance": self.by_chance,
            "nearest": json_label(self.nearest),
            "distance": self.distance,
            "stderr": json_number(self.stderr),
            "has_counterpart": self.has_counterpart,
            "moved": self.moved,
        }


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
