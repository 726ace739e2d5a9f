"""Sketches of streams: the number of passes is chosen by what fits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.basics.progress import Progress, Report, reporting
from sotdd.inputs.data import Dataset
from sotdd.projections.recipe import Projections
from sotdd.sketches.builder import SketchBuilder
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.statistics import ClassesDoNotFit, ClassStatistics

# A batch is a small dataset: (features, labels), or features alone.
Batches: TypeAlias = "Iterable[Dataset] | Callable[[], Iterable[Dataset]]"

_log = logging.getLogger("sotdd")


def sketch_stream(
    batches: Batches,
    projections: Projections,
    *,
    n_quantiles: int = 512,
    name: str = "stream",
    progress: Progress = None,
) -> Sketch:
    """Sketch data that come in batches, in memory that does not grow with their number.

    One pass is made where the classes fit (4 kB for each class and projection, 256 MB together);
    otherwise two, which takes batches that can be gone over again. Which it was is logged.

    Parameters
    ----------
    batches
        (features, labels) or features alone, one after another: a list, an object that can be iterated
        over again, or a function that returns an iterator. A generator goes by once, and must fit one
        pass.
    projections, n_quantiles, name
        As in `sotdd.sketch`.
    progress
        True for a bar, or a function of (points done, points in all; equal while that is not known).

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> batches = [(rng.normal(size=(1000, 3)), rng.integers(2, size=1000)) for _ in range(5)]
    >>> projections = sotdd.Projections.fit([batches[0]], n_projections=64)
    >>> sotdd.sketch_stream(batches, projections)
    Sketch('stream': 5,000 points, 2 classes, 64 projections × 512 quantiles)
    """
    begin = _again(batches)
    with reporting(progress, f"Sketching {name}") as report:
        builder = SketchBuilder(projections, n_quantiles=n_quantiles)
        try:
            _add_all(builder, begin(), report)
        except ClassesDoNotFit as error:
            if isinstance(batches, Iterator):
                raise SotddError(
                    f"{error} Or pass batches that can be gone over twice: a list, or a function that returns an "
                    "iterator."
                ) from error
            _log.info("sketching %s in two passes: its classes do not fit one", name)
            statistics = ClassStatistics(projections)
            _add_all(statistics, begin(), report)
            builder = SketchBuilder(projections, statistics, n_quantiles=n_quantiles)
            _add_all(builder, begin(), report)
        else:
            _log.info("sketched %s in one pass: %d classes", name, len(builder.statistics.counts))
        return builder.finish(name)


def _again(batches: Batches) -> Callable[[], Iterator[Dataset]]:
    """A function that begins with the first batch each time it can."""
    if callable(batches):
        return lambda: iter(batches())
    if not isinstance(batches, Iterable) or isinstance(batches, (str, bytes)):
        raise SotddError(f"batches is {described(batches)}: expected a list or an iterator of (features, labels).")
    return lambda: iter(batches)


def _add_all(taker: SketchBuilder | ClassStatistics, batches: Iterator[Dataset], report: Report) -> None:
    for batch in batches:
        taker.add(batch)
        report(taker.n_points, taker.n_points)
