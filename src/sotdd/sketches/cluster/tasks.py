"""What workers do: go over one partition, and put together what others gathered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from sotdd.basics.errors import SotddError, require
from sotdd.inputs.loaders.batch_columns import BatchColumns
from sotdd.inputs.loaders.parquet_batches import BATCH_ROWS, ParquetPiece
from sotdd.projections.recipe import Projections
from sotdd.sketches.builder import SketchBuilder
from sotdd.sketches.counting import BINS
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.statistics import ClassesDoNotFit, ClassStatistics

Taker: TypeAlias = SketchBuilder | ClassStatistics


@dataclass(frozen=True, eq=False)
class Begin:
    """How every task begins.

    Attributes
    ----------
    projections, n_quantiles
        As in `sotdd.sketch`.
    most_bytes
        What a builder for one pass may take, since builders travel.
    first_of_two
        Whether statistics are what is gathered.
    statistics
        Of all the data, for the second of two passes.
    """

    projections: Projections
    n_quantiles: int
    most_bytes: int
    first_of_two: bool = False
    statistics: ClassStatistics | None = None

    def taker(self) -> Taker:
        """One that has taken nothing yet."""
        if self.first_of_two:
            return ClassStatistics(self.projections)
        return SketchBuilder(self.projections, self.statistics, n_quantiles=self.n_quantiles)

    def second(self, gathered: Gathered) -> Begin:
        """How the second of two passes begins, after the first."""
        assert isinstance(gathered.taker, ClassStatistics)
        return replace(self, first_of_two=False, statistics=gathered.taker)

    def check_size(self, taker: Taker) -> None:
        """Refuse a builder that is too large to travel."""
        if not isinstance(taker, SketchBuilder) or taker.passes == 2:
            return
        classes = len(taker.statistics.counts)
        if classes * self.projections.n_projections * BINS * 4 > self.most_bytes:
            raise ClassesDoNotFit(f"{classes:,} classes do not fit one pass.")


@dataclass(frozen=True, eq=False)
class Gathered:
    """What was taken from some partitions, and the name of the first."""

    taker: Taker
    name: str


@dataclass(frozen=True)
class Refusal:
    """Why a partition cannot be used: as a value, since a task that raises fills the logs of its worker."""

    message: str
    too_many_classes: bool = False


def gather(begin: Begin, source: object, name: str, columns: BatchColumns | None) -> Gathered | Refusal:
    """Go over one partition."""
    taker = begin.taker()
    try:
        for batch in _batches(source, name, columns):
            taker.add(batch)
            begin.check_size(taker)
    except ClassesDoNotFit as error:
        return Refusal(str(error), too_many_classes=True)
    except SotddError as error:
        # Errors of reading name the file themselves.
        said = str(error)
        return Refusal(said if getattr(source, "path", name) in said else f"{name}: {said}")
    return Gathered(taker, name)


def merge(begin: Begin, parts: Sequence[Gathered | Refusal]) -> Gathered | Refusal:
    """Put together what several have gathered; they are left as they are, since a task may run again."""
    taker: Any = begin.taker()
    first = parts[0]
    for part in parts:
        if isinstance(part, Refusal):
            return part
        try:
            taker.merge(part.taker)
            begin.check_size(taker)
        except ClassesDoNotFit as error:
            return Refusal(str(error), too_many_classes=True)
        except SotddError as error:
            return Refusal(f"{part.name} does not go with {first.name}: {error}")  # type: ignore[union-attr]
    return Gathered(taker, first.name)  # type: ignore[union-attr]  # a refusal has returned


def refusal_of(gathered: Gathered | Refusal) -> Refusal | None:
    """What is wrong, if anything, without the rest of it."""
    return gathered if isinstance(gathered, Refusal) else None


def finish(gathered: Gathered | Refusal, name: str) -> Sketch | Refusal:
    """The sketch of all that was gathered."""
    if isinstance(gathered, Refusal):
        return gathered
    assert isinstance(gathered.taker, SketchBuilder)
    try:
        return gathered.taker.finish(name)
    except SotddError as error:
        return Refusal(str(error))


def _batches(source: object, name: str, columns: BatchColumns | None) -> Iterable[Any]:
    """A partition in batches that are small datasets."""
    if isinstance(source, ParquetPiece):
        return source
    return [source] if columns is None else _frame_batches(source, name, columns)


def _frame_batches(frame: Any, name: str, columns: BatchColumns) -> Iterator[Any]:  # noqa: ANN401  # pandas is optional
    arrow = require("pyarrow", "sketching frames", "'sotdd[cluster]'")
    try:
        table = arrow.Table.from_pandas(frame[columns.all], preserve_index=False)
    except (arrow.ArrowException, KeyError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SotddError(f"{name} cannot be read as a table ({reason}): expected one type in each column.") from error
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        yield columns.batch(batch, name)
