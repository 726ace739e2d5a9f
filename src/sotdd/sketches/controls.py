"""Sums over streams that the controls of a sketch are made of (`sotdd.compute.controls`)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sotdd.compute.controls import CollectControls, ControlValues, find_controls
from sotdd.compute.engine import Sorted
from sotdd.compute.run import run
from sotdd.inputs.data import LabelledData
from sotdd.projections.draws import ORDERS, Block
from sotdd.projections.recipe import Projections
from sotdd.sketches.sums import Portion, Sums

if TYPE_CHECKING:
    from sotdd.compute.cpu.engine import CpuEngine

Doubles = NDArray[np.float64]

# How much memory sums of powers may take. With more classes nothing is carried.
_POWER_BYTES = 256 << 20
# What turns sums of t^2, t^4 and t^6 into sums of t^k / k!.
_FACTORIALS = np.array([2.0, 24.0, 720.0])


def draw_weights(projections: Projections) -> Doubles:
    """(L,) what each projection counts by in a mean."""
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
        self._wanted, _, self._dimensions = find_controls(projections)
        count, width = projections.n_projections, ORDERS + 1
        n_totals = 0 if self._dimensions is None else projections.n_features
        super().__init__(
            {"powers": partial(np.zeros, (count, width)), "totals": partial(np.zeros, n_totals)},
            {"even": partial(np.zeros, (count, 3)), "lengths": partial(np.zeros, 3)},
        )
        if not self._wanted:
            self.drop()

    def add_points(self, batch: LabelledData) -> None:
        """Add the points of a batch, once for all projections."""
        from sotdd.compute.cpu.rows import scale_rows
        from sotdd.compute.kernels.moments import norm_sums

        if not self.kept or self._dimensions is None:
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

    def gather(self, portion: Portion) -> None:
        """Add the projections of some points."""
        from sotdd.compute.kernels.moments import power_sums

        sums = np.empty((len(portion.rows), len(portion.classes), ORDERS + 1))
        even = np.empty((len(portion.rows), 3))
        with np.errstate(over="ignore", invalid="ignore"):
            power_sums(portion.rows, portion.offsets.view(np.uint64), portion.terms.limit, sums, even)
            self.whole["even"][portion.part] += even
            for number, label in enumerate(portion.classes):
                self.by_class[label]["powers"][portion.part] += sums[:, number]

    def collect(self, counts: Mapping[Hashable, int]) -> ControlValues | None:
        """What a sketch of all points carries; None where nothing was kept."""
        from sotdd.compute.cpu.engine import CpuEngine

        if not self.kept:
            return None
        with np.errstate(over="ignore", invalid="ignore"), CpuEngine() as engine:
            controls = _SummedControls(self, counts, engine)
            run([], self._projections, engine, [controls])
            return next((found.narrow() for found in controls.collect()), None)

    def find_means(self, counts: Mapping[Hashable, int]) -> Doubles:
        """Means over points, as `Sorted` has them."""
        totals = {label: self.by_class[label]["totals"] for label in counts}
        between = sum(float(total @ total) / counts[label] for label, total in totals.items())
        sums = np.concatenate([self.whole["lengths"], [between], np.sum(list(totals.values()), axis=0)])
        return sums / sum(counts.values())

    def place(self, counts: Mapping[Hashable, int], part: slice, block: Block) -> tuple[Doubles, Doubles]:
        """What `Sorted` has as places and values of a dataset, as ``group_rows`` of the compiled loops finds them."""
        sizes = np.array(list(counts.values()), np.float64)
        shares, even = sizes / sizes.sum(), self.whole["even"][part] / (_FACTORIALS * sizes.sum())
        known = np.stack([self.by_class[label]["powers"][part] for label in counts], axis=1) / sizes[:, None]
        mean, terms = np.einsum("c,bcd->bd", shares, known), block.further[:, :-1]  # (B, 9), (B, 9, 1 + J)
        apart = known - mean[:, None]
        between = apart[:, :, 0] ** 2 @ shares
        within = np.maximum(0.0, 2 * even[:, 0] - mean[:, 0] ** 2 - between)
        variances = np.einsum("c,bcj->bj", shares, (apart @ terms) ** 2) + terms[:, 0] ** 2 * within[:, None]
        places = np.stack([(mean[:, None] @ terms)[:, 0], np.sqrt(variances)], axis=2)
        return places, np.column_stack([mean[:, 0], between + mean[:, 0] ** 2, even])


class _SummedControls(CollectControls):
    """Controls whose class moments follow from sums, not from points."""

    def __init__(self, sums: PowerSums, counts: Mapping[Hashable, int], engine: CpuEngine) -> None:
        super().__init__(sums._projections, engine)
        self._sums, self._counts = sums, counts

    def after_sorting(self, chunk: Sorted) -> None:
        """Take what the sums say under one chunk."""
        places, values = self._sums.place(self._counts, chunk.part, chunk.block)
        self.add([places], [values], [self._sums.find_means(self._counts)])
