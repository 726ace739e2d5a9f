"""What a reference keeps of every column, in the user's own units, so that batches can be compared column by column."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.text import json_label
from sotdd.compute.resampling import Each
from sotdd.inputs.data import IS_MISSING, LabelledData, Names
from sotdd.measure.columns import Bools, Doubles, Pooled, Scores, rank_columns, score_numbers, take_some

Codes = NDArray[np.uint16]
# What of a column is looked at, and the code of the value that it is about.
Aspect = tuple[str, int]
Kind: TypeAlias = Literal["number", "category", "label"]

# Values that are kept in all; of more features than this nothing is kept.
_VALUES = 1 << 24
MOST_FEATURES = 2000

# Numbers are kept as the nearest of this many quantiles; categories of more values are compared by their gaps alone.
_STEPS, _MOST_VALUES = 128, 1000

# How surely the share of the most frequent value is no larger than it is taken to be.
_DOUBT = 1e-6

# Values of a category that are there less often on both sides together are not looked at.
_FEWEST_EQUAL = 3

# Columns that are scored together.
_TOGETHER = 16

# Codes of rows without a value, and of values that are not told apart.
GAP, UNTOLD = 65535, 65534


@dataclass(frozen=True, eq=False)
class Column:
    """One column of the reference.

    Attributes
    ----------
    name, kind
        What it is called, and what it holds.
    steps
        Of numbers, ascending: all values, or quantiles from the least to the largest where there are many.
    values
        Of categories, the values as texts.
    mean
        Of numbers.
    commonest
        In how many of the rows kept a number has its most frequent value.
    is_exact
        Whether the steps of numbers are all the values that there are.
    """

    name: str
    kind: Kind
    steps: Doubles
    values: Names = ()
    mean: float = 0.0
    commonest: int = 0
    is_exact: bool = False

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers, not names."""
        return self.kind == "number"

    def encode(self, values: Doubles) -> Codes:
        """Numbers as codes: 0 below all of the reference, from 1 the nearest step, then above all; NaN is a gap."""
        codes = np.searchsorted(self.steps[1:] / 2 + self.steps[:-1] / 2, values) + 1
        codes = np.where(values < self.steps[0], 0, np.where(values > self.steps[-1], len(self.steps) + 1, codes))
        return np.where(np.isnan(values), GAP, codes).astype(np.uint16)

    def decode(self, codes: Codes) -> Doubles:
        """The steps that codes stand for; NaN for gaps."""
        steps = self.steps[np.clip(codes.astype(np.int64) - 1, 0, len(self.steps) - 1)]
        return np.where(codes == GAP, np.nan, steps)


@dataclass(frozen=True, eq=False)
class Sides:
    """A column of the reference and of a batch, one after the other.

    Attributes
    ----------
    column
        What the reference keeps of it.
    codes
        (N,) of the rows of both.
    values
        The values of a category, those first that the reference has.
    numbers
        (N,) what the codes of numbers stand for, and the numbers of the batch; NaN for gaps.
    n_first
        How many rows are of the reference.
    """

    column: Column
    codes: NDArray[np.uint16]
    values: Names
    numbers: Doubles
    n_first: int

    @property
    def known(self) -> Bools:
        """(N,) which rows have a value."""
        known: Bools = self.codes != GAP
        return known

    @property
    def ordered(self) -> Doubles:
        """(N,) codes as numbers; NaN for rows without a value."""
        return np.where(self.known, self.codes, np.nan)

    def split(self, rows: NDArray[Any]) -> tuple[Any, Any]:
        """Something of both, as that of the reference and that of the batch."""
        return rows[: self.n_first], rows[self.n_first :]

    def share(self, marks: Bools) -> tuple[float, float]:
        """The share of rows that are marked, of either side."""
        first, second = self.split(marks)
        return float(first.mean()), float(second.mean())

    def find_scores(self) -> dict[Aspect, Doubles | Bools]:
        """What is looked at: aspects, with the code of the value that one is about, and the score of every row."""
        found: dict[Aspect, Doubles | Bools] = {}
        if self.column.is_number:
            scores = score_numbers(self.codes.astype(np.float64), self.known)
            for aspect, score in scores.items():
                marked = self.codes[score] if score.dtype == np.bool_ else self.codes[:1]
                code = int(marked.max() if aspect == "low" else marked.min())
                is_value = self.column.is_exact and 0 < code <= len(self.column.steps)
                if aspect != "commonest" or len(scores) == 1 or is_value:
                    found[aspect, code] = score
        else:
            codes, counts = np.unique(self.codes[self.codes < UNTOLD], return_counts=True)
            for code in codes[counts >= _FEWEST_EQUAL].tolist():
                found["value", code] = self.codes == code
        if not self.known.all():
            found["gaps", GAP] = ~self.known
        return found


@dataclass(frozen=True, eq=False)
class ReferenceColumns:
    """The columns of a reference, and codes (n, C) of its rows, or of some spread over all if there are very many."""

    columns: tuple[Column, ...]
    codes: Codes

    @classmethod
    def of(cls, data: LabelledData) -> ReferenceColumns | None:
        """Look at rows spread over the data; None where there are too many features."""
        if data.n_features > MOST_FEATURES:
            return None
        rows = spread_rows(data.n_points, data.n_features)
        some = _take(data, rows)
        columns, codes = [], []
        for name, kind in _list_columns(data).items():
            if kind == "category":
                category = data.origin.categories[name]
                told = category.values if len(category.values) <= _MOST_VALUES else ()
                column = Column(name, kind, np.zeros(0), told)
                of_rows = _translate(column, category.values, category.codes[rows])[0]
            else:
                numbers = _find_numbers(data, name, some, rows)
                column = _keep_numbers(name, kind, numbers)
                of_rows = column.encode(numbers)
            columns.append(column)
            codes.append(of_rows)
        if len(data.classes) > 1:
            columns.append(Column("label", "label", np.zeros(0), tuple(map(_name_class, data.classes))))
            codes.append(data.codes[rows].astype(np.uint16))
        return cls(tuple(columns), np.column_stack(codes))

    def put_beside(self, batch: LabelledData) -> list[Sides]:
        """Every column beside the same of a batch, by rows spread over it; what it has no values for is left out."""
        rows = spread_rows(batch.n_points, batch.n_features)
        some, known = _take(batch, rows), _list_columns(batch)
        found = []
        for column, first in zip(self.columns, self.codes.T, strict=True):
            values, numbers = column.values, np.zeros(0)
            if column.kind == "label":
                codes, values = _translate(column, tuple(map(_name_class, batch.classes)), batch.codes[rows])
            elif column.kind == "category" and column.name in batch.origin.categories:
                category = batch.origin.categories[column.name]
                codes, values = _translate(column, category.values, category.codes[rows])
            elif column.is_number and column.name in known:
                second = _find_numbers(batch, column.name, some, rows)
                codes, numbers = column.encode(second), np.concatenate([column.decode(first), second])
            else:
                continue
            found.append(Sides(column, np.concatenate([first, codes]), values, numbers, len(first)))
        return found


def find_stuck(sides: Sequence[Sides], n_rows: int) -> dict[str, float]:
    """Of columns of numbers, how likely chance makes one value as frequent as it is, in any of them.

    P(any value k times or more) is at most P(Bin(m, q) ≥ k) / q, where q is the largest share of a value in the
    ``n_rows`` of the reference: rarer values contribute in proportion at most.
    """
    from scipy.special import bdtrc, betaincinv

    found = {}
    for one in sides:
        often, batch = one.column.commonest, one.split(one.numbers)[1]
        counts = np.unique(batch[~np.isnan(batch)], return_counts=True)[1]
        if 0 < often < n_rows and len(counts):
            most = float(betaincinv(often + 1.0, n_rows - often, 1 - _DOUBT))
            found[one.column.name] = float(bdtrc(counts.max() - 1.0, len(batch), most) / most) * len(sides)
    return found


def spread_rows(n_points: int, n_features: int) -> NDArray[np.int64]:
    """Numbers of rows spread over all: as many as are kept of so many features."""
    return np.arange(0, n_points, -(-n_points * n_features // _VALUES))


def has_several(codes: Codes) -> bool:
    """Whether a column has more than two values: what is constant, or a mark, goes together with nothing."""
    return len(np.unique(codes[codes != GAP])) > 2


def pool_columns(sides: Sequence[Sides], with_names: bool) -> Pooled:
    """All columns of a reference and a batch as a test looks at them; labels only if their names count."""
    seen = [one for one in sides if one.column.kind != "label" or with_names]
    numbers = [one for one in seen if one.column.is_number]
    marks = [np.asarray(mark, float) for one in seen if not one.column.is_number for mark in one.find_scores().values()]
    table = np.column_stack([*(one.ordered for one in numbers), *marks, np.zeros(len(sides[0].codes))])
    several = [place for place, one in enumerate(numbers) if has_several(one.codes)]

    def score(each: Each) -> Iterator[Scores]:
        for start in range(0, len(seen), _TOGETHER):
            found = each(Sides.find_scores, seen[start : start + _TOGETHER])
            yield [score for scores in found for score in scores.values()]

    return Pooled(score, rank_columns(table), take_some(several))


def _take(data: LabelledData, rows: NDArray[np.int64]) -> Doubles:
    """(k, d) some rows, of which there is one in every so many."""
    step = int(rows[1]) if len(rows) > 1 else max(data.n_points, 1)
    wanted = [data.rows(block)[(-block.start) % step :: step] for block in data.blocks()]
    return np.concatenate(wanted).astype(np.float64)


def _list_columns(data: LabelledData) -> dict[str, Kind]:
    """The columns of a table that features are made of, by kind; of other data every feature."""
    if data.columns is None:
        return {f"feature {number}": "number" for number in range(data.n_features)}
    names = dict.fromkeys(data.find_columns(data.columns))
    kinds: Mapping[str, Kind] = dict.fromkeys(data.origin.categories, "category")
    marks = {f"{name}{IS_MISSING}" for name in names}  # features that only say where another is missing
    return {name: kinds.get(name, "number") for name in names if name not in marks}


def _find_numbers(data: LabelledData, name: str, some: Doubles, rows: NDArray[np.int64]) -> Doubles:
    """The values of a column of numbers in these rows; NaN where one is missing."""
    place = int(name.removeprefix("feature ")) if data.columns is None else data.columns.index(name)
    gaps = data.origin.gaps.get(name)
    return some[:, place] if gaps is None else np.where(gaps[rows], np.nan, some[:, place])


def _keep_numbers(name: str, kind: Kind, numbers: Doubles) -> Column:
    present = numbers[~np.isnan(numbers)]
    if not len(present):
        return Column(name, kind, np.zeros(1))
    steps, counts = np.unique(present, return_counts=True)
    commonest, is_exact = int(counts.max()), len(steps) <= _STEPS
    if not is_exact:
        steps = np.unique(np.quantile(present, np.linspace(0, 1, _STEPS), method="inverted_cdf"))
    return Column(name, kind, steps, (), float(present.mean()), commonest, is_exact)


def _translate(column: Column, values: Names, codes: NDArray[np.integer]) -> tuple[Codes, Names]:
    """Codes by the values of the reference, and then by those that it does not have; with all of these values."""
    places = {value: place for place, value in enumerate(column.values)}
    new = [value for value in values if value not in places][: UNTOLD - len(places)] if places else []
    places |= {value: len(places) + place for place, value in enumerate(new)}
    table = np.array([*(places.get(value, UNTOLD) for value in values), UNTOLD, GAP], np.uint16)
    return table[codes], (*column.values, *new)  # MISSING is -1, and UNKNOWN -2


def _name_class(label: Hashable) -> str:
    return str(json_label(label))
