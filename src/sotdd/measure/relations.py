"""How columns go together: every two of them, and within classes; as scores that are judged like those of columns.

Two columns of numbers are compared by the product of the normal scores of their ranks, so that the sum of products is a
rank correlation. A category stands beside numbers as their mean for each of its values; two categories are compared by
how much more often a row's values go together than by chance. Where values are missing, a mark that says so is a column
too. All of it is made of the rows of both datasets together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, ndtri

from sotdd.basics.remarks import Remark, Remarks
from sotdd.compute.resampling import Each, Indices
from sotdd.inputs.data import LabelledData
from sotdd.measure.columns import Codes, Column, rank_columns, rank_values, score_ranks
from sotdd.measure.statistics import (
    CLASSES,
    PAIRS,
    WITHIN,
    Compared,
    Doubles,
    Floats,
    Score,
    centre_rows,
    standardise_sums,
    sum_scores,
)  # fmt: skip

# Every two columns are compared of no more columns than this, spread over all; of more where rows are so few that
# products of all pairs are no more values than that.
MOST_PAIRED, _MOST_OF_FEW, _VALUES = 40, 256, 1 << 24
# Classes with fewer rows are not looked into, and no more scores within classes are compared than this.
FEWEST_OF_CLASS, _MOST_WITHIN = 8, 4000
# Stands for all classes.
ALL = -1
# Values of a category that fewer rows have count as one.
_FEWEST_OF_VALUE = 5
# A mean of few rows is taken to be nearer to none: as if this many rows had been in the middle.
_SHRINK = 5.0

_TOGETHER = 64
# Scores are of order one: those that vary less are constant.
_ROUNDING = 1e-4

# The first rows that are checked for whether they depend on each other, and values in all.
_ROWS, _CHECKED = 5000, 1 << 18

# Rows repeat if this share of them do, and a single column tells this share of the others apart. Where columns have few
# values, rows are equal by chance.
_REPEATED, _TOLD_APART = 0.02, 0.9

# With fewer groups in a dataset, a permutation has hardly any choice.
_FEW_GROUPS = 10

# Where more rows than this share have one value, a few others beside each other say nothing.
_MOST_EQUAL = 0.95

# The level at which neighbours are called alike, over all columns.
_LEVEL = 0.001

# The largest probability of what is remarked on where nothing changed.
CHANCE = 0.001

# A column as it is paired: what it is called, scores (N,) or codes of a category, and the column that it is made of;
# None for the normal scores of its ranks.
_Paired: TypeAlias = tuple[str, Doubles | Codes | None, Column]


class Pairs:
    """The columns that are compared two by two, and each two of them.

    Attributes
    ----------
    names
        What the columns are called; one that marks the gaps of another is called so.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        n_rows = len(columns[0].known) if columns else 1
        most = max(MOST_PAIRED, min(_MOST_OF_FEW, int(math.sqrt(2 * _VALUES / n_rows))))
        paired = _take_some([one for column in columns for one in _list_paired(column)], most)
        self.names = [name for name, _, _ in paired]
        self._rows: list[Any] = [score_ranks(column.ranks) if rows is None else rows for _, rows, column in paired]
        self.of = [(i, j) for i, j in combinations(range(len(paired)), 2) if paired[i][2] is not paired[j][2]]

    def score(self) -> Iterator[list[Score]]:
        """The scores of all pairs, some at a time: what two columns have to do with each other in every row."""
        for start in range(0, len(self.of), _TOGETHER):
            yield [Score(pair, (PAIRS,), self._score(*pair)) for pair in self.of[start : start + _TOGETHER]]

    def _score(self, i: int, j: int) -> Doubles:
        """(N,) a product of numbers; of two categories how much more often their values go together than by chance."""
        first, second = self._place(i, j)
        if first.dtype != np.int64:
            return np.asarray(first * second)
        counts, expected = _count_pairs(first, second)
        return np.asarray(((counts - expected) / (expected + _SHRINK))[first, second])

    def _place(self, i: int, j: int) -> tuple[Any, Any]:
        """Two columns (N,) that can be compared: both as numbers, or both as codes if both are categories."""
        first, second = self._rows[i], self._rows[j]
        if first.dtype == second.dtype:
            return first, second
        return (_average(first, second), second) if first.dtype == np.int64 else (first, _average(second, first))

    def correlate(self, i: int, j: int, n_first: int) -> tuple[float, float]:
        """How strongly two columns go together on either side: a rank correlation, or Cramér's V of two categories."""
        first, second = self._place(i, j)
        measure = _find_association if first.dtype == np.int64 else correlate
        return measure(first[:n_first], second[:n_first]), measure(first[n_first:], second[n_first:])


def _take_some(columns: Sequence[Any], most: int) -> list[Any]:
    """At most this many, spread over all."""
    return [columns[place] for place in np.linspace(0, len(columns) - 1, min(len(columns), most)).astype(int)]


def _list_paired(column: Column) -> Iterator[_Paired]:
    """A column as it is paired, unless it is constant or a label; and the mark of its gaps."""
    known = column.known
    if column.kind == "category":
        counts = np.bincount(column.values[known], minlength=len(column.texts))
        often = np.flatnonzero(counts >= _FEWEST_OF_VALUE)
        codes = np.full(max(len(counts), 1) + 1, len(often))  # all others, and gaps at the end, as one
        codes[often] = np.arange(len(often))
        if len(often) > 1:
            yield column.name, codes[column.values], column
    elif column.kind == "number" and column.ranks.max(initial=0) > known.sum():  # a constant has but middle ranks
        yield column.name, None, column
    gaps = (~known).astype(np.float64)
    if _FEWEST_OF_VALUE <= gaps.sum() <= len(gaps) - _FEWEST_OF_VALUE:
        yield f"{column.name} (missing)", (gaps - gaps.mean()) / gaps.std(), column


def _average(codes: Codes, numbers: Doubles) -> Doubles:
    """(N,) for every row the mean of the numbers of its value, less the mean of all."""
    counts = np.bincount(codes)
    means = np.bincount(codes, weights=numbers) / (counts + _SHRINK)
    return np.asarray((means - np.average(means, weights=counts))[codes])


def _count_pairs(first: Codes, second: Codes) -> tuple[Doubles, Doubles]:
    """(A, B) how often values of two categories are in a row together, and how often they would be by chance."""
    shape = int(first.max()) + 1, int(second.max()) + 1
    counts = np.bincount(first * shape[1] + second, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
    return counts, np.outer(counts.sum(axis=1), counts.sum(axis=0)) / len(first)


def _find_association(first: Codes, second: Codes) -> float:
    """Cramér's V of two categories, less its expected value under independence."""
    counts, expected = _count_pairs(first, second)
    square = float(np.sum((counts - expected) ** 2 / np.where(expected > 0, expected, 1)))
    few, chance = min(counts.shape) - 1, (counts.shape[0] - 1) * (counts.shape[1] - 1)
    return math.sqrt(max(square - chance, 0.0) / (len(first) * few)) if few else 0.0


def correlate(first: Doubles, second: Doubles) -> float:
    """The rank correlation of two numbers for every row."""
    one, other = (score_ranks(rank_values(side)) for side in (first, second))
    length = math.sqrt(float(one @ one) * float(other @ other))
    return float(one @ other) / length if length > 0 else 0.0


# ------------------------------------------------------------------ within classes


class Within:
    """Columns of numbers, and every two of them, within classes; and how strongly they go together with the classes.

    The strength of a relation is the sum of squared class means in their standard errors, less half of the classes, and
    the root of it: that has about the same variance whatever the strength. It is the same whatever classes are called,
    so it counts; single classes are compared by name, and count only where names do.
    """

    def __init__(self, columns: Sequence[Column], codes: Indices, with_names: bool) -> None:
        counts = np.bincount(codes)
        classes = np.flatnonzero(counts >= FEWEST_OF_CLASS)[: _MOST_WITHIN if len(counts) > 1 else 0]
        per_class = _MOST_WITHIN / max(len(classes), 1)
        most = max(1, min(MOST_PAIRED, int((math.sqrt(1 + 8 * per_class) - 1) / 2)))
        self._columns = _take_some([(place, one) for place, one in enumerate(columns) if one.is_number], most)
        self.members = {code: np.flatnonzero(codes == code) for code in classes.tolist() if self._columns}
        self._families = (CLASSES, WITHIN) if with_names else (CLASSES,)
        self._pairs = list(combinations(range(len(self._columns)), 2))

    def compare(self, members: Floats, each: Each = map) -> Iterator[Compared]:
        """Compare one class after another, and last how strong relations are (B, S)."""
        if not self.members:
            return
        n_rows, size, count = members.shape[1], int(members[0].sum()), len(self._columns)
        overall, squares = self._rank(slice(None)), [0.0, 0.0]
        for code, rows in self.members.items():
            # Ranks among all rows know nothing of names; those within a class are for its own location alone.
            ranked, own = self._rank(rows), overall[rows]
            products = np.column_stack([own[:, i] * own[:, j] for i, j in self._pairs] or [own[:, :0]])
            table, inside = np.hstack([ranked, own, products]), members[:, rows]
            sums, sizes = sum_scores(table, inside, each), inside.sum(axis=1, dtype=np.float64)[:, None]
            means = products.mean(axis=0)
            scores, centred = np.hstack([ranked, products - means]), sums[:, 2 * count :] - sizes * means
            scores[:, np.std(scores, axis=0) < _ROUNDING] = 0.0  # of columns that are constant in this class
            apart = standardise_sums(np.hstack([sums[:, :count], centred]), scores, size, n_rows)
            yield self._list_keys(code), [self._families] * apart.shape[1], apart
            right, whole = sums[:, count:], table[:, count:].sum(axis=0, dtype=np.float64)
            for side, (found, points) in enumerate(((whole - right, len(rows) - sizes), (right, sizes))):
                squares[side] += found**2 / np.maximum(points, 1) - 0.5 * (points > 0)
        parts = n_rows - size, size
        left, right = (np.sqrt(np.maximum(one, 0) / part) for one, part in zip(squares, parts, strict=True))
        apart = np.abs(left - right) / math.sqrt(sum(1 / part for part in parts))
        yield self._list_keys(ALL), [(WITHIN,)] * apart.shape[1], apart

    def _rank(self, rows: Any) -> Floats:  # noqa: ANN401  # an index of NumPy
        """(n, k) ranks of some rows among each other: their products have no tails, as those of normal scores have."""
        return rank_columns(np.column_stack([one.values[rows] for _, one in self._columns]), is_normal=False)

    def _list_keys(self, code: int) -> list[tuple[int, ...]]:
        """The class, and the one or two columns that a score is of."""
        places = [place for place, _ in self._columns]
        return [*((code, place) for place in places), *((code, places[i], places[j]) for i, j in self._pairs)]


# ------------------------------------------------------------------ rows that depend on each other


def remark_on_rows(data: LabelledData) -> Remarks:
    """Remarks on rows that repeat, and on neighbours that are alike; where groups are known, that they are few.

    Examples
    --------
    >>> import numpy as np
    >>> walk = np.random.default_rng(0).normal(size=(300, 2)).cumsum(axis=0)
    >>> [remark.kind for remark in remark_on_rows(LabelledData.of(walk))]
    ['neighbours alike']
    """
    if data.groups is not None:
        groups = len(np.unique(data.groups))
        return (Remark("few groups", groups=groups),) if groups < _FEW_GROUPS else ()
    columns = np.unique(np.linspace(0, data.n_features - 1, min(data.n_features, 256)).astype(int))
    rows = min(data.n_points, _ROWS, max(_CHECKED // data.n_features, 64))
    table = data.rows(slice(0, rows))[:, columns]
    different = len(np.unique(table, axis=0)) if len(columns) > 1 else rows
    told_apart, repeated = max(len(np.unique(column)) for column in table.T), rows - different
    if repeated >= max(2, _REPEATED * rows) and told_apart >= max(3, _TOLD_APART * different):
        return (Remark("rows repeat", repeated=repeated, rows=rows),)
    return _remark_on_neighbours(table, columns, data)


def _remark_on_neighbours(table: NDArray[Any], columns: NDArray[np.int64], data: LabelledData) -> Remarks:
    """By ranks less their mean in the class, since rows are often sorted by class; not of what they are sorted by."""
    codes = data.codes[: len(table)]
    ranked, order = centre_rows(rank_columns(table).T, codes).T, np.argsort(codes, kind="stable")
    steps = np.diff(table[order], axis=0)[np.diff(codes[order]) == 0]
    is_sorted = (steps >= 0).all(axis=0) | (steps <= 0).all(axis=0)
    rare = [np.unique(column, return_counts=True)[1].max() > _MOST_EQUAL * len(column) for column in table.T]
    squares = np.where(rare, 0.0, np.sum(ranked**2, axis=0))
    products = np.sum(ranked[1:] * ranked[:-1], axis=0)
    correlations = np.divide(products, squares, out=np.zeros(len(columns)), where=(squares > 0) & ~is_sorted)
    most = int(np.argmax(correlations))
    if correlations[most] * np.sqrt(len(table)) < -ndtri(_LEVEL / len(columns)):
        return ()
    place = int(columns[most])
    name = f"feature {place}" if data.columns is None else data.columns[place]
    return (Remark("neighbours alike", column=name, correlation=float(correlations[most])),)


def count_common(before: Codes, now: Codes) -> tuple[int, float, float]:
    """How many of the rows ``now`` equal a row of those ``before``, by chance, and how likely that many are.

    By chance as many do as rows before repeat each other: that says how often a further row of their source would. Its
    own error makes the probability a bound.
    """
    counts = np.bincount(before, minlength=int(now.max()) + 1)
    found, repeated = int(np.count_nonzero(counts[now])), int(counts[counts > 1].sum())
    share = (repeated + add_doubt(repeated)) / len(before)
    return found, len(now) * repeated / len(before), tail_of_count(found, len(now), share)


def add_doubt(count: int) -> float:
    """How much larger a count may be in truth: three standard deviations of a count of pairs, or three for none."""
    return 3 * math.sqrt(2 * count) + 3


def tail_of_count(found: float, of: int, share: float) -> float:
    """How likely so many rows are, or more, where each is with this probability; a single one is no finding."""
    return float(bdtrc(int(found) - 1, of, min(share, 1.0))) if found >= 2 else 1.0
