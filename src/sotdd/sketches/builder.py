"""Sketches of data that arrive in batches: in bounded memory, in any order, on any number of machines."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from os import PathLike
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted
from sotdd.inputs.column_names import taken_by_position
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.projections.draws import BLOCK
from sotdd.projections.recipe import Projections
from sotdd.sketches.controls import weights_of
from sotdd.sketches.counting import (
    Histograms,
    Portion,
    count_classes,
    for_each_portion,
    quantiles_of,
    refuse_not_finite,
)
from sotdd.sketches.groups import GroupCounts
from sotdd.sketches.levels import QUANTILES, Levels, checked_levels
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.statistics import ClassStatistics, counts_of, opened_batch, refuse_beyond_memory, refuse_unlike

# What the second pass counts all points under, whatever their class.
_ALL = "all"


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
        if not isinstance(other, SketchBuilder):
            raise SotddError(
                f"a {type(other).__name__} cannot be merged into a SketchBuilder: expected a SketchBuilder."
            )
        refuse_unlike(self.statistics, other.statistics)
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
        from sotdd.sketches.file import write_builder

        write_builder(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], projections: Projections | None = None) -> SketchBuilder:
        """Read a file that `save` wrote; pass projections only if they use laws of your own."""
        from sotdd.sketches.file import read_builder

        return read_builder(path, projections)

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

        groups = [self.histograms[label] for label in self._groups(self.statistics.classes)]
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

    def _groups(self, classes: Sequence[Hashable]) -> Sequence[Hashable]:
        """The keys of the histograms: each class in one pass, all points together in the second of two."""
        return classes if self.passes == 1 else (_ALL,)

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
