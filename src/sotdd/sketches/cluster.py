"""Sketches made by the workers of a Dask cluster, where the data are: one task per partition, in one pass or two."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from sotdd.basics.checks import describe
from sotdd.basics.display import Progress, Report, report_progress
from sotdd.basics.errors import SotddError, require
from sotdd.inputs import ParquetBatches
from sotdd.inputs.loaders.parquet import BatchFeatures
from sotdd.inputs.loaders.tables import read_frame
from sotdd.inputs.reading import DEFAULTS, Reading
from sotdd.projections.recipe import Projections
from sotdd.sketches.builder import SketchBuilder, check_name
from sotdd.sketches.cluster_tasks import Client, Delayed, Partition, Pass, finish, get_result, merge_partitions
from sotdd.sketches.histograms import ClassesDoNotFit
from sotdd.sketches.quantiles import QUANTILES
from sotdd.sketches.recipe import Recipe
from sotdd.sketches.sketch import Sketch

__all__ = ["sketch"]

# How large a builder may become in one pass: about the size of a partition that would travel in its place.
ONE_PASS_BYTES = 128 << 20

Source = Any  # Dask's own types are not checked, since it is optional.

_log = logging.getLogger("sotdd")


def sketch(
    source: object,
    projections: Projections,
    client: Client = None,
    *,
    features: str | Sequence[str] | None = None,
    label: str | None = "auto",
    exclude: str | Sequence[str] | None = None,
    one_hot: bool | int = 20,
    dates: bool = False,
    missing: Literal["auto", "mean", "drop", "error"] = "auto",
    n_quantiles: int = QUANTILES,
    name: str = "data",
    progress: Progress = None,
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
    features
        Columns of numbers, or one column of lists of numbers; by default those of the projections, or all columns of
        numbers but the labels.
    label
        The column of labels, or None for one class. "auto" stands for the only column named label,
        labels, target, y or class.
    exclude, one_hot, dates
        As in `sotdd.open_dataset`; what columns hold is judged by the first rows, of a Dask DataFrame by those of its
        first partition.
    missing
        As in `sotdd.open_dataset`; a value that is missing becomes the centre of the projections.
    n_quantiles, name
        As in `sotdd.sketch`.
    progress
        True for a bar, or a function of (partitions done, partitions in all).

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
    reading = {
        "features": features, "label": label, "exclude": exclude, "one_hot": one_hot, "dates": dates,
        "missing": missing,
    }  # fmt: skip
    kept = SketchBuilder(projections, n_quantiles=n_quantiles).n_quantiles
    only_pass = Pass(projections, kept, ONE_PASS_BYTES)
    with _connect(client) as active, report_progress(progress, f"Sketching {name}") as report:
        partitions = _find_partitions(source, reading, active, projections.columns)
        if not partitions:
            raise SotddError("there are no points to sketch: the source has no rows.")
        try:
            made = _last_pass(active, _delay(only_pass), partitions, name, report)
        except ClassesDoNotFit:
            _log.info("sketching %s in two passes: its classes do not fit one", name)
            made = _two_passes(active, only_pass, partitions, name, report)
        else:
            _log.info("sketched %s in one pass: %d classes", name, len(made.classes))
    return replace(made, through=Recipe.of(projections))  # and makes arrays read-only, as they are not after travelling


@contextmanager
def _connect(client: Client) -> Iterator[Client]:
    """Yield this client, the current one, or one of a cluster of threads that lasts as long as the call."""
    distributed = require("distributed", "sotdd.sketches.cluster", "'sotdd[cluster]'")
    if client is None:
        try:
            client = distributed.Client.current()
        except ValueError:  # there is none
            with _start_threads() as own:
                yield own
            return
    if not isinstance(client, distributed.Client) or client.asynchronous or client.status != "running":
        state = client.status if isinstance(client, distributed.Client) else describe(client)
        raise SotddError(
            f"is {state}: expected a synchronous dask.distributed Client that is running, or None.", setting="client"
        )
    _refuse_other_versions(client)
    yield client


@contextmanager
def _start_threads() -> Iterator[Client]:
    """A cluster of threads in this process: data are not copied, and scripts need no ``__main__`` guard."""
    from distributed import Client, LocalCluster

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    _log.info("there is no Dask client: using %d threads of this process", cores)
    settings = {"processes": False, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}  # 0: any free port
    state = random.getstate()  # the scheduler draws from Python's random numbers
    try:
        with (
            LocalCluster(n_workers=1, threads_per_worker=cores, **settings) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            yield client
    finally:
        random.setstate(state)


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
    from distributed import Future

    if hasattr(source, "to_delayed") and hasattr(source, "_meta") and hasattr(source, "npartitions"):
        return _split_frame(source, reading, client, wanted)
    several = isinstance(source, (list, tuple)) and len(source) > 0
    if isinstance(source, (str, Path)) or (several and all(isinstance(part, (str, Path)) for part in source)):
        return _split_parquet(source, reading, client, wanted)
    if several and all(isinstance(part, (Batch, Future)) for part in source):
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
        features = get_result(looked, "reading the first partition")
        if features is not None:
            break
    if features is None:
        return []
    parts = frame[features.columns.all].to_delayed()
    return [Partition(f"partition {index}", part, features) for index, part in enumerate(parts)]


def _look_at(frame: Any, settings: Reading) -> BatchFeatures | SotddError | None:  # noqa: ANN401  # pandas is optional
    """What is read of a frame, judging by this partition of it; None where it is empty."""
    try:
        return None if not len(frame) else BatchFeatures.choose(read_frame(frame, "the frame"), "the frame", settings)
    except SotddError as error:
        return error


def _split_parquet(
    source: Source, reading: Mapping[str, Any], client: Client, wanted: tuple[str, ...] | None
) -> list[Partition]:
    """The footers are read by a worker, since the client may not have access to the files."""
    paths = [_make_absolute(path) for path in ([source] if isinstance(source, (str, Path)) else source)]
    found = get_result(client.submit(_find_pieces, paths, dict(reading), wanted, pure=False), "reading footers")
    return [Partition(piece.name, piece) for piece in found.pieces]


def _make_absolute(path: str | Path) -> str:
    """A path that means the same to a worker, which may run in another folder."""
    return str(path) if "://" in str(path) else str(Path(path).absolute())


def _find_pieces(
    source: list[str], reading: dict[str, Any], wanted: tuple[str, ...] | None
) -> ParquetBatches | SotddError:
    if reading["features"] is None and wanted is not None:
        with suppress(SotddError):  # what these files have instead is told where they meet the projections
            return ParquetBatches.open(source, **{**reading, "features": wanted})
    try:
        return ParquetBatches.open(source, **reading)
    except SotddError as error:
        return error


def _two_passes(client: Client, only_pass: Pass, partitions: list[Partition], name: str, report: Report) -> Sketch:
    from dask.delayed import delayed

    total = 2 * len(partitions)
    first = _delay(replace(only_pass, first_of_two=True))
    statistics = merge_partitions(client, first, partitions, lambda done, _: report(done, total))
    # The statistics stay in the cluster: the second pass depends on them, and a lost copy is made again.
    second = delayed(only_pass.follow, pure=False)(statistics)
    return _last_pass(client, second, partitions, name, lambda done, _: report(len(partitions) + done, total))


def _last_pass(client: Client, this_pass: Delayed, partitions: list[Partition], name: str, report: Report) -> Sketch:
    collected = merge_partitions(client, this_pass, partitions, report)
    made: Sketch = get_result(client.submit(finish, collected, name, pure=False), f"the sketch of {name}")
    return made


def _delay(this_pass: Pass) -> Delayed:
    """A pass as a task of its own, which any worker can repeat."""
    from dask.delayed import delayed

    return delayed(this_pass, name=f"sotdd-pass-{uuid4().hex[:8]}", traverse=False)
