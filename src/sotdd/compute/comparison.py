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
from sotdd.compute.class_moments import LABEL_SAMPLES, ClassMoments, MomentAccumulator, control_pairs
from sotdd.compute.distance import Distance
from sotdd.compute.engine import Engine, choose_engine
from sotdd.compute.estimators import ControlVariates, Estimate, Estimator, estimate_distance, estimates
from sotdd.compute.noise_floor import NoiseFloor
from sotdd.compute.resampling import HALVINGS, Plan, Resampling, find_distances, make_seed
from sotdd.compute.slices import Slices, slice_datasets
from sotdd.inputs.agreement import FEWEST_PIXELS, gather_side_remarks, remark_on_ranges, remark_positions
from sotdd.inputs.data import PLAIN, LabelledData, cut_range
from sotdd.projections.maps import BLOCK
from sotdd.projections.projections import Projections

if TYPE_CHECKING:
    from sotdd.compute.engine import Values

Doubles = NDArray[np.float64]
Pairs = Sequence[tuple[int, int]]
Distances = dict[tuple[int, int], Distance]
_Halves = dict[int, tuple[int, Doubles]]

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


class PairCosts:
    """What pairs of datasets cost under every projection; more projections of the same laws may follow.

    Parameters
    ----------
    pairs
        The pairs of datasets, by their numbers.
    p
        The order of transport.

    Attributes
    ----------
    costs
        (P, L) W_p^p of each pair, once there is a result.
    importance
        (L,) the weight of each projection in a mean.
    weights
        The same; None where all are one.
    """

    costs: Doubles
    importance: Doubles
    weights: Doubles | None

    def __init__(self, pairs: Pairs, p: float) -> None:
        self._pairs, self._p = pairs, p
        members = 1 + max(max(pair) for pair in pairs)
        self._importance: list[Doubles] = []
        self._ranges: list[list[Values]] = [[] for _ in range(members)]
        self._costs: list[Values] = []

    def add(self, slices: Slices) -> None:
        """Take the costs of all pairs."""
        self._engine = slices.engine
        self._importance.append(slices.block.importance)
        for rows, kept in zip(slices.rows, self._ranges, strict=False):
            kept.append(slices.engine.take_points(rows, np.array([0, rows.shape[1] - 1])))
        self._costs.append(slices.transport(self._pairs, self._p))

    def collect(self, moments: Sequence[ClassMoments] = ()) -> None:
        """Put all chunks so far together, with the class moments that controls of the datasets are made of."""
        collect = self._engine.collect
        self.costs = np.ascontiguousarray(collect(self._costs).T)
        self.importance = np.concatenate(self._importance)
        self.weights = None if (self.importance == 1).all() else self.importance
        self._moments = moments
        self._extremes = [collect(parts).astype(np.float64) for parts in self._ranges]  # (L, 2)
        self._largest = [np.abs(ends).max(axis=1) for ends in self._extremes]
        self._units = [_ROUNDING * float(most.max()) for most in self._largest]  # what rounding is at most
        self._flat = [_is_flat(ends, most) for ends, most in zip(self._extremes, self._largest, strict=True)]
        most = self.costs.max(axis=1)
        self._refuse_lost_powers(most)
        scale = np.where(most > 0, most, 1.0)
        means = np.mean(self.costs / scale[:, None], axis=1)
        self._values = means ** (1 / self._p) * scale ** (1 / self._p)  # plain distances

    def estimate(self) -> list[Estimate]:
        """The mean costs of all pairs; each thread takes some at a time."""
        weights = 1.0 if self.weights is None else self.weights

        def work(part: slice) -> list[Estimate]:
            pairs, controls = self._pairs[part], list[ControlVariates | None]([None] * len(self._pairs[part]))
            if self._moments:
                controls = control_pairs(self._moments, self.importance, pairs, self._p)
            return estimates(self.costs[part] * weights, controls)

        parts = cut_range(len(self._pairs), min(_FITTED, -(-len(self._pairs) // _FITTING)))

        def work_on(first: int) -> list[list[Estimate]]:
            return [work(part) for part in parts[first::_FITTING]]

        found = self._engine.workers.each(work_on, range(min(_FITTING, len(parts))))
        return [one for number in range(len(parts)) for one in found[number % _FITTING][number // _FITTING]]

    def _refuse_lost_powers(self, most: Doubles) -> None:
        """Refuse powers that left float64, above or below; ``most`` (P,) are the largest costs."""
        if not np.isfinite(most).all():
            raise OutOfRange(
                f"transport to the power p={self._p:g} overflows: take a smaller p or scale the features",
                use={"scale": "pooled"},
            )
        for costs, (i, j) in zip(self.costs, self._pairs, strict=True) if self._p > 2 else ():
            if ((costs == 0) & (self._extremes[i] != self._extremes[j]).any(axis=1)).any():
                raise SotddError(f"transport to the power p={self._p:g} underflows: use a smaller p.")

    def remark_on_precision(self, number: int) -> Remarks:
        """Say when float32 leaves few digits: values so large that the features beside them are rounded away."""
        (i, j), value = self._pairs[number], float(self._values[number])
        unit = max(self._units[i], self._units[j])
        if unit > _TOLERATED * value > 0:  # otherwise rounding is nowhere more
            shares = _ROUNDING * np.maximum(self._largest[i], self._largest[j]) / unit
            noise = unit * float(np.mean(shares**self._p)) ** (1 / self._p)
            if noise > _TOLERATED * value:
                return (Remark("rounding", noise=noise),)
        return (Remark("far from zero"),) if self._flat[i] or self._flat[j] else ()


def _is_flat(ends: Doubles, largest: Doubles) -> bool:
    """Whether float32 left no difference between the points of a dataset, so far are they from zero."""
    if largest.max() <= _FAR:
        return False
    return bool(np.median(largest) > _FAR and np.median(np.diff(ends)[:, 0] / largest) < 4 * _ROUNDING)


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
        self._costs = PairCosts(pairs, p)
        self._moments = None if estimator == "plain" else MomentAccumulator(projections)
        seed, orders = make_seed(projections) if n_splits or halves else 0, (p,)
        self._of_pairs = [Plan.of_pair(datasets, pair, n_splits, seed, orders) for pair in pairs] if n_splits else []
        halved = range(len(datasets)) if halves else ()
        self._of_halves = [plan for one in halved for plan in Plan.of_halves(datasets, one, HALVINGS, seed, orders)]
        self._resampling = Resampling([*self._of_pairs, *self._of_halves])
        self.class_moments: bool = self._moments is not None
        self.unsorted: int = self._resampling.n_projections

    def add(self, slices: Slices) -> None:
        """Take all of it from one chunk."""
        self._costs.add(slices)
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
        seen = self._costs
        seen.collect([] if self._moments is None else self._moments.result())
        splits, halves = self._split_points(seen.importance)
        recipe = projections or self._projections
        return {
            pair: self._conclude_pair(number, mean, recipe, method, splits, halves)
            for number, (pair, mean) in enumerate(zip(self._pairs, seen.estimate(), strict=True))
        }

    def _split_points(self, importance: Doubles) -> tuple[list[Doubles], _Halves]:
        """Of each pair, what its splits cost (B, S); of each dataset, its size and how far its halves are apart."""
        costs = [found[:, :, 0] * importance[: len(found), None] for found in self._resampling.result()]
        count = len(self._of_pairs)
        halves = {
            plan.members[0]: (sum(plan.sizes), find_distances(found, self._p))
            for plan, found in zip(self._of_halves, costs[count:], strict=True)
        }
        return costs[:count], halves

    def _conclude_pair(
        self, number: int, mean: Estimate, projections: Projections, method: str, splits: list[Doubles], halves: _Halves
    ) -> Distance:
        """The distance of one pair by its number."""
        seen, pair, p = self._costs, self._pairs[number], self._p
        (first, second), value = (self._datasets[side] for side in pair), mean.take_root(p)[0]
        costs = seen.costs[number] * seen.importance if splits else None
        noise = None if costs is None else NoiseFloor.of(splits[number], costs, p, value)
        known = [halves[side] for side in pair if side in halves]
        sizes = first.n_points, second.n_points
        sampling = NoiseFloor.of_halves(known, sizes, p, value)
        remarks = (*seen.remark_on_precision(number), *remark_on_features([first, second], projections))
        return estimate_distance(
            seen.costs[number], p, n_points=sizes, classes=(first.classes, second.classes), weights=seen.weights,
            known=mean, remarks=remarks, method=method, fingerprint=projections.fingerprint, scaler=projections.scaler,
            columns=projections.columns, noise=noise, sampling=sampling,
        )  # fmt: skip


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
    return remarks if all(side.origin is PLAIN for side in sides) else (*remarks, *gather_side_remarks(sides))


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
