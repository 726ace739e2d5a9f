"""Parquet files as a dataset that is read one row group at a time.

Footers are read first, then whole columns, single row groups or batches of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, require
from sotdd.inputs.data import Features
from sotdd.inputs.files import is_remote, reading_parquet, store_of
from sotdd.inputs.grouped import HELD_BYTES, GroupedRows
from sotdd.inputs.loaded import Loaded
from sotdd.inputs.loaders.arrow import (
    ArrowTexts,
    Column,
    Schema,
    Table,
    arrow,
    block_of,
    distinct_texts,
    dtype_of,
    kind_of,
    kinds_of,
    labels_of,
)
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.settings import OF_CSV, OF_FOLDERS, Settings
from sotdd.inputs.spool import Spool

# Rows read at a time from row groups that are too large to hold.
_BATCH_ROWS = 4096
# This many footers are read at the same time: the files may be far away.
_READERS = 16


def open_parquet(paths: Sequence[str], name: str, settings: Settings) -> Loaded:
    """Open files with the same columns as one dataset; only footers and labels are read."""
    settings.refuse("a Parquet file", *OF_FOLDERS, *OF_CSV)
    tables = ParquetTable.open_all(paths)
    columns = parquet_columns(tables, settings, name)
    labels = None
    if columns.label is not None:
        with reading_parquet(name):
            labels = labels_of([table.column(columns.label) for table in tables], name)
    if columns.kind == "text":
        parts = [chunk for table in tables for chunk in table.column(columns.features[0]).chunks]
        return Loaded(ArrowTexts(arrow().chunked_array(parts, type=parts[0].type), name), labels, table=columns)
    found = [table.has_gaps(columns.features) for table in tables] if columns.kind == "numbers" else [False]
    features = _features(tables, columns, name, gaps=any(gap is not False for gap in found))
    return Loaded(features, labels, columns=columns.names, table=columns, gaps=True in found)


def parquet_columns(tables: Sequence[ParquetTable], settings: Settings, name: str) -> Columns:
    """The columns that are read of files, all of which must have them."""
    first = tables[0]

    def values(column: str, most: int) -> tuple[str, ...] | None:
        return distinct_texts(_parts(tables, column), most)

    columns = Columns.choose(kinds_of(first.schema, first.path), settings, name, values)
    for table in tables[1:]:
        table.refuse_other_columns(first, columns)
    return columns


def _parts(tables: Sequence[ParquetTable], column: str) -> Iterator[Any]:
    """One column of all files, a row group at a time."""
    for table in tables:
        there = column in table.schema.names  # a file that lacks a feature is refused later
        for group in range(len(table.group_rows) if there else 0):
            yield table.group(group, [column]).column(column)


def _features(tables: Sequence[ParquetTable], columns: Columns, name: str, *, gaps: bool) -> Features:
    """Rows that are read by row group, or from a temporary file where row groups are too large to hold."""
    dtype = np.result_type(*(dtype_of(table.schema, columns, gaps=gaps) for table in tables))
    groups = [(table, group) for table in tables for group in range(len(table.group_rows))]
    sizes = [rows for table in tables for rows in table.group_rows]
    if not sum(sizes):
        raise SotddError(f"{name} has no rows: expected at least one.")
    if columns.names is not None:
        shape: tuple[int, ...] = (len(columns.names),)
    else:
        filled = next(table for table in tables if sum(table.group_rows))
        first = next(batch for batch in filled.batches(columns.features, _BATCH_ROWS) if batch.num_rows)
        shape = block_of(first, columns, dtype, name).shape[1:]
    if max(sizes) * int(np.prod(shape)) * dtype.itemsize > HELD_BYTES:
        spool = Spool(name, gaps=gaps)
        for table in tables:
            for batch in table.batches(columns.features, _BATCH_ROWS):
                spool.add(block_of(batch, columns, dtype, table.path))
        return spool.features()

    def decode(number: int) -> NDArray[Any]:
        table, group = groups[number]
        return block_of(table.group(group, columns.features), columns, dtype, table.path, shape)

    return GroupedRows(name, sizes, shape, dtype, decode)


@dataclass(frozen=True, eq=False)
class ParquetTable:
    """A file and what its footer says; the file is opened for every read, so that threads never share a reader."""

    path: str
    metadata: Any
    schema: Schema

    @classmethod
    def open_all(cls, paths: Sequence[str]) -> list[ParquetTable]:
        """Read the footers of files."""
        with ThreadPoolExecutor(_READERS) as readers:
            return list(readers.map(cls._open, paths))

    @classmethod
    def _open(cls, path: str) -> ParquetTable:
        with _opened(path) as file:
            return cls(path, file.metadata, file.schema_arrow)

    @property
    def group_rows(self) -> list[int]:
        """How many rows each row group has."""
        return [self.metadata.row_group(group).num_rows for group in range(self.metadata.num_row_groups)]

    def column(self, column: str) -> Column:
        """One column, whole."""
        with _opened(self.path, self.metadata) as file:
            return file.read(columns=[column], use_threads=False).column(column)

    def group(self, group: int, columns: Sequence[str]) -> Table:
        """Some columns of one row group."""
        with _opened(self.path, self.metadata) as file:
            return file.read_row_group(group, columns=list(columns), use_threads=False)

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Table]:
        """Some columns of the whole file, at most this many rows at a time."""
        return read_batches(self.path, range(len(self.group_rows)), columns, rows, self.metadata)

    def has_gaps(self, columns: Sequence[str]) -> bool | None:
        """Whether values of these columns are missing, going by the footer; None where it does not say.

        NaN are not counted there.
        """
        schema = self.metadata.schema
        roots = [schema.column(number).path.split(".")[0] for number in range(len(schema))]
        places = [number for number, root in enumerate(roots) if root in columns]
        known: bool | None = False
        for group in range(self.metadata.num_row_groups):
            for place in places:
                statistics = self.metadata.row_group(group).column(place).statistics
                if statistics is None or not statistics.has_null_count:
                    known = None
                elif statistics.null_count:
                    return True
        return known

    def refuse_other_columns(self, first: ParquetTable, columns: Columns) -> None:
        """Refuse this file unless it has the columns that are read of the first one, with the same kind of values.

        Columns that are left out of the first must not be numbers here.
        """
        names = set(self.schema.names)
        left_out = [column for column, why in columns.left_out if column in names and why != "id"]
        for column in [*columns.all, *left_out]:
            if column not in names:
                raise SotddError(
                    f"{self.path} has no column {column!r}, which {first.path} has: expected the same columns."
                )
            own, other = (kind_of(table.schema.field(column).type) for table in (self, first))
            if own != other and (column not in left_out or own == "numbers"):
                raise SotddError(
                    f"column {column!r} holds {own} in {self.path} but {other} in {first.path}: expected one type."
                )


def read_batches(
    path: str,
    groups: Sequence[int],
    columns: Sequence[str],
    rows: int,
    metadata: Any = None,  # noqa: ANN401  # pyarrow is optional
) -> Iterator[Table]:
    """Some columns of some row groups, at most this many rows at a time."""
    with _opened(path, metadata) as file:
        yield from file.iter_batches(rows, row_groups=list(groups), columns=list(columns), use_threads=False)


@contextmanager
def _opened(path: str, metadata: Any = None) -> Iterator[Any]:  # noqa: ANN401  # pyarrow is optional
    """A reader of a file or URL, whose errors become one line."""
    parquet = require("pyarrow.parquet", "reading Parquet files", "'sotdd[inputs]'")
    with reading_parquet(path):
        system, inside = None, path
        if is_remote(path):
            system, inside = store_of(path)
        # Without buffers ahead of time a row group is decoded page by page.
        with parquet.ParquetFile(
            inside, filesystem=system, metadata=metadata, pre_buffer=False, buffer_size=1 << 20
        ) as file:
            yield file
