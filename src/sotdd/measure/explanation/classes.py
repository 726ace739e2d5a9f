"""The classes of two datasets: how far apart they are, and what transport moves between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.resources import Stream, generator
from sotdd.compute.slices import Slices
from sotdd.inputs.data import LabelledData

Doubles = NDArray[np.float64]

# Projection l is summed in slot l mod 8. Slots are added up in order at the end, so the sums have the
# same bits for any number of threads and any slices.
_SLOTS = 8

# Matrices of all slots, and those by which classes are matched, may take this much.
_MOST_BYTES = 1 << 30

# Class distances take at most this many steps of transport in all: where classes are many, they are measured through
# the first projections only, but for at least so many.
_MOST_STEPS, _FEWEST_COMPARED = 1 << 29, 16


@dataclass(frozen=True, eq=False)
class ClassComparison:
    """The classes of a dataset a beside those of a dataset b, as the projections see them.

    Every projection counts by its importance, as it does in the distance of the datasets.

    Attributes
    ----------
    distances, stderr
        (C, C') the sliced distance between each class of a and of b, and its standard error.
    coupling
        (C, C') the share of all points that optimal transport moves from class to class; adds up to one.
    costs
        (C, C') the share of W_p^p that those moves cost; adds up to one, or is zero throughout
        where nothing has to move.
    sizes
        (C,) and (C',): how many points each class has.
    p
        The order of transport.
    """

    distances: Doubles
    stderr: Doubles
    coupling: Doubles
    costs: Doubles
    sizes: tuple[NDArray[np.int64], NDArray[np.int64]]
    p: float

    @property
    def shares(self) -> tuple[Doubles, Doubles]:
        """The share of W_p^p that each class's points carry: (C,) and (C',), each adding up to one."""
        return self.costs.sum(axis=1), self.costs.sum(axis=0)


class ClassCosts:
    """Compares every class of one dataset with every class of another.

    Parameters
    ----------
    datasets
        The two datasets.
    places
        Where their rows, class after class, are among all that are sliced.
    p
        The order of transport.
    """

    def __init__(self, datasets: Sequence[LabelledData], places: tuple[int, int], p: float) -> None:
        self._places, self._p = places, p
        self._sizes = datasets[0].counts, datasets[1].counts
        shape = len(self._sizes[0]), len(self._sizes[1])
        if are_too_many(*shape):
            raise SotddError(
                f"the datasets have {shape[0]:,} and {shape[1]:,} classes, too many to compare each with each: use "
                "coarser labels."
            )
        self._edges = [data.offsets for data in datasets]
        self._codes = [np.repeat(np.arange(len(ends) - 1, dtype=np.int32), np.diff(ends)) for ends in self._edges]
        # W_p^p of classes and its square; and the mass that goes from class to class, and what that costs.
        self._between, self._moved = np.zeros((2, _SLOTS, *shape, 2))
        self._ties = [generator(0, Stream.CLASS_TIES, side).permutation(len(codes))
                      for side, codes in enumerate(self._codes)]  # fmt: skip
        steps = shape[1] * datasets[0].n_points + shape[0] * datasets[1].n_points  # of one projection
        self._most_compared = max(_FEWEST_COMPARED, _MOST_STEPS // steps)
        self._count = 0

    def add(self, slices: Slices) -> None:
        """Add the projections of one slices."""
        rows = [slices.engine.fetch_rows(slices.rows[place]) for place in self._places]

        def work(slot: int) -> None:
            for line in range((slot - slices.part.start) % _SLOTS, len(slices.block), _SLOTS):
                weights, number = slices.block.importance[line : line + 1], slices.part.start + line
                self._add(slot, [side[line : line + 1] for side in rows], weights, number < self._most_compared)

        slices.engine.workers.each(work, range(_SLOTS))
        self._count += len(slices.block)

    def _add(self, slot: int, rows: Sequence[NDArray[np.float32]], weights: Doubles, compared: bool) -> None:
        """Add a projection of this importance weight (1,); rows (1, n) hold class after class, each sorted."""
        from sotdd.compute.kernels import couplings

        (a, b), (first, second), (codes, others), p = rows, self._edges, self._codes, self._p
        if compared:
            couplings.class_costs(a, first, b, second, weights, p, self._between[slot])
        # Equal values come in random order: in that of classes, these would seem to go together.
        left, right = (ties[np.argsort(part[:, ties], axis=1)] for part, ties in zip(rows, self._ties, strict=True))
        couplings.couple_rows(a, left, codes, b, right, others, weights, p, self._moved[slot])

    def conclude(self) -> ClassComparison:
        """All matrices."""
        p, compared = self._p, min(self._count, self._most_compared)
        between, (mass, costs) = (np.moveaxis(sums.sum(axis=0), -1, 0) for sums in (self._between, self._moved))
        distances, stderr = _find_roots(between, compared, p)
        if not (np.isfinite(costs).all() and np.isfinite(distances).all()):
            raise SotddError(f"transport to the power p={p:g} overflows: take a smaller p", use={"scale": "pooled"})
        mass, costs = mass / mass.sum(), costs / (float(costs.sum()) or 1.0)
        for array in (distances, stderr, mass, costs):
            array.flags.writeable = False
        return ClassComparison(distances, stderr, mass, costs, self._sizes, p)


def are_too_many(first: int, second: int) -> bool:
    """Whether this many classes of two datasets take too much memory to compare each with each."""
    return 32 * (_SLOTS * first * second + (first + second) ** 2) > _MOST_BYTES


def _find_roots(sums: Doubles, count: int, p: float) -> tuple[Doubles, Doubles]:
    """Distances and standard errors from summed W_p^p and squares, by the delta method."""
    mean = sums[0] / count
    distances = mean ** (1 / p)
    if count < 2:
        return distances, np.full_like(distances, np.nan)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        variance = np.maximum(sums[1] / count - mean**2, 0.0) / (count - 1)
        stderr = np.where(mean > 0, np.sqrt(variance) * distances / (p * mean), 0.0)
    return distances, stderr
