"""What a dataset's own halves cost: a few numbers by which distances of sketches know what their sizes alone give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.engines.chance import Chance, Pool, floor_of_halves, seed_of
from sotdd.inputs.data import LabelledData
from sotdd.projections.recipe import Projections
from sotdd.results.noise import NoiseFloor, rooted_means

if TYPE_CHECKING:
    from sotdd.engines.protocol import Engine

Halves = NDArray[np.float64]  # (2, S) distances of S halvings, for p = 1 and for p = 2

_ORDERS = (1, 2)


class Halving:
    """Halves a dataset a few times while its first projections go by; ``seen`` is called with every chunk."""

    def __init__(self, data: LabelledData, projections: Projections, engine: Engine) -> None:
        pool = Pool.of_halves([data], 0, seed_of(projections))
        self._chance = None if pool is None else Chance([pool], engine, _ORDERS)

    def seen(self, unplaced: object) -> None:
        """Compare the halves under these projections."""
        if self._chance is not None:
            self._chance.seen(unplaced)

    def halves(self) -> Halves | None:
        """The distances of halves; None for a single point, or where costs leave float64."""
        if self._chance is None:
            return None
        try:
            (costs,) = self._chance.costs()
        except SotddError:  # the sketch itself is good, and its distances say what overflows
            return None
        return np.array([rooted_means(costs[:, :, place], p) for place, p in enumerate(_ORDERS)])


def floor_of_sketches(
    known: Sequence[tuple[int, Halves | None]], p: float, sizes: tuple[int, int], distance: float
) -> NoiseFloor | None:
    """What samples of these sizes give by chance, from the number of points and the halves of each sketch.

    None where no sketch knows its halves, or they are not known for this p.
    """
    if p not in _ORDERS:
        return None
    row = _ORDERS.index(int(p))
    costs = [(n, halves[row][None, :] ** p) for n, halves in known if halves is not None]
    return floor_of_halves(costs, np.ones(1), sizes, p, distance)
