"""Points of two datasets dealt out to two sides, in several ways in one pass, under the first projections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.progress import Report
from sotdd.basics.streams import Stream, generator
from sotdd.engines.splits import Side, Ways, pooled_codes
from sotdd.inputs.data import LabelledData
from sotdd.projections.recipe import Projections
from sotdd.results.noise import PROJECTIONS

if TYPE_CHECKING:
    from sotdd.engines.cpu.splits import FeatureProjections, Pool

Doubles = NDArray[np.float64]
Indices = NDArray[np.int64]


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
        counts = np.bincount(self.codes[grouped])
        present = np.flatnonzero(counts)
        return Side(grouped, np.concatenate([[0], np.cumsum(counts[present])]).astype(np.int64), present)


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
