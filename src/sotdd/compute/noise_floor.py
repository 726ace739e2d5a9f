"""What two samples of the same data would give: the floor that a distance stands on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import check_level
from sotdd.basics.text import say_count
from sotdd.compute.resampling import find_distances

# The logarithm of the largest float, which limits of absurd levels are held to.
_LARGEST_LOG = math.log(np.finfo(np.float64).max)

# Fewer splits do not settle, with 90 % confidence, that a distance beyond all of them is beyond 5 % of all splits.
_FEWEST_COUNTED = 59

# A verdict is borderline where this level of confidence does not settle it.
_CONFIDENCE = 0.9


@dataclass(frozen=True, eq=False)
class NoiseFloor:
    """Distances of random splits of the pooled data, measured as the distance itself is.

    Every split gives all points of both datasets at random to two sides of the original sizes,
    labels with their points, and class terms are computed anew on each side. Splits and data are seen
    through the same projections, all of them by plain means: if both datasets are samples of one source,
    the data are one more split, so the verdict errs as often as its level says, whatever the law.

    Attributes
    ----------
    distances
        The distance of each split, in the unit of ``distance``.
    p
        The order of transport.
    distance
        The distance that they are compared with.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.compute.noise_floor import NoiseFloor
    >>> floor = NoiseFloor(np.linspace(0.04, 0.06, 59), p=2, distance=0.052)
    >>> floor
    NoiseFloor(0.0503 ± 0.0059 from split to split, 59 splits)
    >>> floor.p_value, floor.borderline
    (0.4166666666666667, False)
    """

    distances: NDArray[np.float64]
    p: float
    distance: float = math.nan

    @classmethod
    def of(cls, costs: NDArray[np.float64], of_data: NDArray[np.float64], p: float, distance: float) -> NoiseFloor:
        """From W_p^p (B, S) of the first projections and every split, and (L,) of the data under all projections.

        ``distance`` is the best estimate there is for the data. What the same projections make of the splits
        and of the data is brought to its unit, so that what these projections exaggerate cancels.
        """
        plain = float(find_distances(of_data[: len(costs), None], p)[0])
        unit = distance / plain if plain > 0 and distance > 0 else 1.0
        return cls(find_distances(costs, p) * unit, p, distance)

    @classmethod
    def of_halves(
        cls, halves: Sequence[tuple[int, NDArray[np.float64]]], sizes: tuple[int, int], p: float, distance: float
    ) -> NoiseFloor | None:
        """The floor that datasets of these sizes would have, from the halves of each; None where none was halved.

        ``halves`` holds, of each of the two, its number of points and how far its halves are apart. Distances of
        samples fall with the root of 1/n + 1/m, which is 4/n for two halves.
        """
        scaled = []
        for n, apart in halves:
            half = n // 2
            scaled.append(apart * math.sqrt((1 / sizes[0] + 1 / sizes[1]) / (1 / half + 1 / (n - half))))
        return cls(np.concatenate(scaled), p, distance) if scaled else None

    @property
    def p_value(self) -> float:
        """How often a split is as far apart, the data themselves counted as one of them."""
        return (1 + int(np.count_nonzero(self.distances >= self.distance))) / (1 + len(self.distances))

    @property
    def within(self) -> bool:
        """Whether the distance is no farther than splits often are: beyond it is what 5 % of them exceed.

        By rank where there are splits enough for 5 %, which is 19; by Student's limit where there are fewer.
        """
        return self.distance <= self.limit(0.95)

    @property
    def borderline(self) -> bool:
        """Whether as many splits again might turn the verdict at 5 %.

        The share of all splits that are as far apart lies, with 90 % confidence, on both sides of 5 %. Where there are
        too few splits for their number to settle it, the distance is as far as 1 to 20 % of splits by Student's limit.
        """
        from scipy.special import betaincinv

        if len(self.distances) < _FEWEST_COUNTED:
            return self._student(0.8) < self.distance < self._student(0.99)
        count, farther = len(self.distances), int(np.count_nonzero(self.distances >= self.distance))
        tail = (1 - _CONFIDENCE) / 2
        low = float(betaincinv(farther, count - farther + 1, tail)) if farther else 0.0
        high = float(betaincinv(farther + 1, count - farther, 1 - tail)) if farther < count else 1.0
        return low < 0.05 < high

    @property
    def value(self) -> float:
        """The floor: the root of the mean of W_p^p over projections and splits."""
        unit = float(self.distances.max()) or 1.0
        return unit * math.pow(float(np.mean((self.distances / unit) ** self.p)), 1 / self.p)

    @property
    def power(self) -> float:
        """The floor to the power p: the mean of W_p^p over projections and splits."""
        return float(np.mean(self.distances**self.p))

    @property
    def spread(self) -> float:
        """Standard deviation of the distance from split to split."""
        return float(np.std(self.distances, ddof=1))

    def limit(self, level: float = 0.95) -> float:
        """What a further split would stay below with this probability, whatever the law.

        That many of the splits, in order, are below it. Where there are too few for the level it is
        Student's prediction limit for the logarithm; for the distances themselves where one of them is zero.
        """
        share = check_level(level)
        count = len(self.distances)
        rank = math.ceil(round((count + 1) * share, 9))
        return float(np.sort(self.distances)[rank - 1]) if rank <= count else self._student(share)

    def _student(self, share: float) -> float:
        """Student's prediction limit for the logarithm of a further split."""
        from scipy.special import stdtrit

        count = len(self.distances)
        positive = bool(self.distances.min() > 0)
        draws = np.log(self.distances) if positive else self.distances
        reach = float(stdtrit(count - 1, share)) * float(np.std(draws, ddof=1)) * math.sqrt(1 + 1 / count)
        limit = float(np.mean(draws)) + reach
        return float(np.exp(min(limit, _LARGEST_LOG))) if positive else limit

    def __repr__(self) -> str:
        """Value, spread and number of splits."""
        splits = say_count(len(self.distances), "split")
        return f"NoiseFloor({self.value:.3g} ± {self.spread:.2g} from split to split, {splits})"

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return {
            "noise_floor": self.value,
            "noise_spread": self.spread,
            "noise_limit_95": self.limit(0.95),
            "noise_splits": len(self.distances),
            "noise_p_value": self.p_value,
            "borderline": self.borderline,
        }
