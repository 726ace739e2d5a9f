"""How far off distances of sketches may be: by what the sketches lost, and by chance.

**What is lost.** Of each projection a sketch keeps three numbers, the columns of ``lost`` (L, 3). With F the quantile
function of the projected points and f the one put together from its means (`sotdd.kernels.quantiles`), they are

1. at least the mean of |F − f|,
2. at least the root of the mean of |F − f|²,
3. how far F itself may be off, in W_2, where values were counted in bins (streams) or rounded (half-size files).

Log-convexity of norms gives ‖F − f‖_p for p between 1 and 2. The distance is a p-norm over probabilities and
projections together, so by the triangle inequality it is off by at most the sum over both sketches. For p = 2
more is known. F − f has mean zero on each part, so it is orthogonal to whatever is constant there. With d the distance
of f and g, w the root of what they differ by within parts, and r at most ‖F − f‖ + ‖G − g‖, the true square is between
d² − 2 w r and d² + 2 w r + r².

**Chance.** A sketch also keeps how far apart random halves of its points are. From these ``halves`` a distance knows
what two samples of its sizes would give if they came from the same source. They are seen through the first projections
only, by plain means, and brought from the sizes of halves to those of the datasets by the root law of means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.engines.chance import Chance, Pool, apart_by_halves, floor_of_halves, seed_of
from sotdd.inputs.data import LabelledData
from sotdd.projections.recipe import Projections
from sotdd.results.noise import NoiseFloor
from sotdd.sketches.levels import Levels

if TYPE_CHECKING:
    from sotdd.engines.protocol import Engine, Projected

Lost = NDArray[np.float64]  # (L, 3)
Halves = NDArray[np.float64]  # (2, S) distances of S halvings, for p = 1 and for p = 2

HALVING_ORDERS = (1, 2)
# How often a dataset is halved: two sketches have twice as many distances of halves, enough to judge at 5 % by rank.
_HALVINGS = 12
# A bound beyond this share of the value gets a remark.
_TOLERATED = 0.05


def lost_by_means(
    rows: NDArray[np.float32], places: NDArray[np.float64], means: NDArray[np.float32], levels: Levels
) -> NDArray[np.float64]:
    """What is lost once rows (L, n) are reduced to their means over these levels: the first two columns."""
    from sotdd.kernels.quantiles import row_losses

    now = np.empty((len(rows), 2))
    row_losses(rows, places, means, levels.edges, levels.smooth, now)
    return now


def error_bound(
    a: Lost | None,
    b: Lost | None,
    value: float,
    within: NDArray[np.float64],
    p: float,
    weights: NDArray[np.float64],
) -> tuple[float, float] | None:
    """How far a distance of two sketches may be off, and how much of that comes from bins or rounding.

    ``within`` (L,) is what their functions differ by within parts, for p = 2. None where no bound is known: for p above
    2, or where a sketch does not say what it lost. Projections count by ``weights`` (L,).
    """
    if a is None or b is None or p > 2:
        return None
    share = 2 / p - 1  # 1/p = share / 1 + (1 - share) / 2
    in_a, in_b = (part[:, 0] ** share * part[:, 1] ** (1 - share) for part in (a, b))
    by_means = _mean_norm(in_a + in_b, p, weights)
    by_bins = _mean_norm(a[:, 2] + b[:, 2], p, weights)
    if p == 2:
        crossed = 2 * math.sqrt(float(np.mean(within * weights))) * by_means
        above = math.sqrt(value**2 + crossed + by_means**2) - value
        below = value - math.sqrt(max(value**2 - crossed, 0.0))
        by_means = max(above, below)
    return by_means + by_bins, by_bins


def error_remark(error: float, by_bins: float, value: float) -> tuple[str, ...]:
    """Say when the bound is no longer small beside the value, and what to do about it."""
    if error <= _TOLERATED * value:
        return ()
    cause, advice = (
        ("the bins that values were counted in", "sketch the data whole, not as a stream or in a half-size file")
        if 2 * by_bins > error
        else ("the quantiles kept", "sketch with more n_quantiles")
    )
    return (f"{cause} are coarse for a difference this small: the value may be off by up to {error:.2g}; {advice}",)


class Halving:
    """Halves a dataset a few times while its first projections go by; ``seen`` is called with every chunk."""

    def __init__(self, data: LabelledData, projections: Projections, engine: Engine) -> None:
        pool = Pool.of_halves([data], 0, seed_of(projections), _HALVINGS)
        self._chance = None if pool is None else Chance([pool], engine, HALVING_ORDERS)

    def seen(self, projected: Projected) -> None:
        """Compare the halves under these projections."""
        if self._chance is not None:
            self._chance.seen(projected)

    def halves(self, weights: NDArray[np.float64]) -> Halves | None:
        """The distances of halves, where projections count by weights (L,).

        None for a single point, or where costs overflow float64.
        """
        if self._chance is None:
            return None
        try:
            (costs,) = self._chance.costs()
        except SotddError:  # the sketch itself is good, and its distances say what overflows
            return None
        return np.array([apart_by_halves(costs[:, :, at], weights, p) for at, p in enumerate(HALVING_ORDERS)])


def floor_of_sketches(
    sized_halves: Sequence[tuple[int, Halves | None]], p: float, sizes: tuple[int, int], distance: float
) -> NoiseFloor | None:
    """What samples of these sizes give by chance, from the number of points and the halves of each sketch.

    None where no sketch knows its halves, or they are not known for this p.
    """
    if p not in HALVING_ORDERS:
        return None
    row = HALVING_ORDERS.index(int(p))
    known = [(n, halves[row]) for n, halves in sized_halves if halves is not None]
    return floor_of_halves(known, sizes, p, distance)


def _mean_norm(numbers: NDArray[np.float64], p: float, weights: NDArray[np.float64]) -> float:
    """The p-norm of numbers over projections, which count by weights."""
    largest = float(np.max(numbers)) or 1.0
    return float(largest * np.mean(weights * (numbers / largest) ** p) ** (1 / p))
