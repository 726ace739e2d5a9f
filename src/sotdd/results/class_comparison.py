"""How far apart the classes of two datasets are, and what transport moves between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


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
    def separation(self) -> tuple[Doubles, Doubles]:
        """(C,) and (C',): how far each class is from the nearest other class of its own dataset.

        Infinite for an only class.
        """
        return self.within[0].min(axis=1), self.within[1].min(axis=1)

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
