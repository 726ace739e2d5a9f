"""Batches of points, projected a portion at a time, and the counts that a stream keeps of the projected values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.engines.protocol import too_large
from sotdd.inputs.data import LabelledData
from sotdd.projections.directions import Directions, Drawn
from sotdd.projections.draws import BLOCK
from sotdd.projections.labels import LabelTerms
from sotdd.projections.recipe import Projections
from sotdd.sketches.levels import Levels

# Bins per row.
BINS = 1024
# Groups with terms of their own are put together in cells so many times finer than bins.
_FINER = 8
# Values anywhere in an interval are within its width divided by this of values spaced evenly over it, in W_2.
_EVEN = 3**0.5
# Counts are 32 bits wide until a row could overflow them.
_MANY = 2**32
# At most this many points are projected at a time, and at most this many of their values.
_MOST_POINTS = 8192
_MOST_VALUES = 1 << 24


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
    n_points: int = 0  # counted, or about to be

    @classmethod
    def empty(cls, n_projections: int, n_bins: int = BINS) -> Histograms:
        """Counts of nothing yet."""
        shape = (n_projections, n_bins)
        return cls(np.zeros(shape, np.uint32), np.full(shape[0], np.inf), np.full(shape[0], -np.inf))

    def expect(self, n_points: int) -> None:
        """Make room for more points, before they are counted."""
        self.n_points += n_points
        if self.n_points >= _MANY and self.counts.dtype == np.uint32:
            self.counts = self.counts.astype(np.uint64)

    def count(self, part: slice, rows: NDArray[np.float32], begin: int, end: int) -> int:
        """Count values begin, …, end - 1 of some rows; returns the first row that is not finite, or -1."""
        from sotdd.kernels.counts import count_values

        return count_values(rows, begin, end, self.counts[part], self.low[part], self.high[part])

    def merge(self, other: Histograms) -> None:
        """Add the counts of another; call `expect` first."""
        from sotdd.kernels.counts import add_counts

        counts = other.counts.astype(self.counts.dtype, copy=False)
        add_counts(self.counts, self.low, self.high, counts, other.low, other.high)

    def is_sound(self) -> bool:
        """Whether counts lie in the bins of their ranges only, and every row counts all points, or none at all.

        A second pass makes room for what the label term would need, and leaves it empty.
        """
        from sotdd.kernels.counts import last_bins

        last = np.empty(len(self.counts), np.int64)
        last_bins(self.low, self.high, self.counts.shape[1], last)
        beyond = np.arange(self.counts.shape[1]) > last[:, None]
        if self.counts[beyond].any() or (self.counts > 2**62).any():
            return False
        filled = np.flatnonzero(last >= 0)
        ends = self.counts[filled, 0] > 0, self.counts[filled, last[filled]] > 0  # the lowest value and the highest
        several = (last[filled] > 0) | (self.counts[filled, 0] > 1) | (self.low[filled] == self.high[filled])
        counted = self.counts.sum(axis=1, dtype=np.float64)
        complete = bool((counted == self.n_points).all() or not counted.any())
        return complete and bool(ends[0].all() and ends[1].all() and several.all())

    def widths(self, part: slice) -> NDArray[np.float64]:
        """How wide the bins of some rows (B,) are, in the root mean square over what is counted in them."""
        from sotdd.kernels.counts import bin_widths

        out = np.empty(part.stop - part.start)
        bin_widths(self.counts[part], self.low[part], self.high[part], out)
        return out


def quantiles_of(
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
    from sotdd.kernels.counts import quantiles_of_counts

    out = np.empty((part.stop - part.start, levels.count), np.float32)
    counts = np.stack([group.counts[part] for group in groups])
    low, high = (np.stack([getattr(group, end)[part] for group in groups]) for end in ("low", "high"))
    lost = np.empty((len(out), 3))
    quantiles_of_counts(
        counts, low, high, weights, shifts, _FINER * counts.shape[2], levels.edges, levels.smooth, out, lost
    )
    lost[:, 2] = _bin_error(groups, part, weights) + lost[:, 2] / _EVEN
    return out, lost


@dataclass(frozen=True, eq=False)
class Portion:
    """Some points through some projections.

    Attributes
    ----------
    part
        Which projections.
    rows
        (B, m) feature projections of points grouped by class; the caller may overwrite them.
    label_rows
        (B, m) the same for the label term: these very rows, unless labels have directions of their own.
    classes, offsets
        The classes among these points, and where each begins and ends.
    terms
        How labels enter these projections.
    """

    part: slice
    rows: NDArray[np.float32]
    label_rows: NDArray[np.float32]
    classes: tuple[Hashable, ...]
    offsets: NDArray[np.int64]
    terms: LabelTerms


def for_each_portion(
    data: LabelledData,
    projections: Projections,
    work: Callable[[Portion], None],
    hold: Callable[[NDArray[np.float32]], NDArray[np.float32]] | None = None,
) -> None:
    """Call ``work`` on every portion of a batch; portions of the same points run in parallel.

    Where ``hold`` is given, it has scaled points (m, d) before they are projected, and returns what is projected.
    """
    from sotdd.engines.cpu.verbs import scaled
    from sotdd.engines.cpu.workers import Workers

    size = max(1, min(_MOST_POINTS, _MOST_VALUES // data.n_features))
    starts = range(0, projections.n_projections, BLOCK)
    with Workers() as workers:
        for first in range(0, data.n_points, size):
            chosen = slice(first, min(first + size, data.n_points))
            codes = data.codes[chosen]
            order = np.argsort(codes, kind="stable")
            present, counts = np.unique(codes, return_counts=True)
            offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            classes = tuple(data.classes[code] for code in present)
            points = scaled(data.rows(chosen), projections.scaler, data.name)[order]
            points = points if hold is None else hold(points)

            def project(
                start: int,
                points: NDArray[np.float32] = points,
                classes: tuple[Hashable, ...] = classes,
                offsets: NDArray[np.int64] = offsets,
            ) -> None:
                block = projections.draw(start, start + BLOCK)
                rows = _projected(points, block.features, len(block))
                second = block.label_features
                label_rows = rows if second is None else _projected(points, second, len(block))
                work(Portion(slice(start, start + len(block)), rows, label_rows, classes, offsets, block.terms))

            workers.each(project, starts)


def count_classes(histograms: Mapping[Hashable, Histograms], portion: Portion, rows: NDArray[np.float32]) -> None:
    """Count the values of each class in histograms of its own."""
    for index, label in enumerate(portion.classes):
        begin, end = portion.offsets[index : index + 2].tolist()
        refuse_not_finite(portion, histograms[label].count(portion.part, rows, begin, end))


def refuse_not_finite(portion: Portion, line: int) -> None:
    """Explain a row that could not be counted; -1 stands for none."""
    if line >= 0:
        raise too_large("stream", portion.part.start + line)


def _projected(points: NDArray[np.float32], drawn: Drawn, count: int) -> NDArray[np.float32]:
    from sotdd.engines.cpu.verbs import project
    from sotdd.kernels import rows as kernels

    rows = np.empty((count, len(points)), np.float32)
    if isinstance(drawn, Directions):
        with np.errstate(over="ignore"):  # what overflows is refused when values are counted
            drawn = Directions(np.ascontiguousarray(drawn.theta, np.float32), drawn.clamp)
    project(points, drawn, count, rows)
    if isinstance(drawn, Directions) and drawn.clamp is not None:
        kernels.clamp_rows(rows, drawn.clamp)
    return rows


def _bin_error(groups: Sequence[Histograms], part: slice, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far off the values of some rows (B,) may be, since they count as spaced evenly over their bins.

    A bound on the root mean square. Values anywhere in an interval are at most its width / √3 from evenly spaced
    ones, in W_2; all of them at one end is the worst case.
    """
    shares = np.array([group.n_points for group in groups], np.float64)
    widths = np.stack([np.abs(weights) * group.widths(part) for group in groups])  # (G, B)
    error: NDArray[np.float64] = np.sqrt(shares / shares.sum() @ widths**2) / _EVEN
    return error
