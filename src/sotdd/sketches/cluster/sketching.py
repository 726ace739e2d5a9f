"""Sketches made by the workers of a Dask cluster: one task per partition, in one pass or two."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal
from uuid import uuid4

from sotdd.basics.checks import check_choice
from sotdd.basics.errors import SotddError, require
from sotdd.basics.progress import Progress, Report, reporting
from sotdd.projections.recipe import Projections
from sotdd.sketches.builder import SketchBuilder, check_name
from sotdd.sketches.cluster.clients import Client, Future, connected, result_of
from sotdd.sketches.cluster.reduction import Delayed, merged_partitions
from sotdd.sketches.cluster.sources import Partition, partitions_of
from sotdd.sketches.cluster.tasks import Pass, finish, refusal_of
from sotdd.sketches.levels import QUANTILES
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.statistics import ClassesDoNotFit

# How large a builder may become in one pass: about the size of a partition that would travel in its place.
ONE_PASS_BYTES = 128 << 20

_log = logging.getLogger("sotdd")


def sketch(
    source: object,
    projections: Projections,
    client: Client = None,
    *,
    features: str | Sequence[str] | None = None,
    label: str | None = "auto",
    exclude: str | Sequence[str] | None = None,
    one_hot: bool | int = False,
    dates: bool = False,
    missing: Literal["error", "drop"] = "error",
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
        As in `sotdd.open_dataset`; values of a Dask DataFrame are not known beforehand, so ``one_hot`` is for Parquet
        files.
    missing
        Whether rows in which a value is missing are refused, or left out with "drop".
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
    >>> sotdd.cluster.sketch(batches, projections)
    Sketch('data': 3,000 points, 2 classes, 64 projections × 384 quantiles)
    """
    require("dask", "sotdd.cluster", "'sotdd[cluster]'")
    check_name(name)
    reading = {
        "features": features, "label": label, "exclude": exclude, "one_hot": one_hot, "dates": dates,
        "missing": check_choice(missing, "missing", ("error", "drop")),
    }  # fmt: skip
    kept = SketchBuilder(projections, n_quantiles=n_quantiles).n_quantiles
    only_pass = Pass(projections, kept, ONE_PASS_BYTES)
    with connected(client) as active, reporting(progress, f"Sketching {name}") as report:
        partitions = partitions_of(source, reading, active, projections.columns)
        if not partitions:
            raise SotddError("there are no points to sketch: the source has no rows.")
        try:
            made = _one_pass(active, only_pass, partitions, name, report)
        except ClassesDoNotFit:
            _log.info("sketching %s in two passes: its classes do not fit one", name)
            made = _two_passes(active, only_pass, partitions, name, report)
        else:
            _log.info("sketched %s in one pass: %d classes", name, len(made.classes))
    return replace(made, projections=projections)  # and makes arrays read-only, which they are not after travelling


def _one_pass(client: Client, only_pass: Pass, partitions: list[Partition], name: str, report: Report) -> Sketch:
    collected = merged_partitions(client, _delayed(only_pass), partitions, report)
    return _finished(client, collected, name)


def _two_passes(client: Client, only_pass: Pass, partitions: list[Partition], name: str, report: Report) -> Sketch:
    from dask.delayed import delayed

    total = 2 * len(partitions)
    first = _delayed(replace(only_pass, first_of_two=True))
    statistics = merged_partitions(client, first, partitions, lambda done, _: report(done, total))
    result_of(client.submit(refusal_of, statistics, pure=False), "the first pass")
    # The statistics stay in the cluster: the second pass depends on them, and a lost copy is made again.
    second = delayed(only_pass.second, pure=False)(statistics)
    collected = merged_partitions(client, second, partitions, lambda done, _: report(len(partitions) + done, total))
    return _finished(client, collected, name)


def _delayed(this_pass: Pass) -> Delayed:
    """A pass as a task of its own, which any worker can repeat."""
    from dask.delayed import delayed

    return delayed(this_pass, name=f"sotdd-pass-{uuid4().hex[:8]}", traverse=False)


def _finished(client: Client, collected: Future, name: str) -> Sketch:
    made: Sketch = result_of(client.submit(finish, collected, name, pure=False), f"the sketch of {name}")
    return made
