"""Which columns of two samples differ: every column by a few scores, and all of them judged by the same permutations.

A score is one number for every row, made of both samples together: where its value lies among all, how far out it lies,
whether it is a certain value, whether it is missing. What is compared is the sum of a score over the rows of the second
sample, in its own standard deviations over permutations; so thousands of permutations are one product of matrices. The
largest of all scores in every permutation is what each is held against (Westfall and Young): if the samples are of one
source, *any* column is called different no more often than the level says, however many there are, with ties, rare
values and few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtri

from sotdd.basics.threads import serial_blas
from sotdd.compute.resampling import Each
from sotdd.inputs.data import LabelledData

Doubles = NDArray[np.float64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Scores = list[Doubles | Bools]

# What fewer rows have is not marked.
_FEWEST_EQUAL = 5

# The share of rows that are at one end of a column: few far values show there, not in the middle.
_END = 1 / 32

# Permutations that are multiplied at a time, and columns or pairs that are scored together.
_BLOCK = 64
_COLUMNS = 32

# Every two columns of numbers are compared of no more columns than this, spread over all.
MOST_PAIRED = 40

# Leading principal axes along which rows are compared as in columns, and iterations that find them.
_AXES, _ITERATIONS = 8, 6
# Of deviations along an axis, or of the longest axis: less is rounding.
_STEP = 1e-4

# Of more values than this, nothing is looked at column by column.
_MOST_VALUES = 1 << 25

# Differences of this size between statistics are rounding.
_ROUNDING = 1e-9


def score_numbers(values: Doubles, known: Bools) -> dict[str, Doubles | Bools]:
    """The scores of a column of numbers (N,), by what they see; rows that are not ``known`` have none.

    "location" is the rank, "spread" the square of its normal score, "shape" its Legendre polynomial of fourth order,
    which sees two peaks where there was one; "low" and "high" mark the rows at either end; "commonest" marks the value
    that is there most often. Of two values that mark is all there is to see.

    Examples
    --------
    >>> import numpy as np
    >>> scores = score_numbers(np.array([1.0, 2.0, 2.0, 3.0, 4.0]), np.ones(5, bool))
    >>> list(scores), scores["location"].round(2).tolist()
    (['location', 'spread', 'shape'], [-0.8, -0.2, -0.2, 0.4, 0.8])
    """
    ranks, places, counts = _rank(values[known])
    if len(ranks) < 2:
        return {}
    marks = known.copy()
    marks[known] = places == counts.argmax()
    if len(ranks) == 2:
        return {"commonest": marks}
    centred = 2 * ranks - 1
    kinds = {"location": centred, "spread": ndtri(ranks) ** 2, "shape": 35 * centred**4 - 30 * centred**2}
    found: dict[str, Doubles | Bools] = {}
    for name, of_values in kinds.items():
        found[name] = np.zeros(len(values))
        found[name][known] = (of_values - np.average(of_values, weights=counts))[places]
    for name, is_there in (("low", ranks < _END), ("high", ranks > 1 - _END)):
        ends = known.copy()
        ends[known] = is_there[places]
        if ends.sum() >= _FEWEST_EQUAL:
            found[name] = ends
    if counts.max() >= _FEWEST_EQUAL:
        found["commonest"] = marks
    return found


def _rank(values: NDArray[Any]) -> tuple[Doubles, NDArray[np.int64], NDArray[np.int64]]:
    """The ranks of the distinct values, as shares; of every value which it is; and how often each is there."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - counts / 2) / max(len(values), 1), places, counts


@dataclass(frozen=True, eq=False)
class Pooled:
    """The columns of two samples, the second after the first, as a test looks at them.

    Attributes
    ----------
    scores
        Yields the scores of all columns, some at a time.
    ranked
        (N, d) normal scores of the ranks in every column, along whose principal axes points are compared too.
    paired
        The columns of numbers of which every two are compared.
    """

    scores: Callable[[Each], Iterable[Scores]]
    ranked: Floats
    paired: list[int]

    @classmethod
    def of(cls, datasets: Sequence[LabelledData]) -> Pooled | None:
        """Every feature as a column; None where there are too many values."""
        if sum(data.n_points for data in datasets) * datasets[0].n_features > _MOST_VALUES:
            return None
        table = np.concatenate([data.rows(block) for data in datasets for block in data.blocks()])
        several = ((table > table.min(axis=0)) & (table < table.max(axis=0))).any(axis=0)  # more than two values
        paired = take_some(np.flatnonzero(several).tolist())
        return cls(lambda each: score_columns(table, each), rank_columns(table), paired)


def take_some(columns: Sequence[Any]) -> list[Any]:
    """As many columns as are paired, spread over all."""
    chosen = np.linspace(0, len(columns) - 1, min(len(columns), MOST_PAIRED)).astype(int)
    return [columns[place] for place in chosen]


def score_columns(table: NDArray[Any], each: Each = map) -> Iterator[Scores]:
    """The scores of the columns (N, d), some at a time."""
    known = np.ones(len(table), bool)
    for start in range(0, table.shape[1], _COLUMNS):
        part = table[:, start : start + _COLUMNS].astype(np.float64)
        scores = each(lambda column: score_numbers(column, known), part.T)
        yield [score for found in scores for score in found.values()]


def rank_columns(table: NDArray[Any]) -> Floats:
    """Normal scores of the ranks in every column (N, d), centred; NaN is 0, neither low nor high."""
    scores = np.zeros(table.shape, np.float32)
    for place, column in enumerate(table.T):
        known = ~np.isnan(column)
        if known.any():
            ranks, places, counts = _rank(column[known])
            normal = ndtri(ranks)
            scores[known, place] = (normal - np.average(normal, weights=counts))[places]
    return scores


def score_pairs(ranked: NDArray[Any]) -> Iterator[Scores]:
    """Products of every two columns of normal scores (N, k): their sums are rank correlations."""
    columns = ranked.T.astype(np.float64)
    pairs = list(combinations(range(len(columns)), 2))
    for start in range(0, len(pairs), _BLOCK):
        yield [columns[i] * columns[j] for i, j in pairs[start : start + _BLOCK]]


@serial_blas.hold()
def find_axes(table: NDArray[Any]) -> Doubles:
    """(N, k) rows of centred columns (N, d) along their leading principal axes, by iterations of a few vectors.

    In steps that are coarser than rounding, so that equal rows are equal wherever they are in memory.
    """
    if not table.any():
        return np.zeros((len(table), 0))
    wide = table.astype(np.float64)
    vectors = np.random.default_rng(0).normal(size=(wide.shape[1], min(2 * _AXES, *wide.shape)))
    for _ in range(_ITERATIONS):
        vectors = np.linalg.qr(wide.T @ (wide @ vectors))[0]
    left, sizes, _ = np.linalg.svd(wide @ vectors, full_matrices=False)
    kept = left[:, :_AXES][:, sizes[:_AXES] > _STEP * sizes[0]]
    axes: Doubles = np.rint(np.sqrt(len(wide)) * kept / _STEP)
    return axes


@serial_blas.hold()
def compare_scores(blocks: Iterable[Scores], members: Bools, each: Each = map) -> tuple[Doubles, Doubles]:
    """How far each score differs between the samples, in standard deviations (S,); and the largest in every row (B,).

    The rows of ``members`` (B, N) are the data and permutations of them. Scores (N,) come in blocks, so that very many
    need not be in memory together.
    """
    found: list[Doubles] = []
    largest = np.zeros(len(members))
    for block in blocks:
        if block:
            table = _standardise(block, members, each)
            found.append(table[0])
            largest = np.maximum(largest, table.max(axis=1))
    return (np.concatenate(found) if found else np.zeros(0)), largest


def find_p_values(found: Doubles, largest: Doubles) -> Doubles:
    """How often the largest of all scores is as large by chance (S,), of what `compare_scores` returns."""
    beyond: Doubles = (largest[None, 1:] >= found[:, None] - _ROUNDING).sum(axis=1)
    p_values: Doubles = (1 + beyond) / len(largest)
    return p_values


def _standardise(scores: Scores, members: Bools, each: Each) -> Doubles:
    """(B, S) how far the sums of scores over the members are from what permutations give on average, in deviations."""
    n_rows, size = members.shape[1], int(members[0].sum())
    table = np.column_stack([np.asarray(score, np.float64) for score in scores])
    batches = (members[start : start + _BLOCK] for start in range(0, len(members), _BLOCK))
    sums = np.concatenate(list(each(lambda some: some.astype(np.float64) @ table, batches)))
    means = table.mean(axis=0)
    variances = size * (n_rows - size) / max(n_rows - 1, 1) * ((table**2).mean(axis=0) - means**2)
    away = np.abs(sums - size * means)
    deviations: Doubles = np.divide(
        away, np.sqrt(variances), out=np.zeros_like(sums), where=variances > _ROUNDING * means**2
    )
    for place, score in enumerate(scores):
        if score.dtype == np.bool_:
            tails = _find_tails(int(score.sum()), size, n_rows)
            deviations[:, place] = tails[np.rint(sums[:, place]).astype(np.int64)]
    return deviations


@lru_cache(maxsize=4096)
def _find_tails(marked: int, size: int, n_rows: int) -> Doubles:
    """Of every count of marked rows among the members, the normal deviation that is as unlikely.

    A rare mark is several deviations off at once, which chance does often: its tail says how often (hypergeometric).
    """
    inside, rest = np.arange(marked + 1), n_rows - marked
    taken = size - inside
    possible = (taken >= 0) & (taken <= rest)
    ways = -gammaln(inside + 1) - gammaln(marked - inside + 1)  # but for factors that all have in common
    ways = np.where(possible, ways - gammaln(np.abs(taken) + 1) - gammaln(np.abs(rest - taken) + 1), -np.inf)
    chances = np.exp(ways - ways.max())
    chances /= chances.sum()
    tails = np.minimum(np.cumsum(chances), np.cumsum(chances[::-1])[::-1])
    deviations: Doubles = -ndtri(np.clip(tails, 1e-300, 0.5))
    return deviations
