"""Batches of points, projected a portion at a time on all cores."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.inputs.data import LabelledData
from sotdd.projections.directions import Directions, Drawn
from sotdd.projections.draws import BLOCK
from sotdd.projections.labels import LabelTerms
from sotdd.projections.recipe import Projections

# Points that are projected at a time: at most so many, and so many values of them.
_MOST_POINTS = 8192
_MOST_VALUES = 1 << 24


@dataclass(frozen=True, eq=False)
class Portion:
    """Some points through some projections.

    Attributes
    ----------
    part
        Which projections.
    rows
        (B, m) feature projections of points grouped by class; whoever works on the portion may change them.
    label_rows
        The same for the labels: these very rows, unless labels have directions of their own.
    classes, offsets
        The classes among these points, and where each begins and ends.
    terms
        How labels enter these projections.
    """

    part: slice
    rows: NDArray[np.float32]
    label_rows: NDArray[np.float32]
    classes: tuple[Hashable, ...]
    offsets: NDArray[np.int64]
    terms: LabelTerms


def for_each_portion(data: LabelledData, projections: Projections, work: Callable[[Portion], None]) -> None:
    """Do something with every portion of a batch; portions of the same points are worked on side by side."""
    from sotdd.engines.cpu.engine import scaled
    from sotdd.engines.cpu.workers import Workers

    size = max(1, min(_MOST_POINTS, _MOST_VALUES // data.n_features))
    starts = range(0, projections.n_projections, BLOCK)
    with Workers() as workers:
        for first in range(0, data.n_points, size):
            chosen = slice(first, min(first + size, data.n_points))
            codes = data.codes[chosen]
            order = np.argsort(codes, kind="stable")
            present, counts = np.unique(codes, return_counts=True)
            offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            classes = tuple(data.classes[code] for code in present)
            points = scaled(data.rows(chosen), projections.scaler, data.name)[order]

            def project(
                start: int,
                points: NDArray[np.float32] = points,
                classes: tuple[Hashable, ...] = classes,
                offsets: NDArray[np.int64] = offsets,
            ) -> None:
                block = projections.draw(start, start + BLOCK)
                rows = _projected(points, block.features, len(block))
                second = block.label_features
                label_rows = rows if second is None else _projected(points, second, len(block))
                work(Portion(slice(start, start + len(block)), rows, label_rows, classes, offsets, block.terms))

            workers.each(project, starts)


def _projected(points: NDArray[np.float32], drawn: Drawn, count: int) -> NDArray[np.float32]:
    from sotdd.engines.cpu.engine import project
    from sotdd.kernels import rows as kernels

    rows = np.empty((count, len(points)), np.float32)
    if isinstance(drawn, Directions):
        with np.errstate(over="ignore"):  # found where values are counted
            drawn = Directions(np.ascontiguousarray(drawn.theta, np.float32), drawn.clamp)
    project(points, drawn, count, rows)
    if isinstance(drawn, Directions) and drawn.clamp is not None:
        kernels.clamp_rows(rows, drawn.clamp)
    return rows
