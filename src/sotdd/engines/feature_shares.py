"""How much of the sliced distance between points each of their features makes.

Every feature of both sides is moved half-way to the other's value at its rank: then both have the same distribution in
every feature, and what is left of W_p^p is how features go *together*. On the way back, from there (s = 0) to the points
as they are (s = 1), W_p^p changes by the sum over features of

    ∫ E_θ Σ_pairs ∂|gap|^p/∂gap · θ_j · (how far the pair comes apart in feature j) ds

(Aumann and Shapley). So the shares of features and of what they are together add up to the whole, and a feature with the
same distribution on both sides has none. The integral is by Simpson's rule, exact where features are only moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.streams import Stream, generator
from sotdd.engines.cpu.workers import Workers
from sotdd.inputs.data import LabelledData
from sotdd.projections.orthogonal import Orthogonal
from sotdd.projections.scaler import Scaler

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]
Sides = NDArray[np.uint8]

# Values that a pool holds, and rows of each dataset, at least and at most: more tell features apart no better.
_VALUES = 1 << 23
_FEWEST_ROWS, _MOST_ROWS = 64, 10_000

# Directions that shares are means over, in groups that are left out in turn for their error.
DIRECTIONS = 256
GROUPS = 16

# Simpson's rule: where on the way, and by which weight.
_PLACES = ((0.0, 1 / 6), (0.5, 4 / 6), (1.0, 1 / 6))

# Columns and directions that a thread works on at a time.
_COLUMNS, _LINES = 16, 16


@dataclass(frozen=True, eq=False)
class FeaturePool:
    """Points of two datasets together, with every column sorted.

    Attributes
    ----------
    points
        (N, d) scaled.
    values, order
        (d, N) every column sorted, and which point each value is of.
    side
        (N,) 0 for points of the one, 1 for points of the other.
    """

    points: Floats
    values: Floats
    order: NDArray[np.int32]
    side: Sides

    @classmethod
    def of(cls, datasets: Sequence[LabelledData], scaler: Scaler | None, seed: int, workers: Workers) -> FeaturePool:
        """Scale a random sample of each dataset, or all of it where it is small."""
        parts = [_sampled(data, scaler, generator(seed, Stream.FEATURE_ROWS, i)) for i, data in enumerate(datasets)]
        points = np.concatenate(parts)
        if scaler is None:  # shares have no unit, so float32 is not left
            points = (points / (np.abs(points).max() or 1.0)).astype(np.float32)
        values, order = sorted_columns(np.ascontiguousarray(points.T), workers)
        return cls(points, values, order, np.repeat([0, 1], [len(part) for part in parts]).astype(np.uint8))

    def gaps(self, side: Sides, workers: Workers) -> Floats:
        """(d, N) what `own_gaps` says of two sides of this pool."""
        from sotdd.kernels import columns

        gaps, sizes = np.empty_like(self.values), sizes_of(side)

        def work(part: slice) -> None:
            columns.own_gaps(self.values[part], self.order[part], side, sizes, gaps[part])

        workers.each(work, parts_of(len(gaps), _COLUMNS))
        return gaps


@dataclass(frozen=True, eq=False)
class Contributions:
    """What adds up to W_p^p, by groups of directions.

    Attributes
    ----------
    features
        (G, d) the part of every feature, a mean over the directions of each group.
    together
        (G,) what is left when every feature has the same distribution on both sides.
    """

    features: Doubles
    together: Doubles

    @property
    def parts(self) -> Doubles:
        """(d + 1,) of every feature, and of all together."""
        parts: Doubles = np.column_stack([self.features, self.together]).mean(axis=0)
        return parts

    def shares(self) -> tuple[Doubles, Doubles]:
        """(d + 1,) the parts as shares of their sum, and their standard errors over directions (jackknife)."""
        table = np.column_stack([self.features, self.together])
        shares = _shares(table.mean(axis=0))
        count = len(table)
        if count < 2:
            return shares, np.zeros_like(shares)
        without = np.stack([_shares(rest) for rest in (table.sum(axis=0) - table) / (count - 1)])
        return shares, np.sqrt((count - 1) * without.var(axis=0))


def directions_for(n_features: int, seed: int) -> Floats:
    """(L, d) directions in orthogonal frames; along a single feature there is only one."""
    if n_features == 1:
        return np.ones((1, 1), np.float32)
    count = max(1, DIRECTIONS // n_features) * n_features if n_features <= DIRECTIONS else DIRECTIONS
    rng = generator(seed, Stream.FEATURE_DIRECTIONS, 0)
    return Orthogonal().draw(rng, count, n_features).theta.astype(np.float32)


def contributions(pool: FeaturePool, side: Sides, theta: Floats, p: float, workers: Workers) -> Contributions:
    """The part of W_p^p between two sides of a pool that every feature makes, along some directions (L, d)."""
    from sotdd.kernels import columns

    gaps, sizes = pool.gaps(side, workers), sizes_of(side)
    group = max(1, -(-len(theta) // GROUPS))

    def work(part: slice) -> tuple[Doubles, float]:
        along = theta[part]
        there, back = along @ pool.points.T, along @ gaps  # (B, N)
        slopes, costs, together = np.zeros_like(there), np.empty(len(along)), 0.0
        for place, weight in _PLACES:
            rows = there - np.float32(1 - place) * back
            order = np.argsort(rows, axis=1).astype(np.int32)
            columns.add_slopes(rows, order, side, sizes, p, weight, slopes, costs)
            together = float(costs.mean()) if place == 0 else together
        return np.einsum("bj,bj->j", along, slopes @ gaps.T, dtype=np.float64) / len(along), together

    parts = workers.each(work, parts_of(len(theta), group))
    return Contributions(np.stack([features for features, _ in parts]), np.array([rest for _, rest in parts]))


def leading(
    pool: FeaturePool, side: Sides, theta: Floats, p: float, workers: Workers
) -> tuple[Doubles, Doubles]:
    """Parts (d,) of W_p^p between two sides that lie along directions at right angles, the largest first; and these (d, d).

    Paired points cost gap · θᵀ(x − y) to the power two, which is a sum over any frame: a matrix whose trace is W_p^p.
    Its symmetric part has the directions that make the most of it.
    """
    from sotdd.kernels import columns

    sizes = sizes_of(side)

    def work(part: slice) -> Doubles:
        along = theta[part]
        rows = along @ pool.points.T
        slopes, costs = np.zeros_like(rows), np.empty(len(along))
        columns.add_slopes(rows, np.argsort(rows, axis=1).astype(np.int32), side, sizes, p, 1 / p, slopes, costs)
        return (along.T @ (slopes @ pool.points)).astype(np.float64)

    matrix = np.sum(workers.each(work, parts_of(len(theta), _LINES)), axis=0) / len(theta)
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return values[::-1], vectors.T[::-1]


def sorted_columns(columns: Floats, workers: Workers) -> tuple[Floats, NDArray[np.int32]]:
    """Each row (d, N) sorted, and where its values were."""
    values, order = np.empty_like(columns), np.empty(columns.shape, np.int32)

    def work(part: slice) -> None:
        order[part] = np.argsort(columns[part], axis=1, kind="stable")
        values[part] = np.take_along_axis(columns[part], order[part], axis=1)

    workers.each(work, parts_of(len(columns), _COLUMNS))
    return values, order


def parts_of(count: int, size: int) -> list[slice]:
    """Cut a count into parts of a size."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def sizes_of(side: Sides) -> NDArray[np.int64]:
    """How many points are on either side."""
    return np.array([np.count_nonzero(side == 0), np.count_nonzero(side == 1)])


def _shares(parts: Doubles) -> Doubles:
    whole = float(parts.sum())
    return parts / whole if whole > 0 else np.zeros_like(parts)


def _sampled(data: LabelledData, scaler: Scaler | None, rng: np.random.Generator) -> NDArray[Any]:
    """(k, d) random rows in random order, so that ties in a column are broken at random."""
    from sotdd.engines.cpu.engine import scaled

    most = min(max(_VALUES // (2 * data.n_features), _FEWEST_ROWS), _MOST_ROWS)
    chosen = np.sort(rng.permutation(data.n_points)[:most])
    parts = []
    for block in data.blocks():
        inside = chosen[np.searchsorted(chosen, block.start) : np.searchsorted(chosen, block.stop)]
        if len(inside):
            rows = data.rows(block)[inside - block.start]
            parts.append(rows.astype(np.float64) if scaler is None else scaled(rows, scaler, data.name))
    together: NDArray[Any] = np.concatenate(parts)[rng.permutation(len(chosen))]
    return together
