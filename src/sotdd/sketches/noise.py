"""Noise for differential privacy, and what is made of noisy counts.

**The noise is OpenDP's**, on vectors of whole numbers throughout. Three things are released: how many points each class
has, sums of label polynomials over each class, and counts of projected values in bins. A row changes each of them by no
more than a known length, the root of the sum of squares. The noise follows the discrete normal law, whose costs add up
as ρ of zero-concentrated privacy, also where a later release depends on earlier noisy ones; OpenDP says which ρ an ε
and a δ allow. What is made of noisy numbers costs no further privacy.
"""

from __future__ import annotations

import math
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, as_number, check_positive, describe, require
from sotdd.sketches.quantiles import Levels

Doubles = NDArray[np.float64]
Whole = NDArray[np.int64]

# How much of the budget each release gets. Sizes of classes are single numbers, and need the least.
SHARES = {"sizes": 0.04, "sums": 0.48, "bins": 0.48}
_SMALLEST_EPSILON, _LARGEST_EPSILON, _SMALLEST_DELTA = 1e-6, 100.0, 1e-12
# Points begin where a running sum rises by more than this many standard deviations of the noise on all bins together.
# Lower, and noise is taken for points far from all others; higher, and tails are cut off, which costs less.
_BEYOND_NOISE = 0.9


class Noise:
    """Noise of a budget, from OpenDP and the random numbers of the operating system."""

    def __init__(self, epsilon: float, delta: float) -> None:
        self.epsilon: float = check_positive(epsilon, "epsilon", "a positive number, such as 1")
        if not _SMALLEST_EPSILON <= self.epsilon <= _LARGEST_EPSILON:
            limits = f"{_SMALLEST_EPSILON:g} to {_LARGEST_EPSILON:g}"
            raise SotddError(f"is {describe(epsilon)}: expected a number from {limits}.", setting="epsilon")
        number = as_number(delta)
        if number is None or not _SMALLEST_DELTA <= number <= 0.1:
            raise SotddError(
                f"is {describe(delta)}: expected a number from {_SMALLEST_DELTA:g} to 0.1, far below one in as many "
                "points as there are, such as 1e-6.",
                setting="delta",
            )
        self.delta: float = number

    def scale(self, name: str, length: float) -> float:
        """The standard deviation of the noise on what a row changes by this length, for its share of the budget."""
        return unit_scale(self.epsilon, self.delta) * length / math.sqrt(SHARES[name])

    def mechanism(self, name: str, length: float) -> Any:  # noqa: ANN401  # OpenDP's Measurement
        """What adds the noise; its ``map`` tells what it costs of ρ."""
        dp = load_opendp()
        numbers = dp.vector_domain(dp.atom_domain(T="i64"))
        return dp.m.make_gaussian(numbers, dp.l2_distance(T="f64"), scale=self.scale(name, length))

    def add(self, name: str, numbers: Whole, length: float) -> tuple[Whole, float]:
        """Noisy numbers, and the variance of the noise."""
        noisy = self.mechanism(name, length)(numbers.ravel().tolist())
        return np.array(noisy, np.int64).reshape(numbers.shape), self.scale(name, length) ** 2


@lru_cache(maxsize=64)
def unit_scale(epsilon: float, delta: float) -> float:
    """The least standard deviation of normal noise on one number of sensitivity 1 that keeps to a budget."""
    dp = load_opendp()
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="f64")

    def keeps(scale: float) -> bool:
        curve = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=scale)).map(1.0)
        return bool(curve.epsilon(delta) <= epsilon)

    return float(dp.binary_search(keeps, bounds=(0.05, 1e9)))


def load_opendp() -> ModuleType:
    """OpenDP, with its mechanisms switched on, or an error that says how to install it."""
    dp = require("opendp.prelude", "a private release", "'sotdd[private]'")
    dp.enable_features("contrib")  # a switch for the whole process, without which OpenDP makes no mechanism
    return dp


def estimate_masses(noisy: NDArray[np.integer], variance: float, total: float) -> Doubles:
    """Masses (L, H) that sum to ``total`` in every row, from counts (L, H) with noise of this variance.

    Noise in empty bins would be mass far from all points, which transport pays for by its distance. So the bins before
    the first and after the last that hold points beyond noise are emptied; the others are brought to the nearest counts
    that are not negative and sum to the number of points.
    """
    masses = np.zeros(noisy.shape)
    for row, out in zip(noisy.astype(np.float64), masses, strict=True):
        first = _find_first_filled(row, variance)
        last = len(row) - _find_first_filled(row[::-1], variance)
        if first >= last:  # nothing stands out
            first, last = 0, len(row)
        out[first:last] = _project_onto_simplex(row[first:last], total)
    return masses


def find_mass_quantiles(masses: Doubles, edges: Doubles, levels: Levels) -> NDArray[np.float32]:
    """Means (L, Q) over parts of probability, of masses (L, H) that lie evenly between edges (L, H + 1)."""
    out = np.empty((len(masses), levels.count), np.float32)
    for row, places, means in zip(masses, edges, out, strict=True):
        cumulative = np.concatenate([[0.0], np.cumsum(row)]) / row.sum()
        cumulative[-1] = 1.0
        moments = np.concatenate([[0.0], np.cumsum(np.diff(cumulative) * (places[1:] + places[:-1]) / 2)])
        at = np.clip(np.searchsorted(cumulative, levels.edges, side="right") - 1, 0, len(row) - 1)
        share = cumulative[at + 1] - cumulative[at]
        taken = np.clip(levels.edges - cumulative[at], 0.0, share)
        within = np.divide(taken, share, out=np.zeros_like(taken), where=share > 0)
        integral = moments[at] + taken * (places[at] + within * (places[at + 1] - places[at]) / 2)
        means[:] = np.maximum.accumulate(np.diff(integral) / levels.shares)
    return out


def estimate_shift(masses: Doubles, variance: float, edges: Doubles, levels: Levels, weights: Doubles) -> float:
    """How far noise of this variance carries masses from themselves, in W_2 over projections that count by weights.

    They are noised once more and compared, which says about how far they are from what they were before their noise.
    """
    total = float(masses[0].sum())
    again = np.rint(masses + np.sqrt(variance) * np.random.default_rng(0).standard_normal(masses.shape))
    here = find_mass_quantiles(masses, edges, levels)
    there = find_mass_quantiles(estimate_masses(again.astype(np.int64), variance, total), edges, levels)
    return float(np.sqrt(np.mean(weights * ((there - here) ** 2.0 @ levels.shares))))


def _find_first_filled(row: Doubles, variance: float) -> int:
    """Where points begin: the first bin at which the running sum is farther above its lowest than noise carries it."""
    sums = np.cumsum(row)
    risen = sums - np.minimum.accumulate(np.concatenate([[0.0], sums[:-1]]))
    found = np.flatnonzero(risen > _BEYOND_NOISE * np.sqrt(variance * len(row)))
    return int(found[0]) if found.size else 0


def _project_onto_simplex(row: Doubles, total: float) -> Doubles:
    """The nearest numbers that are not negative and have this sum: all are lowered alike, and cut at zero."""
    falling = np.sort(row)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(row) + 1)
    kept = int(np.flatnonzero(falling > excess)[-1])
    nearest: Doubles = np.maximum(row - excess[kept], 0.0)
    return nearest
