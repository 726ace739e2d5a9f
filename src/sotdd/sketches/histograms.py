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
        from sotdd.quantile_kernels import count_values

        return count_values(rows, begin, end, self.counts[part], self.low[part], self.high[part])

    def merge(self, other: Histograms) -> None:
        """Add what another has counted, once it is expected."""
        from sotdd.quantile_kernels import add_counts

        counts = other.counts.astype(self.counts.dtype, copy=False)
        add_counts(self.counts, self.low, self.high, counts, other.low, other.high)


def quantiles_of(
    groups: Sequence[Histograms],
    part: slice,
    weights: NDArray[np.float64],
    shifts: NDArray[np.float64],
    n_quantiles: int,
) -> NDArray[np.float32]:
    """Quantile functions (B, Q) of some rows of all groups together.

    Values t of group g in row l count as weights[l] · t + shifts[l, g].
    """
    from sotdd.quantile_kernels import quantiles_of_counts

    out = np.empty((part.stop - part.start, n_quantiles), np.float32)
    counts = np.stack([group.counts[part] for group in groups])
    low, high = (np.stack([getattr(group, end)[part] for group in groups]) for end in ("low", "high"))
    quantiles_of_counts(counts, low, high, weights, shifts, np.empty(_CELLS), out)
    return out
