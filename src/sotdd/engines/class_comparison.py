"""The classes of two datasets, compared under the same projections as the datasets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.progress import Report
from sotdd.engines.class_chance import ClassHalves, chance_units
from sotdd.inputs.data import LabelledData
from sotdd.projections.recipe import Projections
from sotdd.results.classes import ClassComparison

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
    _refuse_many_classes(sizes)
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


def _refuse_many_classes(sizes: tuple[int, int]) -> None:
    first, second = sizes
    if are_too_many(first, second):
        raise SotddError(
            f"the datasets have {first:,} and {second:,} classes, too many to compare each with each: use coarser "
            "labels."
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
