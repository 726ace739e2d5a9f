"""Sums and counts over the points of each class, which add up over batches, shards and parties."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.resources import Stream, Workers, generator
from sotdd.compute.class_moments import LABEL_SAMPLES, ClassMoments, combine_classes, find_controlled
from sotdd.compute.engine import Sampler, choose_engine, refuse_bad_terms
from sotdd.compute.slices import ProjectedPoints, project_datasets
from sotdd.inputs.data import LabelledData, cut_range
from sotdd.projections.maps import BLOCK, ORDERS, Block, describe_overflow
from sotdd.projections.projections import Projections
from sotdd.sketches.codec import LARGEST_VALUE, Arrays, Reader
from sotdd.sketches.quantiles import BINS, Histograms

Doubles = NDArray[np.float64]
Total: TypeAlias = "Doubles | Histograms"

# At most this many points are projected at a time, and at most this many of their values.
_MOST_POINTS = 8192
_MOST_VALUES = 1 << 24
# How much memory the parts of `Sums` that a sketch can do without may take. Where more classes need more, they go.
MOST_BYTES = {"controls": 256 << 20, "groups": 128 << 20}
# Points of a stream are dealt to this many groups, half of which against the other half is a halving.
GROUPS = 8
# Halves differ by little everywhere, not by much somewhere, and that shows in a quarter of the usual bins.
GROUP_BINS = BINS // 4
# Projections whose class moments are combined at a time.
_TOGETHER = 16 * BLOCK


# ------------------------------------------------------------------ projected points


def project_batch(
    data: LabelledData, projections: Projections, add: Callable[[LabelledData, int, ProjectedPoints], None]
) -> None:
    """Project the points of a batch, some at a time, and add them one block of projections beside another.

    ``add`` takes some points and their classes; how many come before them; and the points projected, grouped by class.
    """
    size = max(1, min(_MOST_POINTS, _MOST_VALUES // data.n_features))
    with choose_engine("cpu", [], 1) as engine:
        for rows in cut_range(data.n_points, size):
            present, codes = np.unique(data.codes[rows], return_inverse=True)
            classes = tuple(data.classes[code] for code in present)
            some = replace(data, features=data.features[rows], classes=classes, codes=codes)
            order = some.group()
            for [points] in project_datasets([some], projections, engine):
                grouped = points.take(order)
                blocks = [grouped.along(part) for part in cut_range(len(points.weights), BLOCK)]
                engine.workers.each(partial(add, some, rows.start), blocks)


def draw_weights(projections: Projections) -> Doubles:
    """(L,) the weight of each projection in a mean."""
    if not projections.weighted:
        return np.ones(projections.n_projections)
    return np.concatenate([block.importance for _, block in projections.blocks()])


# ------------------------------------------------------------------ what is summed


class Sums:
    """Arrays and histograms of each class, and of all points, that add up over parts of the data.

    Their names, which files have too, begin with the part that they belong to:

    - ``terms sums`` (L,), which the label term of a class is computed from, and ``values values``, histograms of its
      projected features, make the quantile functions of a sketch.
    - ``controls`` make its controls. Of each class, ``powers`` (L, 9) are the sum of t, and the sums of t^k / k! for
      k = 1, …, 8 with t cut as label terms cut it; ``totals`` (d,) is the sum of its scaled points, or nothing where
      directions are not controlled. Of all points, ``even`` (L, 3) are the sums of t^2, t^4 and t^6, and ``lengths``
      (3,) those of |x|^2, |x|^4 and |x|^6.
    - ``groups`` tell how far apart halves of the points are. Every point goes to one of eight groups at random. What
      the first projections make of it is counted by class and group, in the histograms ``0``, …, ``7`` and in
      ``terms`` (G, B), the sums of the label polynomial. Which group it goes to depends on the projections and on how
      many points came before it in the same builder. So the halves of a sketch depend on how rows were batched, as no
      other number in it does.

    Attributes
    ----------
    each
        What makes each total of a class without points, by name. A part that was dropped is no longer there.
    counts
        How many points each class has.
    by_class, whole
        The totals, by label and by name.
    """

    def __init__(self, projections: Projections) -> None:
        self.projections = projections
        n_rows, n_first = projections.n_projections, min(BLOCK, projections.n_projections)
        labels, directions = find_controlled(projections)
        self.each: dict[str, Callable[[], Total]] = {
            "controls powers": partial(np.zeros, (n_rows, ORDERS + 1)),
            "controls totals": partial(np.zeros, projections.n_features if directions else 0),
            "terms sums": partial(np.zeros, n_rows),
            **{f"groups {group}": partial(Histograms.empty, n_first, GROUP_BINS) for group in range(GROUPS)},
            "groups terms": partial(np.zeros, (GROUPS, n_first)),
            "values values": partial(Histograms.empty, n_rows),
        }
        self.counts: dict[Hashable, int] = {}
        self.by_class: dict[Hashable, dict[str, Any]] = {}  # Total, whose kind goes with its name
        self.whole: dict[str, Doubles] = {"controls even": np.zeros((n_rows, 3)), "controls lengths": np.zeros(3)}
        if not (labels or directions):
            self.drop("controls")

    @property
    def parts(self) -> list[str]:
        """The parts that are kept."""
        return list(dict.fromkeys(name.split()[0] for name in self.each))

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The labels, in an order that does not depend on how they arrived."""
        try:
            return tuple(sorted(self.counts))  # type: ignore[type-var]  # labels that cannot be compared raise
        except TypeError:
            return tuple(sorted(self.counts, key=lambda label: (type(label).__name__, str(label))))

    def drop(self, part: str) -> None:
        """Keep nothing of a part from here on."""
        stores: list[dict[str, Any]] = [self.each, self.whole, *self.by_class.values()]
        for totals in stores:
            for name in [name for name in totals if name.split()[0] == part]:
                del totals[name]

    def _expect(self, counts: Mapping[Hashable, int]) -> None:
        """Make room for this many more points of each class, before any of them are added."""
        new = [label for label in counts if label not in self.by_class]
        for part, most in MOST_BYTES.items() if new else ():
            of_class = sum(make().nbytes for name, make in self.each.items() if name.split()[0] == part)
            if of_class * (len(self.by_class) + len(new)) > most:
                self.drop(part)
        self.by_class |= {label: {name: make() for name, make in self.each.items()} for label in new}
        for label, count in counts.items():
            self.counts[label] = self.counts.get(label, 0) + count
            for total in self.by_class[label].values():
                if isinstance(total, Histograms):
                    total.expect(count)

    def merge(self, other: Sums) -> None:
        """Add the totals of another, which may be this one itself."""
        self._expect(dict(other.counts))
        for part in set(self.parts) - set(other.parts):
            self.drop(part)
        by_class = [(self.by_class[label], more) for label, more in other.by_class.items()]
        for totals, more in [(self.whole, other.whole), *by_class]:
            for name in totals:
                totals[name] += more[name]

    # -------------------------------------------------------------- what is added

    def add_batch(self, batch: LabelledData) -> None:
        """Add the points of a batch."""
        n_before = sum(self.counts.values())
        self._expect(dict(zip(batch.classes, batch.counts.tolist(), strict=True)))
        self._add_points(batch)
        project_batch(batch, self.projections, lambda some, at, block: self._add_projected(some, n_before + at, block))

    def _add_points(self, batch: LabelledData) -> None:
        """Add what controls need of the points themselves."""
        from sotdd.compute.cpu_engine import scale_rows
        from sotdd.compute.kernels.rows import norm_sums

        if "controls lengths" not in self.whole or not find_controlled(self.projections)[1]:
            return
        lengths = np.zeros(3)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found in projections
            for part in batch.feature_parts():
                by_class = np.zeros((len(batch.classes), part.stop - part.start))
                for block in batch.blocks():
                    points = scale_rows(batch.rows(block), self.projections.scaler, batch.name)
                    powers = lengths if part.start == 0 else lengths[:0]
                    norm_sums(points, batch.codes[block], powers, np.uint64(part.start), by_class)
                for label, total in zip(batch.classes, by_class, strict=True):
                    self.by_class[label]["controls totals"][part] += total
            self.whole["controls lengths"] += lengths

    def _add_projected(self, batch: LabelledData, n_before: int, points: ProjectedPoints) -> None:
        """Add projected points, grouped by the classes of a batch, which so many points of the stream came before."""
        totals = [self.by_class[label] for label in batch.classes]
        if "controls powers" in self.each:
            self._add_powers(points, batch, totals)
        label_rows = points.fetch_label_rows()
        sums = points.terms.class_sums(label_rows, batch.offsets)
        refuse_bad_terms("stream", label_rows, sums / batch.counts, points.terms, points.part.start)
        for total, column in zip(totals, sums.T, strict=True):
            total["terms sums"][points.part] += column
        if "groups terms" in self.each and points.part.start == 0:
            self._add_groups(points, batch, totals, n_before)
        rows = points.fetch()
        for total, (begin, end) in zip(totals, pairwise(batch.offsets.tolist()), strict=True):
            line = total["values values"].count(points.part, rows, begin, end)
            if line >= 0:
                raise describe_overflow("stream", points.part.start + line)

    def _add_powers(self, points: ProjectedPoints, batch: LabelledData, totals: Sequence[dict[str, Any]]) -> None:
        from sotdd.compute.kernels.rows import power_sums

        rows = points.fetch()
        sums, even = np.empty((len(rows), len(totals), ORDERS + 1)), np.empty((len(rows), 3))
        with np.errstate(over="ignore", invalid="ignore"):
            power_sums(rows, batch.offsets.view(np.uint64), points.terms.limit, sums, even)
            self.whole["controls even"][points.part] += even
            for number, total in enumerate(totals):
                total["controls powers"][points.part] += sums[:, number]

    def _add_groups(
        self, points: ProjectedPoints, batch: LabelledData, totals: Sequence[dict[str, Any]], n_before: int
    ) -> None:
        """Deal points to groups, and count them."""
        rng = generator(self.projections.split_seed, Stream.STREAM_GROUPS, n_before)
        drawn = np.asarray(rng.integers(GROUPS, size=batch.n_points))
        for total, (begin, end) in zip(totals, pairwise(batch.offsets.tolist()), strict=True):
            for group in range(GROUPS):
                index = begin + np.flatnonzero(drawn[begin:end] == group)
                if index.size:
                    rows, label_rows = (part[:, index] for part in (points.fetch(), points.fetch_label_rows()))
                    total[f"groups {group}"].count(points.part, rows, 0, index.size)
                    terms = points.terms.class_sums(label_rows, np.array([0, index.size]))
                    total["groups terms"][group] += terms[:, 0]

    # -------------------------------------------------------------- what is made of sums

    def find_controls(self) -> ClassMoments | None:
        """The class moments that a sketch of all points carries; None where nothing was kept of them."""
        if "controls powers" not in self.each:
            return None
        labels, directions = find_controlled(self.projections)
        parts = cut_range(self.projections.n_projections, _TOGETHER)
        with np.errstate(over="ignore", invalid="ignore"), Workers() as workers:
            sampled = Sampler(workers, self.projections, LABEL_SAMPLES if labels else 0).follow(parts, ahead=2)
            found = [self._combine(*one) for one in zip(parts, sampled, strict=True)]
            gaussian, along = (np.concatenate(chunks) for chunks in zip(*found, strict=True))
            norms = self._find_norms() if directions else np.zeros(0)
            moments = ClassMoments.of(self.projections, gaussian, along, norms)
        return moments.narrow()

    def _combine(self, part: slice, block: Block) -> tuple[Doubles, Doubles]:
        """The Gaussian and direction moments of all points along some projections."""
        sizes = np.array([self.counts[label] for label in self.classes], np.int64)
        powers = np.stack([self.by_class[label]["controls powers"][part] for label in self.classes], axis=1)
        return combine_classes(powers, self.whole["controls even"][part], sizes, block.further)

    def _find_norms(self) -> Doubles:
        """The point norms (4 + d,) of all points, as `Slices` has them."""
        totals = [(self.by_class[label]["controls totals"], self.counts[label]) for label in self.classes]
        between = sum(float(total @ total) / count for total, count in totals)
        whole = np.sum([total for total, _ in totals], axis=0)
        return np.concatenate([self.whole["controls lengths"], [between], whole]) / sum(self.counts.values())

    # -------------------------------------------------------------- files

    def pack(self) -> Arrays:
        """Arrays of a file; the first axis of those by class is that of the classes."""
        arrays: Arrays = {}
        for name in self.each if self.counts else ():
            arrays |= _pack_totals([self.by_class[label][name] for label in self.counts], name)
        for name, total in self.whole.items():
            arrays |= _pack_totals([total], name)
        return arrays

    def read(self, reader: Reader, counts: Mapping[Hashable, int], kept: Sequence[str]) -> None:
        """Take the parts that `pack` wrote from a file, for classes with this many points."""
        for part in self.parts:
            if part in kept:
                continue
            if part not in MOST_BYTES:
                raise reader.refuse(f"it does not have its {part!r}")
            self.drop(part)
        self.counts, self.by_class = dict(counts), {label: {} for label in counts}
        for name, make in self.each.items() if counts else ():
            found = _read_totals(reader, name, make(), len(counts))
            for totals, total in zip(self.by_class.values(), found, strict=True):
                totals[name] = total
        for name, zero in self.whole.items():
            (self.whole[name],) = _read_totals(reader, name, zero, 1, least=0)
        for label, part in product(counts, self.parts):
            named = [total for name, total in self.by_class[label].items() if name.split()[0] == part]
            counted = [total.n_points for total in named if isinstance(total, Histograms)]
            if counted and sum(counted) != counts[label]:
                raise reader.refuse(f"its {part} counts are not the points that it has seen")


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
        return list(reader.array(name, "f8", (count, *zero.shape), least).copy())
    counts = reader.array(f"{name} counts", "u4 u8", (count, *zero.counts.shape), 0)
    shape, most = (count, len(zero.low)), LARGEST_VALUE
    low, high = (reader.array(f"{name} {end}", "f8", shape, -most, most) for end in ("low", "high"))
    if (low > high).any():
        raise reader.refuse(f"the ranges of its {name!r} are the wrong way round")
    empty = ~counts.any(axis=2)
    low, high = np.where(empty, np.inf, low), np.where(empty, -np.inf, high)
    found = [Histograms(*parts) for parts in zip(counts.copy(), low, high, strict=True)]
    if not all(one.is_sound for one in found):
        raise reader.refuse(f"the counts of its {name!r} do not fit their ranges, or count other points in every row")
    return found
