"""Noise floors of classes: from their halves, and from the points of two classes dealt out anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sotdd.engines.dealing import Deal, Indices, taken
from sotdd.engines.splits import Splits
from sotdd.inputs.data import LabelledData
from sotdd.results.noise import HALVING_PROJECTIONS, HALVINGS

if TYPE_CHECKING:
    from sotdd.engines.cpu.engine import CpuEngine
    from sotdd.engines.cpu.splits import FeatureProjections

Doubles = NDArray[np.float64]


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
