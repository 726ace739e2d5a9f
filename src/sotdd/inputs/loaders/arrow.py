"""Columns of Arrow tables turned into blocks of numbers, labels and texts: for all kinds of tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, require
from sotdd.basics.remarks import Remark
from sotdd.basics.text import say_count
from sotdd.inputs.data import Features
from sotdd.inputs.labels import Labels
from sotdd.inputs.loaders.columns import Columns, Kind
from sotdd.inputs.preparation import Items, Loaded
from sotdd.inputs.reading import Reading
from sotdd.inputs.row_groups import GroupedRows
from sotdd.inputs.streamed import narrow_dtype

# Columns of integers with this many rows or more, all different, may be ids.
_FEWEST_IDS = 20

# Arrow's own types are not checked, since it is optional.
Schema = Any
Type = Any
Table = Any
Column = Any


def arrow() -> Any:  # noqa: ANN401  # a module
    """The library; where it is missing, an error says how to install it."""
    return require("pyarrow", "reading Parquet, Arrow and CSV files", "'sotdd[inputs]'")


def find_kinds(schema: Schema, name: str) -> dict[str, Kind]:
    """What each column of a schema holds; two columns of one name are refused."""
    kinds: dict[str, Kind] = {}
    for field in schema:
        if field.name in kinds:
            raise SotddError(f"{name} has two columns named {field.name!r}: rename one.")
        kinds[field.name] = "empty" if arrow().types.is_null(plain_type(field.type)) else find_kind(field.type)
    return kinds


def find_kind(kind: Type) -> Kind:
    """What a column of that type holds."""
    types = arrow().types
    kind = plain_type(kind)
    if _is_number(kind) or types.is_null(kind):
        return "numbers"
    if types.is_string(kind) or types.is_large_string(kind):
        return "text"
    if types.is_timestamp(kind) or types.is_date(kind):
        return "date"
    if _is_list(kind):
        leaf = kind
        while _is_list(leaf):
            leaf = plain_type(leaf.value_type)
        return "list" if _is_number(leaf) else "other"
    return "other"


def find_dtype(schema: Schema, columns: Columns, *, gaps: bool = False) -> np.dtype[Any]:
    """The dtype in which the features are read; with ``gaps``, one that can say that a value is missing."""
    types = arrow().types
    categories = {column for column, _ in columns.categories}
    dtypes: list[np.dtype[Any]] = []
    for column in columns.features:
        leaf = plain_type(schema.field(column).type)
        while _is_list(leaf):
            leaf = plain_type(leaf.value_type)
        if column in categories:
            dtypes.append(np.dtype(np.uint8))
        elif types.is_decimal(leaf) or types.is_null(leaf) or column in columns.dates:
            dtypes.append(np.dtype(np.float64))
        else:
            dtypes.append(np.dtype(leaf.to_pandas_dtype()))
    return narrow_dtype(*dtypes, *([np.dtype(np.float32)] if gaps else []))


def make_block(
    table: Table, columns: Columns, dtype: np.dtype[Any], name: str, point_shape: tuple[int, ...] | None = None
) -> NDArray[Any]:
    """The features of a table as an array (n, ...), NaN where a number is missing.

    Lists of another shape than ``point_shape`` are refused.
    """
    if columns.kind == "list":
        lists = _make_nested(table.column(columns.features[0]), name, columns.features[0]).astype(dtype, copy=False)
        if point_shape is not None and lists.shape[1:] != point_shape:
            raise SotddError(f"lists in {name} have shape {lists.shape[1:]} and {point_shape}: expected one length.")
        return lists
    names = columns.names
    assert names is not None  # only lists have none
    block = np.empty((table.num_rows, len(names)), dtype)
    categories = dict(columns.categories)
    position = 0
    for title in columns.features:
        column = table.column(title)
        if title in categories:
            width = len(categories[title])
            block[:, position : position + width] = _one_hot(_texts(column), categories[title], dtype)
        else:
            width = 1
            block[:, position] = _days(column) if title in columns.dates else _numbers(column)
        position += width
    return block


def _one_hot(texts: Any, values: Sequence[str], dtype: np.dtype[Any]) -> NDArray[Any]:  # noqa: ANN401  # Arrow's
    """One feature (n, k) per value, 1 where a text is that value; NaN throughout where it is missing."""
    library = arrow()
    places = library.compute.index_in(texts, value_set=library.array(values, library.large_string()))
    codes = np.asarray(places.fill_null(-1))
    result: NDArray[Any] = (codes[:, None] == np.arange(len(values))).astype(dtype)
    if texts.null_count:
        result[np.asarray(texts.is_null())] = np.nan
    return result


def distinct_texts(parts: Iterable[Column], most: int) -> tuple[str, ...] | None:
    """The distinct values of a column of text, which comes in parts, in order; None if there are more than ``most``."""
    found: set[str] = set()
    for part in parts:
        plain = part.cast(plain_type(part.type))
        found.update(text for text in plain.unique().to_pylist() if text is not None)
        if len(found) > most:
            return None
    return tuple(sorted(found))


def make_labels(parts: Sequence[Column], name: str) -> Labels:
    """The labels of one column, which may come in parts."""
    library = arrow()
    if not any(map(len, parts)):
        raise SotddError(f"{name} has no rows: expected at least one.")
    kind = plain_type(parts[0].type)
    if library.types.is_nested(kind):
        raise SotddError(f"labels of {name} are {kind}: expected one plain value per row.")
    chunks = [chunk.cast(kind) for part in parts for chunk in _chunks(part)]
    coded = library.chunked_array(chunks, type=kind).dictionary_encode().unify_dictionaries()
    codes = np.concatenate([np.asarray(chunk.indices.fill_null(-1)) for chunk in coded.chunks])
    filled = next((chunk for chunk in coded.chunks if len(chunk)), None)
    return Labels.in_natural_order([] if filled is None else filled.dictionary.to_pylist(), codes)


def make_texts(column: Column, name: str) -> Items:
    """A column of texts."""
    if column.null_count:
        missing = say_count(column.null_count, "missing text", "missing texts")
        raise SotddError(f"{name} has {missing}: drop those rows or fill them first.")
    plain = column.cast(plain_type(column.type))
    return Items(len(plain), lambda rows: plain.take(arrow().array(rows)).to_pylist())


def _numbers(column: Column) -> NDArray[Any]:
    """Numbers of a column, NaN where one is missing."""
    library = arrow()
    kind = plain_type(column.type)
    if library.types.is_decimal(kind) or library.types.is_null(kind):
        kind = library.float64()
    elif column.null_count and library.types.is_boolean(kind):
        column, kind = column.cast(kind).cast(library.uint8()), library.float32()  # NumPy has no missing truth values
    return np.asarray(column if column.type == kind else column.cast(kind))


def _days(column: Column) -> NDArray[np.float64]:
    """Dates as days since the beginning of 1970, in UTC; NaN where one is missing."""
    library = arrow()
    column = column.cast(plain_type(column.type))
    microseconds = column.cast(library.timestamp("us", getattr(column.type, "tz", None)), safe=False)
    days: NDArray[np.float64] = np.asarray(microseconds.cast(library.int64()).cast(library.float64(), safe=False))
    return days / 86_400e6


def _texts(column: Column) -> Column:
    """A column of text as plain text."""
    texts = column.cast(plain_type(column.type)).cast(arrow().large_string())
    return texts.combine_chunks() if isinstance(texts, arrow().ChunkedArray) else texts


def _make_nested(column: Column, name: str, label: str) -> NDArray[Any]:
    """Lists of one length as an array (n, length, ...)."""
    library = arrow()
    if isinstance(column, library.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, library.ChunkedArray):  # there were no chunks
            column = column.chunk(0) if column.num_chunks else library.array([], column.type)
    if isinstance(column, library.ExtensionArray):
        column = column.storage
    if column.null_count:
        missing = say_count(column.null_count, "missing value", "missing values")
        raise SotddError(f"lists in column {label!r} of {name} have {missing}: drop or impute those rows first.")
    if not _is_list(column.type):
        return _numbers(column)
    lengths = np.unique(np.asarray(library.compute.list_value_length(column)))
    if len(lengths) > 1:
        raise SotddError(
            f"lists in {label!r} of {name} have {lengths[0]} to {lengths[-1]} entries: expected one length."
        )
    values = _make_nested(column.flatten(), name, label)
    return values.reshape(len(column), int(lengths[0]) if len(lengths) else 0, *values.shape[1:])


def plain_type(kind: Type) -> Type:
    """The type of the values themselves, behind an extension type, a dictionary or a view."""
    library = arrow()
    if isinstance(kind, library.BaseExtensionType):
        return kind.storage_type
    kind = kind.value_type if library.types.is_dictionary(kind) else kind
    # Views of strings, as Polars writes them, have hardly any functions.
    return library.large_string() if str(kind) == "string_view" else kind


def _is_number(kind: Type) -> bool:
    types = arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _is_list(kind: Type) -> bool:
    types = arrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


class Groups(ABC):
    """Rows of a table in groups, each of which is read by itself.

    Attributes
    ----------
    schema
        The types of its columns.
    sizes
        How many rows each group has.
    """

    schema: Schema
    sizes: list[int]

    @abstractmethod
    def read(self, number: int, columns: Sequence[str]) -> Table:
        """Some columns of one group."""

    def column(self, column: str) -> Iterator[Column]:
        """One column, a group at a time."""
        return (self.read(number, [column]).column(column) for number in range(len(self.sizes)))

    def has_gaps(self, columns: Sequence[str]) -> bool | None:
        """Whether values of these columns are missing; None where only reading them tells."""
        return any(part.null_count for column in columns for part in self.column(column))

    def dtype(self, columns: Columns, gaps: bool) -> np.dtype[Any]:
        """The dtype in which features are read."""
        return find_dtype(self.schema, columns, gaps=gaps)

    def choose(self, reading: Reading, name: str, kinds: dict[str, Kind] | None = None) -> Columns:
        """Which columns are features, and which one holds the labels."""

        def values(column: str, most: int) -> tuple[str, ...] | None:
            return distinct_texts(self.column(column), most)

        return Columns.choose(kinds or find_kinds(self.schema, name), reading, name, values)

    def labels(self, columns: Columns, name: str) -> Labels | None:
        """The labels of all rows, where there are any."""
        return None if columns.label is None else make_labels(list(self.column(columns.label)), name)

    def load(self, columns: Columns, labels: Labels | None, name: str) -> Loaded:
        """The dataset; numbers stay where they are until they are read."""
        if not sum(self.sizes):
            raise SotddError(f"{name} has no rows: expected at least one.")
        if columns.kind == "text":
            parts = [part for column in self.column(columns.features[0]) for part in _chunks(column)]
            return Loaded(make_texts(arrow().chunked_array(parts), name), labels, origin=columns.origin)
        gaps = columns.kind == "numbers" and self.has_gaps(columns.features)
        features = self.features(columns, self.dtype(columns, gaps is not False), name)
        return Loaded(features, labels, columns.names, columns.origin, gaps=bool(gaps))

    def features(self, columns: Columns, dtype: np.dtype[Any], name: str) -> Features:
        """Numbers that are decoded a group at a time."""
        first = next(number for number, size in enumerate(self.sizes) if size)
        shape: tuple[int, ...] = (len(columns.names or ()),)
        if columns.names is None:
            shape = make_block(self.read(first, columns.features).slice(0, 1), columns, dtype, name).shape[1:]

        def decode(number: int) -> NDArray[Any]:
            return make_block(self.read(number, columns.features), columns, dtype, name, shape)

        return GroupedRows(name, self.sizes, shape, dtype, decode)


def remark_ids(loaded: Loaded, reading: Reading) -> Loaded:
    """The same with a remark on columns in memory that may be ids; whether they are is for the user to say."""
    features, found = loaded.features, []
    if reading.features is not None or not isinstance(features, np.ndarray) or len(features) < _FEWEST_IDS:
        return loaded
    for name, values in zip(loaded.columns or (), features.T, strict=False):
        few = values[:_FEWEST_IDS]  # which tell measurements at once
        if np.array_equal(few, np.floor(few)) and len(np.unique(values)) == len(values):
            found += [name] if np.array_equal(values, np.floor(values)) else []
    remarks = [Remark("may be ids", columns=tuple(found))] if found else []
    return replace(loaded, origin=loaded.origin.also(*remarks))


def _chunks(column: Column) -> Sequence[Column]:
    """The parts of a column, which may be in one."""
    chunks: Sequence[Column] = column.chunks if hasattr(column, "chunks") else [column]
    return chunks
