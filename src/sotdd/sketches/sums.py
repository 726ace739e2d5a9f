"""Sums and counts over the points of each class, which add up over batches, shards and parties."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.compute.engine import choose_engine, refuse_bad_terms
from sotdd.compute.slices import ProjectedPoints, project_datasets
from sotdd.inputs.data import LabelledData, cut_range
from sotdd.projections.blocks import BLOCK
from sotdd.projections.recipe import Projections
from sotdd.projections.terms import describe_overflow
from sotdd.sketches.codec import LARGEST_VALUE, Arrays, Field, Reader
from sotdd.sketches.histograms import Histograms

Doubles = NDArray[np.float64]
Total: TypeAlias = "Doubles | Histograms"

# At most this many points are projected at a time, and at most this many of their values.
_MOST_POINTS = 8192
_MOST_VALUES = 1 << 24


# ------------------------------------------------------------------ projected points


def project_batch(data: LabelledData, projections: Projections) -> Iterator[tuple[ProjectedPoints, LabelledData, int]]:
    """Project the points of a batch, some at a time.

    Yields some projected points, grouped by class; the points and their classes; and how many come before these.
    """
    size = max(1, min(_MOST_POINTS, _MOST_VALUES // data.n_features))
    with choose_engine("cpu", [], 1) as engine:
        for rows in cut_range(data.n_points, size):
            present, codes = np.unique(data.codes[rows], return_inverse=True)
            classes = tuple(data.classes[code] for code in present)
            some = replace(data, features=data.features[rows], classes=classes, codes=codes)
            order = some.group()
            for [points] in project_datasets([some], projections, engine):
                yield points.take(order), some, rows.start


def cut_blocks(points: ProjectedPoints) -> list[ProjectedPoints]:
    """The points along one block of projections after another, for threads to take."""
    return [points.along(part) for part in cut_range(len(points.weights), BLOCK)]


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
    def add(self, points: ProjectedPoints, batch: LabelledData, before: int) -> None:
        """Add projected points, grouped by the classes of a batch, which so many points of the stream came before.

        Others along other projections are added at the same time.
        """

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
    """The sum (L,) over each class that its label term is computed from."""

    required = True

    def __init__(self, projections: Projections) -> None:
        super().__init__({"sums": partial(np.zeros, projections.n_projections)})

    def add(self, points: ProjectedPoints, batch: LabelledData, before: int) -> None:
        """Add sums over classes, or say why they cannot be summed."""
        label_rows = points.fetch_label_rows()
        sums = points.terms.class_sums(label_rows, batch.offsets)
        refuse_bad_terms("stream", label_rows, sums / batch.counts, points.terms, points.part.start)
        for label, column in zip(batch.classes, sums.T, strict=True):
            self.by_class[label]["sums"][points.part] += column


class ValueCounts(Sums):
    """Histograms of the projected features of each class."""

    required = True

    def __init__(self, projections: Projections) -> None:
        super().__init__({"values": partial(Histograms.empty, projections.n_projections)})

    def add(self, points: ProjectedPoints, batch: LabelledData, before: int) -> None:
        """Count the values of each class."""
        rows = points.fetch()
        for label, (begin, end) in zip(batch.classes, pairwise(batch.offsets.tolist()), strict=True):
            line = self.by_class[label]["values"].count(points.part, rows, begin, end)
            if line >= 0:
                raise describe_overflow("stream", points.part.start + line)
