"""The classes of two datasets: how far apart they are, what transport moves between them, and which is which."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.randomness import Stream, generator
from sotdd.basics.text import json_label, json_number
from sotdd.compute.resampling import HALVING_PROJECTIONS, HALVINGS, Indices, Plan, pool_groups
from sotdd.compute.slices import Slices
from sotdd.inputs.data import LabelledData

Doubles = NDArray[np.float64]
Pair = tuple[int, int]

# When classes are matched, distances up to this many deviations above what chance gives count as zero.
_WITHIN_NOISE = 2.0

# Projection l is summed in slot l mod 8. Slots are added up in order at the end, so the sums have the
# same bits for any number of threads and any chunk.
_SLOTS = 8

# Matrices of all slots together may take this much.
_MOST_BYTES = 1 << 30

# Values whose order is in memory at a time, in each thread.
_ORDER_VALUES = 1 << 20


@dataclass(frozen=True, eq=False)
class ClassComparison:
    """The classes of a dataset a beside those of a dataset b, as the projections see them.

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
    def shares(self) -> tuple[Doubles, Doubles]:
        """The share of W_p^p that each class's points carry: (C,) and (C',), each adding up to one."""
        return self.costs.sum(axis=1), self.costs.sum(axis=0)

    @property
    def floors(self) -> Doubles:
        """(C, C') the W_p^p that two samples of one class would have, of the sizes of each two classes."""
        return self._floors(0, 1)

    @property
    def excess(self) -> Doubles:
        """(C, C') W_p^p between classes less their floors; near zero for samples of one class."""
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
        """Floors between the classes of two sides: the mean of the two classes' own."""
        shrink = (1 / self.sizes[one][:, None] + 1 / self.sizes[other][None, :]) ** (self.p / 2)
        floors: Doubles = (self.units[one][:, None] + self.units[other][None, :]) / 2 * shrink
        return floors


@dataclass(frozen=True)
class ClassLine:
    """One class of a side.

    Attributes
    ----------
    label, n_points
        Its name and its size.
    nearest, distance, stderr
        The nearest class of the other side, beyond what chance puts between classes of their sizes; how far it is.
    share, share_by_chance
        The share of W_p^p that its points carry, and what of that noise alone would give.
    counterpart, moved
        The class of the other side that it corresponds to, if any; and whether the two differ beyond noise.
    lost
        Whether it has no counterpart and that is no chance: a class of so few points may well be absent from a sample.
    """

    label: Hashable
    n_points: int
    nearest: Hashable
    distance: float
    stderr: float
    share: float
    share_by_chance: float
    counterpart: Hashable | None
    moved: bool
    lost: bool

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        named = {"label": json_label(self.label), "nearest": json_label(self.nearest)}
        counterpart = None if self.counterpart is None else json_label(self.counterpart)
        return {**asdict(self), **named, "counterpart": counterpart, "stderr": json_number(self.stderr)}


def match_classes(comparison: ClassComparison, classes: Sequence[Sequence[Hashable]]) -> list[Pair]:
    """Pair the classes of two datasets one to one, so that little is left to explain.

    What counts of a pair is the root of the distance beyond noise: one class far away explains more simply than
    many classes that each move a little. Where noise leaves a choice, classes of one name go together.
    """
    from scipy.optimize import linear_sum_assignment

    beyond = comparison.excess - _WITHIN_NOISE * comparison.jitter * comparison.floors
    apart = np.maximum(beyond, 0.0) ** (1 / (2 * comparison.p))
    unit = float(apart.max()) or 1.0
    preference = 1e-6 * unit * (comparison.distances / (float(comparison.distances.max()) or 1.0))
    for i, j in find_same_names(classes):
        preference[i, j] = -1e-6 * unit
    rows, columns = linear_sum_assignment(apart + preference)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def find_same_names(classes: Sequence[Sequence[Hashable]]) -> list[Pair]:
    """Rows and columns of the classes that have one name on both sides."""
    first, second = classes
    column = {label: j for j, label in enumerate(second)}
    return [(i, column[label]) for i, label in enumerate(first) if label in column]


# ------------------------------------------------------------------ comparing them


class ClassCosts:
    """Compares every class of one dataset with every class of another, and with those of its own.

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
        self._between = np.zeros((_SLOTS, 2, *shape))  # W_p^p, and its square
        self._within = [np.zeros((_SLOTS, 2, count, count)) for count in shape]
        self._mass, self._costs = np.zeros((2, _SLOTS, *shape))
        self._ties = [generator(0, Stream.CLASS_TIES, side).permutation(len(codes))
                      for side, codes in enumerate(self._codes)]  # fmt: skip
        self._batch = max(1, _ORDER_VALUES // sum(data.n_points for data in datasets))
        self._count = 0

    def add(self, slices: Slices) -> None:
        """Add the projections of one chunk."""
        rows = [slices.engine.fetch_rows(slices.rows[place]) for place in self._places]
        weights, batch = slices.block.importance, self._batch

        def work(number: int) -> None:
            first = (number - slices.part.start) % _SLOTS
            for start in range(first, len(weights), _SLOTS * batch):
                chosen = slice(start, start + _SLOTS * batch, _SLOTS)
                mine = [np.ascontiguousarray(side[chosen]) for side in rows]
                self._add(number, mine, np.ascontiguousarray(weights[chosen]))

        slices.engine.workers.each(work, range(_SLOTS))
        self._count += len(weights)

    def _add(self, slot: int, rows: Sequence[NDArray[np.float32]], weights: Doubles) -> None:
        """Add some projections of importance weights (B,); rows (B, n) hold class after class, each sorted."""
        from sotdd.compute.kernels import couplings

        (a, b), (first, second), p = rows, self._edges, self._p
        couplings.class_costs(a, first, b, second, weights, p, False, *self._between[slot])
        for part, ends, sums in zip(rows, self._edges, self._within, strict=True):
            couplings.class_costs(part, ends, part, ends, weights, p, True, *sums[slot])
        # Equal values come in random order: in that of classes, these would seem to go together.
        left, right = (
            ties[np.argsort(part[:, ties], axis=1, kind="stable")] for part, ties in zip(rows, self._ties, strict=True)
        )
        codes, others = self._codes
        couplings.couple_rows(a, left, codes, b, right, others, weights, p, self._mass[slot], self._costs[slot])

    def conclude(self, halves: tuple[Doubles, Doubles]) -> ClassComparison:
        """All matrices, with what chance does to classes, from the costs (C, S) of the halves of each side's."""
        count, p = self._count, self._p
        distances, stderr = _find_roots(self._between.sum(axis=0), count, p)
        first, second = (sums[:, 0].sum(axis=0) / count for sums in self._within)
        # Of each class to each other; infinite on the diagonal.
        first, second = (
            (upper + upper.T + np.diag(np.full(len(upper), np.inf))) ** (1 / p) for upper in (first, second)
        )
        costs, mass = self._costs.sum(axis=0), self._mass.sum(axis=0)
        if not (np.isfinite(costs).all() and np.isfinite(distances).all()):
            raise SotddError(f"transport to the power p={p:g} overflows: take a smaller p", use={"scale": "pooled"})
        mass, costs = mass / mass.sum(), costs / (float(costs.sum()) or 1.0)
        for array in (distances, stderr, first, second, mass, costs):
            array.flags.writeable = False
        units, jitter = measure_chance(self._sizes, halves, p)
        return ClassComparison(distances, stderr, (first, second), mass, costs, self._sizes, units, jitter, p)


def are_too_many(first: int, second: int) -> bool:
    """Whether this many classes of two datasets take too much memory to compare each with each."""
    return 8 * _SLOTS * (4 * first * second + 2 * first**2 + 2 * second**2) > _MOST_BYTES


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


# ------------------------------------------------------------------ what chance does to classes


def plan_halves(datasets: Sequence[LabelledData], p: float) -> list[list[Plan | None]]:
    """Of each of two datasets, the halves of every class; None for a class of one point."""
    return [
        [
            replace(
                Plan.of_points((side,), members, len(members) // 2, HALVINGS, number, (p,)),
                n_projections=HALVING_PROJECTIONS,
            )
            if len(members) > 1
            else None
            for number, members in enumerate(find_members(data))
        ]
        for side, data in enumerate(datasets)
    ]


def measure_chance(
    sizes: tuple[NDArray[np.int64], NDArray[np.int64]], halves: tuple[Doubles, Doubles], p: float
) -> tuple[tuple[Doubles, Doubles], float]:
    """What a class's samples cost by chance, apart from their sizes, (C,) and (C',); and how that varies, relatively.

    From the mean W_p^p (C, S) of the halves of classes, NaN for a class of one point, which is taken to be as the
    others. Distances of samples fall with the root of 1/n + 1/m.
    """
    units: list[Doubles] = []
    for counts, costs in zip(sizes, halves, strict=True):
        half = np.maximum(counts // 2, 1)
        units.append(costs.mean(axis=1) / (1 / half + 1 / np.maximum(counts - half, 1)) ** (p / 2))
    known = np.concatenate(units)
    known = known[np.isfinite(known)]
    usual = float(known.mean()) if len(known) else 0.0
    first, second = (np.where(np.isfinite(one), one, usual) for one in units)
    costs = np.concatenate(halves)
    costs = costs[costs.mean(axis=1) > 0]
    varies = (costs / costs.mean(axis=1, keepdims=True)).var(axis=1, ddof=1)
    return (first, second), math.sqrt(varies.mean()) if len(varies) else 0.0


def plan_pairs(
    datasets: Sequence[LabelledData], pairs: Sequence[tuple[int, int]], n_splits: int, seed: int, p: float
) -> list[Plan]:
    """For each two classes: their points as they are, and split anew into sides of the same sizes.

    Points are compared by features alone: a class's term is made of them, so it would add nothing but noise.
    """
    first, second = (find_members(data) for data in datasets)
    offset = datasets[0].n_points
    groups = pool_groups([data.groups for data in datasets], [data.n_points for data in datasets])
    plans = []
    for number, (i, j) in enumerate(pairs):
        index = np.concatenate([first[i], offset + second[j]])
        plan = Plan.of_points((0, 1), index, len(first[i]), 1 + n_splits, seed + number, (p,))
        own = None if groups is None else groups[index]
        plans.append(replace(plan, actual=True, labels=False, groups=own))
    return plans


def correct_for_all(costs: Doubles) -> Doubles:
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


def find_members(data: LabelledData) -> list[Indices]:
    """The indices of each class's points in the dataset."""
    order = np.argsort(data.codes, kind="stable")
    return np.split(order, np.cumsum(data.counts)[:-1])
