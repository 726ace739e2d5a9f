"""Parquet files: as one dataset that is read by row groups, and in batches of rows for streams and clusters.

Footers are read first, then whole columns, single row groups or batches of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, Unpack

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_count, describe
from sotdd.basics.errors import SotddError, require
from sotdd.basics.remarks import Remarks
from sotdd.basics.text import say_count
from sotdd.inputs.data import Dataset, Features, LabelledData
from sotdd.inputs.loaders.arrow import Column, Groups, Schema, Table, find_dtype, find_kind, find_kinds, make_block
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.origin import Origin
from sotdd.inputs.preparation import Gaps, Loaded, name_features
from sotdd.inputs.reading import Reading, ReadingSettings
from sotdd.inputs.row_groups import HELD_BYTES
from sotdd.inputs.sources import find_store, is_remote, list_parquet, reading_file
from sotdd.inputs.streamed import Spool

Paths: TypeAlias = "str | Path | Sequence[str | Path]"

_EXPECTED = "a Parquet file"
# Rows read at a time from row groups that are too large to hold.
_BATCH_ROWS = 4096
# This many footers are read at the same time: the files may be far away.
_READERS = 16
# The most rows of a batch.
BATCH_ROWS = 1 << 16
# Neighbouring row groups of a file are one piece of work until they have this many rows.
PIECE_ROWS = 1 << 18


def open_parquet(paths: Sequence[str], name: str, reading: Reading) -> Loaded:
    """Open files with the same columns as one dataset; only footers and labels are read."""
    reading.refuse("a Parquet file")
    groups = _RowGroups(paths)
    columns = groups.choose(reading, name)
    return groups.load(columns, groups.labels(columns, name), name)


@dataclass(frozen=True, eq=False)
class ParquetTable:
    """A file and what its footer says; the file is opened for every read, so that threads never share a reader."""

    path: str
    metadata: Any
    schema: Schema

    @classmethod
    def open(cls, path: str) -> ParquetTable:
        """Read the footer of a file."""
        with _open_file(path) as file:
            return cls(path, file.metadata, file.schema_arrow)

    @property
    def group_rows(self) -> list[int]:
        """How many rows each row group has."""
        return [self.metadata.row_group(group).num_rows for group in range(self.metadata.num_row_groups)]

    def group(self, group: int, columns: Sequence[str]) -> Table:
        """Some columns of one row group."""
        with _open_file(self.path, self.metadata) as file:
            return file.read_row_group(group, columns=list(columns), use_threads=False)

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
                raise SotddError(f"{self.path} has no column {column!r}, which {first.path} has: expected it in all.")
            own, other = (find_kind(table.schema.field(column).type) for table in (self, first))
            if own != other and (column not in left_out or own == "numbers"):
                raise SotddError(
                    f"column {column!r} holds {own} in {self.path} but {other} in {first.path}: expected one."
                )


def read_batches(path: str, groups: Sequence[int], columns: Sequence[str], rows: int) -> Iterator[Table]:
    """Some columns of some row groups, at most this many rows at a time."""
    with _open_file(path) as file:
        yield from file.iter_batches(rows, row_groups=list(groups), columns=list(columns), use_threads=False)


@contextmanager
def _open_file(path: str, metadata: Any = None) -> Iterator[Any]:  # noqa: ANN401  # pyarrow is optional
    """A reader of a file or URL, whose errors become one line."""
    parquet = require("pyarrow.parquet", "reading Parquet files", "'sotdd[inputs]'")
    with reading_file(path, _EXPECTED):
        system, inside = None, path
        if is_remote(path):
            system, inside = find_store(path)
        # Without buffers ahead of time a row group is decoded page by page.
        with parquet.ParquetFile(
            inside, filesystem=system, metadata=metadata, pre_buffer=False, buffer_size=1 << 20
        ) as file:
            yield file


class _RowGroups(Groups):
    """The row groups of files with the same columns."""

    def __init__(self, paths: Sequence[str]) -> None:
        with ThreadPoolExecutor(_READERS) as readers:
            self.tables = list(readers.map(ParquetTable.open, paths))
        self._groups = [(table, group) for table in self.tables for group in range(len(table.group_rows))]
        self.sizes = [rows for table in self.tables for rows in table.group_rows]
        self.schema = self.tables[0].schema

    def read(self, number: int, columns: Sequence[str]) -> Table:
        table, group = self._groups[number]
        return table.group(group, columns)

    def column(self, column: str) -> Iterator[Column]:
        """One column, a row group at a time; a file that lacks it is refused later."""
        for table in self.tables:
            if column in table.schema.names:
                with _open_file(table.path, table.metadata) as file:
                    for group in range(file.num_row_groups):
                        yield file.read_row_group(group, columns=[column], use_threads=False).column(column)

    def choose(self, reading: Reading, name: str, kinds: Any = None) -> Columns:  # noqa: ANN401  # none are given
        """The columns that are read of files, all of which must have them."""
        first = self.tables[0]
        columns = super().choose(reading, name, find_kinds(self.schema, first.path))
        for table in self.tables[1:]:
            table.refuse_other_columns(first, columns)
        return columns

    def has_gaps(self, columns: Sequence[str]) -> bool | None:
        found = [table.has_gaps(columns) for table in self.tables]
        return True if True in found else None if None in found else False

    def dtype(self, columns: Columns, gaps: bool) -> np.dtype[Any]:
        return np.result_type(*(find_dtype(table.schema, columns, gaps=gaps) for table in self.tables))

    def features(self, columns: Columns, dtype: np.dtype[Any], name: str) -> Features:
        """Rows that are read by row group, or from a temporary file where row groups are too large to hold."""
        grouped = super().features(columns, dtype, name)
        if max(self.sizes) * (grouped.size // len(grouped)) * dtype.itemsize <= HELD_BYTES:
            return grouped
        spool = Spool(name, gaps=True)
        for table in self.tables:
            for batch in read_batches(table.path, range(len(table.group_rows)), columns.features, _BATCH_ROWS):
                spool.add(make_block(batch, columns, dtype, table.path))
        return spool.features()


@dataclass(frozen=True)
class ParquetPiece:
    """Some row groups of one file, which can be read in batches any number of times.

    Attributes
    ----------
    path
        A path or a URL.
    groups
        The numbers of the row groups.
    n_points
        How many rows they have together.
    columns
        The columns that are read.
    batch_rows
        The most rows of a batch.
    missing
        "error" refuses rows in which a value is missing, "drop" leaves them out.
    """

    path: str
    groups: tuple[int, ...]
    n_points: int
    columns: Columns
    batch_rows: int = BATCH_ROWS
    missing: str = "error"

    @property
    def name(self) -> str:
        """The file, and which part of it."""
        first, last = self.groups[0], self.groups[-1]
        return f"{self.path} (row group{'' if first == last else 's'} {first}{'' if first == last else f'-{last}'})"

    def __iter__(self) -> Iterator[Dataset]:
        """Yield (features, labels), or features alone where there is no label column, with the names of the columns."""
        for table in read_batches(self.path, self.groups, self.columns.all, self.batch_rows):
            with reading_file(self.path, _EXPECTED):
                batch = make_batch(table, self.columns, self.path, self.missing)
            yield batch


@dataclass(frozen=True)
class ParquetBatches:
    """The rows of Parquet files in batches, in memory that does not grow with the files.

    They can be gone through any number of times, as `sotdd.sketch_stream` does.

    Attributes
    ----------
    pieces
        Row groups of the files, up to a few hundred thousand rows together.
    remarks
        What was decided about the columns.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, pyarrow, pyarrow.parquet, sotdd
    >>> from sotdd.inputs import ParquetBatches
    >>> rng = np.random.default_rng(0)
    >>> table = pyarrow.table({"a": rng.normal(size=900), "b": rng.normal(size=900), "y": np.arange(900) % 3})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pyarrow.parquet.write_table(table, pathlib.Path(folder) / "part-0.parquet")
    ...     batches = ParquetBatches.open(folder)
    ...     projections = sotdd.Projections.fit([next(iter(batches))], n_projections=64)
    ...     sotdd.sketch_stream(batches, projections)
    Sketch('stream': 900 points, 3 classes, 64 projections × 384 quantiles)
    """

    pieces: tuple[ParquetPiece, ...]
    remarks: Remarks = ()

    @classmethod
    def open(cls, source: Paths, *, batch_rows: int = BATCH_ROWS, **reading: Unpack[ReadingSettings]) -> ParquetBatches:
        """Open a file, a folder, a pattern such as ``"data/*.parquet"``, or several: footers are read.

        Parameters
        ----------
        source
            Paths, or URLs of files and folders in object stores, as pyarrow reads them. In a folder, the same
            files are read as by `open_dataset`: those named ``.parquet`` or ``.pq``, at any depth, except names
            that begin with a dot or an underscore.
        batch_rows
            The most rows of a batch.
        **reading
            ``features``, ``label``, ``exclude``, ``one_hot``, ``dates`` and ``missing``, as in `open_dataset`; the mean
            of a column is not known before all batches were read.
        """
        size = check_count(batch_rows, "batch_rows")
        settings = Reading.of(**reading)
        settings.refuse("batches of a Parquet file")
        if settings.missing == "mean":
            raise SotddError("is 'mean', which no batch knows: expected 'error' or 'drop'.", setting="missing")
        groups = _RowGroups(_files(source))
        tables = groups.tables
        columns = groups.choose(settings, tables[0].path)
        pieces: list[ParquetPiece] = []
        for table in tables:
            rows = table.group_rows
            pieces += [
                ParquetPiece(table.path, part, sum(rows[group] for group in part), columns, size, settings.missing)
                for part in _portions(rows)
            ]
        return cls(tuple(pieces), columns.origin.said)

    @property
    def n_points(self) -> int:
        """How many rows there are."""
        return sum(piece.n_points for piece in self.pieces)

    def __iter__(self) -> Iterator[Dataset]:
        """Yield (features, labels), or features alone where there is no label column."""
        for piece in self.pieces:
            yield from piece


def _portions(rows: Sequence[int]) -> list[tuple[int, ...]]:
    """Neighbouring row groups put together into pieces of work; those without rows are left out."""
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
    """The files that the paths mean, in an order that does not depend on the file system."""
    paths = [source] if isinstance(source, (str, Path)) else source
    if not isinstance(paths, Sequence) or not all(isinstance(path, (str, Path)) for path in paths):
        raise SotddError(f"source is {describe(source)}: expected a path of Parquet files, or a list of paths.")
    files = [file for path in paths for file in list_parquet(str(path))]
    if not files:
        where = ", ".join(map(str, paths))
        raise SotddError(f"there are no Parquet files in {where!r}: expected names that end in .parquet or .pq.")
    return files


class TableBatch(tuple[NDArray[Any], NDArray[Any]]):
    """(features, labels) of some rows of a table: a pair as any other, which also knows the names of its columns."""

    columns: tuple[str, ...] | None = None
    one_hot: Mapping[str, tuple[str, ...]] = MappingProxyType({})


def make_batch(table: Table, columns: Columns, name: str, missing: str = "error") -> Dataset:
    """Some rows of a table as a small dataset: (features, labels), or features alone where there is no label column.

    Rows in which a value is missing are refused, or left out with "drop".

    Examples
    --------
    >>> import pyarrow
    >>> from sotdd.inputs.loaders.columns import Columns
    >>> from sotdd.inputs.loaders.parquet import make_batch
    >>> table = pyarrow.table({"height": [1.5, 2.5], "width": [3, 4], "y": ["cat", "dog"]})
    >>> columns = Columns("y", ("height", "width"), "numbers")
    >>> features, labels = make_batch(table.to_batches()[0], columns, "pets")
    >>> features
    array([[1.5, 3. ],
           [2.5, 4. ]])
    """
    names = set(table.schema.names)
    for column in columns.all:
        if column not in names:
            raise SotddError(f"{name} has no column {column!r}: expected the columns {', '.join(columns.all)}.")
    # The table itself is asked: an empty frame's columns of Python objects do not say what they hold.
    kinds = {column: find_kind(table.schema.field(column).type) for column in columns.features}
    is_list = list(kinds.values()) == ["list"]
    turned = {*columns.dates, *(column for column, _ in columns.categories)}
    for column, kind in kinds.items():
        if kind != "numbers" and not is_list and column not in turned:
            raise SotddError(f"column {column!r} of {name} holds {kind}: expected numbers, or lists of them.")
    columns_read = replace(columns, kind="list" if is_list else "numbers")
    if missing == "drop" and columns.label is not None:
        table = table.filter(table.column(columns.label).is_valid())
    gaps = not is_list and any(table.column(column).null_count for column in columns.features)
    features = make_block(table, columns_read, find_dtype(table.schema, columns, gaps=gaps), name)
    labels = None if columns.label is None else _labels(table.column(columns.label), columns.label, name)
    if gaps or missing == "drop":
        found = Gaps.of(features, name_features(features, columns_read.names, columns.one_hot), name)
        if missing == "error":
            found.refuse(name)
        features = np.delete(features, found.rows, axis=0)
        labels = None if labels is None else np.delete(labels, found.rows)
    if labels is not None:
        batch = TableBatch((features, labels))
        batch.columns, batch.one_hot = columns_read.names, columns.one_hot
        return batch
    if columns_read.names is None or not len(features):
        return features
    return replace(LabelledData.of(features, name), columns=columns_read.names, origin=Origin(one_hot=columns.one_hot))


def _labels(column: Column, title: str, name: str) -> NDArray[Any]:
    if column.null_count:
        missing = say_count(column.null_count, "missing value", "missing values")
        raise SotddError(f"label column {title!r} of {name} has {missing}: drop those rows or name the class.")
    if find_kind(column.type) == "list":
        raise SotddError(f"label column {title!r} of {name} holds lists: expected one label per row.")
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    labels: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return labels
