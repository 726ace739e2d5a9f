"""Random ways to deal the points of pooled datasets out to two sides, labels with their points."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.progress import Report
from sotdd.basics.streams import Stream, generator
from sotdd.inputs.data import LabelledData
from sotdd.projections.recipe import Projections
from sotdd.results.noise import PROJECTIONS

if TYPE_CHECKING:
    from sotdd.engines.cpu.splits import FeatureProjections, Pool

Doubles = NDArray[np.float64]
Indices = NDArray[np.int64]

# The standard deviation of a normal law in terms of its median absolute deviation.
NORMAL_DEVIATION = 1.4826


@dataclass(frozen=True, eq=False)
class Side:
    """The points of a pool that were dealt to one side, the classes that are there one after another."""

    index: NDArray[np.int64]  # (n,) indices in the pool
    offsets: NDArray[np.int64]  # (C + 1,) class boundaries among them; every class has a point
    classes: NDArray[np.int64]  # (C,) which classes of the pool these are


class Ways(Protocol):
    """Several ways to take two sides from a pool of points: what engines ask of them."""

    @property
    def sizes(self) -> tuple[int, int]:
        """How many points go to each side."""

    @property
    def n_classes(self) -> int:
        """How many classes the pool has."""

    def __len__(self) -> int:
        """How many ways there are."""

    def draw(self, number: int) -> tuple[Side, Side]:
        """The two sides of one of them."""


@dataclass(frozen=True, eq=False)
class Splits:
    """Several ways to deal the points of a pool out to two sides of given sizes.

    Classes of the pool are labels by value: "cat" of one dataset is "cat" of another, 1 is 1.0, and
    0 is not "0". Split number s follows from the seed, s and the sizes alone, so it is the same for
    every projection and need not be kept.

    Examples
    --------
    >>> from sotdd.inputs.data import LabelledData
    >>> from sotdd.engines.splits import Splits
    >>> a = LabelledData.of(([[0.0], [1.0], [2.0]], ["cat", "dog", "cat"]))
    >>> b = LabelledData.of(([[3.0], [4.0]], ["dog", "cat"]))
    >>> splits = Splits.of([a, b], (3, 2), count=9, seed=0, actual=True)
    >>> left, right = splits.draw(0)  # as the datasets came
    >>> left.index.tolist(), left.offsets.tolist(), right.index.tolist()
    ([0, 2, 1], [0, 2, 3], [4, 3])
    >>> left, right = splits.draw(1)
    >>> len(left.index), len(right.index)
    (3, 2)
    """

    sizes: tuple[int, int]
    start: int
    stop: int
    seed: int
    actual: bool
    grouped: NDArray[np.int64]  # (N,) indices in the pool, class by class
    edges: NDArray[np.int64]  # (C + 1,) where the classes lie among them

    @classmethod
    def of(
        cls, datasets: Sequence[Any], sizes: tuple[int, int], count: int, seed: int, *, actual: bool = False
    ) -> Splits:
        """Pool datasets, or whatever has their ``classes`` and ``codes``.

        With ``actual``, split 0 gives the first points to the left as they came.
        """
        codes = pooled_codes(datasets)
        grouped = np.argsort(codes, kind="stable").astype(np.int64)
        edges = np.concatenate([[0], np.cumsum(np.bincount(codes))]).astype(np.int64)
        return cls(sizes, 0, count, seed, actual, grouped, edges)

    def __len__(self) -> int:
        """How many splits these are."""
        return self.stop - self.start

    @property
    def n_classes(self) -> int:
        """How many classes the pool has."""
        return len(self.edges) - 1

    @property
    def codes(self) -> NDArray[np.int64]:
        """Of every point of the pool, in its own order, which class it is of."""
        codes = np.empty(len(self.grouped), np.int64)
        codes[self.grouped] = np.repeat(np.arange(self.n_classes), np.diff(self.edges))
        return codes

    def part(self, first: int, last: int) -> Splits:
        """Splits first, …, last - 1 of these."""
        return replace(self, start=self.start + first, stop=min(self.start + last, self.stop))

    def draw(self, number: int) -> tuple[Side, Side]:
        """The two sides of one of these splits."""
        split = self.start + number
        if self.actual and split == 0:
            left = self.grouped < self.sizes[0]
        else:
            left = np.zeros(len(self.grouped), np.bool_)
            chosen = generator(self.seed, Stream.SPLITS, split).permutation(len(left))[: self.sizes[0]]
            left[chosen] = True
        counts = np.add.reduceat(left, self.edges[:-1], dtype=np.int64)
        others = np.diff(self.edges) - counts
        return _side(self.grouped[left], counts), _side(self.grouped[~left], others)


def _side(index: Indices, counts: Indices) -> Side:
    """The side of points that lie class by class, so many of each class."""
    present = np.flatnonzero(counts)
    return Side(index, np.concatenate([[0], np.cumsum(counts[present])]).astype(np.int64), present)


def pooled_codes(datasets: Sequence[Any]) -> NDArray[np.int64]:
    """The class of every point of the pooled datasets, where labels that are equal are one class."""
    seen: dict[Hashable, int] = {}
    parts = []
    for data in datasets:
        names = np.array([seen.setdefault(label, len(seen)) for label in data.classes], np.int64)
        parts.append(names[data.codes])
    # A class whose label no point has would be an empty group.
    return np.unique(np.concatenate(parts), return_inverse=True)[1].astype(np.int64)


# ------------------------------------------------------------------ several ways in one pass


@dataclass(frozen=True, eq=False)
class Deal:
    """Some of the pooled points of two datasets, and ways to deal them out.

    Attributes
    ----------
    ways
        How to deal them out.
    index
        Which points; None for all.
    by_features
        Whether points are compared by their features alone, without the terms of their classes.
    """

    ways: Ways
    index: Indices | None = None
    by_features: bool = False

    def points(self, pool: Pool) -> Pool:
        """These points of the pool of both datasets."""
        if self.by_features:
            pool = pool.shifted(np.zeros((len(pool.rows), self.ways.n_classes)))
        return pool if self.index is None else taken(pool, self.index)


@dataclass(frozen=True, eq=False)
class HalfSamples:
    """Half of the points of one dataset against half of the other's, in several ways.

    From one half to another a distance varies as it does from sample to sample of the full sizes.
    """

    codes: Indices  # (N,) the class of every point of the pool
    n_points: tuple[int, int]
    count: int
    seed: int

    @classmethod
    def of(cls, datasets: Sequence[LabelledData], count: int, seed: int, *, labels: bool) -> HalfSamples:
        """Of two datasets; without labels all points are of one class, and halves are the same ones."""
        codes = pooled_codes(datasets)
        sizes = datasets[0].n_points, datasets[1].n_points
        return cls(codes if labels else np.zeros_like(codes), sizes, count, seed)

    @property
    def n_classes(self) -> int:
        """How many classes the pool has."""
        return int(self.codes.max()) + 1

    @property
    def sizes(self) -> tuple[int, int]:
        """How many points go to each side."""
        n, m = self.n_points
        return max(1, n // 2), max(1, m // 2)

    def __len__(self) -> int:
        """How many ways there are."""
        return self.count

    def draw(self, number: int) -> tuple[Side, Side]:
        """The two sides of one of them."""
        rng = generator(self.seed, Stream.HALF_SAMPLES, number)
        (n, m), (few, fewer) = self.n_points, self.sizes
        return self._side(rng.permutation(n)[:few]), self._side(n + rng.permutation(m)[:fewer])

    def _side(self, index: Indices) -> Side:
        grouped = index[np.argsort(self.codes[index], kind="stable")]
        return _side(grouped, np.bincount(self.codes[grouped]))


def deal_out(
    datasets: Sequence[LabelledData], deals: Sequence[Deal], projections: Projections, p: float, report: Report
) -> list[Doubles]:
    """Of each deal, W_p^p (S,) between the two sides of every way, on the processor.

    Means over the first projections, each counting by its importance; class terms are computed anew on each side.
    """
    from sotdd.engines.cpu.engine import CpuEngine

    count = min(PROJECTIONS, projections.n_projections)
    sums = [np.zeros(len(deal.ways)) for deal in deals]
    done = 0
    with CpuEngine(chunk=PROJECTIONS) as engine:

        def seen(projected: FeatureProjections) -> None:
            points = projected.pool([0, 1]).part(slice(0, count - done))
            weights = projected.block.importance[: len(points.rows)]
            for number, deal in enumerate(deals):
                costs = engine.split_costs(deal.points(points), deal.ways, [p])[:, :, 0]
                sums[number] += np.matmul(weights, costs)

        for view in engine.views(datasets, projections, before_sorting=seen):
            done = min(view.part.stop, count)
            report(done, count)
            if done == count:
                break
    return [total / count for total in sums]


def taken(pool: Pool, index: Indices) -> Pool:
    """Some points of a pool."""
    label_rows = None if pool.label_rows is None else np.take(pool.label_rows, index, axis=1)
    return replace(pool, rows=np.take(pool.rows, index, axis=1), label_rows=label_rows)
