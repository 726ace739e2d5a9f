"""Parquet files, read one row group at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, require
from sotdd.inputs.grouped import HELD_BYTES, GroupedRows
from sotdd.inputs.items import Found
from sotdd.inputs.loaders.arrow_columns import ArrowTexts, arrow, block_of, dtype_of, kind_of, kinds_of, labels_of
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.reading import reading
from sotdd.inputs.settings import Settings
from sotdd.inputs.spool import Spool

_EXPECTED = "a Parquet file"

# Rows read at a time from row groups that are too large to hold.
_BATCH_ROWS = 4096


def open_parquet(paths: Sequence[Path], name: str, settings: Settings) -> Found:
    """Open files of one schema as one dataset; nothing but labels is read."""
    settings.refuse("Parquet files have no splits and hold no image files", "split", "broken")
    require("pyarrow", "reading Parquet files", "'sotdd[inputs]'")
    files = [_File.of(path) for path in paths]
    columns = Columns.choose(kinds_of(files[0].schema), settings, name)
    for file in files[1:]:
        file.refuse_other_columns(files[0], columns)
    labels = None
    if columns.label is not None:
        with reading(name, _EXPECTED):
            labels = labels_of([file.column(columns.label) for file in files], name)
    if columns.kind == "text":
        parts = [chunk for file in files for chunk in file.column(columns.features[0]).chunks]
        return Found(ArrowTexts(arrow().chunked_array(parts, type=parts[0].type), name), labels)
    return Found(_features(files, columns, name), labels, columns=columns.names)


@dataclass(frozen=True, eq=False)
class _File:
    """A file and what its footer says."""

    path: Path
    metadata: Any
    schema: Any

    @classmethod
    def of(cls, path: Path) -> _File:
        with reading(path, _EXPECTED), _opened(path) as file:
            return cls(path, file.metadata, file.schema_arrow)

    def refuse_other_columns(self, first: _File, columns: Columns) -> None:
        """Every file needs the columns that are read, of the same kind."""
        for column in columns.all:
            if column not in self.schema.names:
                raise SotddError(f"{self.path} has no column {column!r}, which {first.path} has: expected one schema.")
            kinds = [file.schema.field(column).type for file in (self, first)]
            if kind_of(kinds[0]) != kind_of(kinds[1]):
                raise SotddError(
                    f"column {column!r} is {kinds[0]} in {self.path} but {kinds[1]} in {first.path}: expected one type."
                )

    def column(self, column: str) -> Any:  # noqa: ANN401  # Arrow is optional
        """One column, whole."""
        with reading(self.path, _EXPECTED), _opened(self.path, self.metadata) as file:
            return file.read(columns=[column], use_threads=False).column(column)

    def group(self, number: int, columns: Columns) -> Any:  # noqa: ANN401
        """The features of one row group; every call has a reader of its own, so that threads do not meet."""
        with reading(self.path, _EXPECTED), _opened(self.path, self.metadata) as file:
            return file.read_row_group(number, columns=list(columns.features), use_threads=False)

    def batches(self, columns: Columns) -> Iterator[Any]:
        """All features, some rows at a time."""
        with reading(self.path, _EXPECTED), _opened(self.path, self.metadata) as file:
            yield from file.iter_batches(_BATCH_ROWS, columns=list(columns.features), use_threads=False)

    @property
    def sizes(self) -> list[int]:
        """How many rows each row group has."""
        return [self.metadata.row_group(number).num_rows for number in range(self.metadata.num_row_groups)]


def _opened(path: Path, metadata: Any = None) -> Any:  # noqa: ANN401  # Arrow is optional
    parquet = require("pyarrow.parquet", "reading Parquet files", "'sotdd[inputs]'")
    # Without buffers ahead of time a row group is decoded page by page.
    return parquet.ParquetFile(path, metadata=metadata, pre_buffer=False, buffer_size=1 << 20)


def _features(files: Sequence[_File], columns: Columns, name: str) -> Any:  # noqa: ANN401  # an array or rows of a file
    """Rows that are read by row group; by way of a temporary file where row groups are too large."""
    dtype = dtype_of([file.schema.field(column).type for file in files for column in columns.features])
    groups = [(file, number) for file in files for number in range(file.metadata.num_row_groups)]
    sizes = [size for file in files for size in file.sizes]
    if not sum(sizes):
        raise SotddError(f"{name} has no rows: expected at least one.")
    shape = _point_shape(next(file for file in files if sum(file.sizes)), columns, dtype, name)
    if max(sizes) * int(np.prod(shape)) * dtype.itemsize > HELD_BYTES:
        spool = Spool(name)
        for file in files:
            for batch in file.batches(columns):
                spool.add(block_of(batch, columns, dtype, str(file.path)))
        return spool.features()

    def decode(group: int) -> NDArray[Any]:
        file, number = groups[group]
        block = block_of(file.group(number, columns), columns, dtype, str(file.path))
        if block.shape[1:] != shape:
            raise SotddError(
                f"lists in {file.path} have shape {block.shape[1:]} but {shape} before: expected one length."
            )
        return block

    return GroupedRows(name, sizes, shape, dtype, decode)


def _point_shape(file: _File, columns: Columns, dtype: np.dtype[Any], name: str) -> tuple[int, ...]:
    """The shape of a point, found from the first rows."""
    if columns.kind == "numbers":
        return (len(columns.features),)
    first = next(batch for batch in file.batches(columns) if batch.num_rows)
    return block_of(first, columns, dtype, name).shape[1:]
