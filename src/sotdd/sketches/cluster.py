"""Sketches made by the workers of a Dask cluster, where the data are: one task per partition.

Tasks are pure: a partition makes a builder, and a merge begins a new one. So Dask repeats what a dead worker held.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Unpack
from uuid import uuid4

from sotdd.basics.errors import SotddError, describe, first_line, require
from sotdd.basics.resources import Progress, Report, report_progress
from sotdd.inputs.reading import Reading, TableSettings
from sotdd.projections.projections import Projections
from sotdd.sketches.builder import SketchBuilder, check_name
from sotdd.sketches.quantiles import QUANTILES
from sotdd.sketches.saved_projections import SavedProjections
from sotdd.sketches.sketch import Sketch

__all__ = ["sketch"]

# This many are merged at a time: a worker holds that many and their sum.
_FAN_IN = 4

# Dask's own types are not checked, since it is optional.
Client = Any
Delayed = Any

_log = logging.getLogger("sotdd")


def sketch(
    source: object,
    projections: Projections,
    client: Client = None,
    *,
    n_quantiles: int = QUANTILES,
    name: str = "data",
    progress: Progress = None,
    **reading: Unpack[TableSettings],
) -> Sketch:
    """Sketch data of any size on a Dask cluster; only the sketch comes to the client.

    The classes must fit: 4 kB per class and projection, 512 MB together. When a worker dies, others repeat its work.

    Parameters
    ----------
    source
        A Dask DataFrame, such as ``dask.dataframe.read_parquet("s3://bucket/data")``; or a list of Delayed or Future
        batches, each ``(features, labels)``, features alone or a table. Batches are computed again when a worker
        dies, and must come out the same.
    projections
        What the data are projected by, as in `sotdd.sketch`.
    client
        The client of any Dask cluster. By default the current one, or else threads of this process.
    n_quantiles, name
        As in `sotdd.sketch`.
    progress
        True for a bar, or a function of (partitions done, partitions in all).
    **reading
        How tables are read, as in `sotdd.sketch_stream`.

    Examples
    --------
    >>> import dask, numpy as np, sotdd
    >>> def batch(seed):
    ...     rng = np.random.default_rng(seed)
    ...     return rng.normal(size=(1000, 3)), rng.integers(2, size=1000)
    >>> batches = [dask.delayed(batch)(seed) for seed in range(3)]
    >>> projections = sotdd.Projections.fit([batch(0)], n_projections=64)
    >>> sotdd.sketches.cluster.sketch(batches, projections)
    Sketch('data': 3,000 points, 2 classes, 64 projections × 384 quantiles)
    """
    require("dask", "sotdd.sketches.cluster", "'sotdd[cluster]'")
    from dask.delayed import delayed

    check_name(name)
    Reading.of(**reading).refuse("a stream")
    SketchBuilder(projections, n_quantiles=n_quantiles)  # refuses what cannot be counted before anything is sent
    partitions, run_id = _find_partitions(source), uuid4().hex[:8]
    begin = delayed(SketchBuilder, pure=False)(projections, n_quantiles=n_quantiles)
    counts = [
        delayed(count_partition, pure=False)(
            begin, f"partition {place}", part, reading, dask_key_name=f"sotdd-partition-{run_id}-{place}"
        )
        for place, part in enumerate(partitions)
    ]
    whole = counts
    while len(whole) > 1:
        groups = [whole[start : start + _FAN_IN] for start in range(0, len(whole), _FAN_IN)]
        whole = [delayed(merge_builders, pure=False)(begin, group) for group in groups]
    finished = delayed(SketchBuilder.finish, pure=False)(whole[0], name)
    active = _find_client(client)
    with report_progress(progress, f"Sketching {name}") as report, _one_line_errors(f"the sketch of {name}"):
        made: Sketch = (
            finished.compute(scheduler="threads") if active is None else _compute(active, finished, counts, report)
        )
    # This makes arrays read-only too, as they are not after travelling.
    return replace(made, through=SavedProjections.of(projections))


def _find_client(client: Client) -> Client:
    """The client that was passed, or the current one; None for threads of this process."""
    distributed = require("distributed", "sotdd.sketches.cluster", "'sotdd[cluster]'")
    if client is None:
        try:
            client = distributed.Client.current()
        except ValueError:
            _log.info("there is no Dask client: using threads of this process")
            return None
    if not isinstance(client, distributed.Client) or client.asynchronous or client.status != "running":
        state = client.status if isinstance(client, distributed.Client) else describe(client)
        raise SotddError(
            f"is {state}: expected a synchronous dask.distributed Client that is running, or None.", setting="client"
        )
    # Workers without this package, or with another version of it, would die of every task and restart for ever.
    found = client.get_versions(packages=["sotdd"])
    versions = {part["packages"]["sotdd"] for part in (found["client"], found["scheduler"], *found["workers"].values())}
    if len(versions) > 1:
        told = ", ".join(sorted(map(str, versions)))
        raise SotddError(f"client, scheduler and workers have different versions of sotdd ({told}): install one.")
    return client


def _find_partitions(source: Any) -> Sequence[Any]:  # noqa: ANN401  # anything
    """The partitions of a Dask DataFrame, or of a list of delayed batches."""
    from dask.delayed import Delayed as Batch
    from distributed import Future as Running

    if hasattr(source, "to_delayed") and hasattr(source, "npartitions"):
        frames: Sequence[Any] = source.to_delayed()
        return frames
    parts = source if isinstance(source, (list, tuple)) else ()
    if parts and all(isinstance(part, (Batch, Running)) for part in parts):
        return parts
    raise SotddError(
        f"is {describe(source)}: expected a Dask DataFrame, such as dask.dataframe.read_parquet(path), or a list of "
        "delayed batches (features, labels); sotdd.sketch takes data in memory.",
        setting="source",
    )


def count_partition(begin: SketchBuilder, name: str, source: Any, reading: Mapping[str, Any]) -> SketchBuilder:  # noqa: ANN401  # a batch
    """Count one partition, which errors call by this name."""
    builder = SketchBuilder(begin.projections, n_quantiles=begin.n_quantiles)
    try:
        return builder.add_read(source, None, reading)
    except SotddError as error:
        raise type(error)(f"{name}: {error}") from None


def merge_builders(begin: SketchBuilder, parts: Sequence[SketchBuilder]) -> SketchBuilder:
    """Merge what was counted in several partitions into a new builder, since a task may run again."""
    whole = SketchBuilder(begin.projections, n_quantiles=begin.n_quantiles)
    for part in parts:
        whole.merge(part)
    return whole


def _compute(client: Client, finished: Delayed, counts: Sequence[Delayed], report: Report) -> Any:  # noqa: ANN401  # what the task returns
    """The result of a task, telling how many partitions it has counted; or the first error, which stops the others."""
    from distributed import as_completed

    last, *futures = client.compute([finished, *counts])
    waiting = {future.key: (future, f"partition {place}") for place, future in enumerate(futures)}
    del futures  # what is done is let go, so that builders do not pile up
    try:
        for done, future in enumerate(as_completed([one for one, _ in waiting.values()], loop=client.loop), 1):
            if future.status == "error":
                with _one_line_errors(waiting[future.key][1]):
                    future.result()
            del waiting[future.key]
            report(done, len(counts))
        return last.result()
    finally:
        # Released tasks that have not begun never will. Cancelling them instead can disconnect the client: the
        # scheduler does not expect a task to be cancelled together with one that it depends on.
        for future in (last, *(one for one, _ in waiting.values())):
            future.release()


@contextmanager
def _one_line_errors(what: str) -> Iterator[None]:
    """Say in one line why something could not be computed."""
    try:
        yield
    except SotddError:
        raise
    except Exception as error:  # the user's own task failed, its workers died, or the cluster is gone
        raise SotddError(f"{what} could not be computed ({type(error).__name__}: {first_line(error)}).") from error
