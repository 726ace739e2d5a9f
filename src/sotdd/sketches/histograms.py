"""Counts of projected values in bins, and the quantile functions that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.text import say_count
from sotdd.sketches.codec import LARGEST_VALUE, Arrays, Field, Reader
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
CLASS_BYTES = 256 << 20


class ClassesDoNotFit(SotddError):  # noqa: N818
    """There are too many classes for each to have histograms of its own."""


def check_classes(n_classes: int, n_projections: int, most_bytes: int | None = None) -> None:
    """Refuse more classes than can have histograms of their own in one pass: two passes are made of these."""
    most = CLASS_BYTES if most_bytes is None else most_bytes
    if n_classes * n_projections * BINS * 4 > most:
        raise ClassesDoNotFit(
            f"histograms of {say_count(n_classes, 'class', 'classes')} × {say_count(n_projections, 'projection')} take "
            f"more than {most >> 20} MB: use fewer projections, or label_law='moments' and sketch_stream, which makes "
            "two passes."
        )


@dataclass(eq=False)
class Histograms:
    """Counts (C, L, H) of values in H bins, a row for each class and projection; and the ends (C, L) of their ranges.

    Bins are even from -1 to 1, and beyond that each doubling has as many of them as the unit: scaled features
    have projections of that size, and outliers leave room for the others. Bins are as fine as the range of the
    values allows, by powers of two. So the counts depend on the values alone: not on their order, nor on how
    they were portioned and merged.
    """

    counts: NDArray[np.unsignedinteger]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def empty(cls, n_classes: int, n_projections: int, n_bins: int = BINS) -> Histograms:
        """Counts of nothing yet."""
        shape = n_classes, n_projections
        return cls(np.zeros((*shape, n_bins), np.uint32), np.full(shape, np.inf), np.full(shape, -np.inf))

    @property
    def n_points(self) -> NDArray[np.int64]:
        """(C,) how many points of each class were counted."""
        return self.counts[:, 0].sum(axis=1, dtype=np.int64)

    def extend(self, n_classes: int) -> Histograms:
        """The same with so many further classes, without points."""
        more = Histograms.empty(n_classes, *self.counts.shape[1:])
        return Histograms(*map(np.concatenate, zip(vars(self).values(), vars(more).values(), strict=True)))

    def expect(self, n_points: int) -> None:
        """Make room for more points, before they are counted."""
        if self.counts.dtype == np.uint32 and (self.n_points + n_points >= _MANY).any():
            self.counts = self.counts.astype(np.uint64)

    def count(self, place: int, part: slice, rows: NDArray[np.float32], begin: int, end: int) -> int:
        """Count values begin, …, end - 1 of some rows for a class; returns the first row that is not finite, or -1."""
        from sotdd.compute.kernels.counts import count_values

        return count_values(rows, begin, end, self.counts[place, part], self.low[place, part], self.high[place, part])

    def add(self, other: Histograms, places: Sequence[int]) -> None:
        """Add the counts of another, whose classes are at these places here."""
        from sotdd.compute.kernels.counts import add_counts

        self.expect(int(other.n_points.max(initial=0)))
        for place, counts, low, high in zip(places, other.counts, other.low, other.high, strict=True):
            wide = counts.astype(self.counts.dtype, copy=False)
            add_counts(self.counts[place], self.low[place], self.high[place], wide, low, high)

    def pack(self, name: str) -> Arrays:
        """Arrays of a file; the range of rows that count nothing is written as zero."""
        ends = {f"{name} {which}": np.where(np.isfinite(end), end, 0.0) for which, end in self._ends().items()}
        return {f"{name} counts": self.counts, **ends}

    def read(self, reader: Reader, name: str, n_classes: int) -> Histograms:
        """What `pack` wrote of this many classes, with rows and bins as here."""
        n_rows, n_bins = self.counts.shape[1:]
        counts = reader.array(f"{name} counts", Field("u4 u8", (n_classes, n_rows, n_bins), 0))
        field = Field("f8", (n_classes, n_rows), -LARGEST_VALUE, LARGEST_VALUE)
        low, high = (reader.array(f"{name} {which}", field) for which in self._ends())
        if (low > high).any():
            raise reader.refuse(f"the ranges of its {name!r} are the wrong way round")
        empty = ~counts.any(axis=2)
        found = Histograms(counts.copy(), np.where(empty, np.inf, low), np.where(empty, -np.inf, high))
        if not found._is_sound():
            raise reader.refuse(
                f"the counts of its {name!r} do not fit their ranges, or count other points in every row"
            )
        return found

    def _ends(self) -> dict[str, NDArray[np.float64]]:
        return {"low": self.low, "high": self.high}

    def _is_sound(self) -> bool:
        """Whether counts lie in the bins of their ranges only, and every row of a class counts as many points."""
        from sotdd.compute.kernels.counts import last_bins

        n_bins = self.counts.shape[2]
        rows, low, high = self.counts.reshape(-1, n_bins), self.low.ravel(), self.high.ravel()
        last = np.empty(len(rows), np.int64)
        last_bins(low, high, n_bins, last)
        if rows[np.arange(n_bins) > last[:, None]].any() or (rows > 2**62).any():
            return False
        filled = np.flatnonzero(last >= 0)
        ends = rows[filled, 0] > 0, rows[filled, last[filled]] > 0  # the lowest value and the highest
        several = (last[filled] > 0) | (rows[filled, 0] > 1) | (low[filled] == high[filled])
        counted = self.counts.sum(axis=2, dtype=np.float64)
        return bool((counted == counted[:, :1]).all() and ends[0].all() and ends[1].all() and several.all())

    def widths(self, place: int, part: slice) -> NDArray[np.float64]:
        """How wide the bins of some rows (B,) of a class are, in the root mean square over what is counted in them."""
        from sotdd.compute.kernels.counts import bin_widths

        out = np.empty(part.stop - part.start)
        bin_widths(self.counts[place, part], self.low[place, part], self.high[place, part], out)
        return out


def find_quantiles(
    values: Histograms,
    places: Sequence[int],
    part: slice,
    weights: NDArray[np.float64],
    shifts: NDArray[np.float64],
    levels: Levels,
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Quantile functions (B, Q) of some rows of some classes together, and what is lost by them (B, 3).

    Values t of the c-th of these classes in row l count as weights[l] · t + shifts[l, c]. `sotdd.sketches.uncertainty`
    says what the columns of the second are.
    """
    from sotdd.compute.kernels.counts import quantiles_of_counts

    out = np.empty((part.stop - part.start, levels.count), np.float32)
    counts, low, high = (each[:, part][places] for each in (values.counts, values.low, values.high))
    lost = np.empty((len(out), 3))
    quantiles_of_counts(
        counts, low, high, weights, shifts, _FINER * counts.shape[2], levels.edges, levels.smooth, out, lost
    )
    lost[:, 2] = _bound_bin_error(values, places, part, weights) + lost[:, 2] / _EVEN
    return out, lost


def _bound_bin_error(
    values: Histograms, places: Sequence[int], part: slice, weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How far off the values of some rows (B,) may be, since they count as spaced evenly over their bins.

    A bound on the root mean square. Values anywhere in an interval are at most its width / √3 from evenly spaced
    ones, in W_2; all of them at one end is the worst case.
    """
    shares = values.n_points[places].astype(np.float64)
    widths = np.stack([np.abs(weights) * values.widths(place, part) for place in places])  # (G, B)
    error: NDArray[np.float64] = np.sqrt(shares / shares.sum() @ widths**2) / _EVEN
    return error
