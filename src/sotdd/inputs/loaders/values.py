"""Values of one column of a table: what an Arrow type holds, and how values become numbers, codes or texts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, require
from sotdd.inputs.data import MISSING, UNKNOWN, LeftOut, Names
from sotdd.inputs.reading import Reading

Kind = Literal["number", "written number", "date", "category"]

# Arrow's own types are not checked, since it is optional.
Type = Any
Array = Any

# How a value that is missing is written, in lower case; a column that has a plus has a minus as well.
_NOTHING = ("", "na", "n/a", "null", "none", "?", "-", "nan", "#n/a")
_MONEY = "$€£¥₹"
# Numbers as people write them, by what stands before fractions.
_WRITTEN = {
    point: rf"^[+-]?[{_MONEY}]?\s?[+-]?(\d{{1,3}}({group}\d{{3}})+|\d+)?({fraction}\d+)?\s?[%{_MONEY}]?$"
    for point, group, fraction in ((".", ",", r"\."), (",", r"\.", ","))
}


@cache
def arrow() -> Any:  # noqa: ANN401  # a module
    """The library; where it is missing, an error says how to install it."""
    return require("pyarrow", "reading tables", "'sotdd[inputs]'")


@cache
def compute() -> Any:  # noqa: ANN401  # a module
    """What the library computes with."""
    return require("pyarrow.compute", "reading tables", "'sotdd[inputs]'")


@dataclass(frozen=True)
class Column:
    """A column that is read, and how its values become numbers or codes.

    Attributes
    ----------
    name, kind
        What it is called and what it holds.
    decimal
        What stands before fractions, where numbers are written as text.
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


def plain_type(kind: Type) -> Type:
    """The type of the values themselves, behind an extension type, a dictionary or a view."""
    library = arrow()
    if isinstance(kind, library.BaseExtensionType):
        return kind.storage_type
    kind = kind.value_type if library.types.is_dictionary(kind) else kind
    # Views of strings, as Polars writes them, have hardly any functions.
    return library.large_string() if str(kind) == "string_view" else kind


def is_number(kind: Type) -> bool:
    """Whether values of a type are numbers or truth values."""
    types = arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def is_list(kind: Type) -> bool:
    """Whether values of a type are lists."""
    types = arrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def read_numbers(column: Column, values: Array, reading: Reading, name: str, start: int = 0) -> NDArray[Any]:
    """The numbers (n,) of a column, NaN where one is missing; ``start`` is the number of its first row."""
    library = arrow()
    kind = plain_type(values.type)
    if column.kind == "date":
        return _read_days(values, reading)
    if column.kind == "number" and is_number(kind):
        if library.types.is_decimal(kind) or (values.null_count and library.types.is_boolean(kind)):
            values = values.cast(library.uint8()) if library.types.is_boolean(kind) else values
            kind = library.float64()
        return np.asarray(values if values.type == kind else values.cast(kind))
    if library.types.is_null(kind):
        return np.full(len(values), np.nan)
    if column.decimal == ".":
        try:
            return np.asarray(values.cast(library.float64()))
        except library.ArrowInvalid:  # there are gaps, or signs of money
            pass
    texts = clean_texts(values, reading)
    try:
        return np.asarray(_strip(texts, column.decimal).cast(library.float64()))
    except library.ArrowInvalid:
        _, value, row = find_other(texts, column.decimal)
        raise SotddError(
            f"column {column.name!r} of {name} holds {value!r} in row {start + row:,}, and numbers before: say that it "
            "means nothing by na_values=, or leave the column out by exclude=."
        ) from None


def read_codes(column: Column, values: Array, reading: Reading) -> NDArray[np.int32]:
    """The codes (n,) of a column of categories."""
    library = arrow()
    texts = clean_texts(values, reading)
    known = library.array(column.values, library.large_string())
    places = compute().index_in(texts, value_set=known).fill_null(UNKNOWN)
    codes = np.array(places, np.int32)
    codes[np.asarray(texts.is_null())] = MISSING
    return codes


def clean_texts(values: Array, reading: Reading, nothing: tuple[str, ...] = _NOTHING) -> Array:
    """A column as plain text, trimmed, with gaps where it says nothing."""
    library, functions = arrow(), compute()
    texts = values.cast(plain_type(values.type)).cast(library.large_string())
    texts = functions.utf8_trim_whitespace(texts.combine_chunks() if hasattr(texts, "combine_chunks") else texts)
    lower = functions.utf8_lower(texts)
    if nothing is _NOTHING and functions.any(functions.equal(lower, "+")).as_py():
        nothing = tuple(word for word in nothing if word != "-")
    words = library.array([*nothing, *(word.strip().lower() for word in reading.na_values)], library.large_string())
    return functions.if_else(functions.is_in(lower, value_set=words), None, texts)


def _read_days(values: Array, reading: Reading) -> NDArray[np.float64]:
    """Dates as days since the beginning of 1970, in UTC; NaN where one is missing."""
    library = arrow()
    values = values.cast(plain_type(values.type))
    if find_kind(values.type) == "text":
        values = clean_texts(values, reading).cast(library.timestamp("us", "UTC" if reads_zone(values) else None))
    microseconds = values.cast(library.timestamp("us", getattr(values.type, "tz", None)), safe=False)
    days: NDArray[np.float64] = np.asarray(microseconds.cast(library.int64()).cast(library.float64(), safe=False))
    return days / 86_400e6


def reads_zone(texts: Array) -> bool:
    """Whether dates that are written as text say a time zone."""
    functions = compute()
    return bool(functions.any(functions.match_substring_regex(texts, r"\d(Z|[+-]\d\d:?\d\d)$")).as_py())


def is_usual(values: Array, reading: Reading) -> bool:
    """Whether numbers are written as a file of text has them, or as was said."""
    texts = clean_texts(values, reading)
    try:
        _replace_comma(texts, reading.decimal or ".").cast(arrow().float64())
    except arrow().ArrowInvalid:
        return False
    return True


def find_other(texts: Array, decimal: str) -> tuple[int, str, int]:
    """How many texts are no numbers, the first of them and its row."""
    functions, library = compute(), arrow()
    if decimal == ".":
        try:
            texts.cast(library.float64())
        except library.ArrowInvalid:
            pass
        else:
            return 0, "", 0
    plain = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|(?i)^[+-]?inf(inity)?$"
    fits = functions.match_substring_regex(texts, _WRITTEN[decimal])
    fits = functions.and_(fits, functions.match_substring_regex(texts, r"\d"))
    if decimal == ".":
        fits = functions.or_(fits, functions.match_substring_regex(texts, plain))
    others = np.flatnonzero(~np.asarray(fits.fill_null(True)))
    return (len(others), texts[int(others[0])].as_py(), int(others[0])) if len(others) else (0, "", 0)


def _strip(texts: Array, decimal: str) -> Array:
    """Numbers as Arrow reads them: without money, per cent, spaces and marks of thousands."""
    functions = compute()
    bare = functions.replace_substring_regex(texts, rf"[\s%{_MONEY}{',' if decimal == '.' else '.'}]", "")
    return _replace_comma(functions.replace_substring_regex(bare, r"^\+", ""), decimal)


def _replace_comma(texts: Array, decimal: str) -> Array:
    functions = compute()
    return texts if decimal == "." else functions.replace_substring(texts, ",", ".")


def are_dates(distinct: Array) -> bool:
    """Whether all texts are dates, as ISO 8601 writes them."""
    library = arrow()
    try:
        distinct.cast(library.timestamp("us", "UTC" if reads_zone(distinct) else None))
    except (library.ArrowInvalid, library.ArrowNotImplementedError):
        return False
    return True
