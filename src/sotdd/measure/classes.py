"""The classes of two datasets: which is which, which of these pairs differ beyond noise, and what transport moves.

Classes are compared by means and deviations of their features under some projections, of samples where datasets are
large. What all classes are shifted by is taken out before they are matched.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.resources import Report, Stream, Workers, generator
from sotdd.compute.engine import Engine
from sotdd.compute.kernels.rows import Overlaps
from sotdd.compute.resampling import PROJECTIONS, SPLITS, pool_groups
from sotdd.compute.slices import ProjectedPoints, Slices, project_datasets
from sotdd.inputs.data import LabelledData
from sotdd.measure.comparison import MOST_POINTS
from sotdd.projections.projections import Projections

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]
Indices = NDArray[np.int64]
Pair = tuple[int, int]

# What sampling adds to a squared distance, in variances of the mean: one by the mean, and a half by the deviation.
_NOISE = 1.5

# When classes are matched, distances up to this many deviations above noise count as zero.
_WITHIN_NOISE = 2.0

# How often the shift is found anew from the classes that it matches.
_ROUNDS = 4

# Whether classes lie alike on both sides is judged at this level, by so many mirror images; fewer of many classes.
_ALIKE, _MOST_MIRRORED, _FEWEST_MIRRORED, _MIRRORED_CELLS = 0.025, 399, 39, 1 << 22

# Projection l is summed in slot l mod 8. Slots are added up in order at the end, so the sums have the
# same bits for any number of threads and any slices.
_SLOTS = 8

# Matrices of all slots, and those by which classes are matched, may take this much.
_MOST_BYTES = 1 << 30

# Class distances take at most this many steps of transport in all: where classes are many, they are measured through
# the first projections only, but for at least so many.
_MOST_STEPS, _FEWEST_COMPARED = 1 << 29, 16


@dataclass(frozen=True, eq=False)
class Matching:
    """Which classes of two datasets belong together.

    Attributes
    ----------
    pairs
        Rows and columns of the classes that belong together, one to one; the larger dataset has classes left over.
    p_values
        Of those pairs, and of classes of one name, how likely chance alone puts them this far apart, as they are.
    apart
        (C, C') squared distances of features beyond noise, without the shift and scale that the classes have in common.
    reach
        (C,) and (C',): how far another class may be to be the same one that moved. The distance of the nearest class
        of the same dataset, in the same unit; of the average one where classes lie alike on both sides.
    """

    pairs: tuple[Pair, ...]
    p_values: dict[Pair, float]
    apart: Doubles
    reach: tuple[Doubles, Doubles]


def match_classes(
    datasets: Sequence[LabelledData], projections: Projections, p: float, engine: Engine, report: Report
) -> Matching:
    """Pair the classes of two datasets one to one, so that little is left to explain, and judge every pair.

    What counts of a pair is the root of the distance beyond noise: one class far away explains more simply than
    many classes that each move a little. Where noise leaves a choice, classes of one name go together.
    """
    rng = generator(projections.split_seed, Stream.CLASS_MATCHES, 0)
    sides = [sample_classes(data, rng) for data in datasets]
    chunks = project_datasets(sides, projections.evenly(), engine, PROJECTIONS)
    rows = np.concatenate([ProjectedPoints.pool(points).fetch() for points in chunks])
    members = [own for side in (0, 1) for own in _list_members(sides[side], side * sides[0].n_points)]
    values, noise, jitter = summarise_classes(rows, members)
    named, n_first = find_same_names([data.classes for data in datasets]), len(sides[0].classes)
    pairs, apart, reach = _match(values, noise, jitter, n_first, named, rng)
    asked = list(dict.fromkeys([*pairs, *named]))
    groups = pool_groups([data.groups for data in sides], [data.n_points for data in sides])
    pooled = [(members[i], members[n_first + j]) for i, j in asked]
    p_values = correct_for_all(split_pairs(rows, pooled, groups, p, rng, engine.workers))
    report(1, 1)
    return Matching(tuple(pairs), dict(zip(asked, p_values.tolist(), strict=True)), apart, reach)


def sample_classes(data: LabelledData, rng: np.random.Generator, most: int = MOST_POINTS) -> LabelledData:
    """A dataset of at most this many points, or one of each class: small classes whole, samples of large ones."""
    if data.n_points <= most:
        return data
    sizes = range(1, int(data.counts.max()) + 1)
    size = max(1, bisect(sizes, most, key=lambda size: int(np.minimum(data.counts, size).sum())))
    return data.take(np.sort(np.concatenate([rng.permutation(own)[:size] for own in _list_members(data)])))


def _list_members(data: LabelledData, before: int = 0) -> list[Indices]:
    """The points of each class, counted from those that come before the dataset."""
    return np.split(before + data.group(), data.offsets[1:-1])


def find_same_names(classes: Sequence[Sequence[Hashable]]) -> list[Pair]:
    """Rows and columns of the classes that have one name on both sides."""
    first, second = classes
    column = {label: j for j, label in enumerate(second)}
    return [(i, column[label]) for i, label in enumerate(first) if label in column]


# ------------------------------------------------------------------ which belong together


def summarise_classes(rows: Floats, members: Sequence[Indices]) -> tuple[Doubles, Doubles, float]:
    """Means and deviations of classes, (K, 2 L), the noise (K,) of each in squared distances, and its jitter.

    rows (L, N) are features under projections, members the points of each class. A class of one point is taken to
    vary as the others do. Jitter is the deviation of noise from sample to sample, as a share of it.
    """
    sizes = np.array([len(own) for own in members])
    starts, free = np.cumsum(sizes) - sizes, max(int(sizes.sum()) - len(sizes), 1)
    points = rows[:, np.concatenate(members)].astype(np.float64)
    points -= points.mean(axis=1, keepdims=True)
    means = np.add.reduceat(points, starts, axis=1) / sizes  # (L, K)
    points -= np.repeat(means, sizes, axis=1)
    sums = np.add.reduceat(points**2, starts, axis=1)
    variances = np.where(sizes > 1, sums / np.maximum(sizes - 1, 1), sums.sum(axis=1, keepdims=True) / free)
    noise = _NOISE * variances.mean(axis=0) / sizes
    spread, total = points @ points.T, float(np.sum(points**2)) or 1.0
    jitter = np.sqrt(max(2 * (np.sum(spread**2) / total**2 - 1 / free), 0.0))  # less what sampling adds to it
    return np.concatenate([means, np.sqrt(variances)]).T, noise, float(jitter)


def _match(
    values: Doubles, noise: Doubles, jitter: float, n_first: int, named: Sequence[Pair], rng: np.random.Generator
) -> tuple[list[Pair], Doubles, tuple[Doubles, Doubles]]:
    """The pairs, and `Matching.apart` and `Matching.reach`; of the classes the first are of one dataset.

    Of datasets as they are and without the shift, what leaves less is taken: where most classes stay, nothing is
    shifted. If most classes match by neither, but lie alike on both sides, scale is taken out as well.
    """
    sides = slice(n_first), slice(n_first, None)
    _, typical, pairs, excess = min(
        (_align(values, noise, jitter, n_first, named, shifted=shifted) for shifted in (False, True)), key=itemgetter(0)
    )
    means = values[:, : values.shape[1] // 2]
    if alike := typical > 0 and _lie_alike(means[sides[0]], means[sides[1]], rng):
        units = np.concatenate([np.full(len(means[side]), 1 / (_spread(means[side]) or 1.0)) for side in sides])
        _, _, pairs, excess = _align(values * units[:, None], noise * units**2, jitter, n_first, named, shifted=True)
    first, second = (_find_reach(excess[side, side], average=alike) for side in sides)
    return pairs, excess[:n_first, n_first:], (first, second)


def _spread(means: Doubles) -> float:
    """The deviation of class means (C, L) from the mean class."""
    return float(np.sqrt(means.var(axis=0).mean()))


def _align(
    values: Doubles, noise: Doubles, jitter: float, n_first: int, named: Sequence[Pair], *, shifted: bool
) -> tuple[float, float, list[Pair], Doubles]:
    """What is left of all pairs and of the usual one, the pairs, and squared distances (K, K) less their noise.

    Between datasets without a shift: none, or at first that of the mean class; and then the median of the classes that
    match by it, as long as less is left.
    """
    n_projections, lengths = values.shape[1] // 2, np.einsum("kl,kl->k", values, values)
    chance = noise[:, None] + noise
    excess = np.maximum(lengths[:, None] + lengths - 2 * values @ values.T, 0.0) / n_projections - chance
    between, slack = excess[:n_first, n_first:].copy(), _WITHIN_NOISE * jitter * chance[:n_first, n_first:]
    first, second = values[:n_first, :n_projections], values[n_first:, :n_projections]
    shift = shifted * (first.mean(axis=0) - second.mean(axis=0))
    least, typical, found = np.inf, np.inf, list[Pair]()
    for _ in range(_ROUNDS):
        along = (first @ shift)[:, None] - second @ shift
        apart = between + (shift @ shift - 2 * along) / n_projections
        pairs, left = _assign(np.maximum(apart - slack, 0.0), apart, named)
        if left.sum() >= least:
            break
        least, typical, found, excess[:n_first, n_first:] = float(left.sum()), float(np.median(left)), pairs, apart
        rows, columns = np.array(pairs).T
        shift = np.median(first[rows] - second[columns], axis=0)
    return least, typical, found, excess


def _assign(beyond: Doubles, squares: Doubles, named: Sequence[Pair]) -> tuple[list[Pair], Doubles]:
    """The pairs with the least total root of distance beyond noise, and what is left of each."""
    from scipy.optimize import linear_sum_assignment

    costs = beyond**0.25
    unit = 1e-6 * (float(costs.max()) or 1.0)
    preference = unit * squares / (float(squares.max()) or 1.0)
    for pair in named:
        preference[pair] = -unit
    rows, columns = linear_sum_assignment(costs + preference)
    return list(zip(rows.tolist(), columns.tolist(), strict=True)), costs[rows, columns]


def _find_reach(own: Doubles, *, average: bool) -> Doubles:
    """The squared distance (C,) of each class to the nearest or the average other class, from those (C, C) of all."""
    others = own + np.diag(np.full(len(own), np.inf))
    reach: Doubles = (own.sum(axis=1) - np.diag(own)) / (len(own) - 1) if average else others.min(axis=1)
    return reach


def _lie_alike(first: Doubles, second: Doubles, rng: np.random.Generator) -> bool:
    """Whether classes with means (C, L) and (C', L) lie in the same directions from the mean class, beyond chance.

    They match better than most times the second are mirrored at random along some of their principal axes, and matched
    anew: how many classes there are to choose from, and which axes are long, is the same then. That takes six axes.
    """
    from scipy.optimize import linear_sum_assignment

    one, other = first - first.mean(axis=0), second - second.mean(axis=0)
    left, sizes, axes = np.linalg.svd(other, full_matrices=False)
    count = max(_FEWEST_MIRRORED, min(_MOST_MIRRORED, _MIRRORED_CELLS // left.shape[0] ** 2))
    signs = rng.choice([-1.0, 1.0], size=(1 + count, len(sizes)))
    signs[0] = 1.0
    totals = []
    for sign in signs:
        products = (one @ axes.T * sizes * sign) @ left.T
        totals.append(products[linear_sum_assignment(products, maximize=True)].sum())
    return float(np.mean(np.array(totals) >= totals[0] - 1e-9 * abs(totals[0]))) <= _ALIKE


# ------------------------------------------------------------------ which differ


def split_pairs(
    rows: Floats,
    pairs: Sequence[tuple[Indices, Indices]],
    groups: Indices | None,
    p: float,
    rng: np.random.Generator,
    workers: Workers,
) -> Doubles:
    """W_p^p (P, 1 + S) of features between the points of each two classes as they are, and split anew at random.

    Points of one group stay together, but for the last group that is needed to fill a side.
    """
    from sotdd.compute.kernels import couplings

    costs = np.empty((len(pairs), 1 + SPLITS))

    def mark(index: Indices, left: int) -> NDArray[np.uint8]:
        own = np.arange(len(index)) if groups is None else np.unique(groups[index], return_inverse=True)[1]
        keys = rng.random((1 + SPLITS, int(own.max()) + 1))[:, own]
        marks = np.ones(keys.shape, np.uint8)
        np.put_along_axis(marks, np.argsort(keys, axis=1, kind="stable")[:, :left], 0, axis=1)
        marks[0] = np.arange(len(index)) >= left
        return marks

    def work(item: tuple[int, Indices, int, NDArray[np.uint8]]) -> None:
        number, index, left, marks = item
        points = rows[:, index]
        order, found = np.argsort(points, axis=1), np.empty((len(rows), len(marks), 1))
        steps = Overlaps.of(left, len(index) - left)
        couplings.split_costs(
            np.take_along_axis(points, order, axis=1), order.astype(np.int32), marks, *steps, np.array([p]), found
        )
        costs[number] = found.mean(axis=(0, 2))

    joined = [(np.concatenate(pair), len(pair[0])) for pair in pairs]
    workers.each(work, [(number, *item, mark(*item)) for number, item in enumerate(joined)])
    return costs


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


# ------------------------------------------------------------------ what transport moves between them


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

    ``places`` say where their rows, class after class, are among all that are sliced.
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
        from sotdd.compute.kernels import couplings

        rows = [slices.engine.fetch_rows(slices.rows[place]) for place in self._places]
        (first, second), (codes, others), p = self._edges, self._codes, self._p

        def work(slot: int) -> None:
            for line in range((slot - slices.part.start) % _SLOTS, len(slices.block), _SLOTS):
                weights = slices.block.importance[line : line + 1]
                a, b = (side[line : line + 1] for side in rows)  # class after class, each sorted
                if slices.part.start + line < self._most_compared:
                    couplings.class_costs(a, first, b, second, weights, p, self._between[slot])
                # Equal values come in random order: in that of classes, these would seem to go together.
                left, right = (
                    ties[np.argsort(part[:, ties], axis=1)] for part, ties in zip((a, b), self._ties, strict=True)
                )
                couplings.couple_rows(a, left, codes, b, right, others, weights, p, self._moved[slot])

        slices.engine.workers.each(work, range(_SLOTS))
        self._count += len(slices.block)

    def conclude(self) -> ClassComparison:
        """All matrices."""
        p, compared = self._p, min(self._count, self._most_compared)
        between, (mass, costs) = (np.moveaxis(sums.sum(axis=0), -1, 0) for sums in (self._between, self._moved))
        mean = between[0] / compared
        distances = mean ** (1 / p)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):  # by the delta method
            variance = np.maximum(between[1] / compared - mean**2, 0.0) / max(compared - 1, 1)
            stderr = np.where(mean > 0, np.sqrt(variance) * distances / (p * mean), 0.0)
        if compared < 2:
            stderr[:] = np.nan
        if not (np.isfinite(costs).all() and np.isfinite(distances).all()):
            raise SotddError(f"transport to the power p={p:g} overflows: take a smaller p", use={"scale": "pooled"})
        mass, costs = mass / mass.sum(), costs / (float(costs.sum()) or 1.0)
        for array in (distances, stderr, mass, costs):
            array.flags.writeable = False
        return ClassComparison(distances, stderr, mass, costs, self._sizes, p)


def are_too_many(first: int, second: int) -> bool:
    """Whether this many classes of two datasets take too much memory to compare each with each."""
    return 32 * (_SLOTS * first * second + (first + second) ** 2) > _MOST_BYTES
