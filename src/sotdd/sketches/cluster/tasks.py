"""The tasks of workers: go over one partition, and merge what was collected from several."""

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


@dataclass(frozen=True)
class Refusal:
    """Why a partition cannot be used. A value, not an exception: a task that raises fills its worker's log."""

    message: str
    too_many_classes: bool = False


def collect(
    this_pass: Pass, source: object, name: str, columns: Columns | None, missing: str = "error"
) -> Collected | Refusal:
    """Go over one partition."""
    collector = this_pass.new_collector()
    try:
        for batch in _batches(source, name, columns, missing):
            collector.add(batch)
            this_pass.check_size(collector)
    except ClassesDoNotFit as error:
        return Refusal(str(error), too_many_classes=True)
    except SotddError as error:
        message = str(error)
        names_file = getattr(source, "path", name) in message  # as errors of reading do
        return Refusal(message if names_file else f"{name}: {message}")
    return Collected(collector, name)


def merge(this_pass: Pass, parts: Sequence[Collected | Refusal]) -> Collected | Refusal:
    """Merge what was collected from several partitions into a new collector, since a task may run again."""
    collector: Any = this_pass.new_collector()
    first = parts[0]
    for part in parts:
        if isinstance(part, Refusal):
            return part
        try:
            collector.merge(part.collector)
            this_pass.check_size(collector)
        except ClassesDoNotFit as error:
            return Refusal(str(error), too_many_classes=True)
        except SotddError as error:
            return Refusal(f"{part.name} does not go with {first.name}: {error}")  # type: ignore[union-attr]
    return Collected(collector, first.name)  # type: ignore[union-attr]  # a refusal has returned


def refusal_of(collected: Collected | Refusal) -> Refusal | None:
    """The refusal, if there is one, so that what was collected need not travel."""
    return collected if isinstance(collected, Refusal) else None


def finish(collected: Collected | Refusal, name: str) -> Sketch | Refusal:
    """The sketch of everything collected."""
    if isinstance(collected, Refusal):
        return collected
    assert isinstance(collected.collector, SketchBuilder)
    try:
        return collected.collector.finish(name)
    except SotddError as error:
        return Refusal(str(error))


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
