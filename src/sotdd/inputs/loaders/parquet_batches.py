"""Rows of tables in batches of features and labels: of Parquet files, for streams, and piece by piece for a cluster."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_choice, check_count, described
from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.inputs.files import parquet_files, reading_parquet
from sotdd.inputs.loaders.arrow import Column, Table, block_of, dtype_of, kind_of
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.loaders.parquet import ParquetTable, parquet_columns, read_batches
from sotdd.inputs.missing_values import Gaps
from sotdd.inputs.origin import Origin, left_out_line
from sotdd.inputs.settings import AUTO, NOTHING_ASKED, checked_settings

_log = logging.getLogger("sotdd.inputs")

Paths: TypeAlias = "str | Path | Sequence[str | Path]"

# The most rows of a batch.
BATCH_ROWS = 1 << 16
# Neighbouring row groups of a file are one piece of work until they have this many rows.
PIECE_ROWS = 1 << 18


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
            with reading_parquet(self.path):
                batch = batch_of(table, self.columns, self.path, self.missing)
            yield batch


@dataclass(frozen=True)
class ParquetBatches:
    """The rows of Parquet files in batches, in memory that does not grow with the files.

    They can be gone through any number of times, as `sotdd.sketch_stream` does.

    Attributes
    ----------
    pieces
        Row groups of the files, up to a few hundred thousand rows together.

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

    @classmethod
    def open(
        cls,
        source: Paths,
        *,
        features: str | Sequence[str] | None = None,
        label: str | None = AUTO,
        batch_rows: int = BATCH_ROWS,
        exclude: str | Sequence[str] | None = None,
        one_hot: bool | int = False,
        dates: bool = False,
        missing: Literal["error", "drop"] = "error",
    ) -> ParquetBatches:
        """Open a file, a folder, a pattern such as ``"data/*.parquet"``, or several: footers are read.

        Parameters
        ----------
        source
            Paths, or URLs of files and folders in object stores, as pyarrow reads them. In a folder, the same
            files are read as by `open_dataset`: those named ``.parquet`` or ``.pq``, at any depth, except names
            that begin with a dot or an underscore.
        features
            Columns of numbers, or one of lists; by default all numbers but labels and ids, as in `open_dataset`.
        label
            The column of labels, or None for one class. "auto" stands for the only column named label,
            labels, target, y or class.
        batch_rows
            The most rows of a batch.
        exclude, one_hot, dates
            As in `open_dataset`.
        missing
            Whether rows in which a value is missing are refused, or left out with "drop".
        """
        size = check_count(batch_rows, "batch_rows")
        settings = checked_settings(
            {**NOTHING_ASKED, "features": features, "label": label, "exclude": exclude, "one_hot": one_hot}
            | {"dates": dates, "missing": check_choice(missing, "missing", ("error", "drop"))}
        )
        tables = ParquetTable.open_all(_files(source))
        first = tables[0]
        columns = parquet_columns(tables, settings, first.path)
        if columns.left_out:
            _log.info("%s: %s", first.path, left_out_line(dict(columns.left_out)))
        pieces: list[ParquetPiece] = []
        for table in tables:
            rows = table.group_rows
            pieces += [
                ParquetPiece(table.path, groups, sum(rows[group] for group in groups), columns, size, missing)
                for groups in _portions(rows)
            ]
        return cls(tuple(pieces))

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
        raise SotddError(f"source is {described(source)}: expected a path of Parquet files, or a list of paths.")
    files = [file for path in paths for file in parquet_files(str(path))]
    if not files:
        where = ", ".join(map(str, paths))
        raise SotddError(f"there are no Parquet files in {where!r}: expected names that end in .parquet or .pq.")
    return files


class TableBatch(tuple[NDArray[Any], NDArray[Any]]):
    """(features, labels) of some rows of a table: a pair as any other, which also knows the names of its columns."""

    columns: tuple[str, ...] | None = None
    one_hot: tuple[str, ...] = ()


def batch_of(table: Table, columns: Columns, name: str, missing: str = "error") -> Dataset:
    """Some rows of a table as a small dataset: (features, labels), or features alone where there is no label column.

    Rows in which a value is missing are refused, or left out with "drop".

    Examples
    --------
    >>> import pyarrow
    >>> from sotdd.inputs.loaders.columns import Columns
    >>> from sotdd.inputs.loaders.parquet_batches import batch_of
    >>> table = pyarrow.table({"height": [1.5, 2.5], "width": [3, 4], "y": ["cat", "dog"]})
    >>> columns = Columns("y", ("height", "width"), "numbers")
    >>> features, labels = batch_of(table.to_batches()[0], columns, "pets")
    >>> features
    array([[1.5, 3. ],
           [2.5, 4. ]])
    """
    names = set(table.schema.names)
    for column in columns.all:
        if column not in names:
            raise SotddError(f"{name} has no column {column!r}: expected the columns {', '.join(columns.all)}.")
    # The table itself is asked: an empty frame's columns of Python objects do not say what they hold.
    kinds = {column: kind_of(table.schema.field(column).type) for column in columns.features}
    is_list = list(kinds.values()) == ["list"]
    turned = {*columns.dates, *(column for column, _ in columns.categories)}
    for column, kind in kinds.items():
        if kind != "numbers" and not is_list and column not in turned:
            raise SotddError(f"column {column!r} of {name} holds {kind}: expected numbers, or lists of them.")
    columns_read = replace(columns, kind="list" if is_list else "numbers")
    if missing == "drop" and columns.label is not None:
        table = table.filter(table.column(columns.label).is_valid())
    gaps = not is_list and any(table.column(column).null_count for column in columns.features)
    features = block_of(table, columns_read, dtype_of(table.schema, columns, gaps=gaps), name)
    labels = None if columns.label is None else _labels(table.column(columns.label), columns.label, name)
    if gaps or missing == "drop":
        found = Gaps.of(features, columns_read.titles(int(np.prod(features.shape[1:], dtype=np.int64))), name)
        if missing == "error":
            found.refuse(name)
        features = np.delete(features, found.rows, axis=0)
        labels = None if labels is None else np.delete(labels, found.rows)
    one_hot = tuple(column for column, _ in columns.categories)
    if labels is not None:
        batch = TableBatch((features, labels))
        batch.columns, batch.one_hot = columns_read.names, one_hot
        return batch
    if columns_read.names is None or not len(features):
        return features
    return replace(LabelledData.of(features, name), columns=columns_read.names, origin=Origin(one_hot=one_hot))


def _labels(column: Column, title: str, name: str) -> NDArray[Any]:
    if column.null_count:
        missing = counted(column.null_count, "missing value", "missing values")
        raise SotddError(f"label column {title!r} of {name} has {missing}: drop those rows or name the class.")
    if kind_of(column.type) == "list":
        raise SotddError(f"label column {title!r} of {name} holds lists: expected one label per row.")
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    labels: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return labels
