"""Columns of Parquet files: footers are read first, then whole columns, single row groups or batches of rows.

Datasets (`parquet`) and batches for streams and clusters (`parquet_batches`) read their files this way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sotdd.basics.errors import SotddError, require
from sotdd.inputs.loaders.arrow_columns import Column, Schema, Table, kind_of
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.loaders.parquet_files import reading_parquet
from sotdd.inputs.origin import ID
from sotdd.inputs.reading import is_remote
from sotdd.inputs.remote import store_of

# This many footers are read at the same time: the files may be far away.
_READERS = 16


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
        left_out = [column for column, why in columns.left_out if column in names and why != ID]
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
