"""Sums of scores over one side of every split: how far each score differs, and the largest of a family by chance.

A score is one number for every row, made of both samples together. What is compared is its sum over the rows of the
second sample, in its own standard deviations over permutations; so thousands of permutations are one product of
matrices. The largest of a family of scores in every permutation is what each is held against (Westfall and Young): if
the samples are of one source, *any* score of the family is called different no more often than the level says, however
many there are, with ties, rare values and few rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr, ndtri

from sotdd.basics.resources import serial_blas
from sotdd.compute.resampling import Each

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]

# Splits that are multiplied at a time.
_BATCH = 64

# Of the mean square of a score: less variance than this is rounding. Statistics that differ by less are equal.
_ROUNDING = 1e-9
_EQUAL = 1e-4


class Score(NamedTuple):
    """A score (N,) of all rows, what it is of, and its families; truth values are marks, judged by their exact law."""

    key: Hashable
    families: tuple[str, ...]
    rows: NDArray[Any]


class Compared(NamedTuple):
    """How far scores differ between the sides of some splits, in deviations (B, S); what they are of, and families."""

    keys: Sequence[Hashable]
    families: Sequence[tuple[str, ...]]
    apart: Doubles


class Differences:
    """How far scores differ between the two sides, in deviations.

    Attributes
    ----------
    keys, families
        Of every score, what it is of and where it belongs.
    found
        How far each differs in the data, which are the first split.
    largest
        (B,) of every family, the largest in every split so far.
    """

    def __init__(self) -> None:
        self.keys: list[Any] = []
        self.families: list[tuple[str, ...]] = []
        self.found: list[float] = []
        self.largest: dict[str, Doubles] = {}

    def extend(self, compared: Iterable[Compared]) -> None:
        """Add what was compared in further splits; the first of all are the data."""
        is_first, largest = not self.keys, dict[str, Doubles]()
        for keys, families, apart in compared:
            if is_first:
                self.keys += keys
                self.families += families
                self.found += apart[0].tolist()
            for family in dict.fromkeys(name for names in families for name in names):
                own = apart[:, [family in names for names in families]].max(axis=1)
                largest[family] = np.maximum(largest.get(family, 0.0), own)
        for family, values in largest.items():
            self.largest[family] = np.append(self.largest.get(family, np.zeros(0)), values)

    def find_p_values(self, *families: str) -> Doubles:
        """How often the largest of all scores of some families is as large by chance (S,), the data counted as one.

        A score of several families counts by the one in which it stands out most, as it does in every split.
        """
        found, beyond = np.full(len(self.found), -np.inf), np.array([-np.inf])
        for family in families:
            if family in self.largest:
                largest = self.largest[family]
                own = normalise_largest(np.append(self.found, largest[1:]), largest)
                is_member = np.array([family in names for names in self.families], bool)
                found = np.maximum(found, np.where(is_member, own[: len(found)], -np.inf))
                beyond = np.maximum(beyond, own[len(found) :])
        beyond = np.sort(beyond)
        farther = len(beyond) - np.searchsorted(beyond, found - _EQUAL)
        return np.where(np.isfinite(found), (1 + farther) / (1 + len(beyond)), 1.0)


def normalise_largest(values: Doubles, largest: Doubles) -> Doubles:
    """Deviations as normal scores, by what the ``largest`` of their family are: the largest of so many normal ones.

    How many these are follows from the median.
    """
    count = np.log(2) / max(float(np.median(2 * ndtr(-largest))), 1e-300)
    chances = -np.expm1(-count * 2 * ndtr(-values))
    scores: Doubles = -ndtri(np.clip(chances, 1e-300, 1 - 1e-15))
    return scores


def compare_scores(scores: Sequence[Score], members: Floats, each: Each = map) -> Iterator[Compared]:
    """Compare scores between the sides of splits (B, N), 1 for rows of the second side: marks by themselves."""
    n_rows, size = members.shape[1], int(members[0].sum())
    for is_mark in (False, True):
        some = [one for one in scores if (one.rows.dtype == np.bool_) == is_mark]
        if not some:
            continue
        keys, families, rows = zip(*some, strict=True)
        table = np.column_stack(rows).astype(np.float32)
        sums = sum_scores(table, members, each)
        if is_mark:
            counts = table.sum(axis=0, dtype=np.float64).astype(int).tolist()
            inside = np.rint(sums).astype(np.int64)
            tails = (_find_tails(marked, size, n_rows)[inside[:, place]] for place, marked in enumerate(counts))
            apart = np.column_stack([*tails])
        else:
            apart = standardise_sums(sums, table, size, n_rows)
        yield Compared(keys, families, apart)


@serial_blas.hold()
def sum_scores(table: Floats, members: Floats, each: Each = map) -> Doubles:
    """(B, S) the sums of scores (n, S) over the members (B, n)."""
    starts = range(0, len(members), _BATCH)
    return np.concatenate(list(each(lambda at: members[at : at + _BATCH] @ table, starts))).astype(np.float64)


def standardise_sums(sums: Doubles, table: Floats, size: int, n_rows: int) -> Doubles:
    """How far sums (B, S) of scores (n, S) are from what permutations give on average, in their standard deviations.

    So many of all rows are members; rows that are not in the table have a score of zero.
    """
    mean = table.sum(axis=0, dtype=np.float64) / n_rows
    square = np.einsum("ns,ns->s", table, table, dtype=np.float64) / n_rows
    variances = size * (n_rows - size) / max(n_rows - 1, 1) * (square - mean**2)
    deviations: Doubles = np.divide(
        np.abs(sums - size * mean), np.sqrt(np.maximum(variances, 0)), out=np.zeros_like(sums),
        where=variances > max(_ROUNDING, 1e-6 / n_rows) * square * n_rows,
    )  # fmt: skip
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
