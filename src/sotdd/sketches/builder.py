"""Sketches of data that arrive in batches: in bounded memory, in any order, on any number of machines."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sotdd.checks import check_count
from sotdd.data import Dataset
from sotdd.errors import SotddError
from sotdd.projections.draws import BLOCK
from sotdd.projections.recipe import Projections
from sotdd.sketches.histograms import BINS, Histograms, quantiles_of
from sotdd.sketches.portions import Portion, for_each_portion
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.statistics import ClassStatistics, as_batch, counts_of, refuse_not_finite, refuse_unlike

# What the histograms of all classes may take together, for a sketch in one pass.
CLASS_BYTES = 256 << 20
# The one group of the second pass.
_ALL = "all"


class ClassesDoNotFit(SotddError):  # noqa: N818
    """There are too many classes for one pass."""


class SketchBuilder:
    """Makes a sketch from batches, keeping counts of projected values in place of the values.

    A point's projection needs to know where its class stands, which is known when all points have
    been seen. So there are two ways. In **one pass**, each class has histograms of its own, which are
    shifted and put together at the end: 4 kB for every class and projection. In **two passes**, the
    first gathers `ClassStatistics`, and the second, given those, needs one histogram per projection
    only. Both merge in any order and grouping.

    Parameters
    ----------
    projections
        What the data are seen through.
    statistics
        Those of all the data, for the second of two passes; None for one pass.
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
    Sketch('streamed': 20,000 points, 2 classes, 64 projections × 512 quantiles)
    >>> streamed.distance(sotdd.sketch((x, y), projections)).value < 0.001
    True
    """

    def __init__(
        self, projections: Projections, statistics: ClassStatistics | None = None, *, n_quantiles: int = 512
    ) -> None:
        self.n_quantiles = check_count(n_quantiles, "n_quantiles")
        self.statistics = ClassStatistics(projections)
        self._given = statistics
        self._histograms: dict[Hashable, Histograms] = {}
        self._whole = True  # no batch was left half counted by an error
        if statistics is not None:
            refuse_unlike(self.statistics, statistics)
            if not statistics.counts:
                raise SotddError("the statistics of the first pass are empty: add the data to them first.")
            self._place = {label: place for place, label in enumerate(statistics.classes)}
            self._terms = statistics.terms()  # (L, C)

    @property
    def projections(self) -> Projections:
        """What the data are seen through."""
        return self.statistics.projections

    @property
    def passes(self) -> int:
        """Whether this is the only pass, or the second of two."""
        return 1 if self._given is None else 2

    @property
    def n_points(self) -> int:
        """How many points were added."""
        return self.statistics.n_points

    def __repr__(self) -> str:
        """Sizes, for people."""
        way = "one pass" if self.passes == 1 else "second pass"
        return f"SketchBuilder({self.n_points:,} points, {self.projections.n_projections:,} projections, {way})"

    def add(self, features: Dataset, labels: ArrayLike | Sequence[Hashable] | None = None) -> Self:
        """Add a batch; features alone are one class."""
        batch = as_batch(features, labels, self.projections)
        if batch is None:
            return self
        self._expect(counts_of(batch))
        self._whole = False
        for_each_portion(batch, self.projections, self._count_classes if self.passes == 1 else self._count_placed)
        self._whole = True
        return self

    def merge(self, other: SketchBuilder) -> Self:
        """Add what another has counted, through the same projections and in the same pass."""
        if not isinstance(other, SketchBuilder):
            raise SotddError(f"a {type(other).__name__} cannot be merged into a SketchBuilder: expected another.")
        refuse_unlike(self.statistics, other.statistics)
        if self.passes != other.passes or self._differs(other):
            raise SotddError(
                "these builders are not of the same pass, or were given other statistics: give all of them the same."
            )
        self._expect(other.statistics.counts)
        for label, sums in other.statistics.sums.items():
            self.statistics.sums[label] += sums
        for label, counted in other._histograms.items():
            self._histograms[label].merge(counted)
        return self

    def finish(self, name: str = "data") -> Sketch:
        """The sketch of all that was added."""
        if not self._whole:
            raise SotddError("an error came between while a batch was added: start again with a new builder.")
        if not self.n_points:
            raise SotddError("there are no points to sketch: add some first.")
        known = self.statistics if self._given is None else self._given
        if known.counts != self.statistics.counts:
            raise SotddError(
                f"the second pass saw {self.n_points:,} points but the first {known.n_points:,}, or other classes: "
                "both must go over the same data."
            )
        terms = known.terms()
        projections = self.projections
        return Sketch(
            name,
            self._quantiles(terms),
            False,
            known.classes,
            np.array([known.counts[label] for label in known.classes], np.int64),
            terms.astype(np.float32),
            projections.recipe(),
            projections.fingerprint,
            projections.scaler,
            projections,
        )

    def _quantiles(self, terms: NDArray[np.float64]) -> NDArray[np.float32]:
        """Quantile functions (L, Q) of the counted values, with terms (L, C) if they are not in them yet."""
        from sotdd.engines.workers import Workers

        groups = [self._histograms[label] for label in self._groups(self.statistics.classes)]
        count = self.projections.n_projections

        def quantiles(start: int) -> NDArray[np.float32]:
            part = slice(start, min(start + BLOCK, count))
            if self.passes == 2:
                size = part.stop - part.start
                return quantiles_of(groups, part, np.ones(size), np.zeros((size, 1)), self.n_quantiles)
            weights = self.projections.draw(start, part.stop).terms.weights
            return quantiles_of(groups, part, weights, terms[part], self.n_quantiles)

        with Workers() as workers:
            return np.concatenate(workers.each(quantiles, range(0, count, BLOCK)))

    def _groups(self, classes: Sequence[Hashable]) -> Sequence[Hashable]:
        """What has histograms of its own: each class in one pass, all together in the second of two."""
        return classes if self.passes == 1 else (_ALL,)

    def _expect(self, counts: Mapping[Hashable, int]) -> None:
        """Make room for so many points of each class, or refuse before anything is changed."""
        known = {*self.statistics.counts, *counts}
        if self.passes == 2:
            unknown = [label for label in counts if label not in self._place]
            if unknown:
                raise SotddError(f"class {unknown[0]!r} was not there in the first pass: go over the same data.")
        elif len(known) * self.projections.n_projections * BINS * 4 > CLASS_BYTES:
            raise ClassesDoNotFit(
                f"{len(known):,} classes × {self.projections.n_projections:,} projections do not fit one pass "
                f"({CLASS_BYTES >> 20} MB): gather ClassStatistics first and give them to the builder, or use fewer "
                "projections."
            )
        self.statistics.expect(counts)
        for label, count in (counts if self.passes == 1 else {_ALL: sum(counts.values())}).items():
            if label not in self._histograms:
                self._histograms[label] = Histograms.empty(self.projections.n_projections)
            self._histograms[label].expect(count)

    def _count_classes(self, portion: Portion) -> None:
        """One pass: count the values of each class, and gather its sums."""
        self.statistics.gather(portion)
        for place, label in enumerate(portion.classes):
            begin, end = portion.offsets[place : place + 2].tolist()
            refuse_not_finite(portion, self._histograms[label].count(portion.part, portion.rows, begin, end))

    def _count_placed(self, portion: Portion) -> None:
        """Second pass: place every point, then count."""
        from sotdd.engines.cpu import place

        columns = [self._place[label] for label in portion.classes]
        place(portion.rows, portion.offsets, portion.terms.weights, self._terms[portion.part][:, columns])
        whole = self._histograms[_ALL]
        refuse_not_finite(portion, whole.count(portion.part, portion.rows, 0, portion.rows.shape[1]))

    def _differs(self, other: SketchBuilder) -> bool:
        if self._given is None or other._given is None:
            return self._given is not other._given
        return self._given.counts != other._given.counts or not np.allclose(self._terms, other._terms, rtol=1e-9)
