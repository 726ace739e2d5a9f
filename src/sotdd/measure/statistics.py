"""The statistics of a test of two datasets: costs, means, shares of classes, and sums of scores.

A single projection sees a shift only in units of its own spread. Where features go together, a shift across them is
small in every single direction and large beside the spread of the right one. So differences of means are measured in
units of the spread of the projected points in every direction, as Hotelling's test does; under permutations that costs
one product.

What changes in one column of many, in how two of them go together, within one class, or along one axis alone, is small
in all projections. There a *score* is one number for every row, made of both samples together. What is compared is its
sum over the rows of the second sample, in its own standard deviations over permutations; so thousands of permutations
are one product of matrices. The largest of a family of scores in every permutation is what each is held against
(Westfall and Young): if the samples are of one source, *any* score of the family is called different no more often than
the level says, however many there are, with ties, rare values and few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr, ndtri

from sotdd.basics.resources import serial_blas
from sotdd.compute.resampling import Each

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]

# What some scores are of, their families, and how far they differ between the sides of splits, in deviations (B, S).
Compared: TypeAlias = tuple[Sequence[Hashable], Sequence[tuple[str, ...]], Doubles]

# A statistic (B,) of who is on the right, which is true in (B, N).
Measure: TypeAlias = Callable[[NDArray[Any]], Doubles]

# Families of scores: all of columns that count, those of them that mark few rows, columns two by two, within classes
# and along principal axes. Single columns and classes get a name, but count only where those that are judged do.
COLUMNS, RARE, PAIRS, WITHIN, AXES = COUNTED = (
    "columns", "rare marks", "pairs of columns", "within classes", "principal axes"
)  # fmt: skip
NAMED, CLASSES = "named columns", "single classes"

# The statistic of the shares of classes by name.
SHARES = "class shares"

# Splits that are multiplied at a time.
_BATCH = 64

# Of the mean square of a score: less variance than this is rounding. Statistics that differ by less are equal.
_ROUNDING = 1e-9
_EQUAL = 1e-4

# Statistics that vary by less than this share of themselves differ by rounding.
_ALIKE = 1e-9

# Less than this many deviations of chance is rounding.
_ROUNDED = 1e-6

# Both orders are judged: p = 1 sees small shifts of everything, p = 2 what few points or classes do.
ORDERS = (1.0, 2.0)

# Points farther from the median than this many deviations are brought that near: few far points would drown out all
# others.
FARTHEST = 3.0

# Added to every variance, by share of the mean one: directions in which points hardly vary count less. Few points to a
# class ask for more of it.
_RIDGE = 0.01
_CLASS_RIDGE = 0.1

# Directions with less than this share of the largest variance are rounding.
_FLAT = 1e-8

# Who asks for names of classes asks for their shares, which count by this many deviations more. The largest of many
# differences is either clear or chance: it counts by this many less, so that little else is lost by looking for it.
_ASKED_FOR = 0.75
_OF_MANY = 0.25


class Score(NamedTuple):
    """A score (N,) of all rows, what it is of, and its families; truth values are marks, judged by their exact law."""

    key: Hashable
    families: tuple[str, ...]
    rows: NDArray[Any]


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
    squares
        (B,) the sum of all squares in every split so far.
    """

    def __init__(self) -> None:
        self.keys: list[Any] = []
        self.families: list[tuple[str, ...]] = []
        self.found: list[float] = []
        self.largest: dict[str, Doubles] = {}
        self.squares = np.zeros(0)

    def extend(self, compared: Iterable[Compared]) -> None:
        """Add what was compared in further splits; the first of all are the data."""
        is_first, largest, squares = not self.keys, dict[str, Doubles](), np.zeros(1)
        for keys, families, apart in compared:
            if is_first:
                self.keys += keys
                self.families += families
                self.found += apart[0].tolist()
            squares = squares + np.sum(apart**2, axis=1)
            for family in dict.fromkeys(name for names in families for name in names):
                own = apart[:, [family in names for names in families]].max(axis=1)
                largest[family] = np.maximum(largest.get(family, 0.0), own)
        for family, values in largest.items():
            self.largest[family] = np.append(self.largest.get(family, np.zeros(0)), values)
        self.squares = np.append(self.squares, squares)

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
        table = np.stack(rows).astype(np.float32, copy=False).T
        sums = sum_scores(table, members, each)
        if is_mark:
            counts = table.sum(axis=0, dtype=np.float64).astype(int).tolist()
            inside = np.rint(sums).astype(np.int64)
            tails = (_find_tails(marked, size, n_rows)[inside[:, place]] for place, marked in enumerate(counts))
            apart = np.column_stack([*tails])
        else:
            apart = standardise_sums(sums, table, size, n_rows)
        yield keys, families, apart


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


def balance_costs(costs: Doubles) -> Doubles:
    """The mean (S,) over projections of W_p^p (L, S), each divided by the root of what is usual under it.

    Few projections of high order have costs many times those of the others. Divided by the root of
    their mean over all splits, they count more than the others still, but leave them a say.
    """
    usual = np.sqrt(np.mean(costs, axis=1))  # (L,)
    varies = usual > 0  # under the others all points lie together
    if not varies.any():
        return np.zeros(costs.shape[1])
    return np.asarray(np.mean(costs[varies] / usual[varies, None], axis=0) / np.mean(usual[varies]))


def combine_squares(table: Mapping[str, Doubles], squares: Doubles, first: int) -> Doubles:
    """How far apart the first splits (S,) are on average over all statistics, each beside its own mean.

    Rows that stand on both sides take the same share of every sum of squares, so the average is of ratios, by their
    precision. Costs (L, S) of the first order are squared; sums of squares of scores are one more statistic.
    """
    costs = {name: values.mean(axis=0) if values.ndim > 1 else values for name, values in table.items()}
    parts = [values**2 if name.endswith(", order 1") else values for name, values in costs.items()]
    ratios = [one[:first] / one[:first].mean() for one in (*parts, squares) if len(one) >= first and one[:first].any()]
    precisions = [1 / max(float(np.var(ratio)), _ALIKE) for ratio in ratios]
    return np.average(ratios, axis=0, weights=precisions) if ratios else np.zeros(first)


def standardise_statistics(table: Mapping[str, Doubles], largest: Mapping[str, Doubles]) -> dict[str, Doubles]:
    """Statistics (S,) of all splits by name, each in its own standard deviations; those that do not vary are left out.

    The data are one of the S splits like the others, and every split is judged by whatever stands out most in
    it, so the level of the test is that of any permutation test. Costs (L, S) are balanced; cube roots bring sums of
    squares to about the normal shape; what is the ``largest`` of many deviations has another.
    """
    shaped = {name: np.cbrt(balance_costs(found) if found.ndim > 1 else found) for name, found in table.items()}
    shaped |= {name: normalise_largest(found, found) for name, found in largest.items() if name in COUNTED}
    return {
        name: (values - values.mean()) / values.std() + _ASKED_FOR * (name == SHARES) - _OF_MANY * (name in largest)
        for name, values in shaped.items()
        if values.std() > _ALIKE * abs(values.mean())
    }


def reaches(values: Doubles, least: float) -> NDArray[np.bool_]:
    """Which values are as large, but for rounding: splits that are alike must not differ by the order of sums."""
    return values >= least - _ROUNDED * float(np.std(values))


def measure_means(rows: NDArray[np.float32], codes: NDArray[np.int64] | None = None) -> Measure:
    """The squared gap between the means of the two sides of every split, in units of its own errors.

    rows (L, N) are the projections of the pooled points, in their own order. With codes, class by class, averaged over
    the classes that both sides have: they are matched by name, and the unit is the spread of points within them. An
    average, since datasets that were made to have every class would have more classes on both sides than their
    permutations do.
    """
    points, within = centre_rows(rows, None), centre_rows(rows, codes)
    variances, axes = np.linalg.eigh(within @ within.T / within.shape[1])
    variances = np.maximum(variances, 0.0)
    kept = variances > _FLAT * variances.max()
    added = (_RIDGE if codes is None else _CLASS_RIDGE) * variances.sum() / min(points.shape)
    points = ((axes[:, kept] / np.sqrt(variances[kept] + added)).T @ points).T  # (N, r), of about one variance
    classes = [(own, points[own]) for own in _list_classes(codes)]

    def measure(right: NDArray[Any]) -> Doubles:
        total, compared = np.zeros(len(right)), np.zeros(len(right))
        for own, of_class in classes:
            here = right[:, own]
            m = here.sum(axis=1)
            n = len(of_class) - m
            both = (n > 0) & (m > 0)
            contrast = (1 - here) / np.maximum(n, 1)[:, None] - here / np.maximum(m, 1)[:, None]
            total += np.where(both, n * m / len(of_class), 0.0) * np.sum((contrast @ of_class) ** 2, axis=1)
            compared += both
        return total / np.maximum(compared, 1.0)

    return measure


def measure_shares(codes: NDArray[np.int64]) -> Measure:
    """How far the shares of the classes, by name, are apart between the two sides of every split: χ²."""
    marks = np.eye(int(codes.max()) + 1)[codes]  # (N, C)
    shares = marks.mean(axis=0)

    def measure(right: NDArray[Any]) -> Doubles:
        m = int(right[0].sum())
        n = right.shape[1] - m
        return np.asarray(np.sum(((1 - right) @ marks / n - right @ marks / m) ** 2 / shares, axis=1))

    return measure


def centre_rows(rows: NDArray[np.float32], codes: NDArray[np.integer] | None) -> Doubles:
    """Rows (L, N) less their means, of all points or of each class."""
    wide = rows.astype(np.float64)
    for own in _list_classes(codes):
        wide[:, own] -= wide[:, own].mean(axis=1, keepdims=True)
    return wide


def _list_classes(codes: NDArray[np.integer] | None) -> list[Any]:
    return [slice(None)] if codes is None else [np.flatnonzero(codes == label) for label in range(codes.max() + 1)]
