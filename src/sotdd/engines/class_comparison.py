"""The classes of two datasets, compared under the same projections as the datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.progress import Report
from sotdd.engines.splits import Deal, Indices, Splits, taken
from sotdd.inputs.data import LabelledData
from sotdd.projections.recipe import Projections
from sotdd.results.classes import ClassComparison
from sotdd.results.noise import HALVING_PROJECTIONS, HALVINGS

if TYPE_CHECKING:
    from sotdd.engines.cpu.engine import CpuEngine
    from sotdd.engines.cpu.splits import FeatureProjections

Doubles = NDArray[np.float64]

# Projection l is summed in slot l mod 8. Slots are added up in order at the end, so the sums have the
# same bits for any number of threads and any chunk.
_SLOTS = 8

# Matrices of all slots together may take this much.
_MOST_BYTES = 1 << 30

# Values whose order is in memory at a time, in each thread.
_ORDER_VALUES = 1 << 20


class _Slot:
    """Sums over some of the projections, one array for each of the matrices."""

    def __init__(self, n_classes: tuple[int, int]) -> None:
        first, second = n_classes
        self.between = np.zeros((2, first, second))  # W_p^p, and its square
        self.within = np.zeros((2, first, first)), np.zeros((2, second, second))
        self.mass = np.zeros((first, second))
        self.costs = np.zeros((first, second))

    def add(self, rows: Sequence[NDArray[np.float32]], sides: Sequence[_Side], weights: Doubles, p: float) -> None:
        """Add some projections; rows (B, n) hold class after class, each sorted, and weights (B,) their importance."""
        from sotdd.kernels import couplings

        (a, b), (left, right) = rows, sides
        couplings.class_costs(a, left.edges, b, right.edges, weights, p, False, *self.between)
        for part, side, sums in zip(rows, sides, self.within, strict=True):
            couplings.class_costs(part, side.edges, part, side.edges, weights, p, True, *sums)
        # Runs that are sorted already are merged; equal values keep the order of classes.
        orders = [np.argsort(part, axis=1, kind="stable") for part in rows]
        couplings.couple_rows(a, orders[0], left.codes, b, orders[1], right.codes, weights, p, self.mass, self.costs)


class _Side:
    """Where the classes of one dataset lie in a row."""

    def __init__(self, data: LabelledData) -> None:
        self.edges, _ = data.grouping()
        self.codes = np.repeat(np.arange(len(data.classes), dtype=np.int32), data.counts)


def compare_classes(
    a: LabelledData, b: LabelledData, projections: Projections, p: float, report: Report
) -> ClassComparison:
    """Compare the classes of two datasets, on the processor, a chunk of projections at a time.

    Each class is halved a few times under the first projections, which tells what its distances owe to chance.
    """
    from sotdd.engines.cpu.engine import CpuEngine

    sizes = len(a.classes), len(b.classes)
    if are_too_many(*sizes):
        raise SotddError(
            f"the datasets have {sizes[0]:,} and {sizes[1]:,} classes, too many to compare each with each: use coarser "
            "labels."
        )
    sides = [_Side(a), _Side(b)]
    slots = [_Slot(sizes) for _ in range(_SLOTS)]
    batch = max(1, _ORDER_VALUES // (a.n_points + b.n_points))

    with CpuEngine() as engine:
        halves = ClassHalves([a, b], engine, p)
        for view in engine.views([a, b], projections, by_class=True, before_sorting=halves.seen):

            def work(
                number: int, rows: list[NDArray[np.float32]] = view.rows, weights: Doubles = view.block.importance
            ) -> None:
                for start in range(number, len(weights), _SLOTS * batch):
                    chosen = slice(start, start + _SLOTS * batch, _SLOTS)
                    mine = [np.ascontiguousarray(side[chosen]) for side in rows]
                    slots[number].add(mine, sides, np.ascontiguousarray(weights[chosen]), p)

            engine.each(work, range(_SLOTS))
            report(view.part.stop, projections.n_projections)
    return _summed(slots, projections.n_projections, p, halves)


def are_too_many(first: int, second: int) -> bool:
    """Whether so many classes of two datasets take too much memory to compare each with each."""
    return 8 * _SLOTS * (4 * first * second + 2 * first**2 + 2 * second**2) > _MOST_BYTES


def _summed(slots: Sequence[_Slot], count: int, p: float, halves: ClassHalves) -> ClassComparison:
    distances, stderr = _rooted(np.sum([slot.between for slot in slots], axis=0), count, p)
    first, second = (np.sum([slot.within[side][0] for slot in slots], axis=0) / count for side in (0, 1))
    # Of each class to each other; infinite on the diagonal.
    first, second = ((upper + upper.T + np.diag(np.full(len(upper), np.inf))) ** (1 / p) for upper in (first, second))
    costs, mass = (np.sum([getattr(slot, name) for slot in slots], axis=0) for name in ("costs", "mass"))
    if not (np.isfinite(costs).all() and np.isfinite(distances).all()):
        raise SotddError(f"transport to the power p={p:g} overflows: use a smaller p or scale='pooled'.")
    mass, costs = mass / mass.sum(), costs / (float(costs.sum()) or 1.0)
    for array in (distances, stderr, first, second, mass, costs):
        array.flags.writeable = False
    return ClassComparison(distances, stderr, (first, second), mass, costs, halves.sizes, *chance_units(halves, p), p)


def _rooted(sums: Doubles, count: int, p: float) -> tuple[Doubles, Doubles]:
    """Distances and standard errors from summed W_p^p and squares, by the delta method."""
    mean = sums[0] / count
    distances = mean ** (1 / p)
    if count < 2:
        return distances, np.full_like(distances, np.nan)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        variance = np.maximum(sums[1] / count - mean**2, 0.0) / (count - 1)
        stderr = np.where(mean > 0, np.sqrt(variance) * distances / (p * mean), 0.0)
    return distances, stderr


# ------------------------------------------------------------------ noise floors of classes


class ClassHalves:
    """Collects what the halves of every class cost while projections go by; ``seen`` is called with each chunk."""

    def __init__(self, datasets: Sequence[LabelledData], engine: CpuEngine, p: float) -> None:
        self._engine, self._p = engine, p
        self._done = 0
        self._members = [class_members(data) for data in datasets]
        self.sizes: tuple[NDArray[np.int64], NDArray[np.int64]] = datasets[0].counts, datasets[1].counts
        # (C, H) of each dataset: W_p^p of each halving of each class.
        self.sums: list[NDArray[np.float64]] = [np.zeros((len(data.classes), HALVINGS)) for data in datasets]

    def seen(self, projected: FeatureProjections) -> None:
        """Halve the classes under those of these projections that count."""
        left = slice(0, HALVING_PROJECTIONS - self._done)
        if left.stop <= 0:
            return
        weights = projected.block.importance[left]
        for side, (classes, sums) in enumerate(zip(self._members, self.sums, strict=True)):
            points = projected.pool([side]).part(left)
            for number, members in enumerate(classes):
                half = len(members) // 2
                if half:
                    splits = _splits((half, len(members) - half), HALVINGS, number)
                    costs = self._engine.split_costs(taken(points, members), splits, [self._p])[:, :, 0]
                    sums[number] += weights @ costs
        self._done += len(weights)

    @property
    def costs(self) -> list[Doubles]:
        """Of each dataset, the mean W_p^p (C, S) of the halves of its classes; NaN for a class of one point."""
        halved = [(sizes > 1)[:, None] for sizes in self.sizes]
        return [np.where(some, sums / self._done, np.nan) for some, sums in zip(halved, self.sums, strict=True)]


def chance_units(halves: ClassHalves, p: float) -> tuple[tuple[Doubles, Doubles], float]:
    """What a class's samples cost by chance, apart from their sizes, (C,) and (C',); and how that varies, relatively.

    Distances of samples fall with the root of 1/n + 1/m. A class of one point is taken to be as the others.
    """
    units: list[Doubles] = []
    for sizes, costs in zip(halves.sizes, halves.costs, strict=True):
        half = np.maximum(sizes // 2, 1)
        units.append(costs.mean(axis=1) / (1 / half + 1 / np.maximum(sizes - half, 1)) ** (p / 2))
    known = np.concatenate(units)
    known = known[np.isfinite(known)]
    usual = float(known.mean()) if len(known) else 0.0
    first, second = (np.where(np.isfinite(one), one, usual) for one in units)
    return (first, second), _relative_deviation(np.concatenate(halves.costs))


def _relative_deviation(costs: Doubles) -> float:
    """Standard deviation within rows (C, S) over the mean of the row, over all rows together."""
    mean = costs.mean(axis=1)
    usable = np.isfinite(mean) & (mean > 0)
    if not usable.any():
        return 0.0
    return float(np.sqrt(np.mean(costs[usable].var(axis=1, ddof=1) / mean[usable] ** 2)))


def deals_of_pairs(
    datasets: Sequence[LabelledData], pairs: Sequence[tuple[int, int]], n_splits: int, seed: int
) -> list[Deal]:
    """For each two classes: their points as they are, and dealt out anew to sides of the same sizes.

    Points are compared by features alone: a class's term is made of them, so it would add nothing but noise.
    """
    first, second = (class_members(data) for data in datasets)
    offset = datasets[0].n_points
    return [
        Deal(
            _splits((len(first[i]), len(second[j])), 1 + n_splits, seed + number, actual=True),
            np.concatenate([first[i], offset + second[j]]),
            by_features=True,
        )
        for number, (i, j) in enumerate(pairs)
    ]


def chance_of_any(costs: Doubles) -> Doubles:
    """The p-value (P,) of each pair from its costs (P, 1 + S), the data first, right for all pairs together.

    Costs are brought to one scale, and those of the data compared with the largest of all pairs in every split
    (Westfall and Young): where no pair differs, one is called different in 5 % of cases at a level of 5 %.
    """
    gap = costs - costs.mean(axis=1, keepdims=True)
    deviation = gap.std(axis=1, keepdims=True)
    scores = np.divide(gap, deviation, out=np.zeros_like(gap), where=deviation > 1e-12 * costs.max(initial=0.0))
    largest = scores[:, 1:].max(axis=0, initial=-np.inf)
    farther: Doubles = (1 + (largest[None, :] >= scores[:, :1]).sum(axis=1)) / costs.shape[1]
    return farther


def class_members(data: LabelledData) -> list[Indices]:
    """The indices of each class's points in the dataset."""
    order = np.argsort(data.codes, kind="stable")
    return np.split(order, np.cumsum(data.counts)[:-1])


def _splits(sizes: tuple[int, int], count: int, seed: int, *, actual: bool = False) -> Splits:
    """Ways to deal the points of one class out to two sides."""
    together = sum(sizes)
    return Splits(sizes, 0, count, seed, actual, np.arange(together), np.array([0, together]))
