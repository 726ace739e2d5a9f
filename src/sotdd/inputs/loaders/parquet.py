"""Parquet files as a dataset that is read one row group at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.inputs.data import Features
from sotdd.inputs.grouped import HELD_BYTES, GroupedRows
from sotdd.inputs.loaded import Loaded
from sotdd.inputs.loaders.arrow_columns import ArrowTexts, arrow, block_of, dtype_of, kinds_of, labels_of
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.loaders.contents import ArrowContents
from sotdd.inputs.loaders.parquet_files import reading_parquet
from sotdd.inputs.loaders.parquet_reader import ParquetTable
from sotdd.inputs.settings import Settings
from sotdd.inputs.spool import Spool

# Rows read at a time from row groups that are too large to hold.
_BATCH_ROWS = 4096


def open_parquet(paths: Sequence[str], name: str, settings: Settings) -> Loaded:
    """Open files with the same columns as one dataset; only footers and labels are read."""
    settings.refuse("Parquet files have no splits and hold no image files", "split", "broken")
    settings.refuse_for_no_csv("Parquet files are not text")
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
    contents = ArrowContents(first.schema, lambda column: _parts(tables, column))
    kinds = kinds_of(first.schema, str(first.path))
    columns = Columns.choose(kinds, settings, name, contents)
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
    shape = _point_shape(next(table for table in tables if sum(table.group_rows)), columns, dtype, name)
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


def _point_shape(table: ParquetTable, columns: Columns, dtype: np.dtype[Any], name: str) -> tuple[int, ...]:
    """The shape of a point, found from the first rows."""
    if columns.names is not None:
        return (len(columns.names),)
    first = next(batch for batch in table.batches(columns.features, _BATCH_ROWS) if batch.num_rows)
    return block_of(first, columns, dtype, name).shape[1:]
