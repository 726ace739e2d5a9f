"""Sums and counts over the points of each class, which add up over batches, shards and parties."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.compute.engine import Projected, describe_overflow, refuse_bad_terms
from sotdd.compute.run import Collector, run
from sotdd.inputs.data import LabelledData
from sotdd.projections.draws import BLOCK
from sotdd.projections.moments import LabelTerms, Polynomials
from sotdd.projections.recipe import Projections
from sotdd.sketches.codec import LARGEST_VALUE, Arrays, Field, Reader
from sotdd.sketches.histograms import Histograms

if TYPE_CHECKING:
    from sotdd.compute.cpu.engine import CpuEngine

Doubles = NDArray[np.float64]
Total: TypeAlias = "Doubles | Histograms"

# At most this many points are projected at a time, and at most this many of their values.
_MOST_POINTS = 8192
_MOST_VALUES = 1 << 24


# ------------------------------------------------------------------ points through projections


@dataclass(frozen=True, eq=False)
class Portion:
    """Some points through some projections.

    Attributes
    ----------
    part
        Which projections.
    rows
        (B, m) feature projections of points grouped by class.
    label_rows
        (B, m) what class terms are computed from, as in `Pool`.
    classes, offsets
        The classes among these points, and where each begins and ends.
    terms
        How labels enter these projections.
    before
        How many points of the stream came before these.
    """

    part: slice
    rows: NDArray[np.float32]
    label_rows: NDArray[np.float32]
    classes: tuple[Hashable, ...]
    offsets: NDArray[np.int64]
    terms: LabelTerms
    before: int


def for_each_portion(
    data: LabelledData, projections: Projections, work: Callable[[Portion], None], before: int = 0
) -> None:
    """Call ``work`` on every portion of a batch; portions of the same points run in parallel."""
    from sotdd.compute.cpu.engine import CpuEngine

    size = max(1, min(_MOST_POINTS, _MOST_VALUES // data.n_features))
    with CpuEngine() as engine:
        for start in range(0, data.n_points, size):
            rows = slice(start, start + size)
            some = replace(data, features=data.features[rows], codes=data.codes[rows])
            run([some], projections, engine, [_Portions(some, engine, work, before + start)])


class _Portions(Collector):
    """Hands the projections of a few points on, grouped by class, some projections to each thread."""

    def __init__(self, data: LabelledData, engine: CpuEngine, work: Callable[[Portion], None], before: int) -> None:
        self._engine, self._work, self._before = engine, work, before
        self._order = np.argsort(data.codes, kind="stable")
        present, counts = np.unique(data.codes, return_counts=True)
        self._offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self._classes = tuple(data.classes[code] for code in present)

    def before_sorting(self, chunk: Projected) -> None:
        """Hand one chunk on."""
        pool: Any = chunk.pool((0,)).take(self._order)  # rows of the processor's engine

        def hand_on(start: int) -> None:
            some = pool.part(slice(start, start + BLOCK))
            part = slice(chunk.part.start + start, chunk.part.start + start + len(some.rows))
            points = some.rows, some.label_rows, self._classes, self._offsets
            self._work(Portion(part, *points, some.terms, self._before))

        self._engine.workers.each(hand_on, range(0, len(pool.rows), BLOCK))


# ------------------------------------------------------------------ what is summed


class Sums(ABC):
    """Arrays and histograms of each class, and of all points, that add up over parts of the data.

    Parameters
    ----------
    each
        What makes the totals of a class without points, by name.
    whole
        The same for totals over all points. Those that are arrays are never negative.

    Attributes
    ----------
    most_bytes
        With more classes than fit into this nothing is kept.
    required
        Whether no sketch can be made of a file without them.
    kept
        Whether anything is kept: once it is not, it never will be.
    by_class, whole
        The totals, by label and by name.
    """

    most_bytes: float = math.inf
    required: bool = False

    def __init__(
        self, each: Mapping[str, Callable[[], Total]], whole: Mapping[str, Callable[[], Total]] | None = None
    ) -> None:
        self.each = each
        self.bytes_of_class: int = sum(make().nbytes for make in each.values())
        self.kept: bool = True
        self.by_class: dict[Hashable, dict[str, Any]] = {}  # Total, whose kind goes with its name
        self.whole: dict[str, Any] = {name: make() for name, make in (whole or {}).items()}

    @abstractmethod
    def gather(self, portion: Portion) -> None:
        """Add the projections of some points; portions of other projections are added at the same time."""

    def add_points(self, batch: LabelledData) -> None:  # noqa: B027  # most need the projections only
        """Add the points of a batch, once for all projections."""

    def drop(self) -> None:
        """Keep nothing from here on."""
        self.kept, self.by_class, self.whole = False, {}, {}

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
            found = _read_totals(reader, before + name, make(), len(counts))
            for label, total in zip(counts, found, strict=True):
                self.by_class[label][name] = total
        for name, zero in self.whole.items():
            (self.whole[name],) = _read_totals(reader, before + name, zero, 1, least=0)
        for label, totals in self.by_class.items():
            counted = [total.n_points for total in totals.values() if isinstance(total, Histograms)]
            if counted and sum(counted) != counts[label]:
                raise reader.refuse(f"its {before}counts are not the points that it has seen")


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


def _read_totals(reader: Reader, name: str, zero: Total, count: int, least: float = -math.inf) -> list[Any]:
    """What `_pack_totals` wrote of this many totals."""
    if not isinstance(zero, Histograms):
        return list(reader.array(name, Field("f8", (count, *zero.shape), least)).copy())
    counts = reader.array(f"{name} counts", Field("u4 u8", (count, *zero.counts.shape), 0))
    end = Field("f8", (count, len(zero.low)), -LARGEST_VALUE, LARGEST_VALUE)
    low, high = (reader.array(f"{name} {which}", end) for which in ("low", "high"))
    if (low > high).any():
        raise reader.refuse(f"the ranges of its {name!r} are the wrong way round")
    empty = ~counts.any(axis=2)
    low, high = np.where(empty, np.inf, low), np.where(empty, -np.inf, high)
    found = [Histograms(*parts) for parts in zip(counts.copy(), low, high, strict=True)]
    if not all(one.is_sound for one in found):
        raise reader.refuse(f"the counts of its {name!r} do not fit their ranges, or count other points in every row")
    return found


# ------------------------------------------------------------------ values and label terms


class TermSums(Sums):
    """The sum (L,) of the label polynomial over each class: what its label term is computed from."""

    required = True

    def __init__(self, projections: Projections) -> None:
        super().__init__({"sums": partial(np.zeros, projections.n_projections)})

    def gather(self, portion: Portion) -> None:
        """Add one portion, or say why its polynomials cannot be summed."""
        from sotdd.compute.cpu.rows import sum_classes

        assert isinstance(portion.terms, Polynomials)
        sums = sum_classes(portion.label_rows, portion.offsets, portion.terms)
        means = sums / np.diff(portion.offsets)
        refuse_bad_terms("stream", portion.label_rows, means, portion.terms, portion.part.start)
        for label, column in zip(portion.classes, sums.T, strict=True):
            self.by_class[label]["sums"][portion.part] += column


class ValueCounts(Sums):
    """Histograms of the projected features of each class."""

    required = True

    def __init__(self, projections: Projections) -> None:
        super().__init__({"values": partial(Histograms.empty, projections.n_projections)})

    def gather(self, portion: Portion) -> None:
        """Count the values of each class."""
        for index, label in enumerate(portion.classes):
            begin, end = portion.offsets[index : index + 2].tolist()
            line = self.by_class[label]["values"].count(portion.part, portion.rows, begin, end)
            if line >= 0:
                raise describe_overflow("stream", portion.part.start + line)
