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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.randomness import Stream, generator
from sotdd.basics.threads import Workers
from sotdd.compute.resampling import Indices, Plan, pool_groups
from sotdd.inputs.data import LabelledData, cut_range
from sotdd.projections.directions import Orthogonal
from sotdd.projections.scaler import Scaler

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]
Sides = NDArray[np.uint8]

# Values that a pool holds, and rows of each dataset, at least and at most: more tell features apart no better.
_VALUES = 1 << 22
_FEWEST_ROWS, _MOST_ROWS = 64, 5_000

# Scaled values are cut to this, which is a difference in any case; their squares stay within float32.
_FARTHEST = np.float32(1e12)

# Directions that shares are means over, in groups of this many, which differ by chance and so tell their error.
DIRECTIONS = 256
_GROUP = 16

# Simpson's rule: where on the way, and by which weight.
_PLACES = ((0.0, 1 / 6), (0.5, 4 / 6), (1.0, 1 / 6))

# Columns that a thread sorts at a time.
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
    groups
        (N,) which points belong together; None where each is by itself.
    """

    points: Floats
    values: Floats
    order: NDArray[np.int32]
    side: Sides
    groups: Indices | None = None

    @classmethod
    def of(cls, datasets: Sequence[LabelledData], scaler: Scaler | None, seed: int, workers: Workers) -> FeaturePool:
        """Scale a random sample of each dataset, or all of it where it is small."""
        from sotdd.compute.cpu.rows import scale_rows

        chosen = [
            _sample_rows(data, generator(seed, Stream.FEATURE_ROWS, number)) for number, data in enumerate(datasets)
        ]
        rows = [_take_rows(data, index) for data, index in zip(datasets, chosen, strict=True)]
        if scaler is None:  # shares have no unit, so they are kept within float32
            unit = max(float(np.abs(part).max()) for part in rows) or 1.0
            parts = [(part / unit).astype(np.float32) for part in rows]
        else:
            parts = [scale_rows(part, scaler, data.name) for part, data in zip(rows, datasets, strict=True)]
        points = np.clip(np.concatenate(parts), -_FARTHEST, _FARTHEST)
        values, order = sort_columns(np.ascontiguousarray(points.T), workers, seed)
        side = np.repeat([0, 1], [len(part) for part in parts]).astype(np.uint8)
        groups = [
            None if data.groups is None else data.groups[index] for data, index in zip(datasets, chosen, strict=True)
        ]
        pooled = pool_groups(groups, [len(index) for index in chosen])
        return cls(points, values, order, side, pooled)

    def plan_splits(self, count: int, seed: int) -> Plan:
        """Ways to split the points into sides of the same sizes; the first is as they are."""
        n, m = count_sides(self.side).tolist()
        whole = Plan.of_points((0, 1), np.arange(n + m), n, count, seed, (2.0,))
        return replace(whole, actual=True, groups=self.groups)

    def plan_halves(self, count: int, seed: int) -> Plan:
        """Ways to take half of the points of each side; the others are on neither."""
        n, m = count_sides(self.side).tolist()
        return replace(self.plan_splits(count, seed), actual=False, sizes=(-(-n // 2), -(-m // 2)), border=n)

    def match_columns(self, side: Sides, workers: Workers) -> Floats:
        """(d, N) what `own_gaps` says of two sides of this pool."""
        from sotdd.compute.kernels import couplings

        gaps, sizes = np.empty_like(self.values), count_sides(side)

        def work(part: slice) -> None:
            couplings.own_gaps(self.values[part], self.order[part], side, sizes, gaps[part])

        workers.each(work, cut_range(len(gaps), _COLUMNS))
        return gaps


def find_directions(n_features: int, seed: int) -> Floats:
    """(L, d) directions in orthogonal frames; along a single feature there is only one."""
    if n_features == 1:
        return np.ones((1, 1), np.float32)
    count = max(1, DIRECTIONS // n_features) * n_features if n_features <= DIRECTIONS else DIRECTIONS
    rng = generator(seed, Stream.FEATURE_DIRECTIONS, 0)
    return Orthogonal().draw(rng, count, n_features).theta.astype(np.float32)


def find_contributions(pool: FeaturePool, side: Sides, theta: Floats, p: float, workers: Workers) -> Doubles:
    """(G, d + 1) the part of W_p^p between two sides of a pool that every feature makes, along some directions (L, d).

    The last is what is left when every feature has the same distribution on both sides. A row for each group of
    directions; the mean over rows is that over directions.
    """
    from sotdd.compute.kernels import couplings

    gaps, sizes = pool.match_columns(side, workers), count_sides(side)

    def work(part: slice) -> Doubles:
        along = theta[part]
        there, back = along @ pool.points.T, along @ gaps  # (B, N)
        slopes, costs, together = np.zeros_like(there), np.empty(len(along)), 0.0
        for place, weight in _PLACES:
            rows = there - np.float32(1 - place) * back
            order = np.argsort(rows, axis=1).astype(np.int32)
            couplings.add_slopes(rows, order, side, sizes, p, weight, slopes, costs)
            together = float(costs.mean()) if place == 0 else together
        with np.errstate(over="ignore", invalid="ignore"):
            return np.append(np.einsum("bj,bj->j", along, slopes @ gaps.T, dtype=np.float64) / len(along), together)

    groups = cut_range(len(theta), _GROUP)
    counts = np.array([group.stop - group.start for group in groups], np.float64)
    table: Doubles = (counts / counts.mean())[:, None] * np.stack(workers.each(work, groups))
    if not np.isfinite(table).all():
        raise SotddError(f"transport to the power p={p:g} overflows along single features: use a smaller p.")
    return table


def sort_columns(columns: Floats, workers: Workers, seed: int) -> tuple[Floats, NDArray[np.int32]]:
    """Each row (d, N) sorted, and where its values were.

    Equal values come in an order of its own in every row: in one order, they would seem to go together.
    """
    values, order = np.empty_like(columns), np.empty(columns.shape, np.int32)

    def work(part: slice) -> None:
        for number in range(part.start, part.stop):
            shuffled = generator(seed, Stream.FEATURE_TIES, number).permutation(columns.shape[1])
            order[number] = shuffled[np.argsort(columns[number][shuffled])]
            values[number] = columns[number][order[number]]

    workers.each(work, cut_range(len(columns), _COLUMNS))
    return values, order


def count_sides(side: Sides) -> NDArray[np.int64]:
    """How many points are on either side."""
    return np.array([np.count_nonzero(side == 0), np.count_nonzero(side == 1)])


def _sample_rows(data: LabelledData, rng: np.random.Generator) -> Indices:
    """(k,) random rows in random order."""
    most = min(max(_VALUES // (2 * data.n_features), _FEWEST_ROWS), _MOST_ROWS)
    chosen: Indices = np.sort(rng.permutation(data.n_points)[:most])
    return chosen[rng.permutation(len(chosen))]


def _take_rows(data: LabelledData, index: Indices) -> NDArray[Any]:
    """(k, d) some rows, block by block."""
    chosen, parts = np.sort(index), []
    for block in data.blocks():
        inside = chosen[np.searchsorted(chosen, block.start) : np.searchsorted(chosen, block.stop)]
        if len(inside):
            parts.append(data.rows(block)[inside - block.start])
    together: NDArray[Any] = np.concatenate(parts)[np.searchsorted(chosen, index)]
    return together
