"""How much of the sliced distance between points each of their features makes, and which differ beyond noise.

Every feature of both sides is moved half-way to the other's value at its rank: then both have the same distribution in
every feature, and what is left of W_p^p is how features go *together*. On the way back, from there (s = 0) to the
points as they are (s = 1), W_p^p changes by the sum over features of

    ∫ E_θ Σ_pairs ∂|gap|^p/∂gap · θ_j · (how far the pair comes apart in feature j) ds

(Aumann and Shapley). So the shares of features and of what they are together add up to the whole, and a feature with
the same distribution on both sides has none. The integral is by Simpson's rule, exact where features are only moved.

What is beyond noise is found by permuting points between the sides: the largest difference of all features counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.randomness import Stream, generator
from sotdd.basics.threads import Workers
from sotdd.compute.resampling import Indices, Plan, pool_groups
from sotdd.inputs.data import LabelledData, cut_range
from sotdd.measure.columns import Scores, compare_scores, rank_columns, score_numbers
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

# Columns that a thread works on at a time: when they are sorted, and when all splits of them are measured.
_COLUMNS = 16
_SPLIT_COLUMNS = 4

# Correlations of every two features are compared where there are no more features than this, on this many values.
_MOST_CORRELATED = 512
_CORRELATED_VALUES = 1 << 30

# Directions that features are seen along together.
_DIRECTIONS = 64

# Correlations this close to one count as this, and scores this close are equal.
_NEARLY_ONE = 0.999
_ROUNDING = 1e-9

# Digits of differences of correlations that are not rounding.
_DIGITS = 5


@dataclass(frozen=True, eq=False)
class FeaturePool:
    """Points of two datasets together, with every column sorted.

    Attributes
    ----------
    points
        (N, d) scaled.
    given
        (N, d) as they came, by which columns are ranked: scaling to float32 makes values equal that are not.
    values, order
        (d, N) every column sorted, and which point each value is of.
    side
        (N,) 0 for points of the one, 1 for points of the other.
    summary
        (2, 3, d) of either side, every column as it came: its lower and upper quartile, and its mean.
    groups
        (N,) which points belong together; None where each is by itself.
    """

    points: Floats
    given: NDArray[Any]
    values: Floats
    order: NDArray[np.int32]
    side: Sides
    summary: Doubles
    groups: Indices | None = None

    @classmethod
    def of(cls, datasets: Sequence[LabelledData], scaler: Scaler | None, seed: int, workers: Workers) -> FeaturePool:
        """Scale a random sample of each dataset, or all of it where it is small."""
        from sotdd.compute.cpu.rows import scale_rows

        chosen = [
            _sample_rows(data, generator(seed, Stream.FEATURE_ROWS, number)) for number, data in enumerate(datasets)
        ]
        rows = [_take_rows(data, index) for data, index in zip(datasets, chosen, strict=True)]
        summary = np.stack([_summarise(part) for part in rows])
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
        return cls(points, np.concatenate(rows), values, order, side, summary, pooled)

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


def _summarise(rows: NDArray[Any]) -> Doubles:
    """(3, d) the quartiles and the mean of every column; NaN where there are very many columns."""
    if rows.shape[1] > _MOST_SUMMARISED:
        return np.full((3, rows.shape[1]), np.nan)
    quartiles = np.quantile(rows, [0.25, 0.75], axis=0, method="inverted_cdf")
    return np.vstack([quartiles, rows.mean(axis=0, dtype=np.float64)]).astype(np.float64)


# ------------------------------------------------------------------ which features differ beyond noise


@dataclass(frozen=True, eq=False)
class FeatureTests:
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


def find_features(
    pool: FeaturePool,
    theta: Floats,
    p: float,
    sides: Sides,
    level: float,
    seed: int,
    workers: Workers,
    groups: NDArray[np.int64] | None = None,
) -> FeatureTests:
    """Compare both sides of a pool with random ``sides`` (1 + S, N) of it, feature by feature and together.

    A feature is looked at by the scores of `sotdd.measure.columns`; features together with each brought to the same
    distribution on both sides. Columns of one of the ``groups`` (d,) are one category, so they cannot but go together;
    -1 is none, and -2 a mark of gaps, which goes together with its column.
    """
    alone, largest = _score_features(pool, sides)
    groups = np.full(pool.points.shape[1], -1) if groups is None else groups
    matched = (pool.points - pool.match_columns(pool.side, workers).T) * (groups < 0)
    along = np.ascontiguousarray(theta[:_DIRECTIONS] @ matched.T)
    sliced = _measure_costs(*sort_columns(along, workers, seed), sides, p, workers).mean(axis=0)
    table = [largest, np.cbrt(sliced)]  # cube roots of costs are nearly normal
    correlated = _correlate(pool, sides, groups, level, workers)
    if correlated is not None:
        table.append(np.cbrt(correlated[0]))
    scores, unit = _score(np.array(table))
    beyond = scores[:, 1:].max(axis=0)
    of_all = np.concatenate([(alone - largest[1:].mean()) / unit, scores[1:, 0]])
    p_values = (1 + (beyond[None, :] >= of_all[:, None] - _ROUNDING).sum(axis=1)) / scores.shape[1]
    together = float(p_values[len(alone) :].min()) if len(alone) > 1 else 1.0
    pairs = correlated[1] if correlated is not None and together <= level else []
    return FeatureTests(p_values[: len(alone)], together, pairs)


def _score_features(pool: FeaturePool, sides: Sides) -> tuple[Doubles, Doubles]:
    """Of every feature (d,) by how many deviations it differs most; and the largest of all in every split (1 + S,)."""
    known = np.ones(len(pool.side), bool)
    counts: list[int] = []

    def blocks() -> Iterator[Scores]:
        for part in cut_range(pool.given.shape[1], _COLUMNS):
            found = [list(score_numbers(column, known).values()) for column in pool.given[:, part].T]
            counts.extend(map(len, found))
            yield [score for scores in found for score in scores]

    found, largest = compare_scores(blocks(), sides == 1)
    ends = np.cumsum(counts)
    return np.array([found[end - n : end].max(initial=0.0) for end, n in zip(ends, counts, strict=True)]), largest


def _correlate(
    pool: FeaturePool, sides: Sides, groups: NDArray[np.int64], level: float, workers: Workers
) -> tuple[Doubles, list[tuple[int, int, float, float]]] | None:
    """Compare correlations of normal scores, which every feature gets on either side: its distribution is gone.

    Returns the largest difference (1 + S,) by Fisher's transform, of the data and of every split; and the pairs that
    noise makes differ as much anywhere no more often than ``level``, the clearest first, with both correlations.
    """
    d = pool.points.shape[1]
    rows = min(len(pool.side), _CORRELATED_VALUES // (d * d)) if d > 1 else 0
    if d > _MOST_CORRELATED or rows < 8:
        return None
    scores = np.empty(pool.points.shape, np.float32)
    for side in (0, 1):
        members = np.flatnonzero(pool.side == side)
        scores[members] = rank_columns(pool.given[members])
    sizes = count_sides(pool.side)
    n, m = np.maximum(sizes * rows // len(pool.side), np.minimum(sizes, 4))  # of both sides in proportion
    chosen = np.concatenate([np.arange(n), sizes[0] + np.arange(m)])  # points lie there in random order
    scores, split = scores[chosen], sides[:, chosen]
    asked = np.triu((groups[:, None] != groups[None, :]) | (groups == -1)[None, :], 1)
    asked &= (groups[:, None] != -2) & (groups[None, :] != -2)

    def compare(number: int) -> tuple[Doubles, Doubles, Doubles]:
        (first, z), (second, other) = (_transform_correlations(scores[split[number] == side]) for side in (0, 1))
        return first, second, np.where(asked, np.abs(z - other).round(_DIGITS), 0.0)

    first, second, apart = compare(0)
    largest = np.array(workers.each(lambda number: float(compare(number)[2].max()), range(len(sides))))
    allowed = int(level * len(largest)) - 1  # splits that may be as far apart
    found = np.argwhere(apart > (np.sort(largest[1:])[::-1][allowed] if allowed >= 0 else np.inf)).tolist()
    found.sort(key=lambda pair: -apart[pair[0], pair[1]])
    return largest, [(i, j, float(first[i, j]), float(second[i, j])) for i, j in found]


def _transform_correlations(scores: Floats) -> tuple[Doubles, Doubles]:
    """Of every two columns their correlation, and Fisher's transform of it."""
    centred = scores - scores.mean(axis=0)
    products = (centred.T @ centred).astype(np.float64)
    length = np.sqrt(np.diagonal(products))
    correlation: Doubles = products / np.maximum(np.outer(length, length), np.finfo(np.float64).tiny)
    return correlation, np.arctanh(np.clip(correlation, -_NEARLY_ONE, _NEARLY_ONE))


def _measure_costs(values: Floats, order: NDArray[np.int32], sides: Sides, p: float, workers: Workers) -> Doubles:
    """(B, 1 + S) transport costs of every row."""
    from sotdd.compute.kernels import couplings
    from sotdd.compute.kernels.rows import Overlaps

    costs, overlaps = np.empty((len(values), len(sides), 1)), Overlaps.of(*count_sides(sides[0]).tolist())

    def work(part: slice) -> None:
        couplings.split_costs(values[part], order[part], sides, *overlaps, np.array([p]), costs[part])

    workers.each(work, cut_range(len(costs), _SPLIT_COLUMNS))
    return costs[:, :, 0]


def _score(table: Doubles) -> tuple[Doubles, float]:
    """How many deviations each number (R, 1 + S) is above the others of its row; and the deviation in the first row.

    Each is compared with the others alone, without itself, so that no difference is too large to be seen.
    """
    count = table.shape[1] - 1
    mean = (table.sum(axis=1, keepdims=True) - table) / count
    square = ((table**2).sum(axis=1, keepdims=True) - table**2) / count
    deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
    deviation = np.maximum(deviation, 1e-6 * np.abs(table).max(axis=1, keepdims=True) + 1e-300)  # less is rounding
    return (table - mean) / deviation, float(deviation[0, 0])
