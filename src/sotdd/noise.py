"""What two samples of the same data would give: the floor that a distance stands on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.checks import as_number, described
from sotdd.errors import SotddError

# How many times the pooled points are dealt out anew when a noise floor is asked for.
SPLITS = 8


@dataclass(frozen=True, eq=False)
class NoiseFloor:
    """Distances of random splits of the pooled data, through the same projections as the distance itself.

    Every split deals all points of both datasets out at random to two sides of the original sizes,
    labels with their points, and class terms are computed anew on each side. All projections see
    the same splits, so every one of ``distances`` is a distance of two actual samples.

    Attributes
    ----------
    distances
        The distance of each split.
    p
        The order of transport.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.noise import NoiseFloor
    >>> floor = NoiseFloor(np.array([0.046, 0.050, 0.052, 0.048]), p=2)
    >>> floor
    NoiseFloor(0.0491 ± 0.0026 from split to split, 4 splits)
    >>> bool(floor.value < 0.052 < floor.limit(0.95))
    True
    """

    distances: NDArray[np.float64]
    p: float

    def __post_init__(self) -> None:
        """Freeze the numbers."""
        kept = np.array(self.distances, np.float64)
        kept.flags.writeable = False
        object.__setattr__(self, "distances", kept)

    @classmethod
    def of(cls, costs: NDArray[np.float64], p: float) -> NoiseFloor:
        """From W_p^p (L, S) of every projection and split."""
        return cls(rooted_means(costs, p), p)

    @property
    def value(self) -> float:
        """The floor: the root of the mean of W_p^p over projections and splits."""
        unit = float(self.distances.max()) or 1.0
        return unit * math.pow(float(np.mean((self.distances / unit) ** self.p)), 1 / self.p)

    @property
    def spread(self) -> float:
        """Standard deviation of the distance from split to split."""
        return float(np.std(self.distances, ddof=1))

    def limit(self, level: float = 0.95) -> float:
        """What a further split would stay below with this probability.

        Student's prediction limit for the logarithm, since distances of splits are skewed; for the
        distances themselves where one of them is zero.
        """
        share = as_number(level)
        if share is None or not 0 < share < 1:
            raise SotddError(f"level is {described(level)}: expected a number between 0 and 1, such as 0.95.")
        from scipy.special import stdtrit

        count = len(self.distances)
        positive = bool(self.distances.min() > 0)
        draws = np.log(self.distances) if positive else self.distances
        reach = float(stdtrit(count - 1, share)) * float(np.std(draws, ddof=1)) * math.sqrt(1 + 1 / count)
        limit = float(np.mean(draws)) + reach
        return math.exp(limit) if positive else limit

    def __repr__(self) -> str:
        """Value, spread and number of splits."""
        return f"NoiseFloor({self.value:.3g} ± {self.spread:.2g} from split to split, {len(self.distances)} splits)"

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return {
            "noise_floor": self.value,
            "noise_spread": self.spread,
            "noise_limit_95": self.limit(0.95),
            "noise_splits": len(self.distances),
        }


def check_splits(noise_floor: object) -> int:
    """How many splits a ``noise_floor`` argument asks for, or refuse."""
    if isinstance(noise_floor, (bool, np.bool_)):
        return SPLITS if noise_floor else 0
    if not isinstance(noise_floor, (int, np.integer)) or noise_floor < 2:
        raise SotddError(
            f"noise_floor is {described(noise_floor)}: expected True, False or a number of splits of at least 2."
        )
    return int(noise_floor)


def rooted_means(costs: NDArray[np.float64], p: float) -> NDArray[np.float64]:
    """Distances (S,) from W_p^p (L, S); powers are taken of numbers up to one."""
    largest = costs.max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    roots: NDArray[np.float64] = unit ** (1 / p) * np.mean(costs / unit, axis=0) ** (1 / p)
    return roots
