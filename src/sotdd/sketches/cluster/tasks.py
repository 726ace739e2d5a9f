"""The tasks of workers: go over one partition, and merge what was collected from several.

A task returns the `SotddError` that it met instead of raising it, since a task that raises fills its worker's log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError, require
from sotdd.basics.text import counted
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.loaders.parquet_batches import BATCH_ROWS, ParquetPiece, batch_of
from sotdd.projections.recipe import Projections
from sotdd.sketches.builder import SketchBuilder
from sotdd.sketches.counting import BINS
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.statistics import ClassesDoNotFit, ClassStatistics

# What points are added to: counts for a sketch, or the statistics of a first pass.
Collector: TypeAlias = SketchBuilder | ClassStatistics


@dataclass(frozen=True, eq=False)
class Partition:
    """A part of the data that one task goes over.

    Attributes
    ----------
    name
        What messages call it.
    source
        Row groups of a Parquet file; or a Delayed or a Future of a frame or of a batch.
    columns
        The columns to read from a frame; None for other sources.
    missing
        What is done about rows of a frame in which a value is missing: "error" or "drop".
    """

    name: str
    source: object
    columns: Columns | None = None
    missing: str = "error"


@dataclass(frozen=True, eq=False)
class Pass:
    """What every task of one pass over the data needs to know.

    Attributes
    ----------
    projections, n_quantiles
        As in `sotdd.sketch`.
    most_bytes
        How large a builder may become in one pass, since builders travel between workers.
    first_of_two
        Whether this pass collects statistics.
    statistics
        The statistics of all the data, for the second of two passes.
    """

    projections: Projections
    n_quantiles: int
    most_bytes: int
    first_of_two: bool = False
    statistics: ClassStatistics | None = None

    def new_collector(self) -> Collector:
        """A collector without any points."""
        if self.first_of_two:
            return ClassStatistics(self.projections)
        return SketchBuilder(self.projections, self.statistics, n_quantiles=self.n_quantiles)

    def second(self, first: Collected) -> Pass:
        """The second of two passes, after the first."""
        assert isinstance(first.collector, ClassStatistics)
        return replace(self, first_of_two=False, statistics=first.collector)

    def check_size(self, collector: Collector) -> None:
        """Refuse a builder that is too large to travel."""
        if not isinstance(collector, SketchBuilder) or collector.passes == 2:
            return
        n_classes = len(collector.statistics.counts)
        if n_classes * self.projections.n_projections * BINS * 4 > self.most_bytes:
            raise ClassesDoNotFit(f"{counted(n_classes, 'class', 'classes')} do not fit one pass.")


@dataclass(frozen=True, eq=False)
class Collected:
    """What was collected from some partitions, and the name of the first."""

    collector: Collector
    name: str


def collect(
    this_pass: Pass, source: object, name: str, columns: Columns | None, missing: str = "error"
) -> Collected | SotddError:
    """Go over one partition."""
    collector = this_pass.new_collector()
    try:
        for batch in _batches(source, name, columns, missing):
            collector.add(batch)
            this_pass.check_size(collector)
    except SotddError as error:
        names_source = getattr(source, "path", name) in str(error)  # as errors of reading do
        return error if names_source else type(error)(f"{name}: {error}")
    return Collected(collector, name)


def merge(this_pass: Pass, parts: Sequence[Collected | SotddError]) -> Collected | SotddError:
    """Merge what was collected from several partitions into a new collector, since a task may run again."""
    collector: Any = this_pass.new_collector()
    names = []
    for part in parts:
        if isinstance(part, SotddError):
            return part
        names.append(part.name)
        try:
            collector.merge(part.collector)
            this_pass.check_size(collector)
        except SotddError as error:
            return type(error)(f"{part.name} does not go with {names[0]}: {error}")
    return Collected(collector, names[0])


def finish(collected: Collected, name: str) -> Sketch:
    """The sketch of everything collected."""
    assert isinstance(collected.collector, SketchBuilder)
    return collected.collector.finish(name)


def _batches(source: object, name: str, columns: Columns | None, missing: str) -> Iterable[Any]:
    """The batches of a partition."""
    if isinstance(source, ParquetPiece):
        return source
    return [source] if columns is None else _frame_batches(source, name, columns, missing)


def _frame_batches(frame: Any, name: str, columns: Columns, missing: str) -> Iterator[Any]:  # noqa: ANN401  # pandas is optional
    arrow = require("pyarrow", "sketching frames", "'sotdd[cluster]'")
    try:
        table = arrow.Table.from_pandas(frame[columns.all], preserve_index=False)
    except (arrow.ArrowException, KeyError, ValueError, TypeError) as error:
        raise SotddError(
            f"{name} cannot be read as a table ({first_line(error)}): expected one type in each column."
        ) from error
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        yield batch_of(batch, columns, name, missing)
