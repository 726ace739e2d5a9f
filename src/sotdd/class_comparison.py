"""The classes of two datasets, compared under the same projections as the datasets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.class_chance import ClassHalves, chance_units
from sotdd.data import LabelledData
from sotdd.errors import SotddError
from sotdd.progress import Report
from sotdd.projections.recipe import Projections

Doubles = NDArray[np.float64]

# Projection l is summed in slot l mod 8. Slots are added up in order at the end, so the sums have the
# same bits for any number of threads and any chunk.
_SLOTS = 8

# Matrices of all slots together may take this much.
_MOST_BYTES = 1 << 30

# Values whose order is in memory at a time, in each thread.
_ORDER_VALUES = 1 << 20


@dataclass(frozen=True, eq=False)
class ClassComparison:
    """What the projections say of the classes of a dataset a and of a dataset b.

    Every projection counts by its importance, as it does in the distance of the datasets.

    Attributes
    ----------
    distances, stderr
        (C, C') the sliced distance between each class of a and of b, and its standard error.
    within
        (C, C) and (C', C'): the same between the classes of one dataset; infinite on the diagonal.
    coupling
        (C, C') the share of all points that optimal transport moves from class to class; adds up to one.
    costs
        (C, C') the share of W_p^p that those moves cost; adds up to one, or is zero throughout
        where nothing has to move.
    sizes
        (C,) and (C',): how many points each class has.
    units
        (C,) and (C',): W_p^p of samples of n and m points of a class, by chance, is this times
        (1/n + 1/m)^(p/2). From the halves of each class.
    jitter
        Standard deviation of such a cost from sample to sample, as a share of it.
    p
        The order of transport.
    """

    distances: Doubles
    stderr: Doubles
    within: tuple[Doubles, Doubles]
    coupling: Doubles
    costs: Doubles
    sizes: tuple[NDArray[np.int64], NDArray[np.int64]]
    units: tuple[Doubles, Doubles]
    jitter: float
    p: float

    @property
    def separation(self) -> tuple[Doubles, Doubles]:
        """(C,) and (C',): how far each class is from the nearest other class of its own dataset.

        Infinite for an only class.
        """
        return self.within[0].min(axis=1), self.within[1].min(axis=1)

    @property
    def floors(self) -> Doubles:
        """(C, C') the W_p^p that two samples of one class would have, of the sizes of each two classes."""
        return self._floors(0, 1)

    @property
    def excess(self) -> Doubles:
        """(C, C') what of W_p^p between classes their sizes alone do not give; near zero for samples of one class."""
        excess: Doubles = self.distances**self.p - self.floors
        return excess

    @property
    def own_excess(self) -> tuple[Doubles, Doubles]:
        """(C,) and (C',): the excess between each class and the nearest other class of its own dataset."""
        first, second = (
            (matrix**self.p - self._floors(side, side)).min(axis=1) for side, matrix in enumerate(self.within)
        )
        return first, second

    def _floors(self, one: int, other: int) -> Doubles:
        """Floors between the classes of two sides, by the mean of what both classes say."""
        shrink = (1 / self.sizes[one][:, None] + 1 / self.sizes[other][None, :]) ** (self.p / 2)
        floors: Doubles = (self.units[one][:, None] + self.units[other][None, :]) / 2 * shrink
        return floors


class _Slot:
    """Sums over some of the projections; a place for each of the matrices."""

    def __init__(self, n_classes: tuple[int, int]) -> None:
        first, second = n_classes
        self.between = np.zeros((2, first, second))  # W_p^p, and its square
        self.within = np.zeros((2, first, first)), np.zeros((2, second, second))
        self.mass = np.zeros((first, second))
        self.costs = np.zeros((first, second))

    def add(self, rows: Sequence[NDArray[np.float32]], sides: Sequence[_Side], weights: Doubles, p: float) -> None:
        """Add some projections; rows (B, n) hold class after class, each sorted, and weights (B,) their importance."""
        from sotdd import couplings

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
    from sotdd.engines.cpu import CpuEngine

    sizes = len(a.classes), len(b.classes)
    _refuse_beyond_memory(sizes)
    sides = [_Side(a), _Side(b)]
    slots = [_Slot(sizes) for _ in range(_SLOTS)]
    batch = max(1, _ORDER_VALUES // (a.n_points + b.n_points))

    with CpuEngine() as engine:
        halves = ClassHalves([a, b], engine, p)
        for view in engine.views([a, b], projections, by_class=True, unplaced=halves.seen):

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


def _refuse_beyond_memory(sizes: tuple[int, int]) -> None:
    first, second = sizes
    if 8 * _SLOTS * (4 * first * second + 2 * first**2 + 2 * second**2) > _MOST_BYTES:
        raise SotddError(
            f"the datasets have {first:,} and {second:,} classes, too many to compare each with each: explain fewer, "
            "such as by coarser labels."
        )


def _summed(slots: Sequence[_Slot], count: int, p: float, halves: ClassHalves) -> ClassComparison:
    distances, stderr = _rooted(np.sum([slot.between for slot in slots], axis=0), count, p)
    first, second = (_symmetric(np.sum([slot.within[side][0] for slot in slots], axis=0) / count, p) for side in (0, 1))
    costs, mass = (np.sum([getattr(slot, name) for slot in slots], axis=0) for name in ("costs", "mass"))
    if not (np.isfinite(costs).all() and np.isfinite(distances).all()):
        raise SotddError(f"transport to the power p={p:g} overflows: use a smaller p or scale='pooled'.")
    return ClassComparison(
        _frozen(distances),
        _frozen(stderr),
        (_frozen(first), _frozen(second)),
        _frozen(mass / mass.sum()),
        _frozen(costs / (float(costs.sum()) or 1.0)),
        halves.sizes,
        *chance_units(halves, p),
        p,
    )


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


def _symmetric(upper: Doubles, p: float) -> Doubles:
    """Distances (C, C) of each class to each other, from W_p^p above the diagonal; infinite on it."""
    square = upper + upper.T
    np.fill_diagonal(square, np.inf)
    distances: Doubles = square ** (1 / p)
    return distances


def _frozen(array: Doubles) -> Doubles:
    array.flags.writeable = False
    return array
