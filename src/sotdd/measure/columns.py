"""The columns of two datasets, pooled: what a test looks at one by one, and what people read of them.

Everything here is made of the rows of both datasets together, in whatever order they stand there: which values a
category has, where a value ranks, which values count as high. So a permutation of rows between the datasets changes
none of it, which is what makes the test exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sotdd.basics.resources import serial_blas
from sotdd.basics.text import json_label
from sotdd.compute.resampling import Each
from sotdd.inputs.data import LabelledData
from sotdd.inputs.schema import MISSING, Feature, Names
from sotdd.measure.statistics import AXES, COLUMNS, NAMED, RARE, Bools, Doubles, Floats, Score

# What a column holds; how columns go together is reported beside them.
Kind: TypeAlias = Literal["number", "category", "label", "together"]
Codes = NDArray[np.int64]
Ranks = NDArray[np.int32]

# Values that fewer rows have are not marked: numbers, and values of categories.
_FEWEST_EQUAL, _FEWEST_OF_CATEGORY = 5, 3

# The share of rows that are at one end of a column: few far values show there, not in the middle.
_END = 1 / 32

# Marks of at most this share of rows are rare.
_RARE = 0.25

# Columns are not tested one by one in tables of more values than this.
MOST_VALUES = 1 << 25

# What stands for a gap in a row, and the numbers by which rows are hashed.
_GAP = np.uint32(2**32 - 1)
_FACTOR, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)

# Colours of an image, at most.
MOST_COLOURS = 4

# Columns that are scored together.
_TOGETHER = 16

# Leading principal axes along which rows are compared as in columns, and iterations that find them.
_AXES, _ITERATIONS = 8, 6
# Of deviations along an axis, or of the longest axis: less is rounding.
_STEP = 1e-4


@dataclass(frozen=True)
class Bars:
    """How a column is spread over bins or values: shares of either dataset, one for each name.

    ``statistics`` sums it up in words, a line for each: what it is, of the reference, and of the batch.
    """

    names: tuple[str, ...]
    reference: tuple[float, ...]
    batch: tuple[float, ...]
    are_values: bool
    statistics: tuple[tuple[str, str, str], ...] = ()


NO_BARS = Bars((), (), (), True)


@dataclass(frozen=True, eq=False)
class Column:
    """A column of two datasets, the rows of the second after those of the first.

    Attributes
    ----------
    name, kind
        What it is called, and what it holds.
    n_first
        How many rows are of the first dataset.
    values
        (N,) numbers, NaN where one is missing; of a category or label the code of each value, -1 where one is missing.
    texts
        What the codes stand for.
    """

    name: str
    kind: Kind
    n_first: int
    values: NDArray[Any]
    texts: Names = ()

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers, not names."""
        return self.kind == "number"

    @property
    def known(self) -> Bools:
        """(N,) which rows have a value."""
        known: Bools = ~np.isnan(self.values) if self.is_number else self.values >= 0
        return known

    @cached_property
    def ranks(self) -> Ranks:
        """(N,) of numbers, see `rank_values`; every family of scores is made of them."""
        return rank_values(self.values)

    def split(self, rows: NDArray[Any]) -> tuple[Any, Any]:
        """Something of both datasets, as that of the first and that of the second."""
        return rows[: self.n_first], rows[self.n_first :]

    @property
    def sides(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The values of either dataset that are not missing, numbers as float64."""
        values = self.values.astype(np.float64) if self.is_number else self.values
        (first, second), (of_first, of_second) = self.split(values), self.split(self.known)
        return first[of_first], second[of_second]

    def share(self, marks: Bools) -> tuple[float, float]:
        """The share of rows that are marked, of either side."""
        first, second = self.split(marks)
        return float(first.mean()), float(second.mean())

    def take(self, rows: NDArray[np.int64]) -> Column:
        """Some of the rows, in ascending order."""
        return replace(self, n_first=int(np.count_nonzero(rows < self.n_first)), values=self.values[rows])

    def mark(self, aspect: str, value: float) -> Bools:
        """(N,) the rows that a mark is about."""
        if aspect == "gaps":
            return ~self.known
        compare = {"low": np.less_equal, "high": np.greater_equal}.get(aspect, np.equal)
        marks: Bools = compare(self.values, value)
        return marks

    def list_marks(self) -> dict[tuple[str, float], Bools]:
        """The rows that have each value of a category, and those that have none."""
        known, found = self.known, dict[tuple[str, float], Bools]()
        if not self.is_number:
            counts = np.bincount(self.values[known], minlength=len(self.texts))
            for code in np.flatnonzero(counts >= _FEWEST_OF_CATEGORY).tolist():
                found["value", float(code)] = self.values == code
        if not known.all():
            found["gaps", 0.0] = ~known
        return found

    def find_scores(self) -> dict[tuple[str, float], Floats | Bools]:
        """The score of every row, by aspect and by the value that a mark is about."""
        found: dict[tuple[str, float], Floats | Bools] = {}
        if self.is_number:
            for aspect, score in score_numbers(self.ranks).items():
                marked = self.values[score] if score.dtype == np.bool_ else np.zeros(1)
                found[aspect, float(marked.max() if aspect == "low" else marked.min())] = score
        return {**found, **self.list_marks()}


def score_numbers(ranks: Ranks) -> dict[str, Floats | Bools]:
    """The scores of a column of numbers by their ranks (N,), by what they see; rows that have no value have none.

    "location" is the rank, "spread" the square of its normal score, "shape" its Legendre polynomial of fourth order,
    which sees two peaks where there was one; "low" and "high" mark the rows at either end; "commonest" marks the value
    that is there most often. Of two values that mark is all there is to see.

    Examples
    --------
    >>> import numpy as np
    >>> scores = score_numbers(rank_values(np.array([1.0, 2.0, 2.0, 3.0, 4.0])))
    >>> list(scores), scores["location"].round(2).tolist()
    (['location', 'spread', 'shape'], [-0.800000011920929, -0.20000000298023224, ...])
    """
    counts = np.bincount(ranks)
    counts[0] = 0
    distinct, n_known = np.flatnonzero(counts), int(counts.sum())
    if len(distinct) < 2:
        return {}
    # Of two values the rarer one, which may be the flag that is raised.
    marks = ranks == (distinct[counts[distinct].argmin()] if len(distinct) == 2 else counts.argmax())
    if len(distinct) == 2:
        return {"commonest": marks}
    kinds = ("location", "spread", "shape")
    found: dict[str, Floats | Bools] = {kind: _centre(kind, counts).astype(np.float32)[ranks] for kind in kinds}
    low, high = (ranks > 0) & (ranks < _END * 2 * n_known), ranks > (1 - _END) * 2 * n_known
    found |= {name: ends for name, ends in (("low", low), ("high", high)) if ends.sum() >= _FEWEST_EQUAL}
    if counts.max() >= _FEWEST_EQUAL:
        found["commonest"] = marks
    return found


def rank_values(values: NDArray[Any]) -> Ranks:
    """(N,) twice the rank of every value, equal ones at their mean, which is whole; from 1 on, NaN is 0."""
    order, ranks = np.argsort(values), np.zeros(len(values), np.int32)
    ascending = values[order[: len(values) - np.count_nonzero(np.isnan(values))]]
    ends = np.append(np.flatnonzero(ascending[1:] != ascending[:-1]) + 1, len(ascending))
    sizes = np.diff(ends, prepend=0)
    ranks[order[: len(ascending)]] = np.repeat(2 * ends - sizes, sizes)
    return ranks


@lru_cache(maxsize=4)
def _tabulate(n_values: int) -> dict[str, Doubles]:
    """What every rank among so many values scores, by twice the rank; 0 stands for no value."""
    shares = np.arange(2 * n_values) / (2 * n_values)
    shares[0] = 0.5
    normal, centred = ndtri(shares), 2 * shares - 1
    shape = 35 * centred**4 - 30 * centred**2
    uniform = math.sqrt(12) * (shares - 0.5)
    return {"normal": normal, "uniform": uniform, "location": centred, "spread": normal**2, "shape": shape}


def _centre(kind: str, counts: Codes) -> Doubles:
    """Scores by rank, less their mean over the values, of which so many have each rank; none for no value."""
    scores = _tabulate(int(counts.sum()))[kind][: len(counts)]
    centred: Doubles = scores - (scores @ counts) / counts.sum()
    centred[0] = 0.0
    return centred


def score_ranks(ranks: Ranks, *, is_normal: bool = True) -> Doubles:
    """Normal scores of ranks (N,), or the ranks themselves, centred; no value is 0, neither low nor high."""
    counts = np.bincount(ranks, minlength=1)
    counts[0] = 0
    return _centre("normal" if is_normal else "uniform", counts)[ranks] if counts.any() else np.zeros(len(ranks))


def rank_columns(table: NDArray[Any], *, is_normal: bool = True) -> Floats:
    """The same of every column of numbers (N, d), NaN where one is missing."""
    found = np.empty(table.shape[::-1], np.float32)
    for place, column in enumerate(table.T):
        found[place] = score_ranks(rank_values(column), is_normal=is_normal)
    return found.T


# ------------------------------------------------------------------ the columns of two datasets


def pool_columns(pair: Sequence[LabelledData], most: int | None = MOST_VALUES) -> list[Column] | None:
    """Every column of datasets that share their features, labels last; None where there are too many values.

    Categories have the values of all of them, and gaps are gaps again.
    """
    n_first, n_rows = pair[0].n_points, sum(data.n_points for data in pair)
    if most is not None and n_rows * pair[0].n_features > most:
        return None
    rows = np.concatenate([data.rows(block) for data in pair for block in data.blocks()])
    table = np.ascontiguousarray(rows.T)  # every column in one piece
    names = next((data.columns for data in pair if data.columns is not None), None)
    columns = []
    if names is None or any(data.columns is None for data in pair):  # features are all that is known
        titles = names or name_features(pair)
        columns = [Column(title, "number", n_first, table[place]) for place, title in enumerate(titles)]
    else:
        coded = {title for data in pair for title in data.origin.categories}
        for title in dict.fromkeys(title for data in pair for title in data.table):
            if title in coded:
                columns.append(Column(title, "category", n_first, *_pool_codes(title, pair)))
                continue
            gaps = np.concatenate([data.origin.gaps.get(title, np.zeros(data.n_points, bool)) for data in pair])
            numbers = table[names.index(Feature(title).name)]
            columns.append(Column(title, "number", n_first, np.where(gaps, np.nan, numbers) if gaps.any() else numbers))
    targets = [data.origin.target.values for data in pair if data.origin.target is not None]
    if len(targets) == len(pair):  # numbers behind the classes, which count by their values
        return [*columns, Column(name_label(pair)[0], "number", n_first, np.concatenate(targets))]
    classes = tuple(dict.fromkeys(str(json_label(label)) for data in pair for label in data.classes))
    if len(classes) > 1:
        places = {label: place for place, label in enumerate(classes)}
        codes = [np.array([places[str(json_label(one))] for one in data.classes])[data.codes] for data in pair]
        columns.append(Column(name_label(pair)[0], "label", n_first, np.concatenate(codes), classes))
    return columns


def number_rows(columns: Sequence[Column]) -> Codes:
    """(N,) numbers of rows that are the same for rows that are equal in all columns, as far as float32 tells."""
    bits = (np.where(one.known, _view_bits(one.values), _GAP) for one in columns)
    return np.unique(hash_columns(bits), return_inverse=True)[1]


def _view_bits(values: NDArray[Any]) -> NDArray[np.uint32]:
    with np.errstate(over="ignore"):
        return (values.astype(np.float32) + 0).view(np.uint32)  # there is no minus zero


def hash_columns(columns: Iterable[NDArray[np.uint32]]) -> NDArray[np.uint64]:
    """(N,) a hash of every row of some columns (N,): of a million rows, two that differ hardly ever have the same."""
    found = np.zeros(1, np.uint64)
    for column in columns:
        found = (found ^ column) * _FACTOR + _SHIFT
        found ^= found >> np.uint64(29)
    return found


def name_label(pair: Sequence[LabelledData]) -> tuple[str, bool]:
    """What labels are called, and whether they are classes: numbers behind classes have the name of their column."""
    is_class = any(data.origin.target is None for data in pair)
    return "label" if is_class else pair[0].origin.label_column or "target", is_class


def name_features(pair: Sequence[LabelledData]) -> Names:
    """What features without names are called: pixels where points are images."""
    shape = find_image_shape(pair[0])
    return tuple(f"feature {place}" for place in range(pair[0].n_features)) if shape is None else name_pixels(shape)


def name_pixels(shape: tuple[int, ...]) -> Names:
    """What the pixels of an image are called."""
    return tuple("pixel " + ", ".join(map(str, place)) for place in np.ndindex(shape))


def find_image_shape(data: LabelledData) -> tuple[int, ...] | None:
    """The shape of points that are images: rows and columns, and colours first or last; None for others."""
    shape = data.point_shape
    is_grey = len(shape) == 2 and min(shape) > 1
    return shape if is_grey or (len(shape) == 3 and min(shape[0], shape[-1]) <= MOST_COLOURS) else None


def _pool_codes(title: str, pair: Sequence[LabelledData]) -> tuple[Codes, Names]:
    """The codes (N,) of a category by the values that both have, in alphabetical order."""
    known = [data.origin.categories.get(title) for data in pair]
    # Two opposites are the same however they are written: Yes is yes.
    fold = str.lower if all(one is None or one.flag is not None for one in known) else str
    values = tuple(sorted({fold(value) for one in known if one is not None for value in one.count_values()}))
    places = {value: place for place, value in enumerate(values)}
    parts = []
    for data, one in zip(pair, known, strict=True):
        if one is None:  # empty there
            parts.append(np.full(data.n_points, MISSING))
            continue
        table = np.array([*(places.get(fold(value), MISSING) for value in one.values), MISSING, MISSING])
        parts.append(table[one.codes])
    return np.concatenate(parts).astype(np.int64), values


def score_columns(columns: Sequence[Column], with_label: bool, each: Each = map) -> Iterator[list[Score]]:
    """The scores of all columns, some at a time; labels get a name, but count only where their names do."""
    for start in range(0, len(columns), _TOGETHER):
        found = []
        for place, scores in enumerate(each(Column.find_scores, columns[start : start + _TOGETHER]), start):
            counts = with_label or columns[place].kind != "label"
            for (aspect, value), score in scores.items():
                is_mark = score.dtype == np.bool_ and aspect not in ("low", "high")
                own = (COLUMNS, RARE) if is_mark and score.mean() <= _RARE else (COLUMNS,)
                found.append(Score((place, aspect, value), (NAMED, *(own if counts else ())), score))
        yield found


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


def score_axes(axes: Doubles) -> list[Score]:
    """The scores of the points (N, k) along axes."""
    found = [score for axis in axes.T for score in score_numbers(rank_values(axis)).values()]
    return [Score(place, (AXES,), score) for place, score in enumerate(found)]
