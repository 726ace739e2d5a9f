"""What a reference keeps of every column, in the user's own units, so that batches can be compared column by column."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.text import json_label
from sotdd.inputs.agreement import arrange
from sotdd.inputs.data import IS_MISSING, MISSING, UNKNOWN, Category, LabelledData, Origin

Doubles = NDArray[np.float64]
Codes = NDArray[np.uint16]
Kind: TypeAlias = Literal["number", "date", "category", "label"]

# Rows that are kept, and values in all; of more features than this nothing is kept.
_MOST_ROWS, _VALUES = 5000, 1 << 20
MOST_FEATURES = 2000

# Numbers are kept as the nearest of this many quantiles; categories of more values are compared by their gaps alone.
_STEPS, _MOST_VALUES = 128, 1000

# How surely the share of the most frequent value is no larger than it is taken to be.
_DOUBT = 1e-6

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
    mean, spread
        Of numbers, with the standard deviation for the spread; 0 for categories.
    commonest
        In how many of the rows kept a number has its most frequent value.
    is_exact
        Whether the steps of numbers are all the values that there are.
    flag
        Of a category of two opposites, such as yes and no, the one that is 1.
    """

    name: str
    kind: Kind
    steps: Doubles
    values: tuple[str, ...] = ()
    mean: float = 0.0
    spread: float = 0.0
    commonest: int = 0
    is_exact: bool = False
    flag: str | None = None

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers or dates, not names."""
        return self.kind in ("number", "date")

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
class ColumnValues:
    """One column of a batch: codes as the reference has them, further values after its own, and the numbers."""

    codes: Codes
    values: tuple[str, ...]
    numbers: Doubles


@dataclass(frozen=True, eq=False)
class ReferenceColumns:
    """The columns of a reference, and codes (n, C) of a sample of its rows."""

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
                column, of_rows = _keep_category(name, data.origin.categories[name], rows)
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

    def read_batch(self, batch: LabelledData) -> dict[int, ColumnValues]:
        """The columns of a batch by number, rows spread over it; without those that it has no names or values for."""
        rows = spread_rows(batch.n_points, batch.n_features)
        some, known = _take(batch, rows), _list_columns(batch)
        found = {}
        for place, column in enumerate(self.columns):
            if column.kind == "label":
                own = tuple(map(_name_class, batch.classes))
                found[place] = _translate(column, own, np.asarray(batch.codes)[rows])
            elif column.kind == "category" and column.name in batch.origin.categories:
                category = batch.origin.categories[column.name]
                found[place] = _translate(column, category.values, category.codes[rows])
            elif column.is_number and column.name in known:
                numbers = _find_numbers(batch, column.name, some, rows)
                found[place] = ColumnValues(column.encode(numbers), (), numbers)
        return found

    def rebuild(self, features: tuple[str, ...] | None, means: Doubles) -> LabelledData:
        """The rows that were kept as a dataset of these features, numbers as the nearest steps."""
        pairs = [(column, codes) for column, codes in zip(self.columns, self.codes.T, strict=True)]
        numbers = {column.name: column.decode(codes) for column, codes in pairs if column.is_number}
        table = np.column_stack([np.zeros((len(self.codes), 0)), *numbers.values()])
        if features is None:
            return LabelledData.of(table, "reference")
        categories = {
            column.name: Category(column.values, _recode(codes), len(column.values), column.flag)
            for column, codes in pairs
            if column.kind == "category"
        }
        gaps = {name: np.isnan(values) for name, values in numbers.items() if np.isnan(values).any()}
        one_class = ("all",), np.zeros(len(table), np.int32)
        origin = Origin(categories=categories, gaps=gaps)
        data = LabelledData("reference", np.nan_to_num(table), *one_class, tuple(numbers), origin)
        return arrange(data, features, dict(zip(features, means.tolist(), strict=True)))


def find_stuck(kept: ReferenceColumns, batch: Mapping[int, ColumnValues]) -> dict[str, float]:
    """Of columns of numbers, how likely chance makes one value as frequent as it is, in any of them.

    P(any value k times or more) is at most P(Bin(m, q) ≥ k) / q, where q is the largest share of a value in the
    reference: rarer values contribute in proportion at most.
    """
    from scipy.special import bdtrc, betaincinv

    n_rows, found = len(kept.codes), {}
    for place, one in batch.items():
        column = kept.columns[place]
        counts = np.unique(one.numbers[~np.isnan(one.numbers)], return_counts=True)[1]
        if 0 < column.commonest < n_rows and len(counts):
            most = float(betaincinv(column.commonest + 1.0, n_rows - column.commonest, 1 - _DOUBT))
            found[column.name] = float(bdtrc(counts.max() - 1.0, len(one.numbers), most) / most) * len(batch)
    return found


def spread_rows(n_points: int, n_features: int) -> NDArray[np.int64]:
    """Numbers of rows spread over all: as many as are kept of so many features."""
    most = min(_MOST_ROWS, max(_VALUES // n_features, 64))
    return np.arange(0, n_points, -(-n_points // most))


def _take(data: LabelledData, rows: NDArray[np.int64]) -> Doubles:
    """(k, d) some rows, of which there is one in every so many."""
    step = int(rows[1]) if len(rows) > 1 else max(data.n_points, 1)
    wanted = [data.rows(block)[(-block.start) % step :: step] for block in data.blocks()]
    return np.concatenate(wanted).astype(np.float64)


def _list_columns(data: LabelledData) -> dict[str, Kind]:
    """The columns of a table that features are made of, by kind; of other data every feature."""
    if data.columns is None:
        return {f"feature {number}": "number" for number in range(data.n_features)}
    names = dict.fromkeys(map(data.origin.find_column, data.columns))
    kinds: Mapping[str, Kind] = {
        **dict.fromkeys(data.origin.dates, "date"), **dict.fromkeys(data.origin.categories, "category")
    }  # fmt: skip
    return {name: kinds.get(name, "number") for name in names if not _is_mark(name, names)}


def _is_mark(name: str, names: Mapping[str, None]) -> bool:
    """Whether a feature only says where another is missing."""
    return name.endswith(IS_MISSING) and name.removesuffix(IS_MISSING) in names


def _find_numbers(data: LabelledData, name: str, some: Doubles, rows: NDArray[np.int64]) -> Doubles:
    """The values of a column of numbers in these rows; NaN where one is missing."""
    place = int(name.removeprefix("feature ")) if data.columns is None else data.columns.index(name)
    gaps = data.origin.gaps.get(name)
    return some[:, place] if gaps is None else np.where(gaps[rows], np.nan, some[:, place])


def find_spread(values: Doubles) -> float:
    """The standard deviation of the values that are there, however large they are."""
    present = values[~np.isnan(values)]
    unit = float(np.abs(present).max(initial=0.0)) or 1.0
    return unit * float(np.std(present / unit)) if len(present) else 0.0


def _keep_numbers(name: str, kind: Kind, numbers: Doubles) -> Column:
    present = numbers[~np.isnan(numbers)]
    if not len(present):
        return Column(name, kind, np.zeros(1))
    steps, counts = np.unique(present, return_counts=True)
    commonest, is_exact = int(counts.max()), len(steps) <= _STEPS
    if not is_exact:
        steps = np.unique(np.quantile(present, np.linspace(0, 1, _STEPS), method="inverted_cdf"))
    return Column(name, kind, steps, (), float(present.mean()), find_spread(present), commonest, is_exact)


def _keep_category(name: str, category: Category, rows: NDArray[np.int64]) -> tuple[Column, Codes]:
    told = len(category.values) <= _MOST_VALUES
    column = Column(name, "category", np.zeros(0), category.values if told else (), flag=category.flag)
    return column, _translate(column, category.values, category.codes[rows]).codes


def _translate(column: Column, values: tuple[str, ...], codes: NDArray[np.integer]) -> ColumnValues:
    """Codes of a category by the values of the reference, and then by its own that the reference does not have."""
    places = {value: place for place, value in enumerate(column.values)}
    new = [value for value in values if value not in places][: UNTOLD - len(places)] if places else []
    places |= {value: len(places) + place for place, value in enumerate(new)}
    table = np.array([*(places.get(value, UNTOLD) for value in values), UNTOLD, GAP], np.uint16)
    return ColumnValues(table[codes], (*column.values, *new), np.zeros(0))  # MISSING is -1, and UNKNOWN -2


def _recode(codes: Codes) -> NDArray[np.int32]:
    """Codes as a `Category` has them."""
    plain = codes.astype(np.int32)
    return np.where(codes == GAP, MISSING, np.where(codes == UNTOLD, UNKNOWN, plain)).astype(np.int32)


def _name_class(label: Hashable) -> str:
    return str(json_label(label))
