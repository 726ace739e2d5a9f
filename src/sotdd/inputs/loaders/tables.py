"""Data frames, which narwhals opens, and Arrow files (IPC, Feather): their columns are read by way of Arrow."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError, require
from sotdd.inputs.data import Features, check_features
from sotdd.inputs.labels import Labels
from sotdd.inputs.loaders.arrow import Groups, arrow, make_block, remark_ids
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.preparation import Loaded
from sotdd.inputs.reading import Reading
from sotdd.inputs.sources import reading_file

_EXPECTED = "an Arrow file"

_LIBRARIES = {"cudf", "dask", "duckdb", "ibis", "modin", "narwhals", "pandas", "polars", "pyarrow"}
_FRAMES = {"DataFrame", "DuckDBPyRelation", "LazyFrame", "RecordBatch", "Table"}

# The types of narwhals are not checked, since it is optional.
Frame = Any
Series = Any


def is_frame(source: object) -> bool:
    """Whether a source is a table of a library that narwhals knows, told without importing any."""
    kind = type(source)
    return kind.__module__.split(".")[0].lstrip("_") in _LIBRARIES and kind.__name__ in _FRAMES


def open_frame(source: Any, name: str, reading: Reading) -> Loaded:  # noqa: ANN401  # of any library
    """Open the columns of a table in memory."""
    reading.refuse("a frame")
    frame = _frame(source, name)
    groups = _InMemory(arrow().table({column: _as_arrow(frame[column]) for column in frame.columns}))
    if not len(frame):
        raise SotddError(f"{name} has no rows: expected at least one.")
    columns = groups.choose(reading, name)
    labels = None if columns.label is None else Labels.of(_values(frame[columns.label]), len(frame), name)
    loaded = groups.load(columns, labels, name)
    if columns.kind != "numbers":
        return loaded
    has_names = not hasattr(source, "set_axis") or all(isinstance(column, str) for column in source.columns)
    marked = remark_ids(loaded, reading)  # NaN are missing, too
    return replace(marked, columns=marked.columns if has_names else None, gaps=True)


class _InMemory(Groups):
    """A table as one group, which is decoded at once."""

    def __init__(self, table: Any) -> None:  # noqa: ANN401  # of Arrow's
        self._table, self.schema, self.sizes = table, table.schema, [len(table)]

    def read(self, number: int, columns: Sequence[str]) -> Any:  # noqa: ANN401  # the same
        return self._table.select(list(columns))

    def features(self, columns: Columns, dtype: np.dtype[Any], name: str) -> Features:
        features = make_block(self._table, columns, dtype, name)
        return check_features(features, name) if columns.kind == "list" else features


def _frame(source: Any, name: str) -> Frame:  # noqa: ANN401
    narwhals = require("narwhals", "reading data frames", "'sotdd[inputs]'")
    if type(source).__name__ == "RecordBatch":
        source = arrow().Table.from_batches([source])
    try:
        if hasattr(source, "set_axis") and not all(isinstance(column, str) for column in source.columns):
            source = source.set_axis([str(column) for column in source.columns], axis=1)  # pandas may number them
        frame = narwhals.from_native(source)
        return frame.collect() if isinstance(frame, narwhals.LazyFrame) else frame
    except (TypeError, ValueError, RuntimeError, narwhals.exceptions.NarwhalsError) as error:
        raise SotddError(f"cannot read the table {name!r} ({first_line(error)}): expected columns by name.") from error


def _as_arrow(series: Series) -> Any:  # noqa: ANN401  # a column of Arrow's
    """A column of Arrow's; what Arrow has no type for, such as objects of Python, is bytes without a value."""
    library = arrow()
    try:
        column = series.to_arrow()
    except Exception:  # noqa: BLE001  # of whatever library
        return library.nulls(len(series), library.binary())
    return library.nulls(len(column)) if column.null_count == len(column) else column


def _values(series: Series) -> Any:  # noqa: ANN401  # labels of any kind
    """Labels as plain values; numbers as an array if none is missing."""
    whole = series.dtype.is_numeric() and not series.null_count()
    return series.to_numpy() if whole else series.to_list()


def open_arrow(path: Path, name: str, reading: Reading) -> Loaded:
    """Open a file or a stream of record batches; numbers stay in the file until they are read."""
    reading.refuse("an Arrow file")
    with reading_file(path, _EXPECTED):
        batches = _Batches(path)
        columns = batches.choose(reading, name)
        return batches.load(columns, batches.labels(columns, name), name)


class _Batches(Groups):
    """The record batches of a file, which is mapped into memory."""

    def __init__(self, path: Path) -> None:
        ipc = require("pyarrow.ipc", "reading Arrow files", "'sotdd[inputs]'")
        self._path, self._bytes = path, path.stat().st_size
        source = arrow().memory_map(str(path))
        self._locks: dict[int, threading.Lock] = {}  # by process: a forked child cannot wait for a thread of its parent
        try:
            self._reader = ipc.open_file(source)
            self.schema, count = self._reader.schema, self._reader.num_record_batches
            self.sizes = [self._batch(number).num_rows for number in range(count)]
        except arrow().ArrowInvalid:  # not a file of batches with a footer, so a stream of them
            source.seek(0)
            self._reader = None
            stream = ipc.open_stream(source)
            self.schema, self._held = stream.schema, list(stream)  # views of the map where nothing is compressed
            self.sizes = [batch.num_rows for batch in self._held]

    def read(self, number: int, columns: Sequence[str]) -> Any:  # noqa: ANN401  # Arrow is optional
        with reading_file(self._path, _EXPECTED):
            return self._batch(number).select(list(columns))

    def _batch(self, number: int) -> Any:  # noqa: ANN401  # the same
        if self._path.stat().st_size < self._bytes:  # reading a map beyond the end of its file ends the process
            raise SotddError(f"{self._path} has become shorter since it was opened: open it again.")
        if self._reader is None:
            return self._held[number]
        with self._locks.setdefault(os.getpid(), threading.Lock()):
            return self._reader.get_batch(number)
