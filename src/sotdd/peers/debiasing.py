"""Samples lie farther apart than what they are samples of: by how much, and the distance without it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from sotdd.basics.errors import SotddError
from sotdd.basics.streams import Stream, generator
from sotdd.peers.points import Points

Debias: TypeAlias = Literal["difference", "powers"]

# The p-th power of the distance between two samples.
Power: TypeAlias = Callable[[Points, Points], float]


@dataclass(frozen=True, eq=False)
class Halves:
    """Two samples of one dataset without a point in common, and how far apart they are: the sampling floor.

    Attributes
    ----------
    first, second
        The samples, of the same size.
    power
        The p-th power of their distance.
    """

    first: Points
    second: Points
    power: float

    @classmethod
    def of(cls, points: Points, size: int, seed: int, power: Power) -> Halves:
        """Deal points at random to two sides of this size.

        Datasets of one size are dealt alike, as they are sampled alike.
        """
        rows = generator(seed, Stream.DEBIASING_HALVES, 0).permutation(len(points))
        first, second = points.rows(np.sort(rows[:size])), points.rows(np.sort(rows[size : 2 * size]))
        return cls(first, second, power(first, second))


def common_size(a: Points, b: Points) -> int:
    """How many points a half has: as many for both datasets, since the floor depends on the size."""
    size = min(len(a), len(b)) // 2
    if size == 0:
        alone = a if len(a) < 2 else b
        raise SotddError(f"debias needs two points of each dataset and {alone.name!r} has one: pass debias=None.")
    return size


def debiased(a: Halves, b: Halves, power: Power, how: Debias, p: float) -> float:
    """What is left of the distance between two datasets once their sampling floors are taken off; it may be negative.

    Each half is compared with the other half of the other dataset: a dataset and its copy, or rows that belong
    together, would otherwise meet themselves, which is nearer than any floor.
    """
    across = np.array([power(a.first, b.second), power(a.second, b.first)])
    floors = np.array([a.power, b.power])
    if how == "powers":
        left = float(across.mean() - floors.mean())
        return math.copysign(float(abs(left) ** (1 / p)), left)
    return float(np.mean(across ** (1 / p)) - np.mean(floors ** (1 / p)))
