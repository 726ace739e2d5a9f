"""Sketches of streams, in one pass where the classes fit and in two otherwise."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.basics.progress import Progress, Report, reporting
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.projections.recipe import Projections
from sotdd.sketches.builder import SketchBuilder, check_name
from sotdd.sketches.levels import QUANTILES, Levels, checked_levels
from sotdd.sketches.memory import memory_for
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.statistics import ClassesDoNotFit, ClassStatistics, opened_batch

# A batch is a small dataset: (features, labels), or features alone.
Batches: TypeAlias = "Iterable[Dataset] | Callable[[], Iterable[Dataset]]"

# Batches as labelled data, their columns in the order of the projections; None for one without points.
OpenedBatches: TypeAlias = Iterable[LabelledData | None]

_log = logging.getLogger("sotdd")


def sketch_stream(
    batches: Batches,
    projections: Projections,
    *,
    n_quantiles: int = QUANTILES,
    name: str = "stream",
    progress: Progress = None,
) -> Sketch:
    """Sketch data that come in batches, in memory that does not grow with their number.

    One pass is made where the classes fit (4 kB per class and projection, 256 MB together);
    otherwise two, which needs batches that can be iterated over twice. The log says which it was.

    Parameters
    ----------
    batches
        (features, labels) or features alone, one after another: a list, an object that can be iterated
        over again, or a function that returns an iterator. A generator can be read once only, so its
        classes must fit one pass.
    projections, n_quantiles, name
        As in `sotdd.sketch`.
    progress
        True for a bar, or a function of (points done, points in all). The second equals the first,
        since the size of a stream is not known.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> batches = [(rng.normal(size=(1000, 3)), rng.integers(2, size=1000)) for _ in range(5)]
    >>> projections = sotdd.Projections.fit([batches[0]], n_projections=64)
    >>> sotdd.sketch_stream(batches, projections)
    Sketch('stream': 5,000 points, 2 classes, 64 projections × 384 quantiles)
    """
    begin = _from_the_start(batches)
    return sketch_batches(
        lambda: (opened_batch(batch, None, projections) for batch in begin()),
        projections,
        once=isinstance(batches, Iterator),
        levels=checked_levels(n_quantiles),
        name=name,
        progress=progress,
    )


@memory_for("a stream and what is counted of it", "pass smaller batches, or fewer projections or n_quantiles")
def sketch_batches(
    begin: Callable[[], OpenedBatches],
    projections: Projections,
    *,
    once: bool = False,
    levels: Levels,
    name: str,
    progress: Progress,
) -> Sketch:
    """Sketch batches that are opened already; ``begin`` starts over with the first, unless they come ``once``."""
    with reporting(progress, f"Sketching {name}") as report:
        builder = SketchBuilder(projections)
        check_name(name)
        try:
            _add_all(builder, begin(), report)
        except ClassesDoNotFit as error:
            if once:
                raise SotddError(
                    f"{error} Or pass batches that can be gone over twice: a list, or a function that returns an "
                    "iterator."
                ) from error
            _log.info("sketching %s in two passes: its classes do not fit one", name)
            statistics = ClassStatistics(projections)
            _add_all(statistics, begin(), report)
            builder = SketchBuilder(projections, statistics)
            _add_all(builder, begin(), report)
        else:
            _log.info("sketched %s in one pass: %d classes", name, len(builder.statistics.counts))
        builder.levels = levels
        return builder.finish(name)


def _from_the_start(batches: Batches) -> Callable[[], Iterator[Dataset]]:
    """A function that iterates over the batches from the first, each time where that is possible."""
    if callable(batches):
        try:
            inspect.signature(batches).bind()
        except TypeError:
            raise SotddError("batches is a function that needs arguments: expected one without any.") from None
        except ValueError:  # some functions of other languages do not say what they take
            pass
        return lambda: _one_by_one(batches(), "what batches() returned")
    return lambda: _one_by_one(batches, "batches")


def _one_by_one(batches: Iterable[Dataset], what: str) -> Iterator[Dataset]:
    try:
        if not isinstance(batches, Iterable) or isinstance(batches, (str, bytes)) or hasattr(batches, "__dask_graph__"):
            raise TypeError
        return iter(batches)
    except TypeError:
        raise SotddError(
            f"{what} is {described(batches)}: expected a list or an iterator of (features, labels)."
        ) from None


def _add_all(collector: SketchBuilder | ClassStatistics, batches: OpenedBatches, report: Report) -> None:
    for batch in batches:
        if batch is not None:
            collector.add_opened(batch)
        report(collector.n_points, collector.n_points)
