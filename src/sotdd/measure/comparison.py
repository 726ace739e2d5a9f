"""The comparison of two datasets: points are permuted between them, and one result says whether and where they differ.

`sotdd.test`, `sotdd.explain`, `sotdd check`, monitors and detectors all ask here. Everything that is learned from the
data (values of categories, scales, cuts, axes, cells) is learned from the pool of both, so the level is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sotdd.basics.display import Progress, report_progress
from sotdd.basics.randomness import check_seed
from sotdd.basics.remarks import Remark, Remarks
from sotdd.compute.comparison import remark_on_features
from sotdd.compute.run import choose_engine
from sotdd.inputs.data import LabelledData
from sotdd.inputs.sampling import sample_rows
from sotdd.inputs.streamed import StreamedFeatures
from sotdd.measure.changes import find_changes
from sotdd.measure.columns import Column, pool_columns
from sotdd.measure.dependence import remark_on_rows
from sotdd.measure.permutations import Permutations, Permuting
from sotdd.measure.shares import share_changes
from sotdd.measure.two_sample_result import TwoSampleTest
from sotdd.projections.drawing import Drawing
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scaler

# Fewer than for a distance: the projections are the same for the data and for all permutations, so their
# choice is no source of error here, and every one of them costs as much as all permutations together.
DRAWING = Drawing(n_projections=128)

# A dataset beside a small one is sampled to so many times its points, or this many if that is more: beyond that, all
# noise is the small one's own.
_ENOUGH_TIMES, _ENOUGH = 20, 1000

# Points farther than this many spreads are brought that near. They are a difference in any case, and their powers stay
# within float64.
_FARTHEST = 1e12


def compare_pair(
    pair: Sequence[LabelledData],
    fit: Callable[[Sequence[LabelledData]], tuple[Projections, list[LabelledData]]],
    how: Permuting,
    seed: int,
    *,
    remarks: Remarks | None = None,
    device: str = "auto",
    progress: Progress = None,
    with_shares: bool = False,
) -> TwoSampleTest:
    """Compare two datasets that share their features: the one path to whether, and where, they differ.

    ``fit`` makes projections for the rows that are compared, and brings their columns in its order. Remarks are on
    rows that seem to depend on each other, unless others are given. Shares of columns are measured if any changed, or
    in any case if they are asked for.
    """
    data, sampled = sample_datasets(pair, how.max_points, seed)
    enough = max(_ENOUGH, _ENOUGH_TIMES * min(part.n_points for part in data))
    data, thinned = sample_datasets(data, enough, seed)
    recipe, data = fit(data)
    recipe = recipe.evenly()
    near = [bring_near(part, recipe.scaler) for part in data]
    if remarks is None:
        remarks = tuple(remark.of(part.name) for part in pair for remark in remark_on_rows(part))
    said = (*sampled, *thinned, *remarks, *remark_on_features(near, recipe))
    columns = pool_columns(data) if how.statistic == "combined" else None
    with report_progress(progress, "Permuting") as report, choose_engine(device, near, recipe.n_projections) as engine:
        measured = Permutations(near, recipe, how, seed, engine, columns)
        found = measured.test(report)
    found = replace(found, remarks=said, changes=find_changes(measured, how.level, found.rejects(how.level)))
    if any(one is not other for one, other in zip(near, data, strict=True)):
        found = replace(found, far=_find_farthest(columns or []))
    if found.changes.changed or with_shares:
        found = replace(found, changes=share_changes(found.changes, data, recipe, how.p))
    return found


def _find_farthest(columns: Sequence[Column]) -> str:
    """The column with the largest value, and how large it is on either side."""
    ends = {
        one.name: [float(np.nanmax(np.abs(side), initial=0.0)) for side in one.split(one.numbers)]
        for one in columns
        if one.is_number
    }
    if not ends:
        return "values beyond all that a distance can hold"
    name = max(ends, key=lambda name: max(ends[name]))
    return f"{name} goes to {ends[name][0]:.4g} and {ends[name][1]:.4g}"


def split_seed(drawing: Mapping[str, Any], projections: Projections | None) -> tuple[int, dict[str, Any]]:
    """The seed as a number, for splits and samples; and settings to draw projections by it, unless some are given."""
    settings: dict[str, Any] = dict(drawing)
    seed = check_seed(settings.pop("seed", DRAWING.seed))
    return seed, settings if projections is not None else {**settings, "seed": seed}


def sample_datasets(data: Sequence[LabelledData], most: int | None, seed: int) -> tuple[list[LabelledData], Remarks]:
    """A random sample of each dataset that has more than so many points, and a remark on each sample."""
    found, remarks = [*data], []
    for place, part in enumerate(data):
        if most is not None and part.n_points > most:
            found[place] = part.take(sample_rows(part.n_points, most, seed))
            remarks.append(Remark("sampled", taken=most, n_points=part.n_points, name=part.name))
    return found, tuple(remarks)


def bring_near(data: LabelledData, scaler: Scaler | None) -> LabelledData:
    """A dataset with values however large brought within range: they are tested, not refused."""
    centre, scale = (0.0, 1.0) if scaler is None else (scaler.centre, scaler.scales)
    with np.errstate(over="ignore"):
        farthest = _FARTHEST / math.sqrt(data.n_features) * scale  # so that no projection is farther
        low, high = centre - farthest, centre + farthest
    for block in data.blocks():
        rows = data.rows(block)
        if (rows < low).any() or (rows > high).any():
            shape, cut = (data.n_points, data.n_features), lambda rows: np.clip(data.rows(rows), low, high, dtype=float)
            return replace(data, features=StreamedFeatures(data.name, shape, np.float64, cut))
    return data
