"""Sketches of data: each dataset is projected and sorted once, for all comparisons to come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_count, described
from sotdd.basics.errors import SotddError
from sotdd.basics.progress import Progress, reporting
from sotdd.inputs import open_dataset
from sotdd.inputs.column_names import meets_by_position, taken_by_position
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.projections.recipe import Projections
from sotdd.results.distance import Distance
from sotdd.sketches.halves import Halving
from sotdd.sketches.sketch import Sketch, refuse_other_projections
from sotdd.sketches.streaming import sketch_stream

# What can be compared: data, or a sketch of data.
Comparable: TypeAlias = "Dataset | Sketch"

# What files of sketches are called by.
SUFFIX = ".sotdd"

# Rows of more points than this are not sorted whole, which takes 64 of them in memory at a time.
_MOST_SORTED = 1_000_000
_BATCH_VALUES = 1 << 22


def sketch(
    data: Dataset,
    projections: Projections,
    *,
    n_quantiles: int | None = 512,
    name: str | None = None,
    device: str = "auto",
    precision: Literal["float32", "tf32"] = "float32",
    progress: Progress = None,
) -> Sketch:
    """See a dataset through projections, and keep its quantile functions.

    Parameters
    ----------
    data
        A dataset, as in `distance`.
    projections
        What to see it through: `Projections.fit` on the datasets that will be compared, or on a
        sample of them, or on a reference that all agree on.
    n_quantiles
        How many numbers are kept of each projection: means over parts of equal probability. None
        keeps every value, as does a dataset with no more points than that. A dataset of more than a
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
    from sotdd.engines.choice import engine_for

    if not isinstance(projections, Projections):
        raise SotddError(f"projections is {described(projections)}: expected Projections.fit(...) or from_arrays(...).")
    projections.refuse_weighted("a sketch")
    kept = None if n_quantiles is None else check_count(n_quantiles, "n_quantiles")
    known = projections.aligned(open_dataset(data, name=name))
    if kept is not None and known.n_points > _MOST_SORTED and str(device) in ("auto", "cpu"):
        return sketch_stream(_Rows(known), projections, n_quantiles=kept, name=known.name, progress=progress)
    exact = kept is None or known.n_points <= kept
    quantiles = _room(projections.n_projections, known.n_points if kept is None or exact else kept)
    terms = np.empty((projections.n_projections, len(known.classes)), np.float32)
    lost = np.zeros((projections.n_projections, 3))
    engine = engine_for(device, [known], projections.n_projections, precision)
    with reporting(progress, f"Sketching {known.name}") as report, engine as active:
        halving = Halving(known, projections, active)
        for view in active.views([known], projections, unplaced=halving.seen):
            quantiles[view.part] = active.quantiles(view.rows[0], quantiles.shape[1])
            terms[view.part] = active.collect(view.terms)
            if not exact:
                lost[view.part, :2] = active.losses(view.rows[0], quantiles[view.part])
            report(view.part.stop, projections.n_projections)
        halves = halving.halves()
    met = meets_by_position(known, projections.columns)
    remarks = (taken_by_position(known.name, projections.columns is not None),) if met else ()
    return Sketch(
        known.name,
        quantiles,
        exact,
        known.classes,
        known.counts,
        terms,
        projections.recipe(),
        projections.fingerprint,
        projections.scaler,
        projections,
        lost,
        remarks,
        halves,
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a dataset in batches, over and over."""

    data: LabelledData

    def __iter__(self) -> Iterator[LabelledData]:
        size = max(1, _BATCH_VALUES // self.data.n_features)
        for start in range(0, self.data.n_points, size):
            rows = slice(start, start + size)
            yield replace(self.data, features=self.data.features[rows], codes=self.data.codes[rows])


def through_sketches(
    sources: Sequence[tuple[str, Comparable]],
    pairs: Sequence[tuple[int, int]],
    p: float,
    *,
    device: str = "auto",
    precision: Literal["float32", "tf32"] = "float32",
    progress: Progress = None,
) -> dict[tuple[int, int], Distance]:
    """Distances of some pairs of sketches and data; data are sketched as the first sketch was."""
    first = next(source for _, source in sources if isinstance(source, Sketch))
    kept = None if first.exact else first.n_quantiles
    seen = []
    for name, source in sources:
        if isinstance(source, Sketch):
            refuse_other_projections(first, source)
            seen.append(source)
            continue
        projections = drawable(first)
        seen.append(
            sketch(
                source, projections, n_quantiles=kept, name=name, device=device, precision=precision, progress=progress
            )
        )
    return {(i, j): seen[i].distance(seen[j], p) for i, j in pairs}


def read_sketch(source: Comparable) -> Comparable:
    """The sketch in a file of that kind; anything else as it is."""
    if isinstance(source, (str, PathLike)) and fspath(source).endswith(SUFFIX):
        return Sketch.load(fspath(source))
    return source


def drawable(known: Sketch) -> Projections:
    """The projections of a sketch, to see other data through, or an error where they are not to be had."""
    if known.projections is None:
        raise SotddError(
            f"the projections of sketch {known.name!r} cannot be drawn again from its file (laws of your own, given "
            "arrays, or other versions of libraries): sketch the data through the original projections first."
        )
    return known.projections


def _room(n_projections: int, n_values: int) -> NDArray[np.float32]:
    try:
        return np.empty((n_projections, n_values), np.float32)
    except (MemoryError, ValueError) as error:
        raise SotddError(
            f"a sketch of {n_projections:,} × {n_values:,} values does not fit in memory: give n_quantiles, such as "
            "512."
        ) from error
