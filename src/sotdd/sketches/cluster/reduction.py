"""One task per partition, and a tree of merges that grows as partitions finish."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import uuid4

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError
from sotdd.basics.progress import Report
from sotdd.sketches.cluster.tasks import Partition, collect, merge

# Dask's own types are not checked, since it is optional.
Client = Any
Delayed = Any
Future = Any

# This many are merged at a time: a worker holds that many and their sum.
_FAN_IN = 4
# Merges run before partitions, so that what was collected does not pile up.
_MERGE_PRIORITY = 10


def result_of(future: Future, what: str) -> Any:  # noqa: ANN401  # what the task returned
    """The result of a task, or an error that says in one line why there is none."""
    try:
        result = future.result()
    except SotddError as error:
        raise SotddError(f"{what}: {error}") from None
    except Exception as error:  # the user's own task failed, its workers died, or the cluster is gone
        raise SotddError(f"{what} could not be computed ({type(error).__name__}: {first_line(error)}).") from error
    if isinstance(result, SotddError):  # see `sotdd.sketches.cluster.tasks`
        raise result
    return result


def merged_partitions(client: Client, this_pass: Delayed, partitions: Sequence[Partition], report: Report) -> Future:
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
                    self._queue.add(self._merged(loose[:_FAN_IN]))
                    del loose[:_FAN_IN]
        left = [future for loose in self._loose.values() for future in loose]
        while len(left) > 1:
            left = [self._merged(left[start : start + _FAN_IN]) for start in range(0, len(left), _FAN_IN)]
        self._check(left[0])
        return left[0]

    def _check(self, future: Future) -> None:
        """Wait for a task, and raise what it met; what it collected stays where it is."""
        if future.exception() is not None or issubclass(future.type or object, SotddError):
            result_of(future, self._names.get(future.key, "a merge of partitions"))

    def _task(self, partition: Partition, index: int) -> Delayed:
        from dask.base import is_dask_collection
        from dask.delayed import delayed
        from distributed import Future as Running

        work = partial(collect, name=partition.name, columns=partition.columns, missing=partition.missing)
        key = f"sotdd-partition-{self._run_id}-{index}"
        if is_dask_collection(partition.source) or isinstance(partition.source, Running):
            return delayed(work, pure=False)(self._this_pass, partition.source, dask_key_name=key)
        return delayed(partial(work, source=partition.source), pure=False)(self._this_pass, dask_key_name=key)

    def _merged(self, parts: list[Future]) -> Future:
        """A future of these parts merged; the parts themselves are no longer kept."""
        if len(parts) == 1:
            return parts[0]
        self._merges += 1
        key = f"sotdd-merge-{self._run_id}-{self._merges}"
        future = self._client.submit(merge, self._this_pass, parts, key=key, priority=_MERGE_PRIORITY)
        self.alive -= set(parts)
        self.alive.add(future)
        return future
