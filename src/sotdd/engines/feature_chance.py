"""Which features differ beyond noise: points dealt out anew, and the largest of all features counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from sotdd.basics.streams import Stream, generator
from sotdd.engines.cpu.workers import Workers
from sotdd.engines.feature_shares import Doubles, FeaturePool, Floats, Sides, parts_of, sizes_of, sorted_columns

# Correlations of every two features are compared where there are no more features than this, on so many values.
_MOST_CORRELATED = 512
_CORRELATED_VALUES = 1 << 30

# Directions that features are seen along together.
_DIRECTIONS = 64

# Columns that a thread works on at a time.
_COLUMNS = 4

# Correlations this close to one count as this.
_NEARLY_ONE = 0.999


@dataclass(frozen=True, eq=False)
class FeatureChance:
    """How likely chance alone makes features differ so much; right for all of them at once.

    Attributes
    ----------
    p_values
        (d,) of every feature by itself.
    together
        Of how features go together.
    pairs
        Every two features whose correlation differs beyond noise, the clearest first, with both correlations.
    """

    p_values: Doubles
    together: float
    pairs: list[tuple[int, int, float, float]]


def features_by_chance(
    pool: FeaturePool,
    theta: Floats,
    p: float,
    n_splits: int,
    level: float,
    seed: int,
    workers: Workers,
    groups: NDArray[np.int64] | None = None,
) -> FeatureChance:
    """Compare both sides of a pool with sides that its points are dealt out to, feature by feature and together.

    A feature is looked at by its ranks, whatever its tails: where they lie, how far they spread, and by the largest gap
    between distribution functions. Features together are looked at with each brought to the same distribution on both
    sides. Columns of one of the ``groups`` (d,) are one category, so they cannot but go together; -1 is none.
    """
    sides = _sides(pool.side, n_splits, seed)
    by_rank = _ranks(pool, sides, workers)
    alone = np.full(pool.points.shape[1], -1) if groups is None else groups
    matched = (pool.points - pool.gaps(pool.side, workers).T) * (alone < 0)
    along = np.ascontiguousarray(theta[:_DIRECTIONS] @ matched.T)
    sliced = _costs(*sorted_columns(along, workers, seed), sides, p, workers).mean(axis=0)
    table = [*by_rank.reshape(-1, len(sides)), sliced]
    correlated = _correlations(pool, sides, alone, workers)
    if correlated is not None:
        table.append(correlated.largest)
    scores = _scores(np.array(table))
    beyond = scores[:, 1:].max(axis=0)
    p_values = (1 + (beyond[None, :] >= scores[:, :1]).sum(axis=1)) / scores.shape[1]
    kinds, d = by_rank.shape[:2]
    together = float(p_values[kinds * d :].min()) if d > 1 else 1.0
    pairs = correlated.pairs(level) if correlated is not None and together <= level else []
    return FeatureChance(p_values[: kinds * d].reshape(kinds, d).min(axis=0), together, pairs)


@dataclass(frozen=True, eq=False)
class _Correlations:
    """Of every two features, how far apart their correlations are on both sides.

    Attributes
    ----------
    first, second
        (d, d) correlations of ranks on either side.
    asked
        (d, d) which pairs are compared, each once.
    largest
        (1 + S,) the largest difference, by Fisher's transform: of the data, and of every split.
    """

    first: Doubles
    second: Doubles
    asked: NDArray[np.bool_]
    largest: Doubles

    def pairs(self, level: float) -> list[tuple[int, int, float, float]]:
        """Those of which chance makes so large a difference anywhere no more often than ``level``."""
        apart = np.where(self.asked, np.abs(_fisher(self.first) - _fisher(self.second)), 0.0)
        limit = np.sort(self.largest[1:])[::-1]
        allowed = int(level * len(self.largest)) - 1  # splits that may be as far apart
        found = np.argwhere(apart > (limit[allowed] if allowed >= 0 else np.inf))
        order = sorted(found.tolist(), key=lambda pair: -apart[pair[0], pair[1]])
        return [(i, j, float(self.first[i, j]), float(self.second[i, j])) for i, j in order]


def _correlations(pool: FeaturePool, sides: Sides, groups: NDArray[np.int64], workers: Workers) -> _Correlations | None:
    """Correlations of normal scores, which every feature gets on either side by itself: its distribution is gone."""
    d = pool.points.shape[1]
    rows = min(len(pool.side), _CORRELATED_VALUES // (d * d)) if d > 1 else 0
    if d > _MOST_CORRELATED or rows < 8:
        return None
    scores = np.empty(pool.points.shape, np.float32)
    for side in (0, 1):
        members = np.flatnonzero(pool.side == side)
        scores[members] = ndtri((rankdata(pool.points[members], axis=0) - 0.5) / len(members))
    chosen = _evenly(pool.side, rows)
    scores, dealt = scores[chosen], sides[:, chosen]

    def work(number: int) -> tuple[Doubles, Doubles]:
        first, second = (_correlation(scores[dealt[number] == side]) for side in (0, 1))
        return first, second

    def apart(number: int) -> float:
        first, second = work(number)
        return float(np.abs(_fisher(first) - _fisher(second))[asked].max(initial=0.0))

    asked = np.triu((groups[:, None] != groups[None, :]) | (groups < 0)[None, :], 1)
    return _Correlations(*work(0), asked, np.array(workers.each(apart, range(len(sides)))))


def _correlation(scores: Floats) -> Doubles:
    centred = scores - scores.mean(axis=0)
    products = (centred.T @ centred).astype(np.float64)
    length = np.sqrt(np.diagonal(products))
    correlation: Doubles = products / np.maximum(np.outer(length, length), np.finfo(np.float64).tiny)
    return correlation


def _fisher(correlation: Doubles) -> Doubles:
    transformed: Doubles = np.arctanh(np.clip(correlation, -_NEARLY_ONE, _NEARLY_ONE))
    return transformed


def _evenly(side: Sides, rows: int) -> NDArray[np.int64]:
    """So many points of a pool, of both sides in proportion; they lie there in random order."""
    sizes = sizes_of(side)
    kept = np.maximum(sizes * min(rows, len(side)) // len(side), np.minimum(sizes, 4))
    return np.concatenate([np.arange(kept[0]), sizes[0] + np.arange(kept[1])])


def _sides(side: Sides, n_splits: int, seed: int) -> Sides:
    """(1 + S, N) the sides of the data, and of points dealt out at random."""
    dealt = [generator(seed, Stream.FEATURE_SPLITS, number).permutation(side) for number in range(n_splits)]
    return np.stack([side, *dealt])


def _ranks(pool: FeaturePool, sides: Sides, workers: Workers) -> Doubles:
    """(3, d, 1 + S) squared gaps between both sides of every column.

    Of the means of its normal scores, and of their squares: they see a column that is moved, or scaled. And the largest
    between distribution functions, which sees other changes.
    """
    from sotdd.kernels import couplings

    found = np.empty((3, len(pool.values), len(sides)))
    sizes = sizes_of(pool.side)
    weights = np.ascontiguousarray(np.where(sides == 0, 1 / sizes[0], -1 / sizes[1]).T, np.float32)  # (N, 1 + S)

    def work(part: slice) -> None:
        values, order = pool.values[part], pool.order[part]
        couplings.split_ranks(values, order, sides, sizes, found[2, part])
        scores = np.empty(values.shape, np.float32)
        for row, places, out in zip(values, order, scores, strict=True):
            out[places] = _normal_scores(row)
        found[0, part] = (scores @ weights) ** 2
        found[1, part] = (scores**2 @ weights) ** 2

    workers.each(work, parts_of(found.shape[1], _COLUMNS))
    return found


def _normal_scores(row: Floats) -> Floats:
    """Of sorted values (N,), normal quantiles of their ranks; equal values share a rank."""
    ends = np.append(np.flatnonzero(np.diff(row)) + 1, row.size)
    starts = np.append(0, ends[:-1])
    scores: Floats = np.repeat(ndtri((starts + ends) / (2 * row.size)).astype(np.float32), ends - starts)
    return scores


def _costs(values: Floats, order: NDArray[np.int32], sides: Sides, p: float, workers: Workers) -> Doubles:
    """(B, 1 + S) transport costs of every row."""
    from sotdd.kernels import couplings

    costs, sizes = np.empty((len(values), len(sides))), sizes_of(sides[0])

    def work(part: slice) -> None:
        couplings.split_costs(values[part], order[part], sides, sizes, p, costs[part])

    workers.each(work, parts_of(len(costs), _COLUMNS))
    return costs


def _scores(table: Doubles) -> Doubles:
    """How many deviations each number (R, 1 + S) is above the others of its row; cube roots are nearly normal.

    Each is compared with the others alone, without itself, so that no difference is too large to be seen.
    """
    rooted = np.cbrt(table)
    count = rooted.shape[1] - 1
    mean = (rooted.sum(axis=1, keepdims=True) - rooted) / count
    square = ((rooted**2).sum(axis=1, keepdims=True) - rooted**2) / count
    deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
    above = rooted - mean
    smallest = 1e-6 * np.abs(rooted).max(axis=1, keepdims=True)
    scores: Doubles = np.where(
        above > smallest, above / np.maximum(deviation, np.maximum(smallest, 1e-300)), np.minimum(above, 0)
    )
    return scores
