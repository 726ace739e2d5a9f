"""Noisy counts as quantile functions. Nothing here sees data, so nothing here costs privacy.

Noise in empty bins would be mass far from all points, which transport pays for by its distance. So the bins before the
first and after the last that hold points beyond noise are emptied; the others are brought to the nearest counts that
are not negative and sum to the number of points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sotdd.sketches.levels import Levels
from sotdd.sketches.privacy import Doubles

# Points begin where a running sum rises by more than this many standard deviations of the noise on all bins together.
# Lower, and noise is taken for points far from all others; higher, and tails are cut off, which costs less.
_BEYOND_NOISE = 0.9


def masses_of(noisy: NDArray[np.integer], variance: float, total: float) -> Doubles:
    """Masses (L, H) that sum to ``total`` in every row, from counts (L, H) with noise of this variance."""
    masses = np.zeros(noisy.shape)
    for row, out in zip(noisy.astype(np.float64), masses, strict=True):
        first = _first_filled(row, variance)
        last = len(row) - _first_filled(row[::-1], variance)
        if first >= last:  # nothing stands out
            first, last = 0, len(row)
        out[first:last] = _onto_simplex(row[first:last], total)
    return masses


def quantiles_of_masses(masses: Doubles, edges: Doubles, levels: Levels) -> NDArray[np.float32]:
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


def moved_by_noise(masses: Doubles, variance: float, edges: Doubles, levels: Levels, weights: Doubles) -> float:
    """How far noise of this variance carries masses from themselves, in W_2 over projections that count by weights.

    They are noised once more and compared, which says about how far they are from what they were before their noise.
    """
    total = float(masses[0].sum())
    again = np.rint(masses + np.sqrt(variance) * np.random.default_rng(0).standard_normal(masses.shape))
    here = quantiles_of_masses(masses, edges, levels)
    there = quantiles_of_masses(masses_of(again.astype(np.int64), variance, total), edges, levels)
    return float(np.sqrt(np.mean(weights * ((there - here) ** 2.0 @ levels.shares))))


def _first_filled(row: Doubles, variance: float) -> int:
    """Where points begin: the first bin at which the running sum is farther above its lowest than noise carries it."""
    sums = np.cumsum(row)
    risen = sums - np.minimum.accumulate(np.concatenate([[0.0], sums[:-1]]))
    found = np.flatnonzero(risen > _BEYOND_NOISE * np.sqrt(variance * len(row)))
    return int(found[0]) if found.size else 0


def _onto_simplex(row: Doubles, total: float) -> Doubles:
    """The nearest numbers that are not negative and have this sum: all are lowered alike, and cut at zero."""
    falling = np.sort(row)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(row) + 1)
    kept = int(np.flatnonzero(falling > excess)[-1])
    nearest: Doubles = np.maximum(row - excess[kept], 0.0)
    return nearest
