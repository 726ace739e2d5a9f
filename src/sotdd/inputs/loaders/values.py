"""Values of one column of a table: what an Arrow type holds, and how values become numbers, codes or texts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, require
from sotdd.inputs.arrays import Labels
from sotdd.inputs.features import Rows
from sotdd.inputs.reading import Reading
from sotdd.inputs.schema import MISSING, Category, LeftOut, Names, remark_retyped

Kind = Literal["number", "written number", "category"]

# Arrow's own types are not checked, since it is optional.
Type = Any
Array = Any
Batch = Any

# How a value that is missing is written, in lower case; a column that has a plus has a minus as well.
_NOTHING = ("", "na", "n/a", "null", "none", "?", "-", "nan", "#n/a")
# Further words that mean nothing among numbers; elsewhere they may be categories.
NO_NUMBER = (*_NOTHING, "n.a.", "missing", "unknown", "--", ".", "<na>")
# The same for values that are seen bit by bit, so that a plus may come later.
_NO_VALUE = tuple(word for word in _NOTHING if word != "-")
# How labels that are missing are written: a question mark and a minus may be names of classes.
NO_LABEL = ("", "na", "n/a", "null", "none", "nan", "#n/a")
# Bytes of text in a column that are read at a time; a dictionary may say more in few bytes of a file.
_MOST_TEXT = 1 << 30
_MONEY = "$€£¥₹"
# A constant is kept up to this many characters.
_LONGEST = 100
# Numbers as people write them, by what stands before fractions. No thousands begin with a zero: 0,663 is below one.
_WRITTEN = {
    point: rf"^([+-]?[{_MONEY}]?\s?|[{_MONEY}]\s?[+-])"
    rf"(([1-9]\d{{0,2}}({group}\d{{3}})+|\d+)({fraction}\d*)?|{fraction}\d+)([eE][+-]?\d+)?\s?[%{_MONEY}]?$|(?i)^[+-]?inf(inity)?$"
    for point, group, fraction in ((".", ",", r"\."), (",", r"\.", ","))
}


@cache
def arrow() -> Any:  # noqa: ANN401  # a module
    """The library with what it computes; where it is missing, an error says how to install it."""
    require("pyarrow.compute", "reading tables", "'sotdd[inputs]'")
    return require("pyarrow", "reading tables", "'sotdd[inputs]'")


@dataclass(frozen=True)
class Column:
    """A column that is read, and how its values become numbers or codes.

    Attributes
    ----------
    name, kind
        What it is called and what it holds.
    decimal
        What stands before fractions, where numbers are text; a written number has money, per cent or thousands in it.
    values
        The known values of a category, the most frequent first.
    flag
        Of two opposites, the one that is 1.
    number
        Why a category is no number: a value that is none, and its row.
    """

    name: str
    kind: Kind
    decimal: str = "."
    values: Names = ()
    flag: str | None = None
    number: LeftOut | None = None


@cache
def find_kind(kind: Type) -> str:
    """What a column of an Arrow type holds: number, text, date, category, list, empty or other."""
    types = arrow().types
    if types.is_dictionary(kind):
        return "category"
    plain = plain_type(kind)
    if types.is_null(plain):
        return "empty"
    if is_number(plain):
        return "number"
    if types.is_string(plain) or types.is_large_string(plain):
        return "text"
    if types.is_timestamp(plain) or types.is_date(plain):
        return "date"
    leaf = plain
    while is_list(leaf):
        leaf = plain_type(leaf.value_type)
    return "list" if leaf is not plain and is_number(leaf) else "other"


@cache
def plain_type(kind: Type) -> Type:
    """The type of the values themselves, behind an extension type, a dictionary or a view."""
    library = arrow()
    if isinstance(kind, library.BaseExtensionType):
        return kind.storage_type
    kind = kind.value_type if library.types.is_dictionary(kind) else kind
    # Views of strings, as Polars writes them, have hardly any functions.
    return library.large_string() if str(kind) == "string_view" else kind


@cache
def is_number(kind: Type) -> bool:
    """Whether values of a type are numbers or truth values."""
    types = arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def is_list(kind: Type) -> bool:
    """Whether values of a type are lists."""
    types = arrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


# The numbers of rows in their source.
RowNumbers = range | NDArray[np.int64]


def read_numbers(column: Column, values: Array, reading: Reading, name: str, rows: RowNumbers) -> NDArray[Any]:
    """The numbers (m,) of a column, NaN where one is missing; ``rows`` are the numbers of the rows."""
    library = arrow()
    kind = plain_type(values.type)
    if library.types.is_null(kind):
        return np.full(len(values), np.nan)
    if is_number(kind):
        values = values if values.type == kind else values.cast(kind)
        if library.types.is_decimal(kind):
            values = values.cast(library.float64())
        elif values.null_count and not library.types.is_floating(kind) and kind.bit_width <= 16:
            values = values.cast(library.float32())
        plain = not reading.na_values or library.types.is_decimal(kind) or library.types.is_boolean(kind)
        return np.asarray(values) if plain else _mark_nothing(np.asarray(values), reading)
    plain = column.decimal == "." and not reading.na_values
    numbers = try_cast(values, library.float64()) if plain else None
    if numbers is None:  # there are gaps, or money, per cent, spaces and marks of thousands, which Arrow does not read
        texts, functions = clean_texts(values, reading, NO_NUMBER), library.compute
        bare = functions.replace_substring_regex(texts, rf"[\s%+{_MONEY}{',' if column.decimal == '.' else '.'}]", "")
        numbers = try_cast(functions.replace_substring(bare, column.decimal, "."), library.float64())
    if numbers is None:
        place = int(find_others(texts, column.decimal)[0])
        left = LeftOut("free text", texts[place].as_py(), int(rows[place]))
        held = f"{left.value!r} in row {left.row:,}, and numbers before"
        raise SotddError(
            f"column {column.name!r} of {name} holds {held}: say that it means nothing, or leave the column out,",
            by=("na_values", "exclude"),
            remarks=(remark_retyped(column.name, "numbers", left),),
        )
    return np.asarray(numbers)


def _mark_nothing(numbers: NDArray[Any], reading: Reading) -> NDArray[Any]:
    """Numbers with NaN in place of those that are said to mean nothing."""
    nothing: list[float] = []
    for word in reading.na_values:
        with suppress(ValueError):
            nothing.append(float(word))
    gaps = np.isin(numbers, np.array(nothing, numbers.dtype if numbers.dtype.kind == "f" else np.float64))
    return np.where(gaps, np.float32(np.nan), numbers) if gaps.any() else numbers


class Codes:
    """Takes a column of categories batch by batch; values that were not known before are added as they come."""

    def __init__(self, column: Column, reading: Reading) -> None:
        self._column, self._reading = column, reading
        self._places = {value: code for code, value in enumerate(column.values)}
        self._parts: list[NDArray[np.int32]] = []

    @property
    def _nothing(self) -> int | None:
        """The code of a minus where there is no plus: then it means nothing."""
        return None if "+" in self._places else self._places.get("-")

    def add(self, values: Array) -> NDArray[np.int32]:
        """The codes (m,) of some rows; each distinct value is looked at once."""
        library = arrow()
        if not library.types.is_dictionary(values.type):
            values = values.cast(plain_type(values.type)).dictionary_encode()
        places = np.asarray(values.indices.cast(library.int64()).fill_null(-1))
        used = np.flatnonzero(np.bincount(places + 1, minlength=1)[1:])
        texts = clean_texts(values.dictionary.take(library.array(used)), self._reading, _NO_VALUE).to_pylist()
        table = np.full(len(values.dictionary) + 1, MISSING, np.int32)  # whose last entry is read by -1
        table[used] = [MISSING if one is None else self._places.setdefault(one, len(self._places)) for one in texts]
        self._parts.append(table[places])
        return np.where(self._parts[-1] == self._nothing, MISSING, self._parts[-1])

    def finish(self, rows: Rows) -> Category:
        """The category, of some of the rows."""
        codes, nothing = np.concatenate(self._parts), self._nothing
        if nothing is not None:
            del self._places["-"]
            codes = np.where(codes == nothing, MISSING, codes - (codes > nothing)).astype(np.int32)
        one, most, values = self._column, self._reading.one_hot, tuple(self._places)
        flag = one.flag if len(values) <= 2 or not most else None  # a third value makes it a category like any other
        return Category(values, codes[rows], most or len(values), flag, one.number)


def make_labels(parts: Sequence[Array], name: str, reading: Reading, *, in_text: bool = False) -> Labels:
    """The labels of one column, which may come in parts."""
    library = arrow()
    kind = plain_type(parts[0].type)
    if library.types.is_nested(kind):
        raise SotddError(f"labels of {name} are {kind}: expected one plain value per row.")
    if find_kind(parts[0].type) == "text":
        parts = [clean_texts(part, reading, NO_LABEL) for part in parts]
        kind = library.large_string()
    chunks = [chunk.cast(kind) for part in parts for chunk in (part.chunks if hasattr(part, "chunks") else [part])]
    coded = library.chunked_array(chunks, type=kind).dictionary_encode().unify_dictionaries()
    codes = np.concatenate([np.asarray(chunk.indices.fill_null(-1)) for chunk in coded.chunks])
    filled = next((chunk for chunk in coded.chunks if len(chunk)), None)
    labels = Labels.in_natural_order([] if filled is None else filled.dictionary.to_pylist(), codes)
    return labels.as_numbers(reading.decimal or ".") if in_text else labels


def clean_texts(values: Array, reading: Reading, nothing: tuple[str, ...] = _NOTHING) -> Array:
    """A column as plain text, trimmed, with gaps where it says nothing."""
    library = arrow()
    functions = library.compute
    if library.types.is_dictionary(values.type):
        _refuse_large_texts(values)
    texts = values.cast(plain_type(values.type)).cast(library.large_string())
    texts = functions.utf8_trim_whitespace(texts.combine_chunks() if hasattr(texts, "combine_chunks") else texts)
    lower = functions.utf8_lower(texts)
    if "-" in nothing and functions.any(functions.equal(lower, "+")).as_py():
        nothing = tuple(word for word in nothing if word != "-")
    words = library.array([*nothing, *(word.strip().lower() for word in reading.na_values)], library.large_string())
    return functions.if_else(functions.is_in(lower, value_set=words), None, texts)


def _refuse_large_texts(values: Array) -> None:
    """Refuse values of a dictionary that are beyond memory once every row has its own."""
    functions, size = arrow().compute, 0
    if find_kind(plain_type(values.type)) != "text":
        return
    for part in getattr(values, "chunks", [values]):
        lengths = functions.binary_length(part.dictionary.cast(plain_type(part.type)))
        size += functions.sum(lengths.cast("int64").take(part.indices)).as_py() or 0
    if size > _MOST_TEXT:
        raise SotddError(
            f"a column of text would take {size / 1e9:,.1f} GB: expected at most {_MOST_TEXT / 1e9:,.0f} GB; "
            "write the file without it."
        )


def find_time_type(texts: Array) -> Type:
    """The type of dates that are written as in ISO 8601: in UTC where they say a time zone."""
    functions = arrow().compute
    zoned = functions.any(functions.match_substring_regex(texts, r"\d(Z|[+-]\d\d:?\d\d)$")).as_py()
    return arrow().timestamp("us", "UTC" if zoned else None)


def find_range(values: Array, reading: Reading) -> list[str]:
    """The first and the last of some dates, as in ISO 8601; nothing where there is none."""
    library, stamps = arrow(), values
    if find_kind(values.type) != "date":
        texts = clean_texts(values, reading).drop_null()
        stamps = try_cast(texts, find_time_type(texts))
    if stamps is None or stamps.null_count == len(stamps):
        return []
    kind = library.timestamp("us", stamps.type.tz if library.types.is_timestamp(stamps.type) else None)
    ends = library.compute.min_max(stamps.cast(kind, safe=False)).values()
    return [str(np.datetime_as_string(np.datetime64(end.value, "us"), unit="auto")) for end in ends]


def find_constant(values: Array) -> str | None:
    """The only value of a column, as text, if it is that of two rows or more; None where there are several."""
    known = values.drop_null()
    if len(known) < 2 or not arrow().compute.all(arrow().compute.equal(known, known[0])).as_py():
        return None
    return str(known.slice(0, 1).cast(arrow().large_string())[0].as_py())[:_LONGEST]


def try_cast(values: Array, kind: Type) -> Array | None:
    """Values as another type; None where one of them cannot be."""
    library = arrow()
    try:
        return values.cast(kind)
    except (library.ArrowInvalid, library.ArrowNotImplementedError):
        return None


def find_others(texts: Array, decimal: str) -> NDArray[np.int64]:
    """The rows of texts that are no numbers, as people write them."""
    if decimal == "." and try_cast(texts, arrow().float64()) is not None:
        return np.empty(0, np.int64)
    fits = arrow().compute.match_substring_regex(texts, _WRITTEN[decimal])
    return np.flatnonzero(~np.asarray(fits.fill_null(True)))
