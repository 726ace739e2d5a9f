"""Datasets as pages and plots show them: in numbers, joined into groups, and as points of a map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.text import json_label
from sotdd.compute.distance import Distance
from sotdd.drift.reference import DriftReference
from sotdd.inputs.data import LabelledData
from sotdd.peers.embeddings import classical_scaling, raw_stress, smacof
from sotdd.sketches.sketch import Sketch

_UNITS = {
    "none": "in the units of the features",
    "pooled": "in units of the pooled spread",
    "features": "in units of each feature's spread",
    "arcsinh": "in units of each feature's spread, tails by their logarithm",
}


# Distances of more than this many times the median have the same colour.
_TIMES_MEDIAN = 2.5


def say_unit(distance: Distance) -> str:
    """What a distance is measured in."""
    return _UNITS[distance.scale]


@dataclass(frozen=True, eq=False)
class DatasetSummary:
    """A dataset in numbers.

    Attributes
    ----------
    n_points, n_features
        Its sizes.
    counts
        How many points each class has; the label as text.
    range, columns
        Between which values all features lie, and each column that has a name; None and none where points are not kept.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> data = sotdd.LabelledData.of((np.arange(6.0).reshape(3, 2), ["a", "b", "a"]), "mine")
    >>> found = DatasetSummary.of(data)
    >>> found.n_points, dict(found.counts), found.range
    (3, {'a': 2, 'b': 1}, (0.0, 5.0))
    """

    n_points: int
    n_features: int
    counts: Mapping[str, int]
    range: tuple[float, float] | None = None
    columns: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, source: LabelledData | Sketch | DriftReference) -> DatasetSummary:
        """Of a dataset, by one walk over its values; of a sketch or a reference what they keep."""
        labels = [str(json_label(label)) for label in source.classes]
        source = source.data if isinstance(source, DriftReference) else source
        counts = dict(zip(labels, source.counts.tolist(), strict=True))
        if isinstance(source, Sketch):
            return cls(source.n_points, int(source.recipe["n_features"]), counts)
        lows, highs = np.full(source.n_features, np.inf), np.full(source.n_features, -np.inf)
        for block in source.blocks():
            rows = source.rows(block)
            lows, highs = np.minimum(lows, rows.min(axis=0)), np.maximum(highs, rows.max(axis=0))
        ends = zip(lows.tolist(), highs.tolist(), strict=True)
        columns = dict(zip(source.columns or (), ends, strict=False))
        whole = float(lows.min()), float(highs.max())
        return cls(source.n_points, source.n_features, counts, whole, columns)


def compare_shares(one: DatasetSummary, other: DatasetSummary) -> list[tuple[str, float, float]]:
    """Every class with its share of either dataset, those whose share differs most first."""
    totals = [max(1, sum(side.counts.values())) for side in (one, other)]
    shares = [
        (label, one.counts.get(label, 0) / totals[0], other.counts.get(label, 0) / totals[1])
        for label in {**one.counts, **other.counts}
    ]
    return sorted(shares, key=lambda line: -abs(line[1] - line[2]))


def limit_colours(values: NDArray[np.float64]) -> float:
    """Where a scale of colours ends: at the largest distance or, so that no outlier takes it, at few times the median.

    Examples
    --------
    >>> import numpy as np
    >>> limit_colours(np.array([1.0, 2.0, 3.0, np.nan])), limit_colours(np.array([1.0, 2.0, 3.0, 90.0]))
    (3.0, 5.0)
    """
    known = np.sort(values[np.isfinite(values)])
    if not len(known):
        return 1.0
    return min(float(known[-1]), _TIMES_MEDIAN * float(known[(len(known) - 1) // 2])) or float(known[-1]) or 1.0


class Groups(NamedTuple):
    """Datasets joined into groups by the average distance between their members.

    Attributes
    ----------
    order
        The datasets in an order in which neighbours are near each other.
    branches
        The lines of a dendrogram, four corners each: positions along the order (0, 1, …), and heights.
    """

    order: list[int]
    branches: list[tuple[list[float], list[float]]]

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Groups:
        """Those of a matrix of distances, by SciPy."""
        if len(values) < 2:
            return cls(list(range(len(values))), [])
        from scipy.cluster.hierarchy import dendrogram, linkage
        from scipy.spatial.distance import squareform

        tree = dendrogram(linkage(squareform(values, checks=False), "average", optimal_ordering=True), no_plot=True)
        along = [[corner / 10 - 0.5 for corner in corners] for corners in tree["icoord"]]  # SciPy's leaves are 10 apart
        return cls(tree["leaves"], list(zip(along, tree["dcoord"], strict=True)))


@dataclass(frozen=True, eq=False)
class ScalingMap:
    """Datasets as points in the plane whose distances approximate the measured ones.

    Attributes
    ----------
    points
        (N, 2), centred, along their principal axes.
    stress
        Kruskal's stress-1: the root of Σ (measured - drawn)² / Σ measured²; 0 for a faithful map.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.reports.datasets import ScalingMap
    >>> square = np.array([[0, 1, 1, 2**0.5], [1, 0, 2**0.5, 1], [1, 2**0.5, 0, 1], [2**0.5, 1, 1, 0]])
    >>> ScalingMap.of(square).stress < 1e-6
    True
    """

    points: NDArray[np.float64]
    stress: float

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> ScalingMap:
        """Start from classical scaling, then lower the stress by SMACOF; nothing is random."""
        if not values.any():
            return cls(np.zeros((len(values), 2)), 0.0)
        points = smacof(values, classical_scaling(values, 2))
        return cls(_rotate(points), float(np.sqrt(raw_stress(values, points) / np.sum(values**2))))

    def place(self) -> list[tuple[float, float, bool, float]]:
        """The points in per cent of a square, from left and bottom; and of their names the side, and how high they are.

        Names stand in two columns, those of the left half of the points on the left, and are pushed apart so that none
        covers another, however near the points are.
        """
        least, most = self.points.min(axis=0), self.points.max(axis=0)
        share = 0.5 + 0.92 * (self.points - (least + most) / 2) / (float((most - least).max()) or 1.0)
        count, found = len(share), {}
        by_place = np.lexsort((share[:, 1], share[:, 0]))
        for to_the_left, side in ((True, by_place[: count // 2]), (False, by_place[count // 2 :])):
            names = sorted(side.tolist(), key=lambda place: share[place, 1])
            heights = _push_apart([share[place, 1] for place in names], 1.0 / max(1, (count + 1) // 2))
            for place, height in zip(names, heights, strict=True):
                found[place] = 100 * share[place, 0], 100 * share[place, 1], to_the_left, 100 * height
        return [found[place] for place in range(count)]

    @property
    def faithfulness(self) -> str:
        """How well the map shows the distances, in Kruskal's words."""
        for limit, word in ((0.025, "excellent"), (0.05, "good"), (0.1, "fair")):
            if self.stress <= limit:
                return word
        return "poor, so trust the matrix rather than the map"


def _push_apart(heights: Sequence[float], gap: float) -> list[float]:
    """Heights in ascending order, each at least a gap above the one before, from half a gap to one less half a gap."""
    lows, found = [gap * (0.5 + place) for place in range(len(heights))], list[float]()
    for place, height in enumerate(heights):
        highest = 1 - gap * (len(heights) - place - 0.5)
        found.append(min(highest, max(height, lows[place], found[-1] + gap if found else 0.0)))
    return found


def _rotate(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Centre, rotate to principal axes and fix the signs, so that the map is always the same."""
    centred = points - points.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    rotated: NDArray[np.float64] = centred @ axes.T
    rotated = np.pad(rotated, ((0, 0), (0, 2 - rotated.shape[1])))
    for column in (0, 1):
        largest = rotated[np.argmax(np.abs(rotated[:, column]) > 1e-9 * np.abs(rotated).max()), column]
        rotated[:, column] *= 1.0 if largest >= 0 else -1.0
    return rotated
