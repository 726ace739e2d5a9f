"""Which columns of two samples differ: every column by a few scores, and all of them judged by the same permutations.

A score is one number for every row, made of both samples together: where its value lies among all, how far out it lies,
whether it is a certain value, whether it is missing. What is compared is the sum of a score over the rows of the second
sample, in its own standard deviations over permutations; so thousands of permutations are one product of matrices. The
largest of all scores in every permutation is what each is held against (Westfall and Young): if the samples are of one
source, *any* column is called different no more often than the level says, however many there are, with ties, rare
values and few rows.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import hypergeom

from sotdd.basics.randomness import Stream, generator

Doubles = NDArray[np.float64]
Bools = NDArray[np.bool_]

# What fewer rows have is not marked.
_FEWEST_EQUAL = 5

# The share of rows that are at one end of a column: few far values show there, not in the middle.
_END = 1 / 32

# Permutations that are multiplied at a time.
_BLOCK = 128

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
    distinct, places, counts = np.unique(values[known], return_inverse=True, return_counts=True)
    if len(distinct) < 2:
        return {}
    marks = known.copy()
    marks[known] = places == counts.argmax()
    if len(distinct) == 2:
        return {"commonest": marks}
    ranks = (np.cumsum(counts) - counts / 2) / counts.sum()
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


def draw_members(n_first: int, n_second: int, count: int, seed: int) -> Bools:
    """(1 + count, N) which rows are of the second sample: as they are, and permuted."""
    actual = np.arange(n_first + n_second) >= n_first
    permuted = generator(seed, Stream.COLUMN_PERMUTATIONS, 0).permuted(np.tile(actual, (count, 1)), axis=1)
    return np.vstack([actual, permuted])


def compare_scores(blocks: Iterable[list[Doubles | Bools]], members: Bools) -> tuple[Doubles, Doubles]:
    """How far each score differs between the samples, in standard deviations (S,); and the largest in every row (B,).

    The rows of ``members`` (B, N) are the data and permutations of them. Scores (N,) come in blocks, so that very many
    need not be in memory together.
    """
    found: list[Doubles] = []
    largest = np.zeros(len(members))
    for block in blocks:
        if block:
            table = _standardise(block, members)
            found.append(table[0])
            largest = np.maximum(largest, table.max(axis=1))
    return (np.concatenate(found) if found else np.zeros(0)), largest


def find_p_values(found: Doubles, largest: Doubles) -> Doubles:
    """How often the largest of all scores is as large by chance (S,), of what `compare_scores` returns."""
    beyond: Doubles = (largest[None, 1:] >= found[:, None] - _ROUNDING).sum(axis=1)
    p_values: Doubles = (1 + beyond) / len(largest)
    return p_values


def _standardise(scores: list[Doubles | Bools], members: Bools) -> Doubles:
    """(B, S) how far the sums of scores over the members are from what permutations give on average, in deviations."""
    n_rows, size = members.shape[1], int(members[0].sum())
    table = np.column_stack([np.asarray(score, np.float64) for score in scores])
    sums = np.concatenate([
        members[start : start + _BLOCK].astype(np.float64) @ table for start in range(0, len(members), _BLOCK)
    ])  # fmt: skip
    for place, score in enumerate(scores):
        if score.dtype == np.bool_:
            tails = _find_tails(int(score.sum()), size, n_rows)
            sums[:, place] = tails[np.rint(sums[:, place]).astype(np.int64)]
            continue
        centred = table[:, place] - table[:, place].mean()
        variance = size * (n_rows - size) / (n_rows * max(n_rows - 1, 1)) * float(centred @ centred)
        away = np.abs(sums[:, place] - size * table[:, place].mean())
        sums[:, place] = away / np.sqrt(variance) if variance > _ROUNDING**2 else 0.0
    return sums


def _find_tails(marked: int, size: int, n_rows: int) -> Doubles:
    """Of every count of marked rows among the members, the normal deviation that is as unlikely.

    A rare mark is several deviations off at once, which chance does often: its tail says how often (hypergeometric).
    """
    chances = hypergeom.pmf(np.arange(marked + 1), n_rows, marked, size)
    tails = np.minimum(np.cumsum(chances), np.cumsum(chances[::-1])[::-1])
    deviations: Doubles = -ndtri(np.clip(tails, 1e-300, 0.5))
    return deviations
