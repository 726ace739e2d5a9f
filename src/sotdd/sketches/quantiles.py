"""Quantile functions cut into parts, of which a sketch keeps the means; and counts in bins, which they follow from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import check_count

# How many numbers a sketch keeps of each projection, unless it is asked for more.
QUANTILES = 384

# More are a mistake, or meant to fill the memory.
MOST_QUANTILES = 1 << 20

# Half of the parts are spread evenly over probability, and half over this many standard deviations of a normal law on
# either side of its mean: a few points in a million are in the last part.
_REACH = 5.0
_HALVINGS = 60  # of an interval, until neighbouring numbers are left

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


@dataclass(frozen=True)
class Levels:
    """How probability is cut into parts.

    Attributes
    ----------
    count
        How many parts there are.
    smooth
        Whether parts are finer towards both ends, where quantile functions rise steeply, and functions are put together
        again between the means, as in all sketches. Otherwise parts have equal probability, as in label terms.

    Examples
    --------
    >>> from sotdd.sketches.quantiles import Levels
    >>> Levels(4, smooth=False).edges.tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    >>> Levels(4).edges.round(3).tolist()
    [0.0, 0.118, 0.5, 0.882, 1.0]
    """

    count: int
    smooth: bool = True

    @property
    def edges(self) -> NDArray[np.float64]:
        """(count + 1,) where parts begin and end, from 0 to 1."""
        return _compute_edges(self.count, self.smooth)

    @property
    def shares(self) -> NDArray[np.float64]:
        """(count,) the probability of each part."""
        return np.diff(self.edges)

    def means(self, rows: NDArray[np.float32], places: NDArray[np.float64] | None = None) -> NDArray[np.float32]:
        """Means (B, count) over the parts of ascending rows (B, n), of points or of parts with edges ``places``."""
        from sotdd.compute.kernels.quantiles import part_means

        out = np.empty((len(rows), self.count), np.float32)
        part_means(rows, place_points(rows.shape[1]) if places is None else places, self.edges, out)
        return out


def check_quantiles(n_quantiles: object) -> Levels:
    """Return the levels of this many quantiles, or refuse."""
    return Levels(check_count(n_quantiles, "n_quantiles", MOST_QUANTILES))


def place_points(count: int) -> NDArray[np.float64]:
    """(count + 1,) where sorted points begin and end on the scale of probability."""
    return np.arange(count + 1) / count


@lru_cache(maxsize=64)
def _compute_edges(count: int, smooth: bool) -> NDArray[np.float64]:
    wanted = place_points(count)
    if smooth:
        from scipy.special import ndtr

        low, high = np.full(count + 1, -_REACH), np.full(count + 1, _REACH)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            reached = (ndtr(middle) + (middle + _REACH) / (2 * _REACH)) / 2 < wanted
            low, high = np.where(reached, middle, low), np.where(reached, high, middle)
        wanted = ndtr(low)
        wanted[0], wanted[-1] = 0.0, 1.0
    wanted.flags.writeable = False
    return wanted


# ------------------------------------------------------------------ counts


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


def fit_classes(n_classes: int, n_projections: int) -> bool:
    """Whether so many classes can have histograms of their own."""
    return n_classes * n_projections * BINS * 4 <= CLASS_BYTES


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
    from sotdd.compute.kernels.counts import bin_widths

    shares = np.array([group.n_points for group in groups], np.float64)
    widths = np.empty((len(groups), part.stop - part.start))  # in the root mean square over what is counted
    for group, out in zip(groups, widths, strict=True):
        bin_widths(group.counts[part], group.low[part], group.high[part], out)
    error: NDArray[np.float64] = np.sqrt(shares / shares.sum() @ (weights * widths) ** 2) / _EVEN
    return error
