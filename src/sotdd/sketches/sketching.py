"""Sketches of data: a dataset is projected and sorted once, for every later comparison.

Streams are counted instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from types import MappingProxyType
from typing import Any, TypeAlias, Unpack

import numpy as np

from sotdd.basics.errors import SotddError, describe
from sotdd.basics.resources import Progress, report_progress
from sotdd.compute.class_moments import MomentAccumulator
from sotdd.compute.distance import Distance
from sotdd.compute.engine import choose_engine
from sotdd.compute.estimators import Estimator
from sotdd.compute.resampling import Resampling
from sotdd.compute.slices import slice_datasets
from sotdd.inputs import open_dataset
from sotdd.inputs.data import Dataset, LabelledData, find_unlabelled, remark_position
from sotdd.inputs.reading import Reading, ReadingSettings, TableSettings
from sotdd.projections.projections import Projections
from sotdd.sketches.builder import SketchBuilder, adds_up, check_name
from sotdd.sketches.quantiles import QUANTILES, Levels, check_quantiles, fit_classes
from sotdd.sketches.saved_projections import SavedProjections, check_projections
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.uncertainty import find_halves, measure_loss, plan_halves

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
    progress: Progress = None,
    **reading: Unpack[ReadingSettings],
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
        million points is counted in fine bins rather than sorted, see `sketch_stream`, where its label law is moments
        and its classes fit.
    name
        What messages call it.
    device, progress
        As in `distance`.
    reading
        How data are read, as in `open_dataset`; ``max_points`` sketches a sample.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(5000, 3)), rng.integers(4, size=5000)
    >>> projections = sotdd.Projections.fit([(x, y)], n_projections=128)
    >>> sotdd.sketch((x, y), projections, n_quantiles=256, name="all")
    Sketch('all': 5,000 points, 4 classes, 128 projections × 256 quantiles)
    """
    projections = check_projections(projections)
    levels = None if n_quantiles is None else check_quantiles(n_quantiles)
    opened = projections.align(open_dataset(data, name=name, **reading))
    large = opened.n_points > _MOST_SORTED and str(device) in ("auto", "cpu")
    countable = fit_classes(len(opened.classes), projections.n_projections) and adds_up(projections)
    if levels is None or not (large and countable):
        return _sketch_sorted(opened, projections, levels, device, progress)
    size = max(1, _BATCH_VALUES // opened.n_features)
    parts = (slice(start, start + size) for start in range(0, opened.n_points, size))
    batches = (replace(opened, features=opened.features[part], codes=opened.codes[part]) for part in parts)
    return sketch_stream(batches, projections, n_quantiles=levels.count, name=opened.name, progress=progress)


def _sketch_sorted(
    data: LabelledData, projections: Projections, levels: Levels | None, device: str, progress: Progress
) -> Sketch:
    """The sketch of points that are sorted; None, or levels for as many points, keep every value."""
    exact = levels is None or data.n_points <= levels.count
    kept = Levels(data.n_points, smooth=False) if levels is None or exact else levels
    count = projections.n_projections
    quantiles, lost = np.empty((count, kept.count), np.float32), np.zeros((count, 3))
    terms, weights = np.empty((count, len(data.classes)), np.float32), np.ones(count)
    moments, halves = MomentAccumulator(projections), Resampling(plan_halves(data, projections))
    engine = choose_engine(device, [data], count)
    with report_progress(progress, f"Sketching {data.name}") as report, engine as active:
        for slices in slice_datasets(
            [data], projections, active, class_moments=True, unsorted=halves.n_projections, report=report
        ):
            moments.add(slices)
            halves.add(slices)
            here, (rows,) = slices.part, slices.rows
            quantiles[here] = active.average_parts(rows, kept.edges)
            terms[here], weights[here] = active.collect(slices.class_terms), slices.block.importance
            if not exact:
                # On the host: a walk along two functions is nothing for a device, and copies are faster than sorts.
                lost[here, :2] = measure_loss(active.fetch_rows(rows), quantiles[here], kept, active.workers.each)
    by_position = (data.columns is None) != (projections.columns is None)
    remarks = [remark_position(data.name, projections.columns is not None)] if by_position else []
    return Sketch(
        data.name,
        SavedProjections.of(projections),
        quantiles,
        exact,
        data.classes,
        data.counts,
        terms,
        weights,
        lost,
        (*find_unlabelled(data), *remarks),
        find_halves(halves, weights),
        next((found.narrow() for found in moments.result()), None),
    )


def sketch_stream(
    batches: Iterable[Dataset],
    projections: Projections,
    *,
    n_quantiles: int = QUANTILES,
    name: str = "stream",
    progress: Progress = None,
    **reading: Unpack[TableSettings],
) -> Sketch:
    """Sketch data that come in batches, in memory that does not grow with their number.

    The classes must fit: 4 kB per class and projection, 512 MB together.

    Parameters
    ----------
    batches
        (features, labels), features alone, or tables, one after another, in a list or from a generator. So
        ``pyarrow.dataset.dataset("data/").to_batches()`` reads files of any size.
    projections, n_quantiles, name
        As in `sotdd.sketch`.
    progress
        True for a bar, or a function of (points done, points in all). The second equals the first,
        since the size of a stream is not known.
    reading
        How tables are read, as in `open_dataset`: ``label``, ``exclude``, ``one_hot``, ``missing`` and ``na_values``.
        Their features are the columns of the projections, and a value that is missing becomes their centre.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> batches = [(rng.normal(size=(1000, 3)), rng.integers(2, size=1000)) for _ in range(5)]
    >>> projections = sotdd.Projections.fit([batches[0]], n_projections=64)
    >>> sotdd.sketch_stream(batches, projections)
    Sketch('stream': 5,000 points, 2 classes, 64 projections × 384 quantiles)
    """
    builder = SketchBuilder(projections, n_quantiles=n_quantiles)
    check_name(name)
    Reading.of(**reading).refuse("a stream")
    many = hasattr(batches, "__iter__") and getattr(batches, "ndim", 1) != 0
    if isinstance(batches, (str, bytes)) or not many or hasattr(batches, "__dask_graph__"):
        raise SotddError(
            f"is {describe(batches)}: expected (features, labels) in a list or from a generator.", setting="batches"
        )
    with report_progress(progress, f"Sketching {name}") as report:
        for batch in batches:
            builder.add_read(batch, None, reading)
            report(builder.n_points, builder.n_points)
    return builder.finish(name)


def compare_sketches(
    sources: Sequence[tuple[str, Comparable]],
    pairs: Sequence[tuple[int, int]],
    p: float,
    projections: Projections | None = None,
    *,
    estimator: Estimator = "controlled",
    device: str = "auto",
    progress: Progress = None,
    reading: Mapping[str, Any] = MappingProxyType({}),
) -> dict[tuple[int, int], Distance]:
    """Distances of some pairs of sketches and data; data are sketched the way the first sketch was.

    ``projections`` are those of the sketches where their file cannot say them, as with laws of one's own.
    """
    first = next(source for _, source in sources if isinstance(source, Sketch))
    if projections is not None:
        given = SavedProjections.of(projections)
        first.through.refuse_other(given, f"sketch {first.name!r} and the data")
    n_quantiles = None if first.exact else first.n_quantiles
    sketches = []
    for name, source in sources:
        if isinstance(source, Sketch):
            first.through.refuse_other(source.through, f"sketches {first.name!r} and {source.name!r}")
            sketches.append(source)
            continue
        opened = open_dataset(source, name=name, **reading)
        projections = projections or require_projections(first, opened)
        made = sketch(opened, projections, n_quantiles=n_quantiles, name=name, device=device, progress=progress)
        sketches.append(made)
    return {(i, j): sketches[i].distance(sketches[j], p, estimator=estimator) for i, j in pairs}


def read_sketch(source: Comparable) -> Comparable:
    """Load a path that names a sketch file; return anything else unchanged."""
    if isinstance(source, (str, PathLike)) and str(source).endswith(SUFFIX):
        return Sketch.load(source)
    return source


def require_projections(made: Sketch, data: LabelledData | None = None) -> Projections:
    """The projections of a sketch, to sketch these data through, or an error where they cannot be had or do not fit."""
    if data is not None:
        made.through.refuse_data(data)
    return made.through.require_projections(f"sketch {made.name!r}")
