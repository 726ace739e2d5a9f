"""Sums of powers of projected points, from which the sketch of a stream gets its controls.

They add up over batches, shards and parties. `sotdd.sketches.controls` says what becomes of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from sotdd.engines.controls import Controls, Lengths, Plan
from sotdd.engines.protocol import ClassMoments, PointSums, View
from sotdd.inputs.data import LabelledData
from sotdd.projections.draws import BLOCK
from sotdd.projections.recipe import Projections
from sotdd.sketches.controls import Carried
from sotdd.sketches.counting import Portion

Doubles = NDArray[np.float64]

# How much memory the sums of all classes may take together. With more classes nothing is carried.
_MOST_BYTES = 256 << 20

# What turns sums of t^2, t^4 and t^6 into sums of t^k / k!.
_FACTORIALS = np.array([2.0, 24.0, 720.0])


class PowerSums:
    """Sums over the points of each class: of powers of their projections, and of the points themselves.

    Attributes
    ----------
    powers
        (L, D + 1) of each class, the sum of t, and the sums of t^k / k! for k = 1, …, D with t cut as label terms
        cut it.
    totals
        (d,) of each class, the sum of its scaled points; none where directions are not controlled.
    even
        (L, 3) sums of t^2, t^4 and t^6 over all points.
    lengths
        (3,) sums of |x|^2, |x|^4 and |x|^6.
    kept
        Whether there is anything to control, and it fits.
    """

    def __init__(self, projections: Projections) -> None:
        self.plan: Plan = Plan.of(projections)
        self.projections = projections
        self.kept: bool = self.plan.degree > 0
        self.powers: dict[Hashable, Doubles] = {}
        self.totals: dict[Hashable, Doubles] = {}
        self.even: Doubles = np.zeros((projections.n_projections if self.kept else 0, 3))
        self.lengths: Doubles = np.zeros(3)

    def drop(self) -> None:
        """Keep nothing from here on."""
        self.kept, self.powers, self.totals, self.even = False, {}, {}, np.zeros((0, 3))

    def expect(self, classes: Iterable[Hashable]) -> None:
        """Make room for these classes, before any of their points are gathered."""
        if not self.kept:
            return
        count, directions = self.projections.n_projections, self.plan.dimensions is not None
        width = count * (self.plan.degree + 1) + (self.projections.n_features if directions else 0)
        new = [label for label in classes if label not in self.powers]
        if 8 * width * (len(self.powers) + len(new)) > _MOST_BYTES:
            self.drop()
            return
        for label in new:
            self.powers[label] = np.zeros((count, self.plan.degree + 1))
            if directions:
                self.totals[label] = np.zeros(self.projections.n_features)

    def add_points(self, batch: LabelledData) -> None:
        """Add the points of a batch, once for all projections."""
        from sotdd.engines.cpu.verbs import scaled
        from sotdd.kernels.moments import norm_sums

        if not self.kept or self.plan.dimensions is None:
            return
        lengths = np.zeros(3)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found in projections
            for part in batch.feature_parts():
                by_class = np.zeros((len(batch.classes), part.stop - part.start))
                for block in batch.blocks():
                    points = scaled(batch.rows(block), self.projections.scaler, batch.name)
                    norm_sums(
                        points, batch.codes[block], lengths if part.start == 0 else lengths[:0], part.start, by_class
                    )
                for label, total in zip(batch.classes, by_class, strict=True):
                    self.totals[label][part] += total
            self.lengths += lengths

    def gather(self, portion: Portion) -> None:
        """Add the projections of some points."""
        from sotdd.kernels.moments import power_sums

        if not self.kept:
            return
        sums = np.empty((len(portion.rows), len(portion.classes), self.plan.degree + 1))
        even = np.empty((len(portion.rows), 3))
        with np.errstate(over="ignore", invalid="ignore"):
            power_sums(portion.rows, portion.offsets, portion.terms.limit, sums, even)
            self.even[portion.part] += even
            for number, label in enumerate(portion.classes):
                self.powers[label][portion.part] += sums[:, number]

    def merge(self, other: PowerSums) -> None:
        """Add the sums of another; call `expect` with its classes first."""
        if not (self.kept and other.kept):
            self.drop()
            return
        self.even += other.even
        self.lengths += other.lengths
        for mine, theirs in ((self.powers, other.powers), (self.totals, other.totals)):
            for label, sums in theirs.items():
                mine[label] += sums

    def carried(self, counts: Mapping[Hashable, int]) -> Carried | None:
        """What a sketch of all points carries; None where nothing was kept."""
        from sotdd.engines.cpu.engine import CpuEngine

        if not self.kept:
            return None
        labels = list(counts)
        sizes = np.array([counts[label] for label in labels], np.float64)
        count = self.projections.n_projections
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = self._lengths(labels, sizes)
            controls = Controls(self.projections, self.plan.degree, self.plan.label, lengths)
            places, values = [], []
            with CpuEngine() as engine:
                for start in range(0, count, BLOCK):
                    part = slice(start, min(start + BLOCK, count))
                    block = self.projections.draw(start, part.stop)
                    moments = self._moments(labels, sizes, part)
                    seen = controls.seen_alone(View(part, [], block, [], [moments]), engine)
                    places += seen[0]
                    values += seen[1]
        return Carried.of(
            np.concatenate(places) if places else None,
            np.concatenate(values) if values else None,
            None if lengths is None else lengths[0],
        )

    def _lengths(self, labels: list[Hashable], sizes: Doubles) -> list[Lengths] | None:
        if self.plan.dimensions is None:
            return None
        totals = [self.totals[label] for label in labels]
        between = sum(float(total @ total) / size for total, size in zip(totals, sizes, strict=True))
        sums = PointSums(self.lengths, np.sum(totals, axis=0), between)
        return [Lengths.of(sums, int(sizes.sum()), self.plan.dimensions)]

    def _moments(self, labels: list[Hashable], sizes: Doubles, part: slice) -> ClassMoments:
        """Mean and covariance, over points, of what is known of their class."""
        shares = sizes / sizes.sum()
        means = np.stack([self.powers[label][part] for label in labels], axis=1) / sizes[:, None]  # (B, C, D + 1)
        centre = np.einsum("c,bcd->bd", shares, means)
        weighted = means * shares[:, None]
        covariance = np.matmul(weighted.transpose(0, 2, 1), means) - centre[:, :, None] * centre[:, None, :]
        return ClassMoments(centre, covariance, self.even[part] / (_FACTORIALS * sizes.sum()))
