"""Sketches of data that arrive in batches: in bounded memory, in any order, on any number of machines."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sotdd.basics.checks import describe
from sotdd.basics.errors import SotddError
from sotdd.basics.remarks import Remark, Remarks
from sotdd.basics.text import quote, say_count
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.projections.draws import Block
from sotdd.projections.recipe import Projections
from sotdd.sketches.controls import draw_weights
from sotdd.sketches.histograms import (
    Histograms,
    Portion,
    Sums,
    check_classes,
    count_classes,
    find_quantiles,
    refuse_not_finite,
)
from sotdd.sketches.quantiles import QUANTILES, Levels, check_quantiles
from sotdd.sketches.recipe import Recipe
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.statistics import ClassStatistics, Stored, open_batch, refuse_unlike
from sotdd.sketches.uncertainty import GroupCounts


def check_name(name: object) -> None:
    """Refuse a name that no file could keep."""
    if not isinstance(name, str):
        raise SotddError(f"is {describe(name)}: expected text.", setting="name")


class SketchBuilder(Stored):
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
        self.n_quantiles: int = check_quantiles(n_quantiles).count
        self.statistics: ClassStatistics = ClassStatistics(projections)
        self.projections = projections
        self.first_pass = statistics
        self.groups: GroupCounts = GroupCounts(projections)
        sums, values = self.statistics.sums, {"values": partial(Histograms.empty, projections.n_projections)}
        if statistics is None:
            # The label law may keep the very histograms that one pass needs.
            self._counts_values = not self.statistics.counts_features
            sums |= {"counted": Sums(values, required=True)} if self._counts_values else {}
            sums["groups"] = self.groups.sums
            return
        refuse_unlike(self.statistics, statistics)
        if not statistics.counts:
            raise SotddError("the statistics of the first pass are empty: add the data to them first.")
        for first in sums.values():  # which the first pass has
            first.drop()
        self._counts_values = True
        sums["counted"] = Sums({}, values)
        self._class_index = {label: index for index, label in enumerate(statistics.classes)}
        self._terms = statistics.terms()  # (L, C)

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
        points, projections = say_count(self.n_points, "point"), say_count(self.projections.n_projections, "projection")
        return f"SketchBuilder({points}, {projections}, {'one pass' if self.passes == 1 else 'second pass'})"

    def add(self, features: Dataset, labels: ArrayLike | Sequence[Hashable] | None = None) -> Self:
        """Add a batch; features alone are one class."""
        batch = open_batch(features, labels, self.projections)
        if batch is not None:
            self.add_opened(batch)
        return self

    def add_opened(self, batch: LabelledData) -> None:
        """Add a batch whose columns are in the order of the projections."""
        if self.passes == 2:
            unknown = [label for label in batch.classes if label not in self._class_index]
            if unknown:
                raise SotddError(f"class {unknown[0]!r} was not there in the first pass: go over the same data.")
        self.statistics.add_opened(batch, self._count_classes if self.passes == 1 else self._count_shifted)

    def merge(self, other: SketchBuilder) -> Self:
        """Add the counts of another builder, through the same projections and in the same pass."""
        refuse_unlike(self, other)
        if self.passes != other.passes or self._other_first_pass(other):
            raise SotddError(
                "these builders are not of the same pass, or have other statistics: pass all of them the same "
                "statistics."
            )
        self.statistics.merge(other.statistics)
        self.groups.n_dealt += other.groups.n_dealt
        return self

    def finish(self, name: str = "data") -> Sketch:
        """The sketch of all points added."""
        check_name(name)
        self.statistics.refuse_half_added()
        if not self.n_points:
            raise SotddError("there are no points to sketch: add some first.")
        whole = self.statistics if self.first_pass is None else self.first_pass
        if whole.counts != self.statistics.counts:
            raise SotddError(
                f"the second pass saw {say_count(self.n_points, 'point')} but the first {whole.n_points:,}, or other "
                "classes: both must go over the same data."
            )
        terms = whole.terms()
        counts = np.array([whole.counts[label] for label in whole.classes], np.int64)
        quantiles, lost = self._quantiles(terms)
        lost[:, 2] += np.sqrt(whole.term_errors() ** 2 @ (counts / counts.sum()))
        projections = self.projections
        return Sketch(
            name,
            Recipe.of(projections),
            quantiles,
            False,
            whole.classes,
            counts,
            terms.astype(np.float32),
            lost,
            remark_on_position(name, projections) if self.statistics.by_position else (),
            halves=self.groups.halves(),
            weights=draw_weights(projections),
            controls=whole.powers.collect({label: whole.counts[label] for label in whole.classes}),
        )

    def _quantiles(self, terms: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Quantile functions (L, Q) of the counted values, and what is lost by them (L, 3).

        In one pass the counted values lack the label terms (L, C), which are added here.
        """
        from sotdd.compute.cpu.workers import Workers

        sums = self.statistics.sums["counted" if self._counts_values else "terms"]
        classes = self.statistics.classes
        levels = Levels(self.n_quantiles)
        groups = [sums.by_class[label]["values"] for label in classes] if self.passes == 1 else [sums.whole["values"]]

        def find(drawn: tuple[slice, Block]) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
            part, block = drawn
            if self.passes == 2:
                return find_quantiles(groups, part, np.ones(len(block)), np.zeros((len(block), 1)), levels)
            return find_quantiles(groups, part, block.terms.weights, terms[part], levels)

        with Workers() as workers:
            rows, lost = zip(*workers.each(find, self.projections.blocks()), strict=True)
        return np.concatenate(rows), np.concatenate(lost)

    def _count_classes(self, portion: Portion) -> None:
        """One pass: gather the statistics of each class, and count its values."""
        self.statistics.gather(portion)
        self.groups.gather(portion)
        if self._counts_values:
            count_classes(self.statistics.sums["counted"], portion, portion.rows)

    def _count_shifted(self, portion: Portion) -> None:
        """Second pass: add the label terms to the projected features, then count."""
        from sotdd.compute.kernels.rows import shift_rows

        columns = [self._class_index[label] for label in portion.classes]
        shift_rows(portion.rows, portion.offsets, portion.terms.weights, self._terms[portion.part][:, columns])
        values: Histograms = self.statistics.sums["counted"].whole["values"]
        refuse_not_finite(portion, values.count(portion.part, portion.rows, 0, portion.rows.shape[1]))

    def _other_first_pass(self, other: SketchBuilder) -> bool:
        """Whether the statistics of the first pass differ."""
        mine, theirs = self.first_pass, other.first_pass
        if mine is None or theirs is None:
            return mine is not theirs
        return mine.counts != theirs.counts or not np.allclose(self._terms, other._terms, rtol=1e-9)


def remark_on_position(name: str, projections: Projections) -> Remarks:
    """What a reader should know of a dataset whose columns were matched by position."""
    return (Remark("matched by position", name=name, projections_have_names=projections.columns is not None),)


class SketchWindow(Stored):
    """Parts of a dataset by name, each counted on its own, and the sketch of all of them together.

    A part that is taken out leaves nothing behind: the sketch is that of the parts that are left, to the last bit,
    but for its halves, which are random. A window is a file as a sketch is, and whatever takes a sketch file
    (`sotdd.distance`, ``sotdd check``) takes a file of a window as the sketch of its parts.

    Parameters
    ----------
    projections
        What the data are projected by.
    n_quantiles
        How many numbers the sketch keeps of each projection.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> days = {day: (rng.normal(size=(500, 3)), rng.integers(2, size=500)) for day in ("mon", "tue", "wed")}
    >>> projections = sotdd.Projections.fit([days["mon"]], n_projections=64)
    >>> window = sotdd.SketchWindow(projections)
    >>> for day, rows in days.items():
    ...     _ = window.add(day, *rows)
    >>> window.forget("mon")
    SketchWindow(2 parts: 'tue', 'wed'; 1,000 points, 64 projections)
    >>> window.finish("two days")
    Sketch('two days': 1,000 points, 2 classes, 64 projections × 384 quantiles)
    """

    def __init__(self, projections: Projections, *, n_quantiles: int = QUANTILES) -> None:
        self.n_quantiles: int = check_quantiles(n_quantiles).count
        SketchBuilder(projections)  # refuses what cannot be merged
        self.projections = projections
        self.parts: dict[str, SketchBuilder] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parts, oldest first."""
        return tuple(self.parts)

    @property
    def n_points(self) -> int:
        """How many points all parts have together."""
        return sum(part.n_points for part in self.parts.values())

    def __repr__(self) -> str:
        """Parts and sizes, for people."""
        named = ", ".join(quote(name) for name in self.names[:3]) + (", …" if len(self.parts) > 3 else "")
        parts = say_count(len(self.parts), "part") + (f": {named}" if named else "")
        points, projections = say_count(self.n_points, "point"), say_count(self.projections.n_projections, "projection")
        return f"SketchWindow({parts}; {points}, {projections})"

    def add(self, part: str, features: Dataset, labels: ArrayLike | Sequence[Hashable] | None = None) -> Self:
        """Add rows to a part, which is begun where there is none of this name; features alone are one class."""
        check_name(part)
        batch = open_batch(features, labels, self.projections)
        if batch is None:
            return self
        known = {label for each in self.parts.values() for label in each.statistics.counts}
        check_classes(len(known | set(batch.classes)), self.projections.n_projections)
        builder = self.parts.get(part)
        if builder is None:
            builder = SketchBuilder(self.projections, n_quantiles=self.n_quantiles)
        builder.add_opened(batch)
        self.parts[part] = builder
        return self

    def forget(self, part: str) -> Self:
        """Take a part out."""
        check_name(part)
        if part not in self.parts:
            there = ", ".join(quote(name) for name in self.names[:6]) or "no part at all"
            raise SotddError(f"there is no part {describe(part)} to forget: there is {there}.")
        del self.parts[part]
        return self

    def finish(self, name: str = "window") -> Sketch:
        """The sketch of all parts together."""
        whole = SketchBuilder(self.projections, n_quantiles=self.n_quantiles)
        for part in self.parts.values():
            whole.merge(part)
        return whole.finish(name)
