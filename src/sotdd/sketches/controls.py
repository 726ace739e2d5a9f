"""Sums over streams that the controls of a sketch are made of (`sotdd.compute.controls`)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sotdd.compute.controls import CollectControls, ControlValues, Lengths, find_controls
from sotdd.compute.engine import ClassMoments, PointSums, Sorted
from sotdd.compute.run import run
from sotdd.inputs.data import LabelledData
from sotdd.projections.recipe import Projections
from sotdd.sketches.histograms import Portion, Sums

if TYPE_CHECKING:
    from sotdd.compute.cpu.engine import CpuEngine

Doubles = NDArray[np.float64]

# How much memory sums of powers may take. With more classes nothing is carried.
_POWER_BYTES = 256 << 20
# What turns sums of t^2, t^4 and t^6 into sums of t^k / k!.
_FACTORIALS = np.array([2.0, 24.0, 720.0])


def draw_weights(projections: Projections) -> NDArray[np.float64] | None:
    """(L,) what each projection counts by in a mean; None where all count the same."""
    if not projections.weighted:
        return None
    weights = np.concatenate([block.importance for _, block in projections.blocks()])
    return None if (weights == 1).all() else weights


def narrow_controls(found: Sequence[ControlValues]) -> ControlValues | None:
    """What a sketch keeps of the controls of its dataset; None where nothing can be controlled."""
    return found[0].narrow() if found else None


class PowerSums:
    """Sums over the points of each class: of powers of their projections, and of the points themselves.

    The sketch of a stream gets its controls from them (`sotdd.sketches.controls`). Of each class, ``powers``
    (L, D + 1) are the sum of t, and the sums of t^k / k! for k = 1, …, D with t cut as label terms cut it; ``totals``
    (d,) is the sum of its scaled points, or nothing where directions are not controlled. Of all points, ``even``
    (L, 3) are the sums of t^2, t^4 and t^6, and ``lengths`` (3,) those of |x|^2, |x|^4 and |x|^6.
    """

    def __init__(self, projections: Projections) -> None:
        self.projections = projections
        self.degree, _, self.dimensions = find_controls(projections)
        count, width = projections.n_projections, self.degree + 1
        n_totals = 0 if self.dimensions is None else projections.n_features
        self.sums: Sums = Sums(
            {"powers": partial(np.zeros, (count, width)), "totals": partial(np.zeros, n_totals)},
            {"even": partial(np.zeros, (count, 3)), "lengths": partial(np.zeros, 3)},
            _POWER_BYTES,
        )
        if not self.degree:
            self.sums.drop()

    def add_points(self, batch: LabelledData) -> None:
        """Add the points of a batch, once for all projections."""
        from sotdd.compute.cpu.rows import scale_rows
        from sotdd.compute.kernels.moments import norm_sums

        if not self.sums.kept or self.dimensions is None:
            return
        lengths = np.zeros(3)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found in projections
            for part in batch.feature_parts():
                by_class = np.zeros((len(batch.classes), part.stop - part.start))
                for block in batch.blocks():
                    points = scale_rows(batch.rows(block), self.projections.scaler, batch.name)
                    norm_sums(
                        points, batch.codes[block], lengths if part.start == 0 else lengths[:0], part.start, by_class
                    )
                for label, total in zip(batch.classes, by_class, strict=True):
                    self.sums.by_class[label]["totals"][part] += total
            self.sums.whole["lengths"] += lengths

    def gather(self, portion: Portion) -> None:
        """Add the projections of some points."""
        from sotdd.compute.kernels.moments import power_sums

        if not self.sums.kept:
            return
        sums = np.empty((len(portion.rows), len(portion.classes), self.degree + 1))
        even = np.empty((len(portion.rows), 3))
        with np.errstate(over="ignore", invalid="ignore"):
            power_sums(portion.rows, portion.offsets, portion.terms.limit, sums, even)
            self.sums.whole["even"][portion.part] += even
            for number, label in enumerate(portion.classes):
                self.sums.by_class[label]["powers"][portion.part] += sums[:, number]

    def collect(self, counts: Mapping[Hashable, int]) -> ControlValues | None:
        """What a sketch of all points carries; None where nothing was kept."""
        from sotdd.compute.cpu.engine import CpuEngine

        if not self.sums.kept:
            return None
        labels = list(counts)
        sizes = np.array([counts[label] for label in labels], np.float64)
        with np.errstate(over="ignore", invalid="ignore"), CpuEngine() as engine:
            controls = _SummedControls(self, labels, sizes, engine)
            run([], self.projections, engine, [controls])
            return narrow_controls(controls.collect())

    def find_lengths(self, labels: list[Hashable], sizes: Doubles) -> list[Lengths]:
        """What the means over directions follow from; nothing where directions are not controlled."""
        if self.dimensions is None:
            return []
        totals = [self.sums.by_class[label]["totals"] for label in labels]
        between = sum(float(total @ total) / size for total, size in zip(totals, sizes, strict=True))
        sums = PointSums(self.sums.whole["lengths"], np.sum(totals, axis=0), between)
        return [Lengths.of(sums, int(sizes.sum()), self.dimensions)]

    def find_moments(self, labels: list[Hashable], sizes: Doubles, part: slice) -> ClassMoments:
        """Mean and covariance, over points, of what is known of their class."""
        shares = sizes / sizes.sum()
        powers = [self.sums.by_class[label]["powers"][part] for label in labels]
        means = np.stack(powers, axis=1) / sizes[:, None]  # (B, C, D + 1)
        centre = np.einsum("c,bcd->bd", shares, means)
        weighted = means * shares[:, None]
        covariance = np.matmul(weighted.transpose(0, 2, 1), means) - centre[:, :, None] * centre[:, None, :]
        return ClassMoments(centre, covariance, self.sums.whole["even"][part] / (_FACTORIALS * sizes.sum()))


class _SummedControls(CollectControls):
    """Controls whose class moments follow from sums, not from points."""

    def __init__(self, sums: PowerSums, labels: list[Hashable], sizes: Doubles, engine: CpuEngine) -> None:
        super().__init__(sums.projections, engine)
        self._sums, self._labels, self._sizes = sums, labels, sizes
        self.lengths = sums.find_lengths(labels, sizes)

    def after_sorting(self, chunk: Sorted) -> None:
        """Take what the sums say under one chunk."""
        self.add(chunk, [self._sums.find_moments(self._labels, self._sizes, chunk.part)])
