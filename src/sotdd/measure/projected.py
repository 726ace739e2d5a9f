"""A dataset as its projections and labels: what can be shuffled later without its features."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.inputs.data import LabelledData
from sotdd.projections.directions import Directions, Drawn
from sotdd.projections.draws import BLOCK
from sotdd.projections.recipe import Projections

# Features and projections beyond this many spreads are cut to it. They are a difference in any case, and their powers
# stay within float64.
FARTHEST = 1e12


@dataclass(frozen=True, eq=False)
class Projected:
    """Points under every projection, before label terms, in their own order.

    Attributes
    ----------
    rows
        (L, n) feature projections.
    label_rows
        (L, n) those made for labels; None where ``rows`` serve both.
    classes, codes
        The labels, and the index of every point's label among them.
    """

    rows: NDArray[np.float32]
    label_rows: NDArray[np.float32] | None
    classes: tuple[Hashable, ...]
    codes: NDArray[np.integer]

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        for array in (self.rows, self.label_rows, self.codes):
            if array is not None:
                array.flags.writeable = False

    @classmethod
    def of(cls, data: LabelledData, projections: Projections) -> Projected:
        """Project a dataset on the processor; values however large are brought within range, not refused."""
        blocks = [projections.draw(start, start + BLOCK) for start in range(0, projections.n_projections, BLOCK)]
        rows = _projected(data, projections, [block.features for block in blocks])
        for_labels = [block.label_features for block in blocks if block.label_features is not None]
        label_rows = _projected(data, projections, for_labels) if for_labels else None
        return cls(rows, label_rows, data.classes, np.array(data.codes))

    @property
    def n_points(self) -> int:
        """How many points there are."""
        return len(self.codes)

    def take(self, index: NDArray[np.integer]) -> Projected:
        """Some of the points."""
        label_rows = None if self.label_rows is None else self.label_rows[:, index]
        return Projected(self.rows[:, index], label_rows, self.classes, self.codes[index])


def _projected(data: LabelledData, projections: Projections, drawn: list[Drawn]) -> NDArray[np.float32]:
    from sotdd.engines.cpu.verbs import project, scaled
    from sotdd.engines.cpu.workers import Workers
    from sotdd.kernels import rows as kernels

    rows = np.empty((projections.n_projections, data.n_points), np.float32)

    def work(block: slice) -> None:
        with np.errstate(all="ignore"):
            points = np.clip(scaled(data.rows(block), projections.scaler, data.name), -FARTHEST, FARTHEST)
        for number, part in enumerate(drawn):
            start = number * BLOCK
            out = rows[start : start + BLOCK, block]
            projection = np.empty(out.shape, np.float32)
            project(points, part, BLOCK, projection)
            kernels.clamp_rows(projection, part.clamp or FARTHEST if isinstance(part, Directions) else FARTHEST)
            out[...] = projection

    with Workers() as workers:
        workers.each(work, data.blocks())
    return rows
