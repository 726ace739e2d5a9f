"""Sketches of data that arrive in batches: in bounded memory, in any order, on any number of machines."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sotdd.basics.checks import check_count
from sotdd.basics.errors import SotddError
from sotdd.inputs.column_names import taken_by_position
from sotdd.inputs.data import Dataset
from sotdd.projections.draws import BLOCK
from sotdd.projections.recipe import Projections
from sotdd.sketches.histograms import Histograms, quantiles_of
from sotdd.sketches.portions import Portion, for_each_portion
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.statistics import (
    ClassStatistics,
    as_batch,
    count_classes,
    counts_of,
    refuse_beyond_memory,
    refuse_not_finite,
    refuse_unlike,
)

# The one group of the second pass.
_ALL = "all"


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
        self.given = statistics
        # The label law may keep the very histograms that one pass needs.
        self.kept_once = statistics is None and self.statistics.counts_features
        self.histograms: dict[Hashable, Histograms] = self.statistics.histograms if self.kept_once else {}
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
        return 1 if self.given is None else 2

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
        self.statistics.note(batch)
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
        self.statistics.merge_kept(other.statistics)
        if not self.kept_once:
            for label, counted in other.histograms.items():
                self.histograms[label].merge(counted)
        return self

    def finish(self, name: str = "data") -> Sketch:
        """The sketch of all that was added."""
        self.refuse_half_counted()
        if not self.n_points:
            raise SotddError("there are no points to sketch: add some first.")
        known = self.statistics if self.given is None else self.given
        if known.counts != self.statistics.counts:
            raise SotddError(
                f"the second pass saw {self.n_points:,} points but the first {known.n_points:,}, or other classes: "
                "both must go over the same data."
            )
        terms = known.terms()
        counts = np.array([known.counts[label] for label in known.classes], np.int64)
        quantiles, lost = self._quantiles(terms)
        lost[:, 2] += np.sqrt(known.term_errors() ** 2 @ (counts / counts.sum()))
        projections = self.projections
        return Sketch(
            name,
            quantiles,
            False,
            known.classes,
            counts,
            terms.astype(np.float32),
            projections.recipe(),
            projections.fingerprint,
            projections.scaler,
            projections,
            lost,
            (taken_by_position(name, projections.columns is not None),) if self.statistics.by_position else (),
        )

    def save(self, path: str | Path) -> None:
        """Write what was counted to a file, for another machine or party to merge; no data are in it."""
        from sotdd.sketches.state import write_builder

        write_builder(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, projections: Projections | None = None) -> SketchBuilder:
        """Read a file that `save` wrote; projections are needed only for laws of your own."""
        from sotdd.sketches.state import read_builder

        return read_builder(Path(path), projections)

    def take(self, statistics: ClassStatistics, histograms: Mapping[Hashable, Histograms]) -> None:
        """Go on from what a file holds."""
        self.statistics = statistics
        self.histograms = statistics.histograms if self.kept_once else dict(histograms)

    def refuse_half_counted(self) -> None:
        """Refuse to go on after a batch that was not counted to its end."""
        if not self._whole:
            raise SotddError("an error came between while a batch was added: start again with a new builder.")

    def _quantiles(self, terms: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Quantile functions (L, Q) of the counted values, with terms (L, C) if they are not in them yet.

        And what is lost by them (L, 3).
        """
        from sotdd.engines.cpu.workers import Workers

        groups = [self.histograms[label] for label in self._groups(self.statistics.classes)]
        count = self.projections.n_projections

        def quantiles(start: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
            part = slice(start, min(start + BLOCK, count))
            if self.passes == 2:
                size = part.stop - part.start
                return quantiles_of(groups, part, np.ones(size), np.zeros((size, 1)), self.n_quantiles)
            weights = self.projections.draw(start, part.stop).terms.weights
            return quantiles_of(groups, part, weights, terms[part], self.n_quantiles)

        with Workers() as workers:
            rows, lost = zip(*workers.each(quantiles, range(0, count, BLOCK)), strict=True)
        return np.concatenate(rows), np.concatenate(lost)

    def _groups(self, classes: Sequence[Hashable]) -> Sequence[Hashable]:
        """What has histograms of its own: each class in one pass, all together in the second of two."""
        return classes if self.passes == 1 else (_ALL,)

    def _expect(self, counts: Mapping[Hashable, int]) -> None:
        """Make room for so many points of each class, or refuse before anything is changed."""
        if self.passes == 2:
            unknown = [label for label in counts if label not in self._place]
            if unknown:
                raise SotddError(f"class {unknown[0]!r} was not there in the first pass: go over the same data.")
        else:
            refuse_beyond_memory(len({*self.statistics.counts, *counts}), self.projections.n_projections)
        self.statistics.expect(counts)
        if self.kept_once:
            return
        for label, count in (counts if self.passes == 1 else {_ALL: sum(counts.values())}).items():
            if label not in self.histograms:
                self.histograms[label] = Histograms.empty(self.projections.n_projections)
            self.histograms[label].expect(count)

    def _count_classes(self, portion: Portion) -> None:
        """One pass: count the values of each class, and gather its statistics."""
        self.statistics.gather(portion)
        if not self.kept_once:
            count_classes(self.histograms, portion, portion.rows)

    def _count_placed(self, portion: Portion) -> None:
        """Second pass: place every point, then count."""
        from sotdd.engines.cpu.engine import place

        columns = [self._place[label] for label in portion.classes]
        place(portion.rows, portion.offsets, portion.terms.weights, self._terms[portion.part][:, columns])
        whole = self.histograms[_ALL]
        refuse_not_finite(portion, whole.count(portion.part, portion.rows, 0, portion.rows.shape[1]))

    def _differs(self, other: SketchBuilder) -> bool:
        if self.given is None or other.given is None:
            return self.given is not other.given
        return self.given.counts != other.given.counts or not np.allclose(self._terms, other._terms, rtol=1e-9)
