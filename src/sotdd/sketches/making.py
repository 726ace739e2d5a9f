"""Sketches of data: a dataset is projected and sorted once, for every later comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from os import PathLike
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.basics.memory import beyond_memory
from sotdd.basics.progress import Progress, reporting
from sotdd.inputs import open_dataset
from sotdd.inputs.column_names import meets_by_position, taken_by_position
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.projections.recipe import Projections
from sotdd.results.distance import Distance
from sotdd.results.estimators import Estimator
from sotdd.sketches.comparing import refuse_other_projections
from sotdd.sketches.controls import Carrying
from sotdd.sketches.levels import QUANTILES, Levels, checked_levels
from sotdd.sketches.memory import memory_for
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.streaming import sketch_batches
from sotdd.sketches.uncertainty import Halving

# What can be compared: data, or a sketch of data.
Comparable: TypeAlias = "Dataset | Sketch"

# The suffix of sketch files.
SUFFIX = ".sotdd"

# Larger datasets are counted rather than sorted: sorting holds all points under 64 projections in memory at a time.
_MOST_SORTED = 1_000_000
# They are read in batches of this many values.
_BATCH_VALUES = 1 << 22


def sketch(
    data: Dataset,
    projections: Projections,
    *,
    n_quantiles: int | None = QUANTILES,
    name: str | None = None,
    device: str = "auto",
    precision: Literal["float32", "tf32"] = "float32",
    progress: Progress = None,
) -> Sketch:
    """Project a dataset, and keep its quantile functions.

    Parameters
    ----------
    data
        A dataset, as in `distance`.
    projections
        What to project it by: `Projections.fit` on the datasets that will be compared, on a sample of
        them, or on a reference that all parties agree on.
    n_quantiles
        How many numbers to keep of each projection: means over parts of probability. None keeps
        every value; so does any number where the dataset has no more points. A dataset of more than a
        million points is counted in fine bins rather than sorted, see `sketch_stream`.
    name
        What messages call it.
    device, precision, progress
        As in `distance`.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(5000, 3)), rng.integers(4, size=5000)
    >>> projections = sotdd.Projections.fit([(x, y)], n_projections=128)
    >>> sotdd.sketch((x, y), projections, n_quantiles=256, name="all")
    Sketch('all': 5,000 points, 4 classes, 128 projections × 256 quantiles)
    """
    if not isinstance(projections, Projections):
        raise SotddError(f"projections is {described(projections)}: expected Projections.fit(...) or from_arrays(...).")
    levels = None if n_quantiles is None else checked_levels(n_quantiles)
    return sketch_opened(open_dataset(data, name=name), projections, levels, device, precision, progress)


@memory_for("a sketch and the points it is made of", "use fewer n_quantiles, projections or points")
def sketch_opened(
    opened: LabelledData,
    projections: Projections,
    levels: Levels | None,
    device: str = "auto",
    precision: Literal["float32", "tf32"] = "float32",
    progress: Progress = None,
) -> Sketch:
    """Sketch a dataset that is opened already, sorted or counted as its size asks; None keeps every value."""
    data = projections.aligned(opened)
    if levels is None or data.n_points <= _MOST_SORTED or str(device) not in ("auto", "cpu"):
        return _sketch_sorted(data, projections, levels, device, precision, progress)
    return sketch_batches(lambda: _row_batches(data), projections, levels=levels, name=data.name, progress=progress)


def _sketch_sorted(
    data: LabelledData,
    projections: Projections,
    levels: Levels | None,
    device: str,
    precision: Literal["float32", "tf32"],
    progress: Progress,
) -> Sketch:
    """Sketch a dataset whose columns are in the order of the projections, sorting all its points at once."""
    from sotdd.engines.protocol import engine_for

    exact = levels is None or data.n_points <= levels.count
    kept = Levels(data.n_points, "even") if levels is None or exact else levels
    quantiles = _empty_rows(projections.n_projections, kept.count)
    terms = np.empty((projections.n_projections, len(data.classes)), np.float32)
    lost, weights = np.zeros((projections.n_projections, 3)), np.ones(projections.n_projections)
    engine = engine_for(device, [data], projections.n_projections, precision)
    with reporting(progress, f"Sketching {data.name}") as report, engine as active:
        halving, carrying = Halving(data, projections, active), Carrying(data, projections, active)
        for view in active.views([data], projections, degree=carrying.degree, before_sorting=halving.seen):
            quantiles[view.part] = active.quantiles(view.rows[0], kept.edges)
            terms[view.part] = active.collect(view.terms)
            weights[view.part] = view.block.importance
            carrying.seen(view)
            if not exact:
                lost[view.part, :2] = active.losses(view.rows[0], quantiles[view.part], kept.edges, kept.smooth)
            report(view.part.stop, projections.n_projections)
        halves, controls = halving.halves(weights), carrying.carried()
    by_position = meets_by_position(data, projections.columns)
    return Sketch(
        data.name,
        quantiles,
        exact,
        data.classes,
        data.counts,
        terms,
        projections.recipe(),
        projections.fingerprint,
        projections.scaler,
        projections,
        lost,
        (taken_by_position(data.name, projections.columns is not None),) if by_position else (),
        halves,
        "tails" if levels is None else levels.spacing,
        None if (weights == 1).all() else weights,
        projections.tilt,
        controls,
    )


def _row_batches(data: LabelledData) -> Iterator[LabelledData]:
    size = max(1, _BATCH_VALUES // data.n_features)
    for start in range(0, data.n_points, size):
        rows = slice(start, start + size)
        yield replace(data, features=data.features[rows], codes=data.codes[rows])


def through_sketches(
    sources: Sequence[tuple[str, Comparable]],
    pairs: Sequence[tuple[int, int]],
    p: float,
    *,
    estimator: Estimator = "auto",
    device: str = "auto",
    precision: Literal["float32", "tf32"] = "float32",
    progress: Progress = None,
) -> dict[tuple[int, int], Distance]:
    """Distances of some pairs of sketches and data; data are sketched the way the first sketch was."""
    first = next(source for _, source in sources if isinstance(source, Sketch))
    levels = None if first.exact else first.levels
    sketches = []
    for name, source in sources:
        if isinstance(source, Sketch):
            refuse_other_projections(first, source)
            sketches.append(source)
            continue
        projections = projections_of(first)
        opened = replace(source, name=name) if isinstance(source, LabelledData) else open_dataset(source, name=name)
        sketches.append(sketch_opened(opened, projections, levels, device, precision, progress))
    return {(i, j): sketches[i].distance(sketches[j], p, estimator=estimator) for i, j in pairs}


def read_sketch(source: Comparable) -> Comparable:
    """Load a path that names a sketch file; return anything else unchanged."""
    if isinstance(source, (str, PathLike)) and str(source).endswith(SUFFIX):
        return Sketch.load(source)
    return source


def projections_of(made: Sketch) -> Projections:
    """The projections of a sketch, to sketch other data through, or an error where they cannot be had."""
    if made.projections is None:
        raise SotddError(
            f"the projections of sketch {made.name!r} cannot be drawn again from its file (laws of your own, your "
            "own arrays, or other versions of libraries): sketch the data through the original projections first."
        )
    return made.projections


def _empty_rows(n_projections: int, n_values: int) -> NDArray[np.float32]:
    try:
        return np.empty((n_projections, n_values), np.float32)
    except (MemoryError, ValueError) as error:
        what = f"a sketch of {n_projections:,} × {n_values:,} values"
        raise beyond_memory(what, error, f"pass n_quantiles, such as {QUANTILES}") from error
