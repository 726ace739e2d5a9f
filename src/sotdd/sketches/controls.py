"""Sums over streams that the controls of a sketch are made of (`sotdd.compute.class_moments`)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.resources import Workers
from sotdd.compute.class_moments import LABEL_SAMPLES, ClassMoments, PointMoments, combine_classes, find_controlled
from sotdd.compute.sampling import Sampler
from sotdd.compute.slices import ProjectedPoints
from sotdd.inputs.data import LabelledData, cut_range
from sotdd.projections.blocks import BLOCK, ORDERS, Block
from sotdd.projections.recipe import Projections
from sotdd.sketches.sums import Sums

Doubles = NDArray[np.float64]

# How much memory sums of powers may take. With more classes nothing is carried.
_POWER_BYTES = 256 << 20
# Projections whose class moments are combined at a time.
_TOGETHER = 16 * BLOCK
# What turns sums of t^2, t^4 and t^6 into sums of t^k / k!.
_FACTORIALS = np.array([2.0, 24.0, 720.0])


def draw_weights(projections: Projections) -> Doubles:
    """(L,) the weight of each projection in a mean."""
    if not projections.weighted:
        return np.ones(projections.n_projections)
    return np.concatenate([block.importance for _, block in projections.blocks()])


class PowerSums(Sums):
    """Sums over the points of each class: of powers of their projections, and of the points themselves.

    The sketch of a stream gets its controls from them. Of each class, ``powers`` (L, 9) are the sum of t, and the
    sums of t^k / k! for k = 1, …, 8 with t cut as label terms cut it; ``totals`` (d,) is the sum of its scaled points,
    or nothing where directions are not controlled. Of all points, ``even`` (L, 3) are the sums of t^2, t^4 and t^6, and
    ``lengths`` (3,) those of |x|^2, |x|^4 and |x|^6.
    """

    def __init__(self, projections: Projections) -> None:
        self.most_bytes = _POWER_BYTES
        self._projections = projections
        self._controlled = find_controlled(projections)
        count, width = projections.n_projections, ORDERS + 1
        self._parts = cut_range(count, _TOGETHER)
        n_totals = projections.n_features if self._controlled.directions else 0
        super().__init__(
            {"powers": partial(np.zeros, (count, width)), "totals": partial(np.zeros, n_totals)},
            {"even": partial(np.zeros, (count, 3)), "lengths": partial(np.zeros, 3)},
        )
        if not any(self._controlled):
            self.drop()

    def add_points(self, batch: LabelledData) -> None:
        """Add the points of a batch, once for all projections."""
        from sotdd.compute.cpu.rows import scale_rows
        from sotdd.compute.kernels.moments import norm_sums

        if not (self.kept and self._controlled.directions):
            return
        lengths = np.zeros(3)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found in projections
            for part in batch.feature_parts():
                by_class = np.zeros((len(batch.classes), part.stop - part.start))
                for block in batch.blocks():
                    points = scale_rows(batch.rows(block), self._projections.scaler, batch.name)
                    powers = lengths if part.start == 0 else lengths[:0]
                    norm_sums(points, batch.codes[block], powers, np.uint64(part.start), by_class)
                for label, total in zip(batch.classes, by_class, strict=True):
                    self.by_class[label]["totals"][part] += total
            self.whole["lengths"] += lengths

    def add(self, points: ProjectedPoints, batch: LabelledData, before: int) -> None:
        """Add powers of some projected points."""
        from sotdd.compute.kernels.moments import power_sums

        rows = points.fetch()
        sums, even = np.empty((len(rows), len(batch.classes), ORDERS + 1)), np.empty((len(rows), 3))
        with np.errstate(over="ignore", invalid="ignore"):
            power_sums(rows, batch.offsets.view(np.uint64), points.terms.limit, sums, even)
            self.whole["even"][points.part] += even
            for number, label in enumerate(batch.classes):
                self.by_class[label]["powers"][points.part] += sums[:, number]

    def result(self, counts: Mapping[Hashable, int]) -> ClassMoments | None:
        """The class moments that a sketch of all points carries; None where nothing was kept."""
        if not self.kept:
            return None
        n_samples = LABEL_SAMPLES if self._controlled.labels else 0
        with np.errstate(over="ignore", invalid="ignore"), Workers() as workers:
            sampled = Sampler(workers, self._projections, n_samples).follow(self._parts, ahead=2)
            found = [self._combine(counts, *one) for one in zip(self._parts, sampled, strict=True)]
            gaussian, directions = (np.concatenate(parts) for parts in zip(*found, strict=True))
            moments = ClassMoments(gaussian if self._controlled.labels else None, None, None)
            if self._controlled.directions:
                points = PointMoments.of(self._find_norms(counts), self._projections.n_features)
                moments = replace(moments, direction_moments=directions, point_moments=points)
        return moments.narrow()

    def _find_norms(self, counts: Mapping[Hashable, int]) -> Doubles:
        """The point norms (4 + d,) of all points, as `Slices` has them."""
        totals = {label: self.by_class[label]["totals"] for label in counts}
        between = sum(float(total @ total) / counts[label] for label, total in totals.items())
        sums = np.concatenate([self.whole["lengths"], [between], np.sum(list(totals.values()), axis=0)])
        return sums / sum(counts.values())

    def _combine(self, counts: Mapping[Hashable, int], part: slice, block: Block) -> tuple[Doubles, Doubles]:
        """The Gaussian and direction moments of all points along some projections."""
        sizes = np.array(list(counts.values()), np.int64)
        known = np.stack([self.by_class[label]["powers"][part] for label in counts], axis=1) / sizes[:, None]
        even = self.whole["even"][part] / (_FACTORIALS * sizes.sum())
        return combine_classes(known, even, sizes, block.further)
