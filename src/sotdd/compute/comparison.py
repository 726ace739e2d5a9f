"""Distances of pairs of datasets: what they cost under every projection, as many as there are or until exact enough."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import OutOfRange, SotddError, check_count, check_order, check_positive
from sotdd.basics.remarks import Remark, Remarks
from sotdd.basics.resources import Progress, Report, check_fits, report_progress
from sotdd.compute.class_moments import LABEL_SAMPLES, MomentAccumulator, control_pairs
from sotdd.compute.distance import Distance, NoiseFloor
from sotdd.compute.engine import Engine, choose_engine
from sotdd.compute.estimators import Estimate, Estimator, estimate_distance, estimates
from sotdd.compute.resampling import HALVINGS, Plan, Resampling, find_distances
from sotdd.compute.slices import Slices, slice_datasets
from sotdd.inputs.data import (
    FEWEST_PIXELS,
    LabelledData,
    cut_range,
    gather_side_remarks,
    remark_on_ranges,
    remark_positions,
)
from sotdd.projections.maps import BLOCK
from sotdd.projections.projections import Projections

if TYPE_CHECKING:
    from sotdd.compute.engine import Values

Doubles = NDArray[np.float64]
Pairs = Sequence[tuple[int, int]]
Distances = dict[tuple[int, int], Distance]

# What the controls of a dataset are made of takes this many numbers under every projection.
_CONTROL_VALUES = 2 * (1 + LABEL_SAMPLES) + 5

# Pairs that are fitted at a time, and threads that fit. Their steps are short: more would wait for the interpreter.
_FITTED, _FITTING = 32, 6

# Up to this many projected values, other threads would take longer to start than the work takes.
_SMALL = 1 << 20

# At most this many are sampled before the first look.
FIRST = 512
MOST = 100_000

# A look at the error asks for what is still missing and a little more, and at most for four times what is there.
_MARGIN = 1.1
_GROWTH = 4

# Half a unit in the last place of float32, in which projected points are sorted.
_ROUNDING = 2.0**-24
# Projected values beyond this are far from zero.
_FAR = 1e4
# Rounding beyond this share of the distance is remarked on.
_TOLERATED = 0.02


class Comparison:
    """Distances of pairs of datasets in the making: what is taken from slices, and what follows from it.

    Parameters
    ----------
    datasets, pairs
        The datasets, and the pairs of them by their numbers.
    projections, p
        What they are projected by, and the order of transport.
    estimator
        "plain", or "controlled" for whatever can be controlled.
    n_splits
        How often the pooled points of each pair are split, for its noise floor; 0 for none.
    halves
        Whether each dataset is halved a few times, for a rough floor.

    Attributes
    ----------
    class_moments, unsorted
        What it needs of `slice_datasets`.
    """

    def __init__(
        self,
        datasets: Sequence[LabelledData],
        pairs: Pairs,
        projections: Projections,
        p: float,
        *,
        estimator: Estimator = "plain",
        n_splits: int = 0,
        halves: bool = False,
    ) -> None:
        self._datasets, self._pairs, self._p, self._projections = datasets, pairs, p, projections
        self._importance: list[Doubles] = []
        self._ranges: list[list[Values]] = [[] for _ in range(1 + max(max(pair) for pair in pairs))]
        self._costs: list[Values] = []
        self._moments = None if estimator == "plain" else MomentAccumulator(projections)
        seed, orders = projections.split_seed if n_splits or halves else 0, (p,)
        self._of_pairs = [Plan.of_pair(datasets, pair, n_splits, seed, orders) for pair in pairs] if n_splits else []
        halved = range(len(datasets)) if halves else ()
        self._of_halves = [plan for one in halved for plan in Plan.of_halves(datasets, one, HALVINGS, seed, orders)]
        self._resampling = Resampling([*self._of_pairs, *self._of_halves])
        self.class_moments: bool = self._moments is not None
        self.unsorted: int = self._resampling.n_projections

    def add(self, slices: Slices) -> None:
        """Take all of it from one chunk."""
        self._engine = slices.engine
        self._importance.append(slices.block.importance)
        for rows, kept in zip(slices.rows, self._ranges, strict=False):
            kept.append(slices.engine.take_points(rows, np.array([0, rows.shape[1] - 1])))
        self._costs.append(slices.transport(self._pairs, self._p))
        if self._moments is not None:
            self._moments.add(slices)
        self._resampling.add(slices)

    def add_all(self, projections: Projections, engine: Engine, report: Report) -> None:
        """Take it from all chunks of these projections: the first ones, or further ones, where nothing is split."""
        unsorted, self.unsorted = self.unsorted, 0
        for slices in slice_datasets(
            self._datasets, projections, engine,
            class_moments=self.class_moments, unsorted=unsorted, report=report,
        ):  # fmt: skip
            self.add(slices)

    def conclude(self, method: str = "s-OTDD", projections: Projections | None = None) -> Distances:
        """The distances of all pairs, through these projections if more were sampled than there were at first."""
        costs, importance = np.ascontiguousarray(self._engine.collect(self._costs).T), np.concatenate(self._importance)
        ranges = [self._engine.collect(parts).astype(np.float64) for parts in self._ranges]  # (L, 2) of each dataset
        self._refuse_lost_powers(costs, ranges)
        largest, recipe = [np.abs(ends).max(axis=1) for ends in ranges], projections or self._projections
        weights = None if (importance == 1).all() else importance
        flat = [_is_flat(ends, most) for ends, most in zip(ranges, largest, strict=True)]
        splits, halves = self._split_points(importance)
        distances = {}
        for number, mean in enumerate(self._estimate(costs, importance)):
            pair, value = self._pairs[number], mean.take_root(self._p)[0]
            first, second = sides = [self._datasets[side] for side in pair]
            sizes, known = (first.n_points, second.n_points), [halves[side] for side in pair if side in halves]
            rough = _remark_on_rounding(costs[number], [largest[side] for side in pair], self._p)
            if not rough and any(flat[side] for side in pair):
                rough = (Remark("far from zero"),)
            distances[pair] = estimate_distance(
                costs[number], self._p, n_points=sizes, classes=(first.classes, second.classes), known=mean,
                weights=weights, method=method,
                remarks=(*rough, *remark_on_features(sides, recipe)),
                fingerprint=recipe.fingerprint, scaler=recipe.scaler, columns=recipe.columns,
                noise=NoiseFloor.of(splits[number], costs[number] * importance, self._p, value) if splits else None,
                sampling=NoiseFloor.of_halves(known, sizes, self._p, value) if known else None,
            )  # fmt: skip
        return distances

    def _estimate(self, costs: Doubles, importance: Doubles) -> list[Estimate]:
        """The mean costs of all pairs; a few threads take some at a time."""
        moments = [] if self._moments is None else self._moments.result()

        def fit(part: slice) -> list[Estimate]:
            found: list[Estimate] = []
            for start in range(part.start, part.stop, _FITTED):
                some = slice(start, min(start + _FITTED, part.stop))
                pairs = self._pairs[some]
                controls = control_pairs(moments, importance, pairs, self._p) if moments else [None] * len(pairs)
                found += estimates(costs[some] * importance, controls)
            return found

        parts = cut_range(len(self._pairs), -(-len(self._pairs) // _FITTING))
        return [one for found in self._engine.workers.each(fit, parts) for one in found]

    def _split_points(self, importance: Doubles) -> tuple[list[Doubles], dict[int, tuple[int, Doubles]]]:
        """Of each pair, what its splits cost (B, S); of each dataset, its size and how far its halves are apart."""
        costs = [found[:, :, 0] * importance[: len(found), None] for found in self._resampling.result()]
        count = len(self._of_pairs)
        halves = {
            plan.members[0]: (sum(plan.sizes), find_distances(found, self._p))
            for plan, found in zip(self._of_halves, costs[count:], strict=True)
        }
        return costs[:count], halves

    def _refuse_lost_powers(self, costs: Doubles, ranges: Sequence[Doubles]) -> None:
        """Refuse powers that left float64, above or below."""
        if not np.isfinite(costs).all():
            raise OutOfRange(
                f"transport to the power p={self._p:g} overflows: take a smaller p or scale the features",
                use={"scale": "pooled"},
            )
        for found, (i, j) in zip(costs, self._pairs, strict=True) if self._p > 2 else ():
            if ((found == 0) & (ranges[i] != ranges[j]).any(axis=1)).any():
                raise SotddError(f"transport to the power p={self._p:g} underflows: use a smaller p.")


def _remark_on_rounding(costs: Doubles, largest: Sequence[Doubles], p: float) -> Remarks:
    """Say when values are so large that float32 rounds away a part of the distance with these costs (L,)."""
    rounding, value = _ROUNDING * np.maximum(*largest), float(find_distances(costs[:, None], p)[0])
    unit = float(rounding.max())
    if not unit > _TOLERATED * value > 0:  # rounding is nowhere more
        return ()
    noise = unit * float(np.mean((rounding / unit) ** p)) ** (1 / p)
    return (Remark("rounding", noise=noise),) if noise > _TOLERATED * value else ()


def _is_flat(ends: Doubles, largest: Doubles) -> bool:
    """Whether float32 left no difference between the points of a dataset, so far are they from zero."""
    return bool(np.median(largest) > _FAR and np.median(np.diff(ends)[:, 0] / largest) < 4 * _ROUNDING)


def compare(
    datasets: Sequence[LabelledData],
    pairs: Pairs,
    projections: Projections,
    p: float,
    progress: Progress = None,
    *,
    method: str = "s-OTDD",
    estimator: Estimator = "plain",
    device: str = "auto",
    engine: Engine | None = None,
    n_splits: int = 0,
    halves: bool = False,
) -> Distances:
    """Distances of some pairs; each dataset is projected and sorted once for all of them."""
    p = check_order(p)
    if not pairs:
        return {}
    check_memory(len(datasets), len(pairs), projections.n_projections, n_splits, estimator)
    values = projections.n_projections * (1 + n_splits) * sum(data.n_points for data in datasets)
    alone = 1 if values <= _SMALL else None
    chosen = engine or choose_engine(device, datasets, projections.n_projections, alone)
    with report_progress(progress, "Projecting") as report, chosen as active:
        comparison = Comparison(datasets, pairs, projections, p, estimator=estimator, n_splits=n_splits, halves=halves)
        comparison.add_all(projections, active, report)
        return comparison.conclude(method)


def check_memory(n_datasets: int, n_pairs: int, n_projections: int, n_splits: int, estimator: Estimator) -> None:
    """Refuse a comparison whose results do not fit in memory."""
    per_dataset = 2 if estimator == "plain" else 2 + _CONTROL_VALUES
    what = f"the results of {n_projections:,} projections" + (f" with {n_splits:,} splits each" if n_splits else "")
    check_fits(
        8 * n_projections * (n_pairs * (1 + n_splits) + per_dataset * n_datasets), what, "n_projections", n_projections
    )


def remark_on_features(sides: Sequence[LabelledData], projections: Projections) -> Remarks:
    """Remarks on which features there are, how they were scaled and how columns were matched."""
    scaled = () if projections.scaler is None else projections.scaler.remarks
    has_names = projections.columns is not None or any(side.columns is not None for side in sides)
    remarks = (*scaled, *remark_positions(sides, projections.columns)) if has_names else scaled
    if not has_names and projections.n_features >= FEWEST_PIXELS:
        remarks = (*remarks, *remark_on_ranges(sides))
    return *remarks, *gather_side_remarks(sides)


# ------------------------------------------------------------------ until an accuracy is reached


def compare_to_tolerance(
    datasets: Sequence[LabelledData],
    projections: Projections,
    p: float,
    rel_tol: float,
    max_projections: int,
    progress: Progress = None,
    *,
    estimator: Estimator = "controlled",
    device: str = "auto",
    n_splits: int = 0,
) -> Distance:
    """Sample whole blocks until the standard error is at most ``rel_tol`` of the value and reliable, or none are left.

    How many are sampled next follows from the error so far and nothing else, so the answer does not depend
    on chunks or threads.
    """
    p, tolerated = check_order(p), check_positive(rel_tol, "rel_tol")
    most = check_count(max_projections, "max_projections")
    total = _find_next_total(0, min(projections.n_projections, FIRST), most)
    with report_progress(progress, "Projecting") as report, choose_engine(device, datasets, total) as active:
        first = projections.from_block(0, total)
        comparison = Comparison(datasets, [(0, 1)], first, p, estimator=estimator, n_splits=n_splits)
        comparison.add_all(first, active, report)
        while True:
            distance = comparison.conclude(projections=projections.from_block(0, total))[0, 1]
            if total >= most or _is_settled(distance, tolerated):
                break
            before, total = total, _find_next_total(total, _count_needed(distance, total, tolerated), most)
            comparison.add_all(projections.from_block(before // BLOCK, total - before), active, report)
    if _is_settled(distance, tolerated):
        return distance
    unreliable = distance.stderr <= tolerated * distance.value
    missed = Remark("tolerance missed", max_projections=most, rel_tol=tolerated, unreliable=unreliable)
    return replace(distance, remarks=(*distance.remarks, missed))


def _is_settled(distance: Distance, tolerated: float) -> bool:
    """Whether the error is small enough, and not only because the sample missed the tail."""
    return distance.stderr <= tolerated * distance.value and distance.reliable


def _count_needed(distance: Distance, total: int, tolerated: float) -> float:
    """How many projections the error asks for; twice as many where it is small but cannot be relied on."""
    error = distance.stderr / distance.value if distance.value > 0 else math.inf
    needed = _MARGIN * total * (error / tolerated) ** 2
    return needed if distance.reliable else max(needed, 2.0 * total)


def _find_next_total(before: int, needed: float, most: int) -> int:
    """How many to have next: whole blocks, except for the last."""
    if before:
        needed = min(needed, _GROWTH * before)
    blocks = max(math.ceil(needed / BLOCK), before // BLOCK + 1)
    return min(most, BLOCK * blocks)
