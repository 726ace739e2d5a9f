"""Labels of any kind turned into class numbers: what is missing, what is a measurement, which rows are kept."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise as neighbours
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, describe, first_line
from sotdd.basics.remarks import Remark, Remarks
from sotdd.basics.text import say_count
from sotdd.inputs.tensors import host_array

Classes = tuple[Hashable, ...]
Codes = NDArray[np.integer]

# The name of a class has at most this many characters: a longer one is a document, or a file that was misread.
_LONGEST = 1000

# Float labels with more distinct values than this are measurements rather than classes, if any of them is
# a fraction or if the values repeat fewer than _RARE times on average.
_MOST_VALUES = 20
_RARE = 5
# Integers with more distinct values than this, or as few of each, may be measurements; only the user can tell.
_MANY_VALUES = 100


class NoRows(SotddError):  # noqa: N818  # the name says what is wrong
    """Raised where every row lacks a label or a feature."""


@dataclass(frozen=True, eq=False)
class Labels:
    """The distinct labels, and for every row the index of its label among them; -1 where it is missing.

    Examples
    --------
    >>> from sotdd.inputs.labels import Labels
    >>> labels = Labels.of(["cat", None, "dog", "cat"], 4, "pets")
    >>> labels.classes, labels.codes.tolist()
    (('cat', 'dog'), [0, -1, 1, 0])
    """

    classes: Classes
    codes: Codes

    @classmethod
    def of(cls, values: object, n_points: int, name: str) -> Labels:
        """Number the labels of dataset ``name``, one for each of its ``n_points`` rows."""
        array = _label_array(values, name)
        if array.ndim != 1:
            raise SotddError(f"labels of dataset {name!r} have shape {array.shape}: expected one label per row.")
        if len(array) != n_points:
            entries, rows = say_count(len(array), "entry", "entries"), say_count(n_points, "row", "rows")
            raise SotddError(f"labels of dataset {name!r} have {entries} but features have {rows}: pass one per row.")
        if array.dtype.kind not in "biuUSVfcMm":
            return cls(*_codes_of_objects(array, name))
        known = ~np.isnan(array) if array.dtype.kind in "fcMm" else np.ones(len(array), bool)
        if isinstance(values, np.ma.MaskedArray):
            known &= ~np.ma.getmaskarray(values)
        codes = np.full(len(array), -1, np.int32)
        distinct, codes[known] = np.unique(array[known], return_inverse=True)
        is_date = array.dtype.kind in "Mm"  # tolist() would turn some dates into integers
        return cls(tuple(distinct if is_date else distinct.tolist()), codes)

    @classmethod
    def of_classes(cls, values: object, n_points: int, name: str) -> Labels:
        """The same for labels that are classes, every one of them there; others are refused."""
        labels = cls.of(values, n_points, name)
        labels.refuse_odd(name)
        labels.refuse_missing(name)
        return labels

    @classmethod
    def in_natural_order(cls, values: list[Any], codes: Codes) -> Labels:
        """Labels from distinct values and codes, with the classes sorted if they can be; None and NaN are missing."""
        known = [code for code, value in enumerate(values) if not is_missing(value)]
        with suppress(TypeError):  # values of several types have no order
            known.sort(key=lambda code: values[code])
        position = np.full(len(values) + 1, -1, np.int32)  # codes of -1 read the last entry
        position[known] = np.arange(len(known))
        return cls(tuple(values[code] for code in known), position[codes])

    @classmethod
    def one_class(cls, n_points: int) -> Labels:
        """Labels for points that have none: one class, called "all"."""
        return cls(("all",), np.zeros(n_points, np.int32))

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.codes)

    def take(self, rows: NDArray[np.integer] | None) -> Labels:
        """The labels of some rows, or of all for None; classes without a row are dropped."""
        codes = self.codes if rows is None else self.codes[rows]
        present = np.bincount(codes, minlength=len(self.classes)) > 0
        if present.all():
            return Labels(self.classes, codes)
        position = np.cumsum(present, dtype=np.int32) - 1
        return Labels(tuple(self.classes[code] for code in np.flatnonzero(present)), position[codes])

    def refuse_odd(self, name: str) -> None:
        """Refuse labels that are measurements, as of a regression, and those too long to be the names of classes."""
        length = max((len(label) for label in self.classes if isinstance(label, (str, bytes))), default=0)
        if length > _LONGEST:
            raise SotddError(
                f"dataset {name!r} has a label of {length:,} characters: check the quotes and the label column."
            )
        if self.are_measured():
            count = len(self.classes)
            raise SotddError(
                f"labels of dataset {name!r} are floats with {count:,} values, as of a regression", use={"bins": 10}
            )

    def are_measured(self, *, even_few: bool = False) -> bool:
        """Whether these are floats as measurements are: many, or ``even_few`` fractions that hardly repeat."""
        floats = [value for value in self.classes if isinstance(value, float)]
        odd = (not all(value.is_integer() for value in floats)) + (not self._repeat)
        enough = len(self.classes) > _MOST_VALUES or (even_few and odd == 2)
        return len(floats) == len(self.classes) and odd > 0 and enough

    @property
    def _repeat(self) -> bool:
        return len(self) >= _RARE * len(self.classes)

    def remark_many(self) -> Remarks:
        """A remark on labels that are integers with so many values that they may be measurements."""
        count = len(self.classes)
        many = count > (_MANY_VALUES if self._repeat else _MOST_VALUES)
        if not many or not all(isinstance(value, (int, float)) for value in self.classes):
            return ()
        return (Remark("many classes", classes=count),)

    def as_numbers(self, decimal: str = ".") -> Labels:
        """Labels read as text: integers if all are written as such, floats if all are numbers, or text as they are."""
        texts = [str(value) for value in self.classes]
        numbers: list[Any] = []
        with suppress(ValueError):
            numbers = [float(text.replace(decimal, ".")) for text in texts]
        with suppress(ValueError):
            numbers = [int(text) for text in texts]
            if [*map(str, numbers)] != texts:  # such as 007, which is a name
                numbers = []
        if not numbers:
            return self
        classes = tuple(sorted(set(numbers)))  # 1.0 and 1.00 are one class
        position = {number: code for code, number in enumerate(classes)}
        codes = np.array([*(position[number] for number in numbers), -1], np.int32)  # codes of -1 read the last entry
        return Labels(classes, codes[self.codes])

    def refuse_missing(self, name: str) -> None:
        """Refuse labels of which some are missing, and say how many."""
        count = int(np.count_nonzero(self.codes < 0))
        if count:
            labels = say_count(count, "label that is", "labels that are")
            raise SotddError(f"dataset {name!r} has {labels} missing (NaN or None)", use={"missing": "drop"})

    def numbers(self, name: str) -> NDArray[np.float64]:
        """The labels as numbers (n,), NaN where one is missing; refuse labels that are none."""
        if not all(isinstance(value, (int, float)) for value in self.classes):
            raise SotddError(f"labels of dataset {name!r} are not numbers: bins are for numbers only, leave it out.")
        try:
            values = np.array([*self.classes, np.nan], np.float64)[self.codes]  # codes of -1 read the last entry
        except OverflowError:
            values = np.full(len(self), np.inf)
        if not np.isfinite(values[self.codes >= 0]).all():
            raise SotddError(f"labels of dataset {name!r} hold numbers that are infinite or beyond float64: drop them.")
        return values


def find_edges(values: NDArray[np.float64], bins: int) -> NDArray[np.float64]:
    """Between which numbers there are so many bins of about equal size; fewer where values repeat."""
    halves = np.quantile(values / 2, np.linspace(0, 1, bins + 1))  # halves cannot overflow
    edges: NDArray[np.float64] = 2 * np.unique(halves)
    return edges


def cut(values: NDArray[np.float64], edges: NDArray[np.float64]) -> Labels:
    """Numbers cut into bins with these edges; NaN are missing."""
    codes = np.searchsorted(edges[1:-1], values, side="right")
    classes = tuple(f"{low:g} to {high:g}" for low, high in neighbours(edges))
    return Labels(classes or (f"{edges[0]:g}",), np.where(np.isnan(values), -1, codes).astype(np.int32))


def _label_array(labels: object, name: str) -> NDArray[Any]:
    """Labels as an array that keeps each label as it is: [1, "a"] must not become strings."""
    if hasattr(labels, "__array__"):
        try:
            return host_array(labels)
        except Exception as error:
            raise SotddError(f"labels of dataset {name!r} do not form an array ({first_line(error)}).") from error
    none = SotddError(f"labels of dataset {name!r} are {describe(labels)}: expected one label per row.")
    if isinstance(labels, (str, bytes, Mapping, Set)) or not hasattr(labels, "__iter__"):
        raise none
    try:
        entries = list(labels)
    except TypeError as error:  # what is computed later, and sparse matrices, only seem to have entries
        raise none from error
    array = np.empty(len(entries), object)
    for i, entry in enumerate(entries):
        array[i] = entry
    return array


def _codes_of_objects(array: NDArray[Any], name: str) -> tuple[Classes, Codes]:
    seen: dict[Hashable, int] = {}
    codes = np.full(len(array), -1, np.int32)
    for i, entry in enumerate(array):
        # Scalars of arrays and arrays of no dimension, such as a torch Dataset yields, become plain values.
        label = entry.item() if getattr(entry, "ndim", None) == 0 and hasattr(entry, "item") else entry
        if hasattr(label, "__array__") or isinstance(label, (list, set, dict)):
            kind = type(label).__name__
            raise SotddError(f"labels of dataset {name!r} hold a {kind}: expected one label per row, in one dimension.")
        if is_missing(label):
            continue
        try:
            codes[i] = seen.setdefault(label, len(seen))
        except Exception as error:  # a label may be an object of the user's, which raises what it likes
            raise SotddError(
                f"labels of dataset {name!r} hold a {type(label).__name__} in row {i:,}, which is not hashable: "
                "expected numbers, strings or other hashable labels."
            ) from error
    return tuple(seen), codes


def is_missing(label: object) -> bool:
    """Whether a label is None, pandas' NA, or not equal to itself, as NaN and NaT of any kind are."""
    if label is None or type(label).__name__ in {"NAType", "NaTType"}:
        return True
    try:
        return bool(label != label)  # noqa: PLR0124  # this is how NaN is told
    except Exception:  # noqa: BLE001  # objects may refuse to be compared: a signalling NaN does, and is missing
        return hasattr(label, "is_nan") and bool(label.is_nan())
