"""Counts of projected values in bins, and the quantile functions that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.text import say_count
from sotdd.sketches.quantiles import Levels

# Bins per row.
BINS = 1024
# Groups with terms of their own are put together in cells so many times finer than bins.
_FINER = 8
# Values anywhere in an interval are within its width divided by this of values spaced evenly over it, in W_2.
_EVEN = 3**0.5
# Counts are 32 bits wide until a row could overflow them.
_MANY = 2**32

# How much memory the histograms of all classes may take together.
CLASS_BYTES = 512 << 20


def fit_classes(n_classes: int, n_projections: int) -> bool:
    """Whether so many classes can have histograms of their own."""
    return n_classes * n_projections * BINS * 4 <= CLASS_BYTES


def check_classes(n_classes: int, n_projections: int) -> None:
    """Refuse more classes than can have histograms of their own."""
    if not fit_classes(n_classes, n_projections):
        raise SotddError(
            f"histograms of {say_count(n_classes, 'class', 'classes')} × {say_count(n_projections, 'projection')} take "
            f"more than {CLASS_BYTES >> 20} MB: use fewer projections, or sotdd.sketch on the whole dataset."
        )


@dataclass(eq=False)
class Histograms:
    """Counts (L, H) of values in H bins, a row for each projection.

    Bins are even from -1 to 1, and beyond that each doubling has as many of them as the unit: scaled features
    have projections of that size, and outliers leave room for the others. Bins are as fine as the range of the
    values allows, by powers of two. So the counts depend on the values alone: not on their order, nor on how
    they were portioned and merged.
    """

    counts: NDArray[np.unsignedinteger]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def empty(cls, n_projections: int, n_bins: int = BINS) -> Histograms:
        """Counts of nothing yet."""
        counts = np.zeros((n_projections, n_bins), np.uint32)
        return cls(counts, np.full(n_projections, np.inf), np.full(n_projections, -np.inf))

    @property
    def n_points(self) -> int:
        """How many points were counted."""
        return int(self.counts[0].sum())

    @property
    def nbytes(self) -> int:
        """How much memory the counts take."""
        return self.counts.nbytes

    def expect(self, n_points: int) -> None:
        """Make room for more points, before they are counted."""
        if self.counts.dtype == np.uint32 and self.n_points + n_points >= _MANY:
            self.counts = self.counts.astype(np.uint64)

    def count(self, part: slice, rows: NDArray[np.float32], begin: int, end: int) -> int:
        """Count values begin, …, end - 1 of some rows; returns the first row that is not finite, or -1."""
        from sotdd.compute.kernels.counts import count_values

        return count_values(rows, begin, end, self.counts[part], self.low[part], self.high[part])

    def __iadd__(self, other: Histograms) -> Self:
        """Add the counts of another."""
        from sotdd.compute.kernels.counts import add_counts

        self.expect(other.n_points)
        counts = other.counts.astype(self.counts.dtype, copy=False)
        add_counts(self.counts, self.low, self.high, counts, other.low, other.high)
        return self

    @property
    def is_sound(self) -> bool:
        """Whether counts lie in the bins of their ranges only, and every row counts as many points."""
        from sotdd.compute.kernels.counts import last_bins

        last = np.empty(len(self.counts), np.int64)
        last_bins(self.low, self.high, self.counts.shape[1], last)
        beyond = np.arange(self.counts.shape[1]) > last[:, None]
        if self.counts[beyond].any() or (self.counts > 2**62).any():
            return False
        filled = np.flatnonzero(last >= 0)
        ends = self.counts[filled, 0] > 0, self.counts[filled, last[filled]] > 0  # the lowest value and the highest
        several = (last[filled] > 0) | (self.counts[filled, 0] > 1) | (self.low[filled] == self.high[filled])
        counted = self.counts.sum(axis=1, dtype=np.float64)
        return bool((counted == counted[0]).all() and ends[0].all() and ends[1].all() and several.all())

    def widths(self, part: slice) -> NDArray[np.float64]:
        """How wide the bins of some rows (B,) are, in the root mean square over what is counted in them."""
        from sotdd.compute.kernels.counts import bin_widths

        out = np.empty(part.stop - part.start)
        bin_widths(self.counts[part], self.low[part], self.high[part], out)
        return out


def find_quantiles(
    groups: Sequence[Histograms],
    part: slice,
    weights: NDArray[np.float64],
    shifts: NDArray[np.float64],
    levels: Levels,
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Quantile functions (B, Q) of some rows of all groups together, and what is lost by them (B, 3).

    Values t of group g in row l count as weights[l] · t + shifts[l, g]. `sotdd.sketches.uncertainty` says what the
    columns of the second are.
    """
    from sotdd.compute.kernels.counts import quantiles_of_counts

    out = np.empty((part.stop - part.start, levels.count), np.float32)
    counts = np.stack([group.counts[part] for group in groups])
    low, high = (np.stack([getattr(group, end)[part] for group in groups]) for end in ("low", "high"))
    lost = np.empty((len(out), 3))
    quantiles_of_counts(
        counts, low, high, weights, shifts, _FINER * counts.shape[2], levels.edges, levels.smooth, out, lost
    )
    lost[:, 2] = _bound_bin_error(groups, part, weights) + lost[:, 2] / _EVEN
    return out, lost


def _bound_bin_error(groups: Sequence[Histograms], part: slice, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far off the values of some rows (B,) may be, since they count as spaced evenly over their bins.

    A bound on the root mean square. Values anywhere in an interval are at most its width / √3 from evenly spaced
    ones, in W_2; all of them at one end is the worst case.
    """
    shares = np.array([group.n_points for group in groups], np.float64)
    widths = np.stack([np.abs(weights) * group.widths(part) for group in groups])  # (G, B)
    error: NDArray[np.float64] = np.sqrt(shares / shares.sum() @ widths**2) / _EVEN
    return error
