"""Noise floors: pools of points dealt out to two sides at random, many times, beside the distances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import OutOfRange
from sotdd.engines.splits import Splits
from sotdd.inputs.data import LabelledData
from sotdd.projections.recipe import Projections
from sotdd.results.noise import HALVING_PROJECTIONS, HALVINGS, PROJECTIONS, NoiseFloor, rooted_means

if TYPE_CHECKING:
    from sotdd.engines.protocol import Engine, Projected

Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pool:
    """Some datasets whose points are dealt out together.

    Attributes
    ----------
    members
        Their numbers in the list of datasets.
    splits
        The ways to deal them out.
    n_projections
        How many of the projections they are seen through: the first ones.
    """

    members: tuple[int, ...]
    splits: Splits
    n_projections: int

    @classmethod
    def of_pair(cls, datasets: Sequence[LabelledData], pair: tuple[int, int], count: int, seed: int) -> Pool:
        """Both datasets of a pair, dealt out to sides of their own sizes."""
        both = [datasets[number] for number in pair]
        sizes = both[0].n_points, both[1].n_points
        return cls(pair, Splits.of(both, sizes, count, seed), PROJECTIONS)

    @classmethod
    def of_halves(cls, datasets: Sequence[LabelledData], number: int, seed: int, count: int = HALVINGS) -> Pool | None:
        """One dataset, dealt out to two halves some times; None for a single point."""
        data = datasets[number]
        half = data.n_points // 2
        if half == 0:
            return None
        return cls((number,), Splits.of([data], (half, data.n_points - half), count, seed), HALVING_PROJECTIONS)


class Chance:
    """Collects the costs of pools while projections go by; ``seen`` is called with every chunk of them."""

    def __init__(self, pools: Sequence[Pool], engine: Engine, orders: Sequence[float]) -> None:
        self._pools, self._engine, self._orders = pools, engine, orders
        self._costs: list[list[Any]] = [[] for _ in pools]
        self._done = 0

    def seen(self, projected: Projected) -> None:
        """Deal the pools out under those of these projections that count."""
        before = self._done
        if before >= max(pool.n_projections for pool in self._pools):
            return  # no pool has any left to see
        for pool, kept in zip(self._pools, self._costs, strict=True):
            points = projected.pool(pool.members)
            self._done = before + len(points.rows)
            left = pool.n_projections - before
            if left > 0:
                part = points if left >= len(points.rows) else points.part(slice(0, left))
                kept.append(self._engine.split_costs(part, pool.splits, self._orders))

    def costs(self) -> list[Doubles]:
        """Of each pool, W_p^p (B, S, orders) of its splits under the first B projections."""
        return [usable_costs(self._engine.collect(kept), max(self._orders)) for kept in self._costs]


def apart_by_halves(costs: Doubles, importance: Doubles, p: float) -> Doubles:
    """How far halves of a dataset are apart (S,), from W_p^p (B, S)."""
    return rooted_means(costs * importance[: len(costs), None], p)


def floor_of_halves(
    halves: Sequence[tuple[int, Doubles]], sizes: tuple[int, int], p: float, distance: float
) -> NoiseFloor | None:
    """The floor that datasets of these sizes would have, from the halves of each; None where neither could be halved.

    ``halves`` holds, of each of the two, its number of points and how far its halves are apart. Distances of
    samples fall with the root of 1/n + 1/m, which is 4/n for two halves.
    """
    scaled = []
    for n, apart in halves:
        half = n // 2
        scaled.append(apart * math.sqrt((1 / sizes[0] + 1 / sizes[1]) / (1 / half + 1 / (n - half))))
    return NoiseFloor(np.concatenate(scaled), p, distance) if scaled else None


def usable_costs(costs: Doubles, p: float) -> Doubles:
    """Transport costs of splits, or an error where they left float64."""
    if not np.isfinite(costs).all():
        raise OutOfRange(
            f"transport to the power p={p:g} overflows on a random split of the data: use a smaller p, "
            "scale='pooled', or bring outliers in."
        )
    return costs


def seed_of(projections: Projections) -> int:
    """A seed for splits that follows from the projections alone."""
    return int(projections.fingerprint, 16)
