"""The work on a Dask cluster: go over one partition, and merge what was collected from several.

A task returns the `SotddError` that it met instead of raising it, since a task that raises fills its worker's log. What
tasks collect is merged in a tree that grows as partitions finish.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias
from uuid import uuid4

from sotdd.basics.checks import first_line
from sotdd.basics.display import Report
from sotdd.basics.errors import SotddError
from sotdd.inputs.loaders.parquet import BATCH_ROWS, BatchFeatures, ParquetPiece
from sotdd.inputs.loaders.tables import read_frame
from sotdd.projections.recipe import Projections
from sotdd.sketches.builder import SketchBuilder
from sotdd.sketches.histograms import check_classes
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.statistics import ClassStatistics

# This many are merged at a time: a worker holds that many and their sum.
_FAN_IN = 4
# Merges run before partitions, so that what was collected does not pile up.
_MERGE_PRIORITY = 10

# Dask's own types are not checked, since it is optional.
Client = Any
Delayed = Any
Future = Any

# What points are added to: counts for a sketch, or the statistics of a first pass.
Collector: TypeAlias = SketchBuilder | ClassStatistics
# What was collected from some partitions, and the name of the first.
Collected: TypeAlias = tuple[Collector, str]


@dataclass(frozen=True, eq=False)
class Partition:
    """A part of the data that one task goes over.

    Attributes
    ----------
    name
        What messages call it.
    source
        Row groups of a Parquet file; or a Delayed or a Future of a frame or of a batch.
    features
        What is read of a frame; None for other sources.
    """

    name: str
    source: object
    features: BatchFeatures | None = None


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

    def begin(self) -> Collector:
        """A collector without any points."""
        if self.first_of_two:
            return ClassStatistics(self.projections)
        return SketchBuilder(self.projections, self.statistics, n_quantiles=self.n_quantiles)

    def follow(self, first: Collected) -> Pass:
        """The second of two passes, after the first."""
        assert isinstance(first[0], ClassStatistics)
        return replace(self, first_of_two=False, statistics=first[0])

    def check_size(self, collector: Collector) -> None:
        """Refuse a builder that is too large to travel."""
        if not isinstance(collector, SketchBuilder) or collector.passes == 2:
            return
        check_classes(len(collector.statistics.counts), self.projections.n_projections, self.most_bytes)


def collect(
    this_pass: Pass, source: object, name: str, features: BatchFeatures | None = None
) -> Collected | SotddError:
    """Go over one partition, whose parts these are."""
    collector = this_pass.begin()
    batches: Iterable[Any] = source if isinstance(source, ParquetPiece) else [source]
    try:
        for batch in batches if features is None else _split_table(source, name, features):
            collector.add(batch)
            this_pass.check_size(collector)
    except SotddError as error:
        names_source = getattr(source, "path", name) in str(error)  # as errors of reading do
        return error if names_source else type(error)(f"{name}: {error}")
    return collector, name


def merge(this_pass: Pass, parts: Sequence[Collected | SotddError]) -> Collected | SotddError:
    """Merge what was collected from several partitions into a new collector, since a task may run again."""
    collector: Any = this_pass.begin()
    names = []
    for part in parts:
        if isinstance(part, SotddError):
            return part
        names.append(part[1])
        try:
            collector.merge(part[0])
            this_pass.check_size(collector)
        except SotddError as error:
            return type(error)(f"{part[1]} does not go with {names[0]}: {error}")
    return collector, names[0]


def finish(collected: Collected, name: str) -> Sketch:
    """The sketch of everything collected."""
    assert isinstance(collected[0], SketchBuilder)
    return collected[0].finish(name)


def _split_table(frame: Any, name: str, features: BatchFeatures) -> Iterator[Any]:  # noqa: ANN401  # pandas is optional
    for batch in read_frame(frame, name).to_batches(max_chunksize=BATCH_ROWS):
        made = features.make_batch(batch, name)
        if made is not None:
            yield made


# ------------------------------------------------------------------ the tree of merges


def get_result(future: Future, what: str) -> Any:  # noqa: ANN401  # what the task returned
    """The result of a task, or an error that says in one line why there is none."""
    try:
        result = future.result()
    except SotddError as error:
        raise SotddError(f"{what}: {error}") from None
    except Exception as error:  # the user's own task failed, its workers died, or the cluster is gone
        raise SotddError(f"{what} could not be computed ({type(error).__name__}: {first_line(error)}).") from error
    if isinstance(result, SotddError):  # which the task met
        raise result
    return result


def merge_partitions(client: Client, this_pass: Delayed, partitions: Sequence[Partition], report: Report) -> Future:
    """Go over all partitions and merge what was collected: a future of it, or the first error.

    ``this_pass`` is a delayed `Pass`.
    """
    tree = _Tree(client, this_pass, partitions)
    try:
        return tree.grow(report)
    except BaseException:
        # Released tasks that have not begun never will. Cancelling them instead can disconnect the client: the
        # scheduler does not expect a task to be cancelled together with one that it depends on.
        for future in tree.alive:
            future.release()
        raise


class _Tree:
    """Futures of what was collected; those on one worker are merged there first."""

    def __init__(self, client: Client, this_pass: Delayed, partitions: Sequence[Partition]) -> None:
        from distributed import as_completed

        self._client = client
        self._run_id = uuid4().hex[:8]
        self._this_pass = client.compute(this_pass)
        # Dask would run partitions where this is, so every worker gets a copy. It only affects which worker does
        # what: a failure, such as a worker that dies meanwhile, does no harm.
        with suppress(Exception):
            client.replicate([self._this_pass])
        tasks = [self._task(partition, index) for index, partition in enumerate(partitions)]
        leaves = client.compute(tasks)
        self._names = {leaf.key: partition.name for leaf, partition in zip(leaves, partitions, strict=True)}
        self.alive = {self._this_pass, *leaves}
        self._queue = as_completed(leaves, loop=client.loop)
        self._loose: dict[str, list[Future]] = defaultdict(list)
        self._merges = 0

    def grow(self, report: Report) -> Future:
        """Wait for partitions and merge them, until one future is left."""
        done = 0
        for finished in self._queue.batches():
            for future in finished:
                self._check(future)
            holders = self._client.who_has(finished)
            for future in finished:
                self._loose[(holders.get(future.key) or ("",))[0]].append(future)
            if leaves := sum(future.key in self._names for future in finished):
                done += leaves
                report(done, len(self._names))
            for loose in self._loose.values():
                while len(loose) >= _FAN_IN:
                    self._queue.add(self._merge(loose[:_FAN_IN]))
                    del loose[:_FAN_IN]
        left = [future for loose in self._loose.values() for future in loose]
        while len(left) > 1:
            left = [self._merge(left[start : start + _FAN_IN]) for start in range(0, len(left), _FAN_IN)]
        self._check(left[0])
        return left[0]

    def _check(self, future: Future) -> None:
        """Wait for a task, and raise what it met; what it collected stays where it is."""
        if future.exception() is not None or issubclass(future.type or object, SotddError):
            get_result(future, self._names.get(future.key, "a merge of partitions"))

    def _task(self, partition: Partition, index: int) -> Delayed:
        from dask.base import is_dask_collection
        from dask.delayed import delayed
        from distributed import Future as Running

        work = partial(collect, name=partition.name, features=partition.features)
        key = f"sotdd-partition-{self._run_id}-{index}"
        if is_dask_collection(partition.source) or isinstance(partition.source, Running):
            return delayed(work, pure=False)(self._this_pass, partition.source, dask_key_name=key)
        return delayed(partial(work, source=partition.source), pure=False)(self._this_pass, dask_key_name=key)

    def _merge(self, parts: list[Future]) -> Future:
        """A future of these parts merged; the parts themselves are no longer kept."""
        if len(parts) == 1:
            return parts[0]
        self._merges += 1
        key = f"sotdd-merge-{self._run_id}-{self._merges}"
        future = self._client.submit(merge, self._this_pass, parts, key=key, priority=_MERGE_PRIORITY)
        self.alive -= set(parts)
        self.alive.add(future)
        return future
