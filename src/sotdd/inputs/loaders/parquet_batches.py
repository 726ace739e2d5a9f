"""Parquet files in batches of rows: for streams on one machine, and piece by piece for a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from sotdd.basics.checks import check_count, described
from sotdd.basics.defaults import default
from sotdd.basics.errors import SotddError, require
from sotdd.inputs.data import Dataset
from sotdd.inputs.loaders.batch_columns import BatchColumns, Schema
from sotdd.inputs.loaders.parquet_files import parquet_files, reading_parquet

Paths: TypeAlias = "str | Path | Sequence[str | Path]"

# Rows read at a time.
BATCH_ROWS = 1 << 16
# Row groups that lie side by side in a file are one piece of work until they have so many rows.
PIECE_ROWS = 1 << 18
# Footers read at a time: they may be far away.
_READERS = 16


@dataclass(frozen=True)
class ParquetPiece:
    """Some row groups of one file, read in batches, over and over.

    Attributes
    ----------
    path
        A path or a URL.
    groups
        Which row groups.
    n_points
        How many rows they have.
    columns
        What is read of them.
    batch_rows
        How many rows at a time.
    """

    path: str
    groups: tuple[int, ...]
    n_points: int
    columns: BatchColumns
    batch_rows: int = BATCH_ROWS

    @property
    def name(self) -> str:
        """The file, and which part of it."""
        first, last = self.groups[0], self.groups[-1]
        return f"{self.path} (row group{'' if first == last else 's'} {first}{'' if first == last else f'-{last}'})"

    def __iter__(self) -> Iterator[Dataset]:
        """(features, labels), or features alone where there is no label column; with the names of their columns."""
        with _opened(self.path) as file:
            batches = file.iter_batches(
                self.batch_rows, row_groups=list(self.groups), columns=self.columns.all, use_threads=False
            )
            for batch in batches:
                yield self.columns.batch(batch, self.path)


@dataclass(frozen=True)
class ParquetBatches:
    """The rows of Parquet files in batches, over and over, in memory that does not grow with the files.

    Attributes
    ----------
    pieces
        Row groups, a few hundred thousand rows together where that can be.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, pyarrow, pyarrow.parquet, sotdd
    >>> from sotdd.inputs.loaders.parquet_batches import ParquetBatches
    >>> rng = np.random.default_rng(0)
    >>> table = pyarrow.table({"a": rng.normal(size=900), "b": rng.normal(size=900), "y": np.arange(900) % 3})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pyarrow.parquet.write_table(table, pathlib.Path(folder) / "part-0.parquet")
    ...     batches = ParquetBatches.open(folder)
    ...     projections = sotdd.Projections.fit([next(iter(batches))], n_projections=64)
    ...     sotdd.sketch_stream(batches, projections)
    Sketch('stream': 900 points, 3 classes, 64 projections × 512 quantiles)
    """

    pieces: tuple[ParquetPiece, ...]

    @classmethod
    def open(
        cls,
        source: Paths,
        *,
        features: str | Sequence[str] | None = None,
        label: str | None = default("label"),
        batch_rows: int = BATCH_ROWS,
    ) -> ParquetBatches:
        """Look at the footers of a file, a folder, a pattern such as ``"data/*.parquet"``, or several.

        Parameters
        ----------
        source
            Paths, or URLs of files and folders in object stores, as pyarrow reads them. Of a folder the files
            that `open_dataset` reads: those named ``.parquet`` or ``.pq`` in it and in folders below, unless a
            name begins with a dot or an underscore.
        features
            Columns of numbers, or one of lists; by default all columns but the labels.
        label
            The column of labels, or None for one class. By default the only column named label, labels,
            target, y or class.
        batch_rows
            How many rows at a time.
        """
        size = check_count(batch_rows, "batch_rows")
        require("pyarrow.parquet", "reading Parquet files", "'sotdd[cluster]'")
        paths = _files(source)
        with ThreadPoolExecutor(_READERS) as readers:
            footers = list(readers.map(_footer, paths))
        first = footers[0][0]
        columns = BatchColumns.choose(first, paths[0], features, label)
        pieces: list[ParquetPiece] = []
        for path, (schema, rows) in zip(paths, footers, strict=True):
            columns.refuse_other(schema, path, first, paths[0])
            if features is None:
                _refuse_other_features(columns, schema, path, paths[0])
            pieces += [
                ParquetPiece(path, groups, sum(rows[group] for group in groups), columns, size)
                for groups in _portions(rows)
            ]
        return cls(tuple(pieces))

    @property
    def n_points(self) -> int:
        """How many rows there are."""
        return sum(piece.n_points for piece in self.pieces)

    def __iter__(self) -> Iterator[Dataset]:
        """(features, labels), or features alone where there is no label column."""
        for piece in self.pieces:
            yield from piece


def _refuse_other_features(columns: BatchColumns, schema: Schema, path: str, first: str) -> None:
    """Where features are all columns but the labels, no file may have more than the first."""
    own = BatchColumns.choose(schema, path, None, columns.label)
    more = [column for column in own.features if column not in columns.features]
    if more:
        raise SotddError(f"{path} has a column {more[0]!r}, which {first} has not: name the features with features=.")


def _portions(rows: Sequence[int]) -> list[tuple[int, ...]]:
    """Row groups put together in their order; those without rows are left out."""
    portions: list[tuple[int, ...]] = []
    room = 0
    for group, count in enumerate(rows):
        if not count:
            continue
        if count > room:
            portions.append(())
            room = PIECE_ROWS
        portions[-1] = (*portions[-1], group)
        room -= count
    return portions


def _files(source: Paths) -> list[str]:
    """Files that are meant, in an order that does not depend on the file system."""
    if isinstance(source, (str, Path)):
        found = parquet_files(str(source))
    elif isinstance(source, Sequence) and source and all(isinstance(path, (str, Path)) for path in source):
        found = [path for part in source for path in parquet_files(str(part))]
    else:
        raise SotddError(f"source is {described(source)}: expected a path of Parquet files, or a list of paths.")
    if not found:
        where = source if isinstance(source, (str, Path)) else ", ".join(map(str, source))
        raise SotddError(f"there are no Parquet files in {where}: expected names that end in .parquet or .pq.")
    return found


def _footer(path: str) -> tuple[Schema, list[int]]:
    """The schema of a file, and how many rows its row groups have."""
    with _opened(path) as file:
        metadata = file.metadata
        return file.schema_arrow, [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    parquet = require("pyarrow.parquet", "reading Parquet files", "'sotdd[cluster]'")
    with reading_parquet(path):
        system, inside = None, path
        if "://" in path:
            system, inside = require("pyarrow.fs", "reading", "'sotdd[cluster]'").FileSystem.from_uri(path)
        # Without buffers ahead of time a row group is decoded page by page.
        with parquet.ParquetFile(inside, filesystem=system, pre_buffer=False, buffer_size=1 << 20) as file:
            yield file
