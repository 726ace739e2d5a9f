"""How far off distances of sketches may be: by what the sketches lost, and by chance.

**What is lost.** Of each projection a sketch keeps three numbers, the columns of ``lost`` (L, 3). With F the quantile
function of the projected points and f the one put together from its means (`sotdd.compute.kernels.quantiles`), they are

1. at least the mean of |F − f|,
2. at least the root of the mean of |F − f|²,
3. how far F itself may be off, in W_2, where values were counted in bins (streams).

Log-convexity of norms gives ‖F − f‖_p for p between 1 and 2. The distance is a p-norm over probabilities and
projections together, so by the triangle inequality it is off by at most the sum over both sketches. For p = 2
more is known. F − f has mean zero on each part, so it is orthogonal to whatever is constant there. With d the distance
of f and g, w the root of what they differ by within parts, and r at most ‖F − f‖ + ‖G − g‖, the true square is between
d² − 2 w r and d² + 2 w r + r².

**Chance.** A sketch also keeps how far apart random halves of its points are. From these ``halves`` a distance knows
what two samples of its sizes would give if they came from the same source. They are seen through the first projections
only, by plain means, and so is the distance that they are compared with. Distances of samples fall with the root of
their sizes, or more slowly where classes lie apart or are small: how fast is seen from quarters beside halves. What
halves give is brought to the size of the whole dataset by that, and to other sizes by the root law.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.resources import Stream, Workers, generator
from sotdd.compute.distance import NoiseFloor
from sotdd.compute.resampling import HALVING_PROJECTIONS, Each, Plan, Resampling, find_distances
from sotdd.inputs.data import LabelledData, cut_range
from sotdd.projections.maps import BLOCK, Block
from sotdd.projections.projections import Projections
from sotdd.sketches.quantiles import QUANTILES, Histograms, Levels, find_quantiles, place_points
from sotdd.sketches.sums import GROUP_BINS, GROUPS, Doubles, Sums

Lost = NDArray[np.float64]  # (L, 3)
Halves = NDArray[np.float64]  # (2, S) distances of S halvings, for p = 1 and for p = 2

HALVING_ORDERS = (1, 2)
# How often a dataset is halved: two sketches have twice as many distances of halves, enough to judge at 5 % by rank.
_HALVINGS = 12

# How many random halves of it are halved again, and how often each.
_PARTS, _QUARTERINGS = 4, 2

# Distances of samples fall with this power of the size, at the slowest and at the fastest.
_SLOWEST, _FASTEST = 0.25, 0.5

assert HALVING_PROJECTIONS == BLOCK  # points along the first block have all that is counted


def measure_loss(
    rows: NDArray[np.float32], means: NDArray[np.float32], levels: Levels, each: Each = map
) -> NDArray[np.float64]:
    """What is lost once sorted rows (L, n) are reduced to their means over these levels: the first two columns."""
    from sotdd.compute.kernels.quantiles import row_losses

    lost, places = np.empty((len(rows), 2)), place_points(rows.shape[1])

    def measure(line: slice) -> None:
        row_losses(rows[line], places, means[line], levels.edges, levels.smooth, lost[line])

    list(each(measure, cut_range(len(rows), 1)))
    return lost


def bound_error(
    a: Lost | None,
    b: Lost | None,
    value: float,
    within: NDArray[np.float64],
    p: float,
    weights: NDArray[np.float64],
) -> tuple[float, float] | None:
    """How far a distance of two sketches may be off, and how much of that comes from bins.

    ``within`` (L,) is what their functions differ by within parts, for p = 2. None where no bound is known: for p above
    2, or where a sketch does not say what it lost. Projections count by ``weights`` (L,).
    """
    if a is None or b is None or p > 2:
        return None
    share = 2 / p - 1  # 1/p = share / 1 + (1 - share) / 2
    in_a, in_b = (part[:, 0] ** share * part[:, 1] ** (1 - share) for part in (a, b))
    by_means = _average_norm(in_a + in_b, p, weights)
    by_bins = _average_norm(a[:, 2] + b[:, 2], p, weights)
    if p == 2:
        crossed = 2 * math.sqrt(float(np.mean(within * weights))) * by_means
        above = math.sqrt(value**2 + crossed + by_means**2) - value
        below = value - math.sqrt(max(value**2 - crossed, 0.0))
        by_means = max(above, below)
    return by_means + by_bins, by_bins


def plan_halves(data: LabelledData, projections: Projections) -> list[Plan]:
    """Ways to halve a dataset, and then to halve random halves of it; nothing for a single point."""
    seed, quarter = projections.split_seed, data.n_points // 4
    plans = Plan.of_halves([data], 0, _HALVINGS, seed, HALVING_ORDERS)
    rng = generator(seed, Stream.HALF_SAMPLES, data.n_points)
    for _ in range(_PARTS if quarter else 0):
        index = rng.permutation(data.n_points)[: 2 * quarter]
        codes = np.unique(plans[0].codes[index], return_inverse=True)[1].astype(np.int64)  # those that are there
        plans.append(replace(plans[0], index=index, codes=codes, sizes=(quarter, quarter), count=_QUARTERINGS))
    return plans


def find_halves(resampling: Resampling, weights: NDArray[np.float64]) -> Halves | None:
    """The distances of halves, where projections count by weights (L,).

    None for a single point, or where costs overflow float64.
    """
    try:
        costs = resampling.result()
    except SotddError:  # the sketch itself is good, and its distances say what overflows
        return None
    return root_costs(costs, weights) if costs else None


def root_costs(costs: Sequence[Doubles], weights: NDArray[np.float64]) -> Halves:
    """Distances (2, S) from W_p^p (B, S, orders) of halves under the first projections, and then of quarters.

    Quarters say how fast distances fall with the size, and so what halves of a dataset twice as large would give.
    """
    weighted = [part * weights[: len(part), None, None] for part in costs]
    rows = []
    for at, p in enumerate(HALVING_ORDERS):
        halves, *quarters = (find_distances(part[:, :, at], p) for part in weighted)
        sizes = [float(np.mean(part**2)) for part in (halves, np.concatenate(quarters or [halves]))]
        falls = math.log2(sizes[1] / sizes[0]) / 2 if quarters and min(sizes) > 0 else _FASTEST
        rows.append(halves * 2 ** (_FASTEST - min(max(falls, _SLOWEST), _FASTEST)))
    return np.array(rows)


def find_floor(
    sized_halves: Sequence[tuple[int, Halves | None]],
    p: float,
    sizes: tuple[int, int],
    distance: float = 0.0,
    costs: Doubles | None = None,
) -> NoiseFloor | None:
    """The noise floor of samples of these sizes, from the number of points and the halves of each sketch.

    None where no sketch has halves, or none for this p. With ``costs`` (L,), those of the distance
    under all projections, it is in the unit of the distance: halves saw only the first projections. What these
    exaggerate is the same for both as far as the distance is chance, and unknown beyond.
    """
    if p not in HALVING_ORDERS:
        return None
    row = HALVING_ORDERS.index(int(p))
    known = [(n, halves[row]) for n, halves in sized_halves if halves is not None]
    floor = NoiseFloor.of_halves(known, sizes, p, distance)
    plain = 0.0 if costs is None else float(find_distances(costs[:HALVING_PROJECTIONS, None], p)[0])
    if floor is None or not (plain > 0 and distance > 0):
        return floor
    chance = min(1.0, floor.power / plain**p)
    return replace(floor, distances=floor.distances * (1 + chance * (distance / plain - 1)))


def _average_norm(numbers: NDArray[np.float64], p: float, weights: NDArray[np.float64]) -> float:
    """The p-norm of numbers over projections, which count by weights."""
    largest = float(np.max(numbers)) or 1.0
    return float(largest * np.mean(weights * (numbers / largest) ** p) ** (1 / p))


def find_stream_halves(sums: Sums) -> Halves | None:
    """How far apart halves of a stream are, from its groups; None where none were kept, or a half would be empty.

    There are seven ways to choose half of eight groups so that any two of them share just half of theirs, as rows of a
    Hadamard matrix do.
    """
    from scipy.linalg import hadamard

    if "groups" not in sums.parts:
        return None
    sizes = np.array([[one[f"groups {group}"].n_points for group in range(GROUPS)] for one in sums.by_class.values()])
    # Rows of a Hadamard matrix but the first, which does not halve; what one halves, the next halves again.
    halves = hadamard(GROUPS)[1:]
    ways = np.concatenate([halves, halves * (np.roll(halves, 1, axis=0) > 0)])
    if not all((sizes.sum(axis=0) @ (ways == side).T).all() for side in (1, -1)):
        return None
    first = sums.projections.draw(0, BLOCK)
    with Workers() as workers:
        parts = workers.each(lambda signs: _compare_groups(sums, first, signs), ways)
    costs = np.stack(parts, axis=1)  # (B, 2 S, orders)
    if not np.isfinite(costs).all():  # the sketch itself is good, and its distances say what overflows
        return None
    return root_costs(np.split(costs, 2, axis=1), first.importance)


def _compare_groups(sums: Sums, first: Block, signs: NDArray[np.int64]) -> Doubles:
    """W_p^p (B, orders) between the groups of either sign."""
    from sotdd.compute.kernels.quantiles import compare_functions

    levels = Levels(QUANTILES)
    one, other = (_join_groups(sums, first, np.flatnonzero(signs == side), levels) for side in (1, -1))
    costs, within = np.empty((len(HALVING_ORDERS), len(first))), np.empty(len(first))
    for out, p in zip(costs, HALVING_ORDERS, strict=True):
        compare_functions(one, other, levels.edges, levels.smooth, float(p), out, within)
    return costs.T


def _join_groups(sums: Sums, first: Block, groups: NDArray[np.intp], levels: Levels) -> NDArray[np.float32]:
    """Quantile functions (B, Q) of some groups together, with label terms of their own."""
    classes, terms = [], []
    for totals in sums.by_class.values():
        whole = Histograms.empty(len(first), GROUP_BINS)
        for group in groups:
            whole += totals[f"groups {group}"]
        if whole.n_points:
            classes.append(whole)
            terms.append(totals["groups terms"][groups].sum(axis=0) / whole.n_points)
    return find_quantiles(classes, slice(0, len(first)), first.terms.weights, np.stack(terms, axis=1), levels)[0]
