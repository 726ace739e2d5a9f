"""Sketches made by the workers of a Dask cluster, where the data are: one task per partition, in one pass or two.

Tasks begin with a builder without points, which knows which pass it is. What they counted is merged as they finish.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Unpack
from uuid import uuid4

from sotdd.basics.checks import check_choice, describe, first_line
from sotdd.basics.display import Progress, Report, report_progress
from sotdd.basics.errors import SotddError, require
from sotdd.inputs import ParquetBatches
from sotdd.inputs.loaders.arrow import find_kind
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.loaders.parquet import BATCH_ROWS, ParquetPiece, make_batch
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
    split
        What makes batches of a frame; None for other sources.
    """

    name: str
    source: object
    split: Callable[..., Iterable[Any]] | None = None


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
        default features are the columns of the projections, where these have names. Values of a Dask DataFrame are not
        known beforehand, so ``one_hot`` is for Parquet files.

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
    check_choice(reading.get("missing", "error"), "missing", ("error", "drop"))
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
        return _split_frame(source, reading, wanted)
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


def _split_frame(frame: Source, reading: Mapping[str, Any], wanted: tuple[str, ...] | None) -> list[Partition]:
    arrow = require("pyarrow", "sketching frames", "'sotdd[cluster]'")
    try:
        schema = arrow.Schema.from_pandas(frame._meta, preserve_index=False)
    except (arrow.ArrowException, ValueError, TypeError, AttributeError) as error:
        raise SotddError(f"the columns of this frame cannot be read ({error}): expected a Dask DataFrame.") from error
    settings = Reading.of(**reading)
    settings.refuse("a Dask DataFrame, whose values are not known beforehand", "one_hot")
    if settings.features is None and wanted is not None and set(wanted) <= set(schema.names):
        settings = replace(settings, features=wanted)
    columns = Columns.choose({field.name: find_kind(field.type) for field in schema}, settings, "the frame")
    parts = frame[columns.all].to_delayed()
    split = partial(_split_table, columns=columns, missing=settings.missing)
    return [Partition(f"partition {index}", part, split) for index, part in enumerate(parts)]


def _split_parquet(
    source: Source, reading: Mapping[str, Any], client: Client, wanted: tuple[str, ...] | None
) -> list[Partition]:
    """The footers are read by a worker, since the client may not have access to the files."""
    paths = [_make_absolute(path) for path in ([source] if isinstance(source, (str, Path)) else source)]
    found = _get_result(client.submit(_find_pieces, paths, dict(reading), wanted, pure=False), "reading footers")
    return [Partition(piece.name, piece) for piece in found.pieces]


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
    begin: SketchBuilder, name: str, source: Source, split: Callable[..., Iterable[Any]] | None = None
) -> SketchBuilder:
    """Go over one partition, whose parts these are."""
    builder = begin.renew()
    batches = source if isinstance(source, ParquetPiece) else [source]
    try:
        for batch in batches if split is None else split(source, name):
            builder.add(batch)
    except SotddError as error:
        names_source = getattr(source, "path", name) in str(error)  # as errors of reading do
        raise error if names_source else type(error)(f"{name}: {error}") from None
    return builder


def merge_builders(begin: SketchBuilder, parts: Sequence[SketchBuilder]) -> SketchBuilder:
    """Merge what was counted in several partitions into a new builder, since a task may run again."""
    whole = begin.renew()
    for part in parts:
        whole.merge(part)
    return whole


def _split_table(frame: Source, name: str, columns: Columns, missing: str) -> Iterator[Any]:
    arrow = require("pyarrow", "sketching frames", "'sotdd[cluster]'")
    try:
        table = arrow.Table.from_pandas(frame[columns.all], preserve_index=False)
    except (arrow.ArrowException, KeyError, ValueError, TypeError) as error:
        raise SotddError(
            f"{name} cannot be read as a table ({first_line(error)}): expected one type in each column."
        ) from error
    for batch in table.to_batches(max_chunksize=BATCH_ROWS):
        yield make_batch(batch, columns, name, missing)


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
