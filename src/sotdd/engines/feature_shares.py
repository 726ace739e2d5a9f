"""How much of the sliced distance between points each of their features makes.

Every feature of both sides is moved half-way to the other's value at its rank: then both have the same distribution in
every feature, and what is left of W_p^p is how features go *together*. On the way back, from there (s = 0) to the
points as they are (s = 1), W_p^p changes by the sum over features of

    ∫ E_θ Σ_pairs ∂|gap|^p/∂gap · θ_j · (how far the pair comes apart in feature j) ds

(Aumann and Shapley). So the shares of features and of what they are together add up to the whole, and a feature with
the same distribution on both sides has none. The integral is by Simpson's rule, exact where features are only moved.
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
from sotdd.projections.directions import Orthogonal
from sotdd.projections.scaler import Scaler

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]
Sides = NDArray[np.uint8]

# Values that a pool holds, and rows of each dataset, at least and at most: more tell features apart no better.
_VALUES = 1 << 22
_FEWEST_ROWS, _MOST_ROWS = 64, 5_000

# Columns are summed up where there are no more than this.
_MOST_SUMMARISED = 2048

# Scaled values are cut to this, which is a difference in any case; their squares stay within float32.
_FARTHEST = np.float32(1e12)

# Directions that shares are means over, in groups of this many, which differ by chance and so tell their error.
DIRECTIONS = 256
_GROUP = 16

# Simpson's rule: where on the way, and by which weight.
_PLACES = ((0.0, 1 / 6), (0.5, 4 / 6), (1.0, 1 / 6))

# Columns that a thread works on at a time.
_COLUMNS = 16


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
    summary
        (2, 3, d) of either side, every column as it came: its lower and upper quartile, and its mean.
    """

    points: Floats
    values: Floats
    order: NDArray[np.int32]
    side: Sides
    summary: Doubles

    @classmethod
    def of(cls, datasets: Sequence[LabelledData], scaler: Scaler | None, seed: int, workers: Workers) -> FeaturePool:
        """Scale a random sample of each dataset, or all of it where it is small."""
        from sotdd.engines.cpu.verbs import scaled

        rows = [_sampled(data, generator(seed, Stream.FEATURE_ROWS, number)) for number, data in enumerate(datasets)]
        summary = np.stack([_summary(part) for part in rows])
        if scaler is None:  # shares have no unit, so they are kept within float32
            unit = max(float(np.abs(part).max()) for part in rows) or 1.0
            parts = [(part / unit).astype(np.float32) for part in rows]
        else:
            parts = [scaled(part, scaler, data.name) for part, data in zip(rows, datasets, strict=True)]
        points = np.clip(np.concatenate(parts), -_FARTHEST, _FARTHEST)
        values, order = sorted_columns(np.ascontiguousarray(points.T), workers, seed)
        side = np.repeat([0, 1], [len(part) for part in parts]).astype(np.uint8)
        return cls(points, values, order, side, summary)

    def gaps(self, side: Sides, workers: Workers) -> Floats:
        """(d, N) what `own_gaps` says of two sides of this pool."""
        from sotdd.kernels import couplings

        gaps, sizes = np.empty_like(self.values), sizes_of(side)

        def work(part: slice) -> None:
            couplings.own_gaps(self.values[part], self.order[part], side, sizes, gaps[part])

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
    counts
        (G,) how many directions each group has.
    """

    features: Doubles
    together: Doubles
    counts: Doubles

    @property
    def table(self) -> Doubles:
        """(G, d + 1) of every feature, and of all together; its mean over groups is that over directions."""
        weights = self.counts / self.counts.mean()
        table: Doubles = weights[:, None] * np.column_stack([self.features, self.together])
        return table

    @property
    def parts(self) -> Doubles:
        """(d + 1,) of every feature, and of all together."""
        parts: Doubles = self.table.mean(axis=0)
        return parts


def directions_for(n_features: int, seed: int) -> Floats:
    """(L, d) directions in orthogonal frames; along a single feature there is only one."""
    if n_features == 1:
        return np.ones((1, 1), np.float32)
    count = max(1, DIRECTIONS // n_features) * n_features if n_features <= DIRECTIONS else DIRECTIONS
    rng = generator(seed, Stream.FEATURE_DIRECTIONS, 0)
    return Orthogonal().draw(rng, count, n_features).theta.astype(np.float32)


def contributions(pool: FeaturePool, side: Sides, theta: Floats, p: float, workers: Workers) -> Contributions:
    """The part of W_p^p between two sides of a pool that every feature makes, along some directions (L, d)."""
    from sotdd.kernels import couplings

    gaps, sizes = pool.gaps(side, workers), sizes_of(side)

    def work(part: slice) -> tuple[Doubles, float]:
        along = theta[part]
        there, back = along @ pool.points.T, along @ gaps  # (B, N)
        slopes, costs, together = np.zeros_like(there), np.empty(len(along)), 0.0
        for place, weight in _PLACES:
            rows = there - np.float32(1 - place) * back
            order = np.argsort(rows, axis=1).astype(np.int32)
            couplings.add_slopes(rows, order, side, sizes, p, weight, slopes, costs)
            together = float(costs.mean()) if place == 0 else together
        return np.einsum("bj,bj->j", along, slopes @ gaps.T, dtype=np.float64) / len(along), together

    groups = parts_of(len(theta), _GROUP)
    parts = workers.each(work, groups)
    counts = np.array([group.stop - group.start for group in groups], np.float64)
    return Contributions(np.stack([features for features, _ in parts]), np.array([rest for _, rest in parts]), counts)


def leading(pool: FeaturePool, side: Sides, theta: Floats, p: float, workers: Workers) -> tuple[Doubles, Doubles]:
    """Parts (r,) of W_p^p between two sides along directions (r, d) at right angles, the largest first.

    What paired points cost is a slope times θᵀ(x − y), a sum over the axes of any frame: the trace of a matrix. Its
    symmetric part has the directions that make the most of it. It is of low rank where there are many features.
    """
    from sotdd.kernels import couplings

    sizes = sizes_of(side)

    def work(part: slice) -> Floats:
        along = theta[part]
        rows = along @ pool.points.T
        slopes, costs = np.zeros_like(rows), np.empty(len(along))
        couplings.add_slopes(rows, np.argsort(rows, axis=1).astype(np.int32), side, sizes, p, 1 / p, slopes, costs)
        return slopes @ pool.points  # (B, d)

    apart = np.concatenate(workers.each(work, parts_of(len(theta), _GROUP))).astype(np.float64)
    frame, _ = np.linalg.qr(np.concatenate([theta.astype(np.float64), apart]).T)  # (d, r)
    matrix = (theta @ frame).T @ (apart @ frame) / len(theta)
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return values[::-1], (frame @ vectors).T[::-1]


def sorted_columns(columns: Floats, workers: Workers, seed: int) -> tuple[Floats, NDArray[np.int32]]:
    """Each row (d, N) sorted, and where its values were.

    Equal values come in an order of its own in every row: in one order, they would seem to go together.
    """
    values, order = np.empty_like(columns), np.empty(columns.shape, np.int32)

    def work(part: slice) -> None:
        for number in range(part.start, part.stop):
            shuffled = generator(seed, Stream.FEATURE_TIES, number).permutation(columns.shape[1])
            order[number] = shuffled[np.argsort(columns[number][shuffled])]
            values[number] = columns[number][order[number]]

    workers.each(work, parts_of(len(columns), _COLUMNS))
    return values, order


def parts_of(count: int, size: int) -> list[slice]:
    """Cut a count into parts of a size."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def sizes_of(side: Sides) -> NDArray[np.int64]:
    """How many points are on either side."""
    return np.array([np.count_nonzero(side == 0), np.count_nonzero(side == 1)])


def _sampled(data: LabelledData, rng: np.random.Generator) -> NDArray[Any]:
    """(k, d) random rows in random order."""
    most = min(max(_VALUES // (2 * data.n_features), _FEWEST_ROWS), _MOST_ROWS)
    chosen = np.sort(rng.permutation(data.n_points)[:most])
    parts = []
    for block in data.blocks():
        inside = chosen[np.searchsorted(chosen, block.start) : np.searchsorted(chosen, block.stop)]
        if len(inside):
            parts.append(data.rows(block)[inside - block.start])
    together: NDArray[Any] = np.concatenate(parts)[rng.permutation(len(chosen))]
    return together


def _summary(rows: NDArray[Any]) -> Doubles:
    """(3, d) the quartiles and the mean of every column; NaN where there are very many columns."""
    if rows.shape[1] > _MOST_SUMMARISED:
        return np.full((3, rows.shape[1]), np.nan)
    quartiles = np.quantile(rows, [0.25, 0.75], axis=0, method="inverted_cdf")
    return np.vstack([quartiles, rows.mean(axis=0, dtype=np.float64)]).astype(np.float64)
