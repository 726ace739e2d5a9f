"""Columns of Arrow tables turned into blocks of numbers, labels and texts: for Parquet, Arrow, CSV and Hugging Face.

And Arrow files themselves (IPC, Feather), mapped into memory and read one record batch at a time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, require
from sotdd.basics.text import counted
from sotdd.inputs.files import reading
from sotdd.inputs.grouped import GroupedRows
from sotdd.inputs.labels import Labels
from sotdd.inputs.loaded import Items, Loaded
from sotdd.inputs.loaders.columns import Columns, Kind
from sotdd.inputs.settings import OF_CSV, OF_FOLDERS, Settings
from sotdd.inputs.spool import stored_dtype

# Arrow's own types are not checked, since it is optional.
Schema = Any
Type = Any
Table = Any
Column = Any


def arrow() -> Any:  # noqa: ANN401  # a module
    """The library; where it is missing, an error says how to install it."""
    return require("pyarrow", "reading Parquet, Arrow and CSV files", "'sotdd[inputs]'")


def kinds_of(schema: Schema, name: str) -> dict[str, Kind]:
    """What each column of a schema holds; two columns of one name are refused."""
    kinds: dict[str, Kind] = {}
    for field in schema:
        if field.name in kinds:
            raise SotddError(f"{name} has two columns named {field.name!r}: rename one.")
        kinds[field.name] = "empty" if arrow().types.is_null(plain_type(field.type)) else kind_of(field.type)
    return kinds


def kind_of(kind: Type) -> Kind:
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


def dtype_of(schema: Schema, columns: Columns, *, gaps: bool = False) -> np.dtype[Any]:
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
    return stored_dtype(*dtypes, *([np.dtype(np.float32)] if gaps else []))


def block_of(
    table: Table, columns: Columns, dtype: np.dtype[Any], name: str, point_shape: tuple[int, ...] | None = None
) -> NDArray[Any]:
    """The features of a table as an array (n, ...), NaN where a number is missing.

    Lists of another shape than ``point_shape`` are refused.
    """
    if columns.kind == "list":
        lists = _nested(table.column(columns.features[0]), name, columns.features[0]).astype(dtype, copy=False)
        if point_shape is not None and lists.shape[1:] != point_shape:
            raise SotddError(
                f"lists in {name} have shape {lists.shape[1:]} but {point_shape} before: expected one length."
            )
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


def labels_of(parts: Sequence[Column], name: str) -> Labels:
    """The labels of one column, which may come in parts."""
    library = arrow()
    kind = plain_type(parts[0].type)
    if library.types.is_nested(kind):
        raise SotddError(f"labels of {name} are {kind}: expected one plain value per row.")
    chunks = [chunk.cast(kind) for part in parts for chunk in (part.chunks if hasattr(part, "chunks") else [part])]
    coded = library.chunked_array(chunks, type=kind).dictionary_encode().unify_dictionaries()
    if not len(coded):
        raise SotddError(f"{name} has no rows: expected at least one.")
    codes = np.concatenate([np.asarray(chunk.indices.fill_null(-1)) for chunk in coded.chunks])
    filled = next((chunk for chunk in coded.chunks if len(chunk)), None)
    return Labels.in_natural_order([] if filled is None else filled.dictionary.to_pylist(), codes)


class ArrowTexts(Items):
    """A column of texts."""

    def __init__(self, column: Column, name: str) -> None:
        if column.null_count:
            missing = counted(column.null_count, "missing text", "missing texts")
            raise SotddError(f"{name} has {missing}: drop those rows or fill them first.")
        self._column = column.cast(plain_type(column.type))

    def __len__(self) -> int:
        """How many texts there are."""
        return len(self._column)

    def read(self, rows: NDArray[np.integer]) -> list[Any]:
        """The texts of some rows."""
        texts: list[Any] = self._column.take(arrow().array(rows)).to_pylist()
        return texts


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


def _nested(column: Column, name: str, label: str) -> NDArray[Any]:
    """Lists of one length as an array (n, length, ...)."""
    library = arrow()
    if isinstance(column, library.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, library.ChunkedArray):  # there were no chunks
            column = column.chunk(0) if column.num_chunks else library.array([], column.type)
    if isinstance(column, library.ExtensionArray):
        column = column.storage
    if column.null_count:
        missing = counted(column.null_count, "missing value", "missing values")
        raise SotddError(f"lists in column {label!r} of {name} have {missing}: drop or impute those rows first.")
    if not _is_list(column.type):
        return _numbers(column)
    lengths = np.unique(np.asarray(library.compute.list_value_length(column)))
    if len(lengths) > 1:
        raise SotddError(
            f"lists in column {label!r} of {name} have {lengths[0]} to {lengths[-1]} entries: expected one length."
        )
    values = _nested(column.flatten(), name, label)
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


def open_arrow(path: Path, name: str, settings: Settings) -> Loaded:
    """Open a file or a stream of record batches; numbers stay in the file until they are read."""
    settings.refuse("an Arrow file", *OF_FOLDERS, *OF_CSV)
    with reading(path, "an Arrow file"):
        batches = _Batches(path)

        def values(column: str, most: int) -> tuple[str, ...] | None:
            return distinct_texts(batches.column(column), most)

        columns = Columns.choose(kinds_of(batches.schema, name), settings, name, values)
        if not sum(batches.sizes):
            raise SotddError(f"{name} has no rows: expected at least one.")
        labels = None if columns.label is None else labels_of(list(batches.column(columns.label)), name)
        if columns.kind == "text":
            texts = arrow().chunked_array(list(batches.column(columns.features[0])))
            return Loaded(ArrowTexts(texts, name), labels, table=columns)
        gaps = columns.kind == "numbers" and any(
            part.null_count for column in columns.features for part in batches.column(column)
        )
        dtype = dtype_of(batches.schema, columns, gaps=gaps)
        first = next(number for number, size in enumerate(batches.sizes) if size)
        shape = block_of(batches.get(first).slice(0, 1), columns, dtype, name).shape[1:]

    def decode(number: int) -> NDArray[Any]:
        with reading(path, "an Arrow file"):
            return block_of(batches.get(number), columns, dtype, name, shape)

    rows = GroupedRows(name, batches.sizes, shape, dtype, decode)
    return Loaded(rows, labels, columns=columns.names, table=columns, gaps=gaps)


class _Batches:
    """The record batches of a file, by number."""

    def __init__(self, path: Path) -> None:
        ipc = require("pyarrow.ipc", "reading Arrow files", "'sotdd[inputs]'")
        self._path, self._size = path, path.stat().st_size
        source = arrow().memory_map(str(path))
        self._locks: dict[int, threading.Lock] = {}  # by process: a forked child cannot wait for a thread of its parent
        try:
            reader = ipc.open_file(source)
        except arrow().ArrowInvalid:  # not a file of batches with a footer, so a stream of them
            source.seek(0)
            self._held = list(ipc.open_stream(source))  # views of the map where nothing is compressed
            if not self._held:
                raise SotddError(f"{path} has no rows: expected at least one.") from None
            self._reader = None
            self.schema = self._held[0].schema
            self.sizes = [batch.num_rows for batch in self._held]
            return
        self._reader = reader
        self.schema = reader.schema
        self.sizes = [self.get(number).num_rows for number in range(reader.num_record_batches)]

    def get(self, number: int) -> Any:  # noqa: ANN401  # Arrow is optional
        if self._path.stat().st_size < self._size:  # reading a map beyond the end of its file ends the process
            raise SotddError(
                f"{self._path} has become shorter since it was opened: open it again, and leave it as it is meanwhile."
            )
        if self._reader is None:
            return self._held[number]
        with self._locks.setdefault(os.getpid(), threading.Lock()):
            return self._reader.get_batch(number)

    def column(self, column: str) -> Iterator[Any]:
        """One column, a batch at a time."""
        return (self.get(number).column(column) for number in range(len(self.sizes)))
