"""Counts of projected values: what is kept of a stream in place of the values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Bins per row. Quantiles of a normal law come out within 0.0002 of its standard deviation.
BINS = 1024
# Groups with terms of their own are put together in cells this many times finer than bins.
_CELLS = 8 * BINS
# What lies somewhere in an interval is within its width divided by this of what is even in it.
_EVEN = 3**0.5
# Counts are 32 bits wide until a row could overflow them.
_MANY = 2**32


@dataclass(eq=False)
class Histograms:
    """Counts (L, H) of values, a row for each projection.

    Bins are as wide as a power of two and begin at its multiples, as fine as the range seen so far
    allows. Widening them loses nothing but fineness, so the counts depend on the values alone: not on
    their order, nor on how they were portioned and merged.
    """

    counts: NDArray[np.unsignedinteger]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    n_points: int = 0  # how many were counted or are about to be

    @classmethod
    def empty(cls, n_projections: int) -> Histograms:
        """Rows that have seen nothing."""
        shape = (n_projections, BINS)
        return cls(np.zeros(shape, np.uint32), np.full(shape[0], np.inf), np.full(shape[0], -np.inf))

    def expect(self, n_points: int) -> None:
        """Make room for more points, before they are counted."""
        self.n_points += n_points
        if self.n_points >= _MANY and self.counts.dtype == np.uint32:
            self.counts = self.counts.astype(np.uint64)

    def count(self, part: slice, rows: NDArray[np.float32], begin: int, end: int) -> int:
        """Count values begin, …, end - 1 of some rows; returns the first row that is not finite, or -1."""
        from sotdd.kernels.quantiles import count_values

        return count_values(rows, begin, end, self.counts[part], self.low[part], self.high[part])

    def merge(self, other: Histograms) -> None:
        """Add what another has counted, once it is expected."""
        from sotdd.kernels.quantiles import add_counts

        counts = other.counts.astype(self.counts.dtype, copy=False)
        add_counts(self.counts, self.low, self.high, counts, other.low, other.high)

    def widths(self, part: slice) -> NDArray[np.float64]:
        """How wide the bins of some rows are: within that no value is known."""
        from sotdd.kernels.quantiles import bin_widths

        out = np.empty(part.stop - part.start)
        bin_widths(self.low[part], self.high[part], BINS, out)
        return out


def quantiles_of(
    groups: Sequence[Histograms],
    part: slice,
    weights: NDArray[np.float64],
    shifts: NDArray[np.float64],
    n_quantiles: int,
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Quantile functions (B, Q) of some rows of all groups together, and what is `lost` (B, 3) by them.

    Values t of group g in row l count as weights[l] · t + shifts[l, g].
    """
    from sotdd.kernels.quantiles import quantiles_of_counts

    out = np.empty((part.stop - part.start, n_quantiles), np.float32)
    counts = np.stack([group.counts[part] for group in groups])
    low, high = (np.stack([getattr(group, end)[part] for group in groups]) for end in ("low", "high"))
    lost = np.empty((len(out), 3))
    quantiles_of_counts(counts, low, high, weights, shifts, np.empty(_CELLS), out, lost)
    lost[:, 2] = _moved(groups, part, weights) + lost[:, 2] / _EVEN
    return out, lost


def _moved(groups: Sequence[Histograms], part: slice, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much values of some rows (B,) may be off as they count as even in their bins: root mean square, at most.

    Whatever lies in an interval is at most its width / √3 from what is even in it, in W_2: the
    worst are values at its ends.
    """
    shares = np.array([group.n_points for group in groups], np.float64)
    widths = np.stack([np.abs(weights) * group.widths(part) for group in groups])  # (G, B)
    moved: NDArray[np.float64] = np.sqrt(shares / shares.sum() @ widths**2) / _EVEN
    return moved
