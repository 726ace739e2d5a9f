"""Sparse points on the processor: multiplied as they are stored, never made dense.

A scaled point is (x - centre) / scale, of which no value is zero. So its projection is that of x / scale, which is as
sparse as x, less that of centre / scale, which all points share. Both are summed in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise as neighbours
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.compute.cpu.rows import Rows, clamp_rows, is_near, scale_rows
from sotdd.compute.cpu.workers import Workers
from sotdd.compute.engine import PointSums
from sotdd.compute.kernels.moments import norm_sums
from sotdd.compute.kernels.rows import multiply_stored
from sotdd.inputs.data import LabelledData
from sotdd.inputs.sparse import SparseRows
from sotdd.projections.compiling import LANES
from sotdd.projections.directions import Directions, Drawn
from sotdd.projections.scaler import Scaler
from sotdd.projections.turns import TurnedDirections

Doubles = NDArray[np.float64]
Columns = NDArray[np.float32]  # (d, B) one direction per column

# Directions are laid out for this many projections at a time, or fewer where they would take more memory than this.
_DIRECTIONS = 256
_DIRECTION_BYTES = 64 << 20

# Points that a thread takes at a time.
_POINTS = 1024


def project_stored(data: LabelledData, drawn: Drawn, scaler: Scaler | None, workers: Workers, out: Rows) -> bool:
    """Write the feature projections (B, n) of sparse points; False where these directions want dense ones."""
    if not isinstance(drawn, (Directions, TurnedDirections)):
        return False
    width = max(LANES, min(_DIRECTIONS, _DIRECTION_BYTES // (4 * data.n_features)) // LANES * LANES)
    edges = [*range(0, data.n_points, _POINTS), data.n_points]
    for first, last in neighbours([*range(0, len(out), width), len(out)]):
        columns = _lay_columns(drawn.part(slice(first, last)), data.n_features, workers)
        if not np.isfinite(columns).all():  # beyond float32: what is dense says so
            return False
        shift = np.zeros(last - first)
        if scaler is not None:
            shift = np.einsum("j,jb->b", scaler.centre * scaler.inverse, columns, dtype=np.float64)

        def work(
            ends: tuple[int, int], columns: Columns = columns, shift: Doubles = shift, rows: Rows = out[first:last]
        ) -> None:
            points = slice(*ends)
            multiply_stored(*_scale_stored(data, points, scaler), columns, shift, rows[:, points])
            clamp_rows(rows[:, points], drawn)

        workers.each(work, neighbours(edges))
    return True


def point_sums(
    data: LabelledData,
    scaler: Scaler | None,
    shares: Sequence[Sequence[slice]],
    each: Callable[[Callable[[Sequence[slice]], tuple[Doubles, Doubles]], Iterable[Sequence[slice]]], Iterable[Any]],
) -> PointSums:
    """Sums over the points of a dataset, whose blocks are shared out; they are added up in the order of the shares.

    Those of sparse points are what all would be if they were zero, and what stored values add.
    """
    stored = isinstance(data.features, SparseRows) and is_near(scaler)
    zero = -scaler.centre * scaler.inverse if stored and scaler is not None else np.zeros(data.n_features)
    lengths, total, between = np.zeros(3), np.zeros(data.n_features), 0.0
    for part in data.feature_parts():

        def add_up(blocks: Sequence[slice], part: slice = part) -> tuple[Doubles, Doubles]:
            by_class = np.zeros((len(data.classes), part.stop - part.start))
            powers = np.zeros(3 if part.start == 0 else 0)  # lengths of points are summed once
            if stored:
                return _sum_stored(data, slice(blocks[0].start, blocks[-1].stop), part, scaler, zero)
            for block in blocks:
                norm_sums(
                    scale_rows(data.rows(block), scaler, data.name), data.codes[block], powers, part.start, by_class
                )
            return powers, by_class

        by_class = data.counts[:, None] * zero[part]
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found in projections
            for powers, of_share in each(add_up, shares):
                by_class += of_share
                lengths[: len(powers)] += powers
            total[part] = by_class.sum(axis=0)
            between += float(np.sum(np.einsum("cd,cd->c", by_class, by_class) / data.counts))
    return PointSums(lengths, total, between)


def _sum_stored(
    data: LabelledData, points: slice, part: slice, scaler: Scaler | None, zero: Doubles
) -> tuple[Doubles, Doubles]:
    """Sums of some sparse points: of powers of their lengths, once; and by class, what they add to ``zero`` (d,)."""
    values, columns, edges = _scale_stored(data, points, scaler)
    width, count = part.stop - part.start, points.stop - points.start
    owners = np.repeat(np.arange(count), np.diff(edges))  # the point of each value
    inside = (columns >= part.start) & (columns < part.stop)
    places = data.codes[points][owners[inside]].astype(np.int64) * width + columns[inside] - part.start
    sums = np.bincount(places, values[inside], len(data.classes) * width).astype(np.float64, copy=False)
    by_class = sums.reshape(-1, width)
    if part.start:
        return np.zeros(0), by_class
    squares = np.bincount(owners, values * (values + 2 * zero[columns]), count) + zero @ zero
    return (np.maximum(squares, 0.0) ** np.arange(1, 4)[:, None]).sum(axis=1), by_class


def _lay_columns(drawn: Directions | TurnedDirections, n_features: int, workers: Workers) -> Columns:
    """The directions as columns, float32."""
    if isinstance(drawn, Directions):
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(drawn.theta.T, np.float32)
    count = len(drawn)
    columns = np.empty((n_features, count), np.float32)

    def write(first: int) -> None:
        here = slice(first, min(first + LANES, count))
        drawn.part(here).write_columns(columns[:, here])

    workers.each(write, range(0, count, LANES))
    return columns


def _scale_stored(
    data: LabelledData, points: slice, scaler: Scaler | None
) -> tuple[Doubles, NDArray[np.int64], NDArray[np.int64]]:
    """Some points as they are stored, divided by the scale; without one, rounded as dense points are."""
    assert isinstance(data.features, SparseRows)
    values, columns, edges = data.features.part(points.start, points.stop)
    if scaler is not None:
        return values * scaler.inverse[columns], columns, edges
    with np.errstate(over="ignore"):  # found, and explained, where rows are checked
        rounded = values.astype(np.float32).astype(np.float64)
    if values.any() and not rounded.any():
        raise SotddError(f"features of dataset {data.name!r} are too small for float32 products: use scale='pooled'.")
    return rounded, columns, edges
