"""The one resampling plan: which points are pooled, how they are split into two sides, and what the sides cost.

Noise floors, halves, permutations and half samples are all such plans; `Resampling` carries them out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import OutOfRange, Result
from sotdd.basics.remarks import Remark, Remarks
from sotdd.basics.resources import Stream, generator, kept_property
from sotdd.inputs.data import LabelledData

if TYPE_CHECKING:
    from sotdd.compute.engine import Engine, Values
    from sotdd.compute.slices import ProjectedPoints, Slices

Doubles = NDArray[np.float64]
Indices = NDArray[np.int64]
Marks = NDArray[np.uint8]
# Does one piece of work per item, as `map` does or side by side.
Each: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]

# How many times the pooled points are split when a noise floor is asked for. Of the 60 outcomes that these and the
# data make, the three farthest are 5 %.
SPLITS = 59

# Splits are measured along this many of the projections, the same ones as the data, so few suffice to compare.
PROJECTIONS = 128

# How often datasets are halved, and along how many projections the halves are compared: enough to take off what their
# sizes alone give, and a small part of what a matrix costs.
HALVINGS = 4
HALVING_PROJECTIONS = 64

# Splits that are marked at a time.
_BATCH = 64

# Pools of more points than this, and of at least two to a cell, are counted in cells; each has at most so many of them.
_EXACT, _TOGETHER = 2048, 32
# Cells of a pool, so that they change a noise floor by about 0.2 % at 60,000 points to a side.
CELLS = 8192


@dataclass(frozen=True, eq=False)
class Side:
    """The points of one side of a split, the classes that are there one after another."""

    index: Indices  # (n,) indices among the points that are split
    offsets: Indices  # (C + 1,) class boundaries among them; every class has a point


@dataclass(frozen=True, eq=False)
class Plan:
    """Several ways to split pooled points into two sides of given sizes, and how the sides are compared.

    Classes of the pool are labels by value: "cat" of one dataset is "cat" of another, 1 is 1.0, and 0 is not "0".
    Split number s follows from the seed, s and the sizes alone, so it is the same for every projection and need not
    be kept. Class terms are computed anew on each side. Of large pools, neighbouring points of a class are counted as
    one cell, by a processor; the class means of both sides are those of cells too.

    Attributes
    ----------
    members
        The numbers of the datasets whose points are pooled.
    codes
        (N,) the class of every point that is split.
    sizes
        How many points go to each side.
    count
        How many ways there are.
    seed
        What they follow from.
    orders
        The orders of transport.
    index
        (N,) which points of the pool are split; None for all.
    actual
        Whether split 0 gives the first points to the left as they came.
    border
        Where the second dataset begins, if each side takes its points from one dataset; None if all are mixed.
    labels
        Whether labels count; otherwise points are compared by their features alone.
    n_projections
        How many projections the sides are compared along: the first ones.
    groups
        (N,) which points belong together: sides are filled with whole groups, of which the last may be cut. None if
        each point is by itself.
    n_cells
        About how many cells there are, or more, of 32 points, where the pool is large; None to go point by point.

    Examples
    --------
    >>> from sotdd.inputs.data import LabelledData
    >>> a = LabelledData.of(([[0.0], [1.0], [2.0]], ["cat", "dog", "cat"]))
    >>> b = LabelledData.of(([[3.0], [4.0]], ["dog", "cat"]))
    >>> plan = replace(Plan.of_pair([a, b], (0, 1), count=9, seed=0, orders=(2.0,)), actual=True)
    >>> left, right = plan.draw(0)  # as the datasets came
    >>> left.index.tolist(), left.offsets.tolist(), right.index.tolist()
    ([0, 2, 1], [0, 2, 3], [4, 3])
    >>> left, right = plan.draw(1)
    >>> len(left.index), len(right.index)
    (3, 2)
    """

    members: tuple[int, ...]
    codes: Indices
    sizes: tuple[int, int]
    count: int
    seed: int
    orders: tuple[float, ...]
    index: Indices | None = None
    actual: bool = False
    border: int | None = None
    labels: bool = True
    n_projections: int = PROJECTIONS
    groups: Indices | None = None
    n_cells: int | None = CELLS

    @classmethod
    def of_pair(
        cls, datasets: Sequence[LabelledData], pair: tuple[int, int], count: int, seed: int, orders: tuple[float, ...]
    ) -> Plan:
        """All points of two datasets, split into sides of the same sizes."""
        both = [datasets[number] for number in pair]
        sizes = both[0].n_points, both[1].n_points
        groups = pool_groups([data.groups for data in both], sizes)
        return cls(pair, pool_codes(both), sizes, count, seed, orders, groups=groups)

    @classmethod
    def of_halves(
        cls, datasets: Sequence[LabelledData], number: int, count: int, seed: int, orders: tuple[float, ...]
    ) -> list[Plan]:
        """One dataset, split into halves; nothing for a single point."""
        data = datasets[number]
        half = data.n_points // 2
        sizes = half, data.n_points - half
        groups = pool_groups([data.groups], [data.n_points])
        plan = cls((number,), pool_codes([data]), sizes, count, seed, orders, groups=groups)
        return [replace(plan, n_projections=HALVING_PROJECTIONS)] if half else []

    @classmethod
    def of_half_samples(
        cls, datasets: Sequence[LabelledData], pair: tuple[int, int], count: int, seed: int, orders: tuple[float, ...]
    ) -> Plan:
        """Half of the points of one dataset against half of the other's.

        From one half to another a distance varies as it does from sample to sample of the full sizes.
        """
        whole = cls.of_pair(datasets, pair, count, seed, orders)
        n, m = whole.sizes
        return replace(whole, sizes=(max(1, n // 2), max(1, m // 2)), border=n)

    @property
    def n_classes(self) -> int:
        """How many classes there are among the points that are split."""
        return len(self.edges) - 1

    @kept_property
    def grouped(self) -> Indices:
        """(N,) the points class by class."""
        return np.argsort(self.codes, kind="stable").astype(np.int64)

    @kept_property
    def edges(self) -> Indices:
        """(C + 1,) where the classes lie among them."""
        return np.concatenate([[0], np.cumsum(np.bincount(self.codes))]).astype(np.int64)

    @kept_property
    def cells(self) -> tuple[Indices, Indices, Indices] | None:
        """Where classes begin, where cells begin once each class is sorted, and the first cell of each class.

        Those at the ends of a class are smaller, as points lie farther apart there. None to go point by point.
        """
        n_points, offsets = len(self.codes), self.edges if self.labels else self.edges[[0, -1]]
        count = n_points if self.n_cells is None else max(self.n_cells, n_points // _TOGETHER)
        few = n_points <= max(_EXACT, 2 * count) or count + len(offsets) > np.iinfo(np.uint16).max
        if few or self.border is not None or not set(self.orders) <= {1.0, 2.0}:
            return None
        begins = []
        for offset, size in zip(offsets.tolist(), np.diff(offsets).tolist(), strict=False):
            parts = math.ceil(count * size / n_points)
            begins.append(offset + np.unique(np.rint(size * np.sin(np.pi / 2 * np.arange(parts) / parts) ** 2)))
        edges = np.concatenate([*begins, [n_points]]).astype(np.int64)
        return offsets, edges, np.cumsum([0, *map(len, begins)])

    def mark_sides(self, number: int) -> Marks:
        """(N,) 0 for points on the left of one of the splits, 1 for those on the right and 2 for those on neither."""
        (n, m), n_points = self.sizes, len(self.codes)
        if self.border is not None:
            rng, marks = generator(self.seed, Stream.HALF_SAMPLES, number), np.full(n_points, 2, np.uint8)
            marks[rng.permutation(self.border)[:n]] = 0
            marks[self.border + rng.permutation(n_points - self.border)[:m]] = 1
            return marks
        marks = np.ones(n_points, np.uint8)
        marks[slice(n) if self.actual and number == 0 else self._order_points(number)[:n]] = 0
        return marks

    def mark_all(self, numbers: range, each: Each = map) -> Marks:
        """(S, N) the same of several splits."""
        return np.stack(list(each(self.mark_sides, numbers)))

    def _order_points(self, number: int) -> Indices:
        """(N,) the points in random order, whatever their classes; those that belong together after each other."""
        rng = generator(self.seed, Stream.SPLITS, number)
        if self.groups is None:
            return rng.permutation(len(self.codes))
        places = rng.permutation(int(self.groups.max()) + 1)
        return np.argsort(places[self.groups], kind="stable")

    def draw(self, number: int) -> tuple[Side, Side]:
        """The two sides of one of the splits."""
        return self.list_sides(self.mark_sides(number))

    def list_sides(self, marks: Marks) -> tuple[Side, Side]:
        """The two sides that points (N,) are marked for."""
        marked = marks[self.grouped]
        return self._list_side(marked == 0), self._list_side(marked == 1)

    def _list_side(self, chosen: NDArray[np.bool_]) -> Side:
        counts = np.add.reduceat(chosen, self.edges[:-1], dtype=np.int64)
        return Side(self.grouped[chosen], np.concatenate([[0], np.cumsum(counts[counts > 0])]).astype(np.int64))


def pool_codes(datasets: Sequence[LabelledData]) -> Indices:
    """The class of every point of the pooled datasets, in the order of their first points, whatever they are called.

    Labels that are equal are one class.
    """
    seen: dict[Hashable, int] = {}
    parts = []
    for data in datasets:
        names = np.array([seen.setdefault(label, len(seen)) for label in data.classes], np.int64)
        parts.append(names[data.codes])
    _, first, codes = np.unique(np.concatenate(parts), return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes].astype(np.int64)


def pool_groups(groups: Sequence[Indices | None], sizes: Sequence[int]) -> Indices | None:
    """Which points of pooled datasets belong together, those of different datasets never; None if each is by itself."""
    if all(codes is None for codes in groups):
        return None
    pooled, n_groups = [], 0
    for codes, size in zip(groups, sizes, strict=True):
        own = np.arange(size) if codes is None else np.unique(codes, return_inverse=True)[1]
        pooled.append(own + n_groups)
        n_groups += int(own.max()) + 1
    return np.concatenate(pooled).astype(np.int64)


class Resampling:
    """Measures what the two sides of every split of some plans cost.

    Parameters
    ----------
    plans
        What to split, and how.

    Attributes
    ----------
    n_projections
        How many projections the points are needed along, in their own order: the first ones.
    """

    def __init__(self, plans: Sequence[Plan]) -> None:
        self._plans = plans
        self._costs: list[dict[int, list[Values]]] = [{} for _ in plans]  # by the first split of a batch
        self._weights: list[Doubles] = []
        self.n_projections: int = max((plan.n_projections for plan in plans), default=0)

    def add(self, slices: Slices) -> None:
        """Split the points of a chunk, where it has them in their own order."""
        if slices.points is not None:
            self.add_points(slices.points)

    def add_points(self, points: ProjectedPoints) -> None:
        """Split the points of all datasets by every plan that takes more projections."""
        self._engine = points.engine
        self._weights.append(points.weights)
        groups: dict[tuple[tuple[int, ...], int], list[int]] = {}  # plans that split the same points, pooled once
        for number, plan in enumerate(self._plans):
            left = plan.n_projections - points.part.start
            if left > 0:
                groups.setdefault((plan.members, left), []).append(number)

        def split(group: tuple[tuple[tuple[int, ...], int], list[int]]) -> None:
            (members, left), numbers = group
            pool = points.along(slice(left)).select(members)
            for number in numbers:
                plan = self._plans[number]
                some = pool if plan.index is None else pool.take(plan.index)
                for start in range(0, plan.count, _BATCH):
                    marks = plan.mark_all(range(start, min(start + _BATCH, plan.count)), pool.engine.workers.each)
                    self._costs[number].setdefault(start, []).append(pool.engine.split_costs(some, plan, marks))

        points.engine.each(split, list(groups.items()))

    def result(self) -> list[Doubles]:
        """Of each plan, W_p^p (B, S, orders) of its splits under the first B projections."""
        return [
            np.concatenate([collect_costs(batch, plan, self._engine) for batch in batches.values()], axis=1)
            for plan, batches in zip(self._plans, self._costs, strict=True)
        ]

    def average(self) -> list[Doubles]:
        """Of each plan, the weighted mean (S, orders) over projections."""
        weights = np.concatenate(self._weights)
        return [np.tensordot(weights[: len(costs)], costs, 1) / len(costs) for costs in self.result()]


def collect_costs(parts: Sequence[Values], plan: Plan, engine: Engine) -> Doubles:
    """W_p^p (B, S, orders) of some splits from what an engine gave for one chunk of projections after another."""
    costs = engine.collect(parts)
    if not np.isfinite(costs).all():
        raise OutOfRange(
            f"transport to the power p={max(plan.orders):g} overflows on a random split of the data: use a "
            "smaller p, bring outliers in, or scale the features",
            use={"scale": "pooled"},
        )
    return costs


def find_distances(costs: Doubles, p: float) -> Doubles:
    """Distances (S,) from W_p^p (L, S); powers are taken of numbers up to one."""
    largest = costs.max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    roots: Doubles = unit ** (1 / p) * np.mean(costs / unit, axis=0) ** (1 / p)
    return roots


# ------------------------------------------------------------------ what is too alike

# It is said where it is less likely than this. Less than this many deviations of chance is rounding.
_ALIKE, _ROUNDED = 0.01, 1e-6


@dataclass(frozen=True)
class TooAlike(Result):
    """Whether two datasets are more alike than two samples of one source, as rows that stand in both make them.

    Attributes
    ----------
    p_value
        The probability that two samples of one source are as near to each other.
    shared
        About which share of the rows of the smaller one stands in both: with k rows in both of n and m, squared
        distances are 1 − 2 k / (n + m) of what permutations give.
    stderr
        The standard error of that, where nothing is shared.
    visible
        The share that is hidden in noise: a smaller one has a p-value above 5 % more often than not.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.random.default_rng(0).normal(size=(600, 5))
    >>> sotdd.test(x[:400], x[200:]).too_alike
    TooAlike(p = 0.005: about 52 % ± 28 % shared, from 38 % on it would show)
    """

    p_value: float = 1.0
    shared: float = 0.0
    stderr: float = 0.0
    visible: float = 1.0

    @classmethod
    def of(cls, squares: NDArray[np.float64], sizes: tuple[int, int], p_value: float | None = None) -> TooAlike:
        """From squared distances (S,) of the data, which come first, and of permutations; by rank unless p is known."""
        null, times = squares[1:], sum(sizes) / (2 * min(sizes))
        mean = float(np.mean(null)) if len(null) else 0.0
        if mean <= 0:
            return cls()
        reached = np.count_nonzero(null <= squares[0] + _ROUNDED * float(np.std(null)))
        low = (1 - float(np.quantile(null, 0.05)) / mean) * times
        return cls(
            (1 + int(reached)) / len(squares) if p_value is None else p_value,
            min(1.0, max(0.0, (1 - float(squares[0]) / mean) * times)),
            float(np.std(null)) / mean * times,
            min(1.0, max(0.0, low)),
        )

    def list_remarks(self) -> Remarks:
        """A remark, where it is no chance."""
        return (Remark("too alike", **asdict(self)),) if self.p_value <= _ALIKE else ()

    def __repr__(self) -> str:
        """The p-value and the shares."""
        shared = f"{100 * self.shared:.0f} % ± {100 * self.stderr:.0f} %"
        shows = f"from {100 * self.visible:.0f} % on it would show"
        return f"TooAlike(p = {self.p_value:.2g}: about {shared} shared, {shows})"
