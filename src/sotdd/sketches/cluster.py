"""Sketches made by the workers of a Dask cluster, where the data are: one task per partition, in one pass or two.

Tasks begin with a builder without points, which knows which pass it is. What they counted is merged as they finish.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Unpack
from uuid import uuid4

from sotdd.basics.checks import describe, first_line
from sotdd.basics.display import Progress, Report, report_progress
from sotdd.basics.errors import SotddError, require
from sotdd.inputs import ParquetBatches
from sotdd.inputs.loaders.parquet import BATCH_ROWS, BatchFeatures
from sotdd.inputs.loaders.tables import read_frame
from sotdd.inputs.reading import DEFAULTS, Reading, ReadingSettings
from sotdd.projections.recipe import Projections
from sotdd.sketches.builder import SketchBuilder, check_name
from sotdd.sketches.histograms import ClassesDoNotFit
from sotdd.sketches.quantiles import QUANTILES
from sotdd.sketches.recipe import Recipe
from sotdd.sketches.sketch import Sketch

__all__ = ["sketch"]

# How large a builder may become in one pass: about the size of a partition that would travel in its place.
ONE_PASS_BYTES = 128 << 20
# This many are merged at a time: a worker holds that many and their sum.
_FAN_IN = 4
# Merges run before partitions, so that what was counted does not pile up.
_MERGE_PRIORITY = 10

# Dask's own types are not checked, since it is optional.
Source = Any
Client = Any
Future = Any

_log = logging.getLogger("sotdd")


class Partition(NamedTuple):
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


def sketch(
    source: object,
    projections: Projections,
    client: Client = None,
    *,
    n_quantiles: int = QUANTILES,
    name: str = "data",
    progress: Progress = None,
    **reading: Unpack[ReadingSettings],
) -> Sketch:
    """Sketch data of any size on a Dask cluster; only the sketch comes to the client.

    One pass is made over the data where the classes fit (4 kB per class and projection, 128 MB together);
    otherwise two. The log says which it was. When a worker dies, others repeat its work.

    Parameters
    ----------
    source
        A Dask DataFrame; Parquet files as a path, a folder, a pattern such as ``"data/*.parquet"``, a
        URL or a list of these, which workers must be able to read; or a list of Delayed or Future batches,
        each ``(features, labels)`` or features alone. Delayed batches are computed again for a second pass
        and when a worker dies, and must come out the same.
    projections
        What the data are projected by, as in `sotdd.sketch`.
    client
        The client of any Dask cluster. By default the current one, or else threads of this process.
    n_quantiles, name
        As in `sotdd.sketch`.
    progress
        True for a bar, or a function of (partitions done, partitions in all).
    **reading
        ``features``, ``label``, ``exclude``, ``one_hot``, ``dates`` and ``missing`` as in `ParquetBatches.open`. By
        default features are the columns of the projections, where these have names. What columns hold is judged by the
        first rows, of a Dask DataFrame by those of its first partition.

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
    check_name(name)
    only = SketchBuilder(projections, n_quantiles=n_quantiles)
    only.most_bytes = ONE_PASS_BYTES
    with _connect(client) as active, report_progress(progress, f"Sketching {name}") as report:
        partitions = _find_partitions(source, reading, active, projections.columns)
        if not partitions:
            raise SotddError("there are no points to sketch: the source has no rows.")
        try:
            counted = _count(active, _begin(active, only), partitions, report)
            _log.info("sketched %s in one pass", name)
        except ClassesDoNotFit:
            _log.info("sketching %s in two passes: its classes do not fit one", name)
            done, total = len(partitions), 2 * len(partitions)
            first = _count(active, _begin(active, only.begin_first_pass()), partitions, lambda n, _: report(n, total))
            # The first pass stays in the cluster: the second depends on it, and a lost copy is made again.
            second = active.submit(SketchBuilder.begin_second_pass, first, pure=False)
            counted = _count(active, second, partitions, lambda n, _: report(done + n, total))
        finished = active.submit(SketchBuilder.finish, counted, name, pure=False)
        made: Sketch = _get_result(finished, f"the sketch of {name}")
    return replace(made, through=Recipe.of(projections))  # and makes arrays read-only, as they are not after travelling


@contextmanager
def _connect(client: Client) -> Iterator[Client]:
    """Yield this client, the current one, or one of a cluster of threads that lasts as long as the call."""
    distributed = require("distributed", "sotdd.sketches.cluster", "'sotdd[cluster]'")
    if client is None:
        try:
            client = distributed.Client.current()
        except ValueError:  # there is none: in threads of this process data are not copied, and scripts need no guard
            _log.info("there is no Dask client: using threads of this process")
            with distributed.Client(
                processes=False,
                n_workers=1,
                dashboard_address=":0",
                silence_logs=logging.CRITICAL,
                set_as_default=False,
            ) as own:
                yield own
            return
    if not isinstance(client, distributed.Client) or client.asynchronous or client.status != "running":
        state = client.status if isinstance(client, distributed.Client) else describe(client)
        raise SotddError(
            f"is {state}: expected a synchronous dask.distributed Client that is running, or None.", setting="client"
        )
    _refuse_other_versions(client)
    yield client


def _refuse_other_versions(client: Client) -> None:
    """Workers without this package, or with another version of it, would die of every task and restart for ever."""
    found = client.get_versions(packages=["sotdd"])
    versions = {part["packages"]["sotdd"] for part in (found["client"], found["scheduler"], *found["workers"].values())}
    if len(versions) > 1:
        told = ", ".join(sorted(map(str, versions)))
        raise SotddError(f"client, scheduler and workers have different versions of sotdd ({told}): install one.")


def _find_partitions(
    source: Source, reading: Mapping[str, Any], client: Client, wanted: tuple[str, ...] | None = None
) -> list[Partition]:
    """The partitions of a Dask DataFrame, of Parquet files, or of a list of delayed batches.

    ``reading`` says how tables are read, as `ParquetBatches.open` takes it. The ``wanted`` columns, which are those of
    the projections, are the features where none are named.
    """
    from dask.delayed import Delayed as Batch
    from distributed import Future as Running

    if hasattr(source, "to_delayed") and hasattr(source, "_meta") and hasattr(source, "npartitions"):
        return _split_frame(source, reading, client, wanted)
    several = isinstance(source, (list, tuple)) and len(source) > 0
    if isinstance(source, (str, Path)) or (several and all(isinstance(part, (str, Path)) for part in source)):
        return _split_parquet(source, reading, client, wanted)
    if several and all(isinstance(part, (Batch, Running)) for part in source):
        if Reading.of(**reading) != DEFAULTS:
            raise SotddError("features and label name columns: a batch is (features, labels) and needs neither.")
        return [Partition(f"batch {place}", part) for place, part in enumerate(source)]
    raise SotddError(
        f"is {describe(source)}: expected a Dask DataFrame, the path of Parquet files, or a list of delayed batches "
        "(features, labels); sotdd.sketch takes data in memory.",
        setting="source",
    )


def _split_frame(
    frame: Source, reading: Mapping[str, Any], client: Client, wanted: tuple[str, ...] | None
) -> list[Partition]:
    """What is read is decided by the first partition that has rows, where it is."""
    from dask.delayed import delayed

    settings = Reading.of(**reading)
    if settings.features is None and wanted is not None:
        settings = replace(settings, features=wanted)
    features: BatchFeatures | None = None
    for part in frame.to_delayed():
        looked = client.compute(delayed(_look_at, pure=False)(part, settings))
        features = _get_result(looked, "reading the first partition")
        if features is not None:
            break
    if features is None:
        return []
    parts = frame[features.columns.all].to_delayed()
    return [Partition(f"partition {index}", part, features) for index, part in enumerate(parts)]


def _look_at(frame: Source, settings: Reading) -> BatchFeatures | None:
    """What is read of a frame, judging by this partition of it; None where it is empty."""
    return None if not len(frame) else BatchFeatures.choose(read_frame(frame, "the frame"), "the frame", settings)


def _split_parquet(
    source: Source, reading: Mapping[str, Any], client: Client, wanted: tuple[str, ...] | None
) -> list[Partition]:
    """The footers are read by a worker, since the client may not have access to the files."""
    paths = [_make_absolute(path) for path in ([source] if isinstance(source, (str, Path)) else source)]
    found = _get_result(client.submit(_find_pieces, paths, dict(reading), wanted, pure=False), "reading footers")
    return [Partition(piece.parts[0].name, piece) for piece in found.pieces]


def _make_absolute(path: str | Path) -> str:
    """A path that means the same to a worker, which may run in another folder."""
    return str(path) if "://" in str(path) else str(Path(path).absolute())


def _find_pieces(source: list[str], reading: dict[str, Any], wanted: tuple[str, ...] | None) -> ParquetBatches:
    if reading.get("features") is None and wanted is not None:
        with suppress(SotddError):  # what these files have instead is told where they meet the projections
            return ParquetBatches.open(source, **{**reading, "features": wanted})
    return ParquetBatches.open(source, **reading)


# ------------------------------------------------------------------ tasks


def count_partition(
    begin: SketchBuilder, name: str, source: Source, features: BatchFeatures | None = None
) -> SketchBuilder:
    """Go over one partition, whose parts these are."""
    builder = begin.renew()
    batches = source if isinstance(source, ParquetBatches) else [source]
    try:
        for batch in batches if features is None else _split_table(source, name, features):
            builder.add(batch)
    except SotddError as error:
        names_source = name.partition(" (row group")[0] in str(error)  # as errors of reading do
        raise error if names_source else type(error)(f"{name}: {error}") from None
    return builder


def merge_builders(begin: SketchBuilder, parts: Sequence[SketchBuilder]) -> SketchBuilder:
    """Merge what was counted in several partitions into a new builder, since a task may run again."""
    whole = begin.renew()
    for part in parts:
        whole.merge(part)
    return whole


def _split_table(frame: Source, name: str, features: BatchFeatures) -> Iterator[Any]:
    for batch in read_frame(frame, name).to_batches(max_chunksize=BATCH_ROWS):
        made = features.make_batch(batch, name)
        if made is not None:
            yield made


# ------------------------------------------------------------------ merging as partitions finish


def _get_result(future: Future, what: str) -> Any:  # noqa: ANN401  # what the task returned
    """The result of a task, or an error that says in one line why there is none."""
    try:
        return future.result()
    except SotddError:
        raise
    except Exception as error:  # the user's own task failed, its workers died, or the cluster is gone
        raise SotddError(f"{what} could not be computed ({type(error).__name__}: {first_line(error)}).") from error


def _begin(client: Client, builder: SketchBuilder) -> Future:
    """A builder without points as a task of its own, which any worker can repeat."""
    begin = client.submit(builder.renew, pure=False)
    # Dask would run partitions where this is, so every worker gets a copy. It only affects which worker does what: a
    # failure, such as a worker that dies meanwhile, does no harm.
    with suppress(Exception):
        client.replicate([begin])
    return begin


def _count(client: Client, begin: Future, partitions: Sequence[Partition], report: Report) -> Future:
    """Go over all partitions and merge what was counted: a future of it, or the first error."""
    from dask.delayed import delayed

    run_id = uuid4().hex[:8]
    tasks = [
        delayed(count_partition, pure=False)(begin, *partition, dask_key_name=f"sotdd-partition-{run_id}-{index}")
        for index, partition in enumerate(partitions)
    ]
    leaves = client.compute(tasks)
    names = {leaf.key: partition.name for leaf, partition in zip(leaves, partitions, strict=True)}
    alive = set(leaves)
    del leaves, tasks  # what was merged is no longer kept
    try:
        return _merge_all(client, begin, alive, names, report)
    except BaseException:
        # Released tasks that have not begun never will. Cancelling them instead can disconnect the client: the
        # scheduler does not expect a task to be cancelled together with one that it depends on.
        for future in alive:
            future.release()
        raise


def _merge_all(client: Client, begin: Future, alive: set[Future], names: Mapping[str, str], report: Report) -> Future:
    """Merge futures as they finish, those on one worker first, until one is left; ``alive`` has those not merged."""
    from distributed import as_completed

    queue, done = as_completed(alive, loop=client.loop), 0
    loose: dict[str, list[Future]] = defaultdict(list)  # by the worker that has them
    for finished in queue.batches():
        for future in finished:
            if future.status == "error":
                _get_result(future, names.get(future.key, "a merge of partitions"))
        holders = client.who_has(finished)
        for future in finished:
            loose[next(iter(holders.get(future.key) or ("",)))].append(future)
        if leaves := sum(future.key in names for future in finished):
            done += leaves
            report(done, len(names))
        if queue.is_empty() and all(len(held) < _FAN_IN for held in loose.values()):
            loose = defaultdict(list, {"": list(chain(*loose.values()))})
        for held in loose.values():
            if len(held) >= _FAN_IN or (queue.is_empty() and len(held) > 1):
                parts = held[:_FAN_IN]
                merged = client.submit(merge_builders, begin, parts, pure=False, priority=_MERGE_PRIORITY)
                alive.add(merged)
                alive.difference_update(parts)
                queue.add(merged)
                del held[:_FAN_IN], parts
    return alive.pop()
