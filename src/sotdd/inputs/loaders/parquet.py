"""Parquet files in batches of rows, for streams and clusters: pieces of work that can be read any number of times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, Unpack

from sotdd.basics.checks import check_count, describe
from sotdd.basics.errors import SotddError
from sotdd.basics.remarks import Remarks
from sotdd.inputs.agreement import arrange
from sotdd.inputs.data import LabelledData, Names
from sotdd.inputs.labels import NoRows
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.loaders.files import open_parquet_file, read_files, read_parquet
from sotdd.inputs.loaders.tables import load_batches, look_at
from sotdd.inputs.opening import complete
from sotdd.inputs.reading import Reading, ReadingSettings
from sotdd.inputs.sources import list_files, reading_file

Paths: TypeAlias = "str | Path | Sequence[str | Path]"

# The most rows of a batch.
BATCH_ROWS = 1 << 16
# Neighbouring row groups of a file are one piece of work until they have this many rows.
PIECE_ROWS = 1 << 18


@dataclass(frozen=True)
class BatchFeatures:
    """What batches of a table have in common: how columns are read, and which features they make.

    Attributes
    ----------
    columns
        The columns that are read.
    names
        The features, where these have names.
    reading
        How the table is read.
    """

    columns: Columns
    names: Names | None
    reading: Reading

    @classmethod
    def choose(cls, look: Any, name: str, reading: Reading) -> BatchFeatures:  # noqa: ANN401  # a table of Arrow's
        """Decide by a look at the first rows."""
        columns = Columns.choose(look, reading, name)
        first = complete(load_batches(look.to_batches(), columns, name, reading), name, reading)
        return cls(columns, first.columns, reading)

    def make_batch(self, table: Any, name: str) -> LabelledData | None:  # noqa: ANN401  # a record batch
        """Some rows of a table as a small dataset; None for no rows, or where all of them are left out."""
        if not table.num_rows:
            return None
        loaded = load_batches([table], self.columns, name, self.reading)
        try:
            data = complete(loaded, name, self.reading)
        except NoRows:
            return None
        return data if self.names is None else arrange(data, self.names)


class RowGroups(NamedTuple):
    """Some row groups of a file, by number, and how many rows they have together."""

    path: str
    groups: tuple[int, ...]
    n_points: int

    @property
    def name(self) -> str:
        """The file, and which part of it."""
        first, last = self.groups[0], self.groups[-1]
        return f"{self.path} (row group {first})" if first == last else f"{self.path} (row groups {first}-{last})"


@dataclass(frozen=True)
class ParquetBatches:
    """The rows of Parquet files in batches, in memory that does not grow with the files.

    They can be gone through any number of times, as `sotdd.sketch_stream` does. Which features there are is judged by
    the first rows.

    Attributes
    ----------
    parts
        Row groups of the files, up to a few hundred thousand rows together.
    features
        What is read of them.
    batch_rows
        The most rows of a batch.

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

    parts: tuple[RowGroups, ...]
    features: BatchFeatures
    batch_rows: int = BATCH_ROWS

    @classmethod
    def open(cls, source: Paths, *, batch_rows: int = BATCH_ROWS, **reading: Unpack[ReadingSettings]) -> ParquetBatches:
        """Open a file, a folder, a pattern such as ``"data/*.parquet"``, or several: footers and first rows are read.

        Parameters
        ----------
        source
            Paths, or URLs of files and folders in object stores, as pyarrow reads them. In a folder, the same
            files are read as by `open_dataset`: those named ``.parquet`` or ``.pq``, at any depth, except names
            that begin with a dot or an underscore.
        batch_rows
            The most rows of a batch.
        **reading
            ``features``, ``label``, ``exclude``, ``one_hot``, ``dates``, ``missing`` and ``na_values``, as in
            `open_dataset`; a value that is missing becomes the centre of the projections that its batch meets.
        """
        size = check_count(batch_rows, "batch_rows")
        settings = Reading.of(**reading)
        settings.refuse("batches of a Parquet file")
        files = _list_files(source)
        name = str(source) if isinstance(source, (str, Path)) else files[0]
        look, _ = look_at(read_files(files, read_parquet, "a Parquet file")(None), name)
        parts: list[RowGroups] = []
        for path in files:
            with reading_file(path, "a Parquet file"), open_parquet_file(path) as file:
                rows = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            parts += [RowGroups(path, part, sum(rows[group] for group in part)) for part in _list_portions(rows)]
        return cls(tuple(parts), BatchFeatures.choose(look, name, settings), size)

    @property
    def n_points(self) -> int:
        """How many rows there are."""
        return sum(part.n_points for part in self.parts)

    @property
    def remarks(self) -> Remarks:
        """What was decided about the columns."""
        return self.features.columns.origin.said

    @property
    def pieces(self) -> list[ParquetBatches]:
        """The parts one by one, which are pieces of work for a cluster."""
        return [replace(self, parts=(part,)) for part in self.parts]

    def __iter__(self) -> Iterator[LabelledData]:
        """Yield some rows at a time."""
        for part in self.parts:
            with reading_file(part.path, "a Parquet file"):
                for table in read_parquet(part.path, self.features.columns.all, part.groups, self.batch_rows):
                    batch = self.features.make_batch(table, part.path)
                    if batch is not None:
                        yield batch


def _list_portions(rows: Sequence[int]) -> list[tuple[int, ...]]:
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


def _list_files(source: Paths) -> list[str]:
    """The files that the paths mean, in an order that does not depend on the file system."""
    paths = [source] if isinstance(source, (str, Path)) else source
    if not isinstance(paths, Sequence) or not all(isinstance(path, (str, Path)) for path in paths):
        raise SotddError(f"source is {describe(source)}: expected a path of Parquet files, or a list of paths.")
    files = [file for path in paths for file in list_files(str(path))]
    if not files:
        where = ", ".join(map(str, paths))
        raise SotddError(f"there are no Parquet files in {where!r}: expected names that end in .parquet or .pq.")
    return files
