"""Sketches of data that arrive in batches: in bounded memory, in any order, on any number of machines."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.basics.files import read_whole, write_whole
from sotdd.basics.streams import Stream, generator
from sotdd.basics.text import counted
from sotdd.engines.chance import apart_by_halves, seed_of
from sotdd.inputs.column_names import taken_by_position
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.projections.draws import BLOCK
from sotdd.projections.moments import Polynomials
from sotdd.projections.recipe import Projections
from sotdd.results.noise import HALVING_PROJECTIONS
from sotdd.sketches.controls import weights_of
from sotdd.sketches.counting import (
    BINS,
    Histograms,
    Portion,
    count_classes,
    for_each_portion,
    quantiles_of,
    refuse_not_finite,
)
from sotdd.sketches.levels import QUANTILES, Levels, checked_levels
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.statistics import ClassStatistics, counts_of, opened_batch, refuse_beyond_memory, refuse_unlike
from sotdd.sketches.uncertainty import HALVING_ORDERS, Halves

Doubles = NDArray[np.float64]

# What the second pass counts all points under, whatever their class.
_ALL = "all"

GROUPS = 8

# Halves differ by little everywhere, not by much somewhere, and that shows in a quarter of the usual bins.
GROUP_BINS = BINS // 4

# How much memory the counts of all classes and groups may take together. With more classes nothing is kept.
_GROUP_BYTES = 128 << 20

assert HALVING_PROJECTIONS == BLOCK  # portions of the first block have all that is counted


def check_name(name: object) -> None:
    """Refuse a name that no file could keep."""
    if not isinstance(name, str):
        raise SotddError(f"name is {described(name)}: expected text.")


class SketchBuilder:
    """Makes a sketch from batches, keeping counts of projected values in place of the values.

    A point's projection includes the label term of its class, which is known only when all points have
    been seen. So there are two ways. In **one pass**, each class has histograms of its own, which are
    shifted and put together at the end: 4 kB per class and projection. In **two passes**, the first
    gathers `ClassStatistics`; the second uses them and needs only one histogram per projection. Either
    way builders merge in any order and grouping.

    Parameters
    ----------
    projections
        What the data are projected by.
    statistics
        The class statistics of all the data, for the second of two passes; None for one pass.
    n_quantiles
        How many numbers the sketch keeps of each projection.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(20_000, 3)), rng.integers(2, size=20_000)
    >>> projections = sotdd.Projections.fit([(x, y)], n_projections=64)
    >>> halves = [sotdd.SketchBuilder(projections).add(x[k::2], y[k::2]) for k in range(2)]
    >>> streamed = halves[0].merge(halves[1]).finish("streamed")
    >>> streamed
    Sketch('streamed': 20,000 points, 2 classes, 64 projections × 384 quantiles)
    >>> streamed.distance(sotdd.sketch((x, y), projections)).value < 0.001
    True
    """

    def __init__(
        self, projections: Projections, statistics: ClassStatistics | None = None, *, n_quantiles: int = QUANTILES
    ) -> None:
        self.levels: Levels = checked_levels(n_quantiles)
        self.statistics: ClassStatistics = ClassStatistics(projections)
        self.first_pass = statistics
        # The label law may keep the very histograms that one pass needs.
        self.shares_histograms: bool = statistics is None and self.statistics.counts_features
        self.histograms: dict[Hashable, Histograms] = self.statistics.histograms if self.shares_histograms else {}
        self.groups: GroupCounts = GroupCounts(projections)
        self._half_counted = False  # whether an error interrupted a batch
        if statistics is not None:
            self.statistics.powers.drop()  # the first pass has them
            self.groups.drop()  # values come with label terms, which halves would have other ones of
            refuse_unlike(self.statistics, statistics)
            if not statistics.counts:
                raise SotddError("the statistics of the first pass are empty: add the data to them first.")
            self._class_index = {label: index for index, label in enumerate(statistics.classes)}
            self._terms = statistics.terms()  # (L, C)

    @property
    def projections(self) -> Projections:
        """What the data are projected by."""
        return self.statistics.projections

    @property
    def n_quantiles(self) -> int:
        """How many numbers the sketch will keep of each projection."""
        return self.levels.count

    @property
    def passes(self) -> int:
        """1 where this is the only pass, 2 where it is the second of two."""
        return 1 if self.first_pass is None else 2

    @property
    def n_points(self) -> int:
        """How many points were added."""
        return self.statistics.n_points

    def __repr__(self) -> str:
        """Sizes, for people."""
        points, projections = counted(self.n_points, "point"), counted(self.projections.n_projections, "projection")
        return f"SketchBuilder({points}, {projections}, {'one pass' if self.passes == 1 else 'second pass'})"

    def add(self, features: Dataset, labels: ArrayLike | Sequence[Hashable] | None = None) -> Self:
        """Add a batch; features alone are one class."""
        batch = opened_batch(features, labels, self.projections)
        if batch is not None:
            self.add_opened(batch)
        return self

    def add_opened(self, batch: LabelledData) -> None:
        """Add a batch whose columns are in the order of the projections."""
        self._expect(counts_of(batch))
        self.statistics.note_columns(batch)
        self.statistics.powers.add_points(batch)
        for_each_portion(batch, self.projections, self._count_classes if self.passes == 1 else self._count_shifted)
        self._half_counted = False

    def merge(self, other: SketchBuilder) -> Self:
        """Add the counts of another builder, through the same projections and in the same pass."""
        refuse_unlike(self, other)
        other.refuse_half_counted()
        if self.passes != other.passes or self._other_first_pass(other):
            raise SotddError(
                "these builders are not of the same pass, or have other statistics: pass all of them the same "
                "statistics."
            )
        self._expect(other.statistics.counts)
        self.statistics.merge_expected(other.statistics)
        if not self.shares_histograms:
            for label, histograms in other.histograms.items():
                self.histograms[label].merge(histograms)
        self.groups.merge(other.groups)
        self._half_counted = False
        return self

    def finish(self, name: str = "data") -> Sketch:
        """The sketch of all points added."""
        check_name(name)
        self.refuse_half_counted()
        if not self.n_points:
            raise SotddError("there are no points to sketch: add some first.")
        whole = self.statistics if self.first_pass is None else self.first_pass
        if whole.counts != self.statistics.counts:
            raise SotddError(
                f"the second pass saw {counted(self.n_points, 'point')} but the first {whole.n_points:,}, or other "
                "classes: both must go over the same data."
            )
        terms = whole.terms()
        counts = np.array([whole.counts[label] for label in whole.classes], np.int64)
        quantiles, lost = self._quantiles(terms)
        lost[:, 2] += np.sqrt(whole.term_errors() ** 2 @ (counts / counts.sum()))
        projections = self.projections
        return Sketch(
            name,
            quantiles,
            False,
            whole.classes,
            counts,
            terms.astype(np.float32),
            projections.recipe(),
            projections.fingerprint,
            projections.scaler,
            projections,
            lost,
            (taken_by_position(name, projections.columns is not None),) if self.statistics.by_position else (),
            halves=self.groups.halves(),
            weights=weights_of(projections),
            tilt=projections.tilt,
            controls=whole.powers.carried({label: whole.counts[label] for label in whole.classes}),
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file for another machine or party to merge; it holds counts, not data points."""
        from sotdd.sketches.file import builder_to_bytes

        write_whole(path, builder_to_bytes(self))

    @classmethod
    def load(cls, path: str | PathLike[str], projections: Projections | None = None) -> SketchBuilder:
        """Read a file that `save` wrote; pass projections only if they use laws of your own."""
        from sotdd.sketches.file import builder_from_bytes

        return builder_from_bytes(read_whole(path, "a file of a builder"), path, projections)

    def is_consistent(self) -> bool:
        """Whether every group of counted values has the points that the statistics know of."""
        if not self.statistics.counts:
            return not any(group.n_points for group in self.histograms.values())
        counts = self.statistics.counts if self.passes == 1 else {_ALL: self.statistics.n_points}
        known = self.first_pass is None or set(self.statistics.counts) <= set(self.first_pass.counts)
        return known and {label: group.n_points for label, group in self.histograms.items()} == counts

    def refuse_half_counted(self) -> None:
        """Refuse to go on after an error left a batch half counted."""
        if self._half_counted:
            raise SotddError("an error interrupted a batch while it was added: start again with a new builder.")

    def _quantiles(self, terms: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Quantile functions (L, Q) of the counted values, and what is lost by them (L, 3).

        In one pass the counted values lack the label terms (L, C), which are added here.
        """
        from sotdd.engines.cpu.workers import Workers

        groups = [self.histograms[label] for label in (self.statistics.classes if self.passes == 1 else (_ALL,))]
        count = self.projections.n_projections

        def quantiles(start: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
            part = slice(start, min(start + BLOCK, count))
            if self.passes == 2:
                size = part.stop - part.start
                return quantiles_of(groups, part, np.ones(size), np.zeros((size, 1)), self.levels)
            weights = self.projections.draw(start, part.stop).terms.weights
            return quantiles_of(groups, part, weights, terms[part], self.levels)

        with Workers() as workers:
            rows, lost = zip(*workers.each(quantiles, range(0, count, BLOCK)), strict=True)
        return np.concatenate(rows), np.concatenate(lost)

    def _expect(self, counts: Mapping[Hashable, int]) -> None:
        """Make room for this many more points of each class, or refuse before anything is changed."""
        self.refuse_half_counted()
        if self.passes == 2:
            unknown = [label for label in counts if label not in self._class_index]
            if unknown:
                raise SotddError(f"class {unknown[0]!r} was not there in the first pass: go over the same data.")
        else:
            refuse_beyond_memory(len({*self.statistics.counts, *counts}), self.projections.n_projections)
        self._half_counted = True  # until all is counted, for which there may be no memory
        try:
            self.statistics.expect(counts)
        except SotddError:  # it refuses before it changes anything
            self._half_counted = False
            raise
        self.groups.expect(counts)
        if self.shares_histograms:
            return
        for label, count in (counts if self.passes == 1 else {_ALL: sum(counts.values())}).items():
            if label not in self.histograms:
                self.histograms[label] = Histograms.empty(self.projections.n_projections)
            self.histograms[label].expect(count)

    def _count_classes(self, portion: Portion) -> None:
        """One pass: gather the statistics of each class, and count its values."""
        self.statistics.gather(portion)
        self.groups.gather(portion)
        if not self.shares_histograms:
            count_classes(self.histograms, portion, portion.rows)

    def _count_shifted(self, portion: Portion) -> None:
        """Second pass: add the label terms to the projected features, then count."""
        from sotdd.kernels.rows import shift_rows

        columns = [self._class_index[label] for label in portion.classes]
        shift_rows(portion.rows, portion.offsets, portion.terms.weights, self._terms[portion.part][:, columns])
        n_points = portion.rows.shape[1]
        refuse_not_finite(portion, self.histograms[_ALL].count(portion.part, portion.rows, 0, n_points))

    def _other_first_pass(self, other: SketchBuilder) -> bool:
        """Whether the statistics of the first pass differ."""
        mine, theirs = self.first_pass, other.first_pass
        if mine is None or theirs is None:
            return mine is not theirs
        return mine.counts != theirs.counts or not np.allclose(self._terms, other._terms, rtol=1e-9)


class GroupCounts:
    """Points of a stream dealt to a few groups, so that its sketch knows how far apart halves of the points are.

    Every point goes to one of eight groups at random. What the first projections make of it is counted by class and
    group, and half of the groups against the other half is a halving. There are seven ways to choose half of eight
    groups so that any two of them share just half of theirs, as rows of a Hadamard matrix do.

    Which group a point is dealt to depends on the projections and on how many points came before it in the same
    builder. So the halves of a sketch depend on how rows were batched, as no other number in it does.

    Attributes
    ----------
    histograms
        Of each class, one for each group.
    sums
        (G, B) of each class, the sums of its label polynomial.
    kept
        Whether label terms are sums over the same projections, and the classes fit.
    """

    def __init__(self, projections: Projections) -> None:
        self.projections = projections
        first = projections.draw(0, BLOCK)
        self.n_rows: int = len(first)
        self.kept: bool = isinstance(first.terms, Polynomials) and first.label_features is None
        self.histograms: dict[Hashable, list[Histograms]] = {}
        self.sums: dict[Hashable, Doubles] = {}
        self.n_dealt: int = 0

    def drop(self) -> None:
        """Keep nothing from here on."""
        self.kept, self.histograms, self.sums = False, {}, {}

    def expect(self, classes: Iterable[Hashable]) -> None:
        """Make room for these classes, before any of their points are counted."""
        new = [label for label in classes if label not in self.histograms] if self.kept else []
        for label in new:
            self.histograms[label] = [Histograms.empty(self.n_rows, GROUP_BINS) for _ in range(GROUPS)]
            self.sums[label] = np.zeros((GROUPS, self.n_rows))
            if sum(group[0].counts.nbytes for group in self.histograms.values()) * GROUPS > _GROUP_BYTES:
                self.drop()
                return

    def gather(self, portion: Portion) -> None:
        """Deal some points out, and count them; only the first projections matter."""
        if not self.kept or portion.part.start:
            return
        rng = generator(seed_of(self.projections), Stream.STREAM_GROUPS, self.n_dealt)
        n_points = portion.rows.shape[1]
        self.n_dealt += n_points
        drawn = np.asarray(rng.integers(GROUPS, size=n_points))
        for number, label in enumerate(portion.classes):
            begin, end = portion.offsets[number : number + 2].tolist()
            order = begin + np.argsort(drawn[begin:end], kind="stable")
            sizes: NDArray[np.int64] = np.bincount(drawn[begin:end], minlength=GROUPS).astype(np.int64)
            edges = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
            self._count(label, np.take(portion.rows, order, axis=1), edges, portion)

    def _count(self, label: Hashable, rows: NDArray[np.float32], edges: NDArray[np.int64], portion: Portion) -> None:
        """Count the points of one class, which lie group after group."""
        from sotdd.engines.cpu.verbs import class_sums

        assert isinstance(portion.terms, Polynomials)
        for group, histograms in enumerate(self.histograms[label]):
            first, last = int(edges[group]), int(edges[group + 1])
            if first < last:
                histograms.expect(last - first)
                histograms.count(slice(0, self.n_rows), rows, first, last)
                members = np.ascontiguousarray(rows[:, first:last])
                self.sums[label][group] += class_sums(members, np.array([0, last - first]), portion.terms)[:, 0]

    def merge(self, other: GroupCounts) -> None:
        """Add the counts of another; call `expect` with its classes first."""
        if not (self.kept and other.kept):
            self.drop()
            return
        self.n_dealt += other.n_dealt
        for label, groups in other.histograms.items():
            self.sums[label] += other.sums[label]
            for mine, theirs in zip(self.histograms[label], groups, strict=True):
                mine.expect(theirs.n_points)
                mine.merge(theirs)

    def is_consistent(self, counts: Mapping[Hashable, int]) -> bool:
        """Whether the groups of each class have its points."""
        found = {label: sum(group.n_points for group in groups) for label, groups in self.histograms.items()}
        return not self.kept or (found == dict(counts) and set(self.sums) == set(found))

    def halves(self) -> Halves | None:
        """How far apart halves are, for p = 1 and p = 2; None where nothing was kept, or a half would be empty."""
        from sotdd.engines.cpu.workers import Workers

        if not self.kept:
            return None
        with Workers() as workers:
            parts = workers.each(self._halving, _ways())
        if any(part is None for part in parts):
            return None
        costs = np.stack([part for part in parts if part is not None], axis=1)  # (B, S, orders)
        if not np.isfinite(costs).all():  # the sketch itself is good, and its distances say what overflows
            return None
        weights = self.projections.draw(0, BLOCK).importance
        return np.array([apart_by_halves(costs[:, :, at], weights, p) for at, p in enumerate(HALVING_ORDERS)])

    def _halving(self, signs: NDArray[np.int64]) -> Doubles | None:
        """W_p^p (B, orders) between those groups and the others; None where one half has no points."""
        from sotdd.kernels.quantiles import compare_functions

        levels = Levels(QUANTILES)
        one, other = (self._functions(np.flatnonzero(signs == side), levels) for side in (1, -1))
        if one is None or other is None:
            return None
        costs, within = np.empty((len(HALVING_ORDERS), self.n_rows)), np.empty(self.n_rows)
        for out, p in zip(costs, HALVING_ORDERS, strict=True):
            compare_functions(one, other, levels.edges, levels.smooth, float(p), out, within)
        return costs.T

    def _functions(self, groups: NDArray[np.intp], levels: Levels) -> NDArray[np.float32] | None:
        """Quantile functions (B, Q) of some groups together, with label terms of their own; None for no points."""
        classes: list[Histograms] = []
        terms: list[Doubles] = []
        for label, histograms in self.histograms.items():
            whole = Histograms.empty(self.n_rows, GROUP_BINS)
            for group in groups:
                whole.expect(histograms[group].n_points)
                whole.merge(histograms[group])
            if whole.n_points:
                classes.append(whole)
                terms.append(self.sums[label][groups].sum(axis=0) / whole.n_points)
        if not classes:
            return None
        weights = self.projections.draw(0, BLOCK).terms.weights
        return quantiles_of(classes, slice(0, self.n_rows), weights, np.stack(terms, axis=1), levels)[0]


def _ways() -> NDArray[np.int64]:
    """(7, 8) signs: rows of a Hadamard matrix but the first, which does not halve."""
    signs = np.ones((1, 1), np.int64)
    while len(signs) < GROUPS:
        signs = np.block([[signs, signs], [signs, -signs]])
    return signs[1:]
