"""The loop that every sliced distance goes through."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_count, check_order, check_positive
from sotdd.basics.errors import OutOfRange, SotddError
from sotdd.basics.kept import kept_property
from sotdd.basics.memory import available_bytes
from sotdd.basics.progress import Progress, Report, reporting
from sotdd.engines.chance import Chance, Pool, apart_by_halves, floor_of_halves, seed_of
from sotdd.engines.protocol import Engine, Precision, engine_for
from sotdd.inputs.column_names import by_position
from sotdd.inputs.comparable import FEWEST_PIXELS, remarks_on_ranges
from sotdd.inputs.data import LabelledData
from sotdd.inputs.origin import PLAIN, remarks_of_sides
from sotdd.projections.draws import BLOCK
from sotdd.projections.recipe import Projections
from sotdd.results.distance import Distance
from sotdd.results.estimators import FEWEST_FITTED, Estimate, Estimator, estimated_distance, estimates
from sotdd.results.noise import NoiseFloor

if TYPE_CHECKING:
    from sotdd.engines.controls import Controls

# So many numbers always fit.
_FEW = 1 << 22

# Controls of a pair, at most.
_MOST_CONTROLS = 13

# Pairs that are concluded together.
_TOGETHER = 256

# At most this many are drawn before the first look.
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


@dataclass(frozen=True, eq=False)
class CostTable:
    """What some projections cost in a comparison.

    Attributes
    ----------
    p
        The order of transport.
    importance
        (L,) what each projection counts by.
    reach
        (L, 2) of each dataset, the smallest and the largest projected value.
    costs
        (L,) of each pair, W_p^p.
    label
        (P, 3, L) of each pair, its label controls; None without.
    values
        (L, 5) of each dataset, what direction controls are made of; none without.
    controls
        What is controlled; None for the plain estimator.
    pools
        What was dealt out at random beside the pairs.
    dealt
        (B, S) of each pool, W_p^p of its splits under the first B projections.
    """

    p: float
    importance: NDArray[np.float64]
    reach: list[NDArray[np.float64]]
    costs: list[NDArray[np.float64]]
    label: NDArray[np.float64] | None
    values: list[NDArray[np.float64]]
    controls: Controls | None
    pools: Sequence[Pool]
    dealt: list[NDArray[np.float64]]

    @property
    def controllable(self) -> bool:
        """Whether controls can be used: those of directions have coefficients, which few projections cannot tell."""
        return self.controls is not None and (self.label is not None or len(self.importance) >= FEWEST_FITTED)

    @property
    def fitted(self) -> bool:
        """Whether coefficients of the controls are fitted."""
        return self.controls is not None and self.controls.lengths is not None

    @kept_property
    def even(self) -> bool:
        """Whether all projections count the same."""
        return bool((self.importance == 1).all())

    @kept_property
    def of_datasets(self) -> list[NDArray[np.float64]]:
        """Of each dataset, what it adds to the controls of its pairs."""
        return [] if self.controls is None else self.controls.of_datasets(self.values, self.importance)

    @kept_property
    def largest(self) -> list[NDArray[np.float64]]:
        """(L,) of each dataset, the largest projected value."""
        return [np.abs(ends).max(axis=1) for ends in self.reach]

    @kept_property
    def flattened(self) -> list[bool]:
        """Of each dataset, whether float32 left no difference between its points, so far are they from zero."""
        return [
            bool(np.median(largest) > _FAR and np.median(np.diff(ends)[:, 0] / largest) < 4 * _ROUNDING)
            for ends, largest in zip(self.reach, self.largest, strict=True)
        ]

    @kept_property
    def halves(self) -> dict[int, tuple[int, NDArray[np.float64]]]:
        """Of each dataset that was halved, its number of points and how far its halves are apart."""
        return {
            pool.members[0]: (sum(pool.splits.sizes), apart_by_halves(costs, self.importance, self.p))
            for pool, costs in zip(self.pools, self.dealt, strict=True)
            if len(pool.members) == 1
        }

    def __add__(self, later: CostTable) -> CostTable:
        """These projections and later ones, through which nothing is dealt out."""
        return CostTable(
            self.p,
            np.concatenate([self.importance, later.importance]),
            _joined(self.reach, later.reach),
            _joined(self.costs, later.costs),
            None if self.label is None or later.label is None else np.concatenate([self.label, later.label], axis=2),
            _joined(self.values, later.values),
            self.controls,
            self.pools,
            self.dealt,
        )


def compare(
    datasets: Sequence[LabelledData],
    pairs: Sequence[tuple[int, int]],
    projections: Projections,
    p: float,
    progress: Progress = None,
    *,
    method: str = "s-OTDD",
    estimator: Estimator = "plain",
    device: str = "auto",
    precision: Precision = "float32",
    engine: Engine | None = None,
    n_splits: int = 0,
    halves: bool = False,
) -> dict[tuple[int, int], Distance]:
    """Distances of some pairs; each dataset is projected and sorted once for all of them.

    With ``n_splits`` the pooled points of each pair are dealt out this many times, for its noise floor; with
    ``halves`` each dataset is halved a few times, for a rough one.
    """
    p = check_order(p)
    count = projections.n_projections
    per_pair = 1 + n_splits + (0 if estimator == "plain" else _MOST_CONTROLS)
    numbers = count * (len(pairs) * per_pair + 2 * len(datasets))
    what = f"the results of {count:,} projections" + (f" with {n_splits:,} splits each" if n_splits else "")
    check_fits_memory(numbers, what, count)
    chosen = engine or engine_for(device, datasets, count, precision)
    with reporting(progress, "Projecting") as report, chosen as active:
        pools = pools_of(datasets, pairs, projections, n_splits, halves)
        controls = controls_for(projections, datasets, active, estimator)
        table = cost_table(datasets, pairs, projections, p, active, report, controls, pools)
    return conclude(datasets, pairs, table, projections, method)


def controls_for(
    projections: Projections, datasets: Sequence[LabelledData], active: Engine, estimator: Estimator
) -> Controls | None:
    """The controls of an estimator; None for the plain one, and where nothing can be controlled."""
    if estimator == "plain":
        return None
    from sotdd.engines.controls import Controls

    controls = Controls.of(projections, datasets, active)
    return controls if controls.degree else None


def cost_table(
    datasets: Sequence[LabelledData],
    pairs: Sequence[tuple[int, int]],
    projections: Projections,
    p: float,
    active: Engine,
    report: Report,
    controls: Controls | None,
    pools: Sequence[Pool] = (),
) -> CostTable:
    """What every projection costs, with its controls where there are some: the one loop over projections."""
    importance: list[NDArray[np.float64]] = []
    ends: list[list[Any]] = [[] for _ in datasets]
    costs: list[Any] = []
    label: list[Any] = []
    values: list[list[Any]] = [[] for _ in datasets]
    chance = Chance(pools, active, [p]) if pools else None
    degree = controls.degree if controls else 0
    for view in active.views(datasets, projections, degree=degree, before_sorting=chance.seen if chance else None):
        importance.append(view.block.importance)
        for seen, kept in zip(view.rows, ends, strict=True):
            kept.append(active.ends(seen))
        costs.append(active.transports(view.rows, pairs, p))
        if controls is not None:
            of_pairs, of_datasets = controls.seen(view, pairs, p, active)
            label.extend([] if of_pairs is None else [of_pairs])
            for seen, kept in zip(of_datasets, values, strict=False):
                kept.append(seen)
        report(view.part.stop, projections.n_projections)
    return CostTable(
        p,
        np.concatenate(importance),
        [active.collect(parts) for parts in ends],
        list(np.ascontiguousarray(active.collect(costs).T)),
        np.ascontiguousarray(active.collect(label).transpose(1, 2, 0)) if label else None,
        [active.collect(parts) for parts in values if parts],
        controls,
        pools,
        [costs[:, :, 0] for costs in chance.costs()] if chance else [],
    )


def conclude(
    datasets: Sequence[LabelledData],
    pairs: Sequence[tuple[int, int]],
    table: CostTable,
    projections: Projections,
    method: str = "s-OTDD",
) -> dict[tuple[int, int], Distance]:
    """The distances of all pairs of a table."""
    found: dict[tuple[int, int], Distance] = {}
    for start in range(0, len(pairs), _TOGETHER):
        some = range(start, min(start + _TOGETHER, len(pairs)))
        means = _means(table, pairs, some)
        for number, mean in zip(some, means, strict=True):
            found[pairs[number]] = _concluded(datasets, pairs[number], table, number, projections, method, mean)
    return found


def _means(table: CostTable, pairs: Sequence[tuple[int, int]], some: Sequence[int]) -> list[Estimate]:
    """The mean costs of some pairs."""
    for number in some:
        i, j = pairs[number]
        _refuse_lost_powers(table.costs[number], table.reach[i], table.reach[j], table.p)
    costs = np.stack([table.costs[number] for number in some])
    columns = [_columns(table, pairs[number], number) for number in some]
    return estimates(costs if table.even else costs * table.importance, columns, fitted=table.fitted)


def _concluded(
    datasets: Sequence[LabelledData],
    pair: tuple[int, int],
    table: CostTable,
    number: int,
    projections: Projections,
    method: str,
    mean: Estimate,
) -> Distance:
    """The distance of one pair, whose costs are at ``number`` in the table."""
    (i, j), p = pair, table.p
    costs = table.costs[number]
    rounding = _ROUNDING * np.maximum(table.largest[i], table.largest[j])
    far = ("points are so far from zero that float32 does not tell them apart: use scale='pooled'",)
    result = estimated_distance(
        datasets[i],
        datasets[j],
        costs,
        p,
        method=method,
        fingerprint=projections.fingerprint,
        scaler=projections.scaler,
        columns=projections.columns,
        remarks=(
            *(_precision(costs, rounding, p) or (far if table.flattened[i] or table.flattened[j] else ())),
            *remarks_on_features([datasets[i], datasets[j]], projections),
        ),
        weights=None if table.even else table.importance,
        estimator="plain" if table.controls is None or not table.controllable else table.controls.name,
        known=mean,
    )
    if not table.pools:
        return result
    dealt = [costs for pool, costs in zip(table.pools, table.dealt, strict=True) if pool.members == pair]
    noise = None
    if dealt:
        weights = table.importance[: len(dealt[0])]
        noise = NoiseFloor.of(dealt[0] * weights[:, None], costs[: len(weights)] * weights, p, result.value)
    of_halves = [table.halves[side] for side in pair if side in table.halves]
    return replace(result, noise=noise, sampling=floor_of_halves(of_halves, result.n_points, p, result.value))


def remarks_on_features(sides: Sequence[LabelledData], projections: Projections) -> tuple[str, ...]:
    """Remarks on which features there are, how they were scaled and how columns were matched."""
    scaled = () if projections.scaler is None else projections.scaler.remarks
    has_names = projections.columns is not None or any(side.columns is not None for side in sides)
    said = (*scaled, *by_position(sides, projections.columns)) if has_names else scaled
    if not has_names and projections.n_features >= FEWEST_PIXELS:
        said = (*said, *remarks_on_ranges(sides))
    return said if all(side.origin is PLAIN for side in sides) else (*said, *remarks_of_sides(sides))


def pools_of(
    datasets: Sequence[LabelledData],
    pairs: Sequence[tuple[int, int]],
    projections: Projections,
    n_splits: int,
    halves: bool = False,
) -> list[Pool]:
    """The pools to deal out: both datasets of each pair, and each dataset alone, to be halved."""
    if not (n_splits or halves):
        return []
    seed = seed_of(projections)
    pools = [Pool.of_pair(datasets, pair, n_splits, seed) for pair in pairs] if n_splits else []
    halved = [Pool.of_halves(datasets, number, seed) for number in range(len(datasets))] if halves else []
    return pools + [pool for pool in halved if pool is not None]


def _columns(table: CostTable, pair: tuple[int, int], number: int) -> NDArray[np.float64] | None:
    """The controls (L, q) of a pair; None where there are none, or too few projections to use them."""
    if table.controls is None or not table.controllable:
        return None
    label = None if table.label is None else table.label[number]
    return table.controls.columns(pair, label, table.values, table.of_datasets, table.importance)


def _joined(first: Sequence[NDArray[np.float64]], second: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    return [np.concatenate(parts) for parts in zip(first, second, strict=True)]


def check_fits_memory(numbers: int, what: str, count: int) -> None:
    """Refuse ``what`` if this many numbers cannot be held, and say how many of ``count`` could be."""
    free = available_bytes() if numbers > _FEW else math.inf
    if 8 * numbers > free:
        fitting = int(free * count // (8 * numbers))
        raise SotddError(f"{what} do not fit in the {free / 1e9:,.1f} GB that are free: use fewer, about {fitting:,}.")


def _refuse_lost_powers(
    transported: NDArray[np.float64], ends_a: NDArray[np.float64], ends_b: NDArray[np.float64], p: float
) -> None:
    """Refuse powers that left float64, above or below."""
    if not np.isfinite(transported).all():
        raise OutOfRange(f"transport to the power p={p:g} overflows: use a smaller p or scale='pooled'.")
    if p > 2 and ((transported == 0) & (ends_a != ends_b).any(axis=1)).any():
        raise SotddError(f"transport to the power p={p:g} underflows: use a smaller p.")


def _precision(per_projection: NDArray[np.float64], rounding: NDArray[np.float64], p: float) -> tuple[str, ...]:
    """Say when float32 leaves few digits: moments so large that the features beside them are rounded away."""
    unit, most = float(rounding.max()), float(per_projection.max())
    if unit == 0 or most == 0:
        return ()
    value = float(np.mean(per_projection / most)) ** (1 / p) * most ** (1 / p)
    if unit <= _TOLERATED * value:  # rounding is nowhere more
        return ()
    noise = unit * float(np.mean((rounding / unit) ** p)) ** (1 / p)
    if noise <= _TOLERATED * value:
        return ()
    return (
        f"projected values are so large that float32 rounding is up to {noise:.2g}: bring outliers in, scale the "
        "features or take lower orders",
    )


# ------------------------------------------------------------------ until a wanted accuracy is reached


def to_tolerance(
    datasets: Sequence[LabelledData],
    projections: Projections,
    p: float,
    rel_tol: float,
    max_projections: int,
    progress: Progress = None,
    *,
    estimator: Estimator = "controlled",
    device: str = "auto",
    precision: Precision = "float32",
    n_splits: int = 0,
) -> Distance:
    """Draw whole blocks until the standard error is at most ``rel_tol`` of the value and reliable, or none are left.

    How many are drawn next follows from the error so far and nothing else, so the answer does not depend
    on chunks or threads.
    """
    p, wanted = check_order(p), check_positive(rel_tol, "rel_tol")
    most = check_count(max_projections, "max_projections")
    total = _next_total(0, min(projections.n_projections, FIRST), most)
    with reporting(progress, "Projecting") as report, engine_for(device, datasets, total, precision) as active:
        pools = pools_of(datasets, [(0, 1)], projections, n_splits)
        drawn = projections.from_block(0, total)
        controls = controls_for(drawn, datasets, active, estimator)
        table = cost_table(datasets, [(0, 1)], drawn, p, active, report, controls, pools)
        while True:
            distance = conclude(datasets, [(0, 1)], table, projections.from_block(0, total))[0, 1]
            if total >= most or _settled(distance, wanted):
                break
            before, total = total, _next_total(total, _needed(distance, total, wanted), most)
            later = projections.from_block(before // BLOCK, total - before)
            further = None if controls is None else controls.through(later)
            table += cost_table(datasets, [(0, 1)], later, p, active, report, further)
    if _settled(distance, wanted):
        return distance
    missed = f"max_projections={most:,} did not reach rel_tol={wanted:g}"
    if distance.stderr <= wanted * distance.value:
        missed += " with an error that can be relied on"
    return replace(distance, remarks=(*distance.remarks, missed))


def _settled(distance: Distance, wanted: float) -> bool:
    """Whether the error is small enough, and not only because the sample missed the tail."""
    return distance.stderr <= wanted * distance.value and distance.reliable


def _needed(distance: Distance, total: int, wanted: float) -> float:
    """How many projections the error asks for; twice as many where it is small but cannot be relied on."""
    error = distance.stderr / distance.value if distance.value > 0 else math.inf
    needed = _MARGIN * total * (error / wanted) ** 2
    return needed if distance.reliable else max(needed, 2.0 * total)


def _next_total(before: int, needed: float, most: int) -> int:
    """How many to have next: whole blocks, except for the last."""
    if before:
        needed = min(needed, _GROWTH * before)
    blocks = max(math.ceil(needed / BLOCK), before // BLOCK + 1)
    return min(most, BLOCK * blocks)
