"""Counts and sums of projected points, which add up over batches, shards and parties; and the batches themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.text import say_count
from sotdd.compute.engine import Projected, describe_overflow
from sotdd.compute.run import Collector, run
from sotdd.inputs.data import LabelledData
from sotdd.projections.draws import BLOCK
from sotdd.projections.moments import LabelTerms
from sotdd.projections.recipe import Projections
from sotdd.sketches.codec import LARGEST_VALUE, Arrays, Field, Reader
from sotdd.sketches.quantiles import Levels

if TYPE_CHECKING:
    from sotdd.compute.cpu.engine import CpuEngine

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
            f"more than {most >> 20} MB: use fewer projections, or label_law='moments' in two passes "
            "(ClassStatistics, then SketchBuilder)."
        )


@dataclass(eq=False)
class Histograms:
    """Counts (L, H) of values in H bins, a row for each projection.

    Bins are even from -1 to 1, and beyond that each doubling has as many of them as the unit: scaled features
    have projections of that size, and outliers leave room for the others. Bins are as fine as the range of the
    values allows, by powers of two. So the counts depend on the values alone: not on their order, nor on how
    they were portioned and merged.

    Where points are in several groups, the rows of one group follow those of another.
    """

    counts: NDArray[np.unsignedinteger]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    n_points: int = 0  # counted, or about to be
    n_groups: int = 1

    @classmethod
    def empty(cls, n_projections: int, n_bins: int = BINS, n_groups: int = 1) -> Histograms:
        """Counts of nothing yet."""
        n_rows = n_projections * n_groups
        counts = np.zeros((n_rows, n_bins), np.uint32)
        return cls(counts, np.full(n_rows, np.inf), np.full(n_rows, -np.inf), n_groups=n_groups)

    @property
    def nbytes(self) -> int:
        """How much memory the counts take."""
        return self.counts.nbytes

    def group(self, number: int) -> Histograms:
        """The rows of one group of points; counts are those of the whole, not copies."""
        size = len(self.counts) // self.n_groups
        part = slice(number * size, (number + 1) * size)
        counts = self.counts[part]
        return Histograms(counts, self.low[part], self.high[part], int(counts[0].sum()))

    def expect(self, n_points: int) -> None:
        """Make room for more points, before they are counted."""
        self.n_points += n_points
        if self.n_points >= _MANY and self.counts.dtype == np.uint32:
            self.counts = self.counts.astype(np.uint64)

    def count(self, part: slice, rows: NDArray[np.float32], begin: int, end: int) -> int:
        """Count values begin, …, end - 1 of some rows; returns the first row that is not finite, or -1."""
        from sotdd.compute.kernels.counts import count_values

        return count_values(rows, begin, end, self.counts[part], self.low[part], self.high[part])

    def __iadd__(self, other: Histograms) -> Self:
        """Add the counts of another; call `expect` first."""
        from sotdd.compute.kernels.counts import add_counts

        counts = other.counts.astype(self.counts.dtype, copy=False)
        add_counts(self.counts, self.low, self.high, counts, other.low, other.high)
        return self

    @property
    def is_sound(self) -> bool:
        """Whether counts lie in the bins of their ranges only, and every row of a group counts all of its points."""
        from sotdd.compute.kernels.counts import last_bins

        last = np.empty(len(self.counts), np.int64)
        last_bins(self.low, self.high, self.counts.shape[1], last)
        beyond = np.arange(self.counts.shape[1]) > last[:, None]
        if self.counts[beyond].any() or (self.counts > 2**62).any():
            return False
        filled = np.flatnonzero(last >= 0)
        ends = self.counts[filled, 0] > 0, self.counts[filled, last[filled]] > 0  # the lowest value and the highest
        several = (last[filled] > 0) | (self.counts[filled, 0] > 1) | (self.low[filled] == self.high[filled])
        counted = self.counts.sum(axis=1, dtype=np.float64).reshape(self.n_groups, -1)
        complete = (counted == counted[:, :1]).all() and counted[:, 0].sum() == self.n_points
        return bool(complete and ends[0].all() and ends[1].all() and several.all())

    def widths(self, part: slice) -> NDArray[np.float64]:
        """How wide the bins of some rows (B,) are, in the root mean square over what is counted in them."""
        from sotdd.compute.kernels.counts import bin_widths

        out = np.empty(part.stop - part.start)
        bin_widths(self.counts[part], self.low[part], self.high[part], out)
        return out


Total: TypeAlias = "NDArray[np.float64] | Histograms"


class Sums:
    """Arrays and histograms of each class, and of all points, that add up over parts of the data.

    Parameters
    ----------
    each
        What makes the totals of a class without points, by name.
    whole
        The same for totals over all points. Those that are arrays are never negative.
    most_bytes
        With more classes than fit into this nothing is kept.
    required
        Whether a sketch cannot be made without the histograms of each class: classes must then fit (`check_classes`).

    Attributes
    ----------
    kept
        Whether anything is kept: once it is not, it never will be.
    by_class, whole
        The totals, by label and by name.
    """

    def __init__(
        self,
        each: Mapping[str, Callable[[], Total]],
        whole: Mapping[str, Callable[[], Total]] | None = None,
        most_bytes: float = math.inf,
        required: bool = False,
    ) -> None:
        self.each = each
        self.bytes_of_class: int = sum(make().nbytes for make in each.values())
        self.most_bytes, self.required = most_bytes, required
        self.kept: bool = True
        self.by_class: dict[Hashable, dict[str, Any]] = {}  # Total, whose kind goes with its name
        self.whole: dict[str, Any] = {name: make() for name, make in (whole or {}).items()}

    def drop(self) -> None:
        """Keep nothing from here on."""
        self.kept, self.required, self.by_class, self.whole = False, False, {}, {}

    def expect(self, counts: Mapping[Hashable, int]) -> None:
        """Make room for this many more points of each class, before any of them are added."""
        if self.bytes_of_class * len({*self.by_class, *counts}) > self.most_bytes:
            self.drop()
        if not self.kept:
            return
        for label, count in counts.items():
            if label not in self.by_class:
                self.by_class[label] = {name: make() for name, make in self.each.items()}
            _expect(self.by_class[label], count)
        _expect(self.whole, sum(counts.values()))

    def merge(self, other: Sums) -> None:
        """Add the totals of another; call `expect` with its counts first."""
        if not (self.kept and other.kept):
            self.drop()
            return
        for name, total in other.whole.items():
            self.whole[name] += total
        for label, totals in other.by_class.items():
            for name, total in totals.items():
                self.by_class[label][name] += total

    def pack(self, classes: Sequence[Hashable], before: str) -> Arrays:
        """Arrays of a file, whose names begin with ``before``; the first axis is that of the classes."""
        arrays: Arrays = {}
        for name in self.each if classes else ():
            arrays |= _pack_totals([self.by_class[label][name] for label in classes], before + name)
        for name, total in self.whole.items():
            arrays |= _pack_totals([total], before + name)
        return arrays

    def read(self, reader: Reader, counts: Mapping[Hashable, int], before: str) -> None:
        """Take the totals that `pack` wrote from a file, for classes with this many points."""
        self.by_class = {label: {} for label in counts}
        for name, make in self.each.items() if counts else ():
            found = _read_totals(reader, before + name, make(), list(counts.values()))
            for label, total in zip(counts, found, strict=True):
                self.by_class[label][name] = total
        for name, zero in self.whole.items():
            (self.whole[name],) = _read_totals(reader, before + name, zero, [sum(counts.values())], least=0)


def _expect(totals: Mapping[str, Total], count: int) -> None:
    for total in totals.values():
        if isinstance(total, Histograms):
            total.expect(count)


def _pack_totals(totals: Sequence[Any], name: str) -> Arrays:
    """Totals one upon another; the range of rows that count nothing is written as zero."""
    if not isinstance(totals[0], Histograms):
        return {name: np.stack(totals)}
    counts = np.stack([total.counts for total in totals])  # in the widest type
    ends = {end: np.stack([getattr(total, end) for total in totals]) for end in ("low", "high")}
    return {f"{name} counts": counts, **{f"{name} {end}": np.where(np.isfinite(e), e, 0.0) for end, e in ends.items()}}


def _read_totals(reader: Reader, name: str, zero: Total, sizes: list[int], least: float = -math.inf) -> list[Any]:
    """What `_pack_totals` wrote, for groups of this many points."""
    if not isinstance(zero, Histograms):
        return list(reader.array(name, Field("f8", (len(sizes), *zero.shape), least)).copy())
    counts = reader.array(f"{name} counts", Field("u4 u8", (len(sizes), *zero.counts.shape), 0))
    end = Field("f8", (len(sizes), len(zero.low)), -LARGEST_VALUE, LARGEST_VALUE)
    low, high = (reader.array(f"{name} {which}", end) for which in ("low", "high"))
    if (low > high).any():
        raise reader.refuse(f"the ranges of its {name!r} are the wrong way round")
    empty = ~counts.any(axis=2)
    low, high = np.where(empty, np.inf, low), np.where(empty, -np.inf, high)
    found = [Histograms(*parts, zero.n_groups) for parts in zip(counts.copy(), low, high, sizes, strict=True)]
    if not all(one.is_sound for one in found):
        raise reader.refuse(f"the counts of its {name!r} do not fit their ranges, or not the points that it has seen")
    return found


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


def for_each_portion(data: LabelledData, projections: Projections, work: Callable[[Portion], None]) -> None:
    """Call ``work`` on every portion of a batch; portions of the same points run in parallel."""
    from sotdd.compute.cpu.engine import CpuEngine

    size = max(1, min(_MOST_POINTS, _MOST_VALUES // data.n_features))
    with CpuEngine() as engine:
        for start in range(0, data.n_points, size):
            rows = slice(start, start + size)
            some = replace(data, features=data.features[rows], codes=data.codes[rows])
            run([some], projections, engine, [_Portions(some, engine, work)])


class _Portions(Collector):
    """Hands the projections of a few points on, grouped by class, some projections to each thread."""

    def __init__(self, data: LabelledData, engine: CpuEngine, work: Callable[[Portion], None]) -> None:
        self._engine, self._work = engine, work
        self._order = np.argsort(data.codes, kind="stable")
        present, counts = np.unique(data.codes, return_counts=True)
        self._offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self._classes = tuple(data.classes[code] for code in present)

    def before_sorting(self, chunk: Projected) -> None:
        """Hand one chunk on."""
        pool: Any = chunk.pool((0,)).take(self._order)  # rows of the processor's engine
        own = chunk.block.label_features is not None

        def hand_on(start: int) -> None:
            some = pool.part(slice(start, start + BLOCK))
            part = slice(chunk.part.start + start, chunk.part.start + start + len(some.rows))
            label_rows = some.label_rows if own else some.rows
            self._work(Portion(part, some.rows, label_rows, self._classes, self._offsets, some.terms))

        self._engine.workers.each(hand_on, range(0, len(pool.rows), BLOCK))


def count_classes(sums: Sums, portion: Portion, rows: NDArray[np.float32]) -> None:
    """Count the values of each class in histograms of its own."""
    for index, label in enumerate(portion.classes):
        begin, end = portion.offsets[index : index + 2].tolist()
        values: Histograms = sums.by_class[label]["values"]
        refuse_not_finite(portion, values.count(portion.part, rows, begin, end))


def refuse_not_finite(portion: Portion, line: int) -> None:
    """Explain a row that could not be counted; -1 stands for none."""
    if line >= 0:
        raise describe_overflow("stream", portion.part.start + line)


def _bound_bin_error(groups: Sequence[Histograms], part: slice, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far off the values of some rows (B,) may be, since they count as spaced evenly over their bins.

    A bound on the root mean square. Values anywhere in an interval are at most its width / √3 from evenly spaced
    ones, in W_2; all of them at one end is the worst case.
    """
    shares = np.array([group.n_points for group in groups], np.float64)
    widths = np.stack([np.abs(weights) * group.widths(part) for group in groups])  # (G, B)
    error: NDArray[np.float64] = np.sqrt(shares / shares.sum() @ widths**2) / _EVEN
    return error
