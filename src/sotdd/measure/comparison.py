"""The comparison of two datasets: points are permuted between them, and one result says whether and where they differ.

`sotdd.test`, `sotdd.explain`, `sotdd check`, monitors and detectors all ask here. Everything that is learned from the
data (values of categories, scales, cuts, axes, cells) is learned from the pool of both, so the level is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, get_args

import numpy as np

from sotdd.basics.checks import check_choice, check_count, check_level, check_order
from sotdd.basics.display import Progress, Report, report_progress
from sotdd.basics.errors import SotddError
from sotdd.basics.memory import check_fits
from sotdd.basics.randomness import check_seed
from sotdd.basics.remarks import Remark, Remarks
from sotdd.basics.text import say_count
from sotdd.compute.comparison import remark_on_features
from sotdd.compute.run import choose_engine
from sotdd.inputs.data import LabelledData
from sotdd.inputs.sampling import sample_rows
from sotdd.inputs.streamed import StreamedFeatures
from sotdd.measure.changes import find_changes
from sotdd.measure.columns import Column, pool_columns
from sotdd.measure.dependence import remark_on_rows
from sotdd.measure.distance import ORDER
from sotdd.measure.permutations import Permutations
from sotdd.measure.shares import FeatureShares, find_shares
from sotdd.measure.statistics import ORDERS, LabelNames, Statistic, describe_aspect
from sotdd.measure.two_sample_result import LEVEL, TwoSampleTest
from sotdd.projections.drawing import Drawing
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scaler

# Makes projections for two datasets, and puts their columns in its order.
Fit: TypeAlias = Callable[[Sequence[LabelledData]], tuple[Projections, list[LabelledData]]]

# Fewer than for a distance: the projections are the same for the data and for all permutations, so their
# choice is no source of error here, and every one of them costs as much as all permutations together.
DRAWING = Drawing(n_projections=128)

# Of many permutations these come first, and such a p-value ends the test: the others could change no verdict.
_LOOKS = ((39, 0.5), (99, 0.2))

# A larger dataset is sampled, unless another number is asked for; and one beside a small one to so many times its
# points, or this many if that is more: beyond that, all noise is the small one's own.
MOST_POINTS = 20_000
_ENOUGH_TIMES, _ENOUGH = 20, 1000

# Points farther than this many spreads are brought that near. They are a difference in any case, and their powers stay
# within float64.
_FARTHEST = 1e12


@dataclass
class Permuting:
    """How two datasets are compared: the settings of `test` that do not say how projections are drawn.

    Attributes
    ----------
    p, n_permutations, statistic, label_names, max_points
        As in `test`.
    level
        The level that decides, and at which columns are named.
    """

    p: float = ORDER
    n_permutations: int = 999
    statistic: Statistic = "combined"
    label_names: LabelNames = "ignore"
    max_points: int | None = MOST_POINTS
    level: float = LEVEL

    def __post_init__(self) -> None:
        """Check them."""
        self.p, self.n_permutations = check_order(self.p), check_count(self.n_permutations, "n_permutations")
        names = check_choice(self.label_names, "label_names", get_args(LabelNames))
        statistic = check_choice(self.statistic, "statistic", get_args(Statistic))
        if names == "match" and statistic != "combined":
            raise SotddError(f"label_names='match' is given with statistic={statistic!r}: only 'combined' sees names.")
        self.max_points = None if self.max_points is None else check_count(self.max_points, "max_points")
        self.level = check_level(self.level, such_as=0.05)


def compare_pair(
    pair: Sequence[LabelledData],
    fit: Fit,
    how: Permuting,
    seed: int,
    *,
    remarks: Remarks | None = None,
    device: str = "auto",
    progress: Progress = None,
    with_shares: bool = False,
) -> tuple[TwoSampleTest, FeatureShares | None]:
    """Compare two datasets that share their features: the one path to whether, and where, they differ.

    ``fit`` makes projections for the rows that are compared, and brings their columns in its order. Remarks are on
    rows that seem to depend on each other, unless others are given. Returns the shares of columns too, if any changed,
    or in any case if they are asked for.
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
        names, judged_by = how.label_names, how.statistic
        measured = Permutations(near, recipe, how.p, seed, engine, columns, label_names=names, judged_by=judged_by)
        found = replace(permute(measured, how.n_permutations, how.level, report), remarks=said)
    if any(one is not other for one, other in zip(near, data, strict=True)):
        found = replace(found, far=_find_farthest(columns or []))
    changes = found.changes
    if not (changes.changed or with_shares):
        return found, None
    shares = find_shares(data, recipe, how.p, changes)
    return replace(found, changes=changes.with_shares({one.name: one.share for one in shares})), shares


def _find_farthest(columns: Sequence[Column]) -> str:
    """The column with the largest value, and how large it is on either side."""
    ends = [
        [float(np.nanmax(np.abs(side), initial=0.0)) for side in one.split(one.numbers)]
        for one in columns
        if one.is_number
    ]
    names = [one.name for one in columns if one.is_number]
    if not ends:
        return "values beyond all that a distance can hold"
    (first, second), name = max(zip(ends, names, strict=True), key=lambda one: max(one[0]))
    return f"{name} goes to {first:.4g} and {second:.4g}"


def split_seed(drawing: Mapping[str, Any], projections: Projections | None) -> tuple[int, dict[str, Any]]:
    """The seed as a number, for splits and samples; and settings to draw projections by it, unless some are given."""
    settings: dict[str, Any] = dict(drawing)
    seed = check_seed(settings.pop("seed", DRAWING.seed))
    return seed, settings if projections is not None else {**settings, "seed": seed}


def sample_datasets(
    data: Sequence[LabelledData], max_points: int | None, seed: int
) -> tuple[list[LabelledData], Remarks]:
    """A random sample of each dataset that has more than ``max_points``, and a remark on each sample."""
    if max_points is None:
        return list(data), ()
    most = check_count(max_points, "max_points")
    result, remarks = [], []
    for part in data:
        if part.n_points <= most:
            result.append(part)
            continue
        result.append(part.take(sample_rows(part.n_points, most, seed)))
        remarks.append(Remark("sampled", taken=most, n_points=part.n_points, name=part.name))
    return result, tuple(remarks)


def bring_near(data: LabelledData, scaler: Scaler | None) -> LabelledData:
    """A dataset with values however large brought within range: they are tested, not refused."""
    centre, scale = (0.0, 1.0) if scaler is None else (scaler.centre, scaler.scales)
    with np.errstate(over="ignore"):
        farthest = _FARTHEST / math.sqrt(data.n_features) * scale  # so that no projection is farther
        low, high = (np.broadcast_to(centre + sign * farthest, data.n_features) for sign in (-1, 1))
    for block in data.blocks():
        rows = data.rows(block)
        if (rows < low).any() or (rows > high).any():
            shape, cut = (data.n_points, data.n_features), lambda rows: np.clip(data.rows(rows), low, high, dtype=float)
            return replace(data, features=StreamedFeatures(data.name, shape, np.float64, cut))
    return data


def permute(measured: Permutations, n_permutations: int, level: float, report: Report) -> TwoSampleTest:
    """Test two datasets through the same projections, as they are and with their points permuted.

    Of many permutations some come first, and the test may end with them: to end with a p-value that is far from small
    takes rejections away and adds none, so every level below 0.2 still holds.
    """
    count = measured.projections.n_projections
    what = f"{say_count(n_permutations, 'permutation')} through {say_count(count, 'projection')}"
    size = 8 * count * 2 * len(ORDERS) + sum(measured.plan.sizes)
    check_fits(n_permutations * size, what, "n_permutations", n_permutations)
    looks = [*(_LOOKS if n_permutations >= 400 else ()), (n_permutations, 0.0)]
    for look, settled in looks:
        measured.draw(1 + look, lambda done: report(done, 1 + n_permutations))
        found = _judge(measured, level)
        if found.p_value >= settled:
            break
    return found


def _judge(measured: Permutations, level: float) -> TwoSampleTest:
    """The test by the permutations that were measured."""
    distances, scores = measured.distances, measured.standardise()
    outstanding = np.max([*scores.values()], axis=0) if scores else np.zeros(len(distances))
    found = TwoSampleTest(
        distance=float(distances[0]),
        null_distances=distances[1:],
        statistic=float(outstanding[0]),
        null=outstanding[1:],
        judged_by=measured.judged_by,
        p=measured.p,
        n_points=measured.plan.sizes,
        n_projections=measured.projections.n_projections,
        fingerprint=measured.projections.fingerprint,
        aspects={name: describe_aspect(values) for name, values in scores.items()},
        strongest=max(scores, key=lambda name: float(scores[name][0]), default="distance"),
    )
    return replace(found, changes=find_changes(measured, level, found.rejects(level)))
