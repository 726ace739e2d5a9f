"""What the processor's engine does to rows, one verb each."""

from __future__ import annotations

from itertools import pairwise as neighbours

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.threads import Workers
from sotdd.compute.kernels import rows as kernels
from sotdd.compute.kernels.rows import SHORT_ROW
from sotdd.inputs.data import cut_range
from sotdd.projections.directions import Directions, Drawn
from sotdd.projections.labels import Quantiles, Summaries, summarise_class
from sotdd.projections.moments import LabelTerms, Polynomials
from sotdd.projections.scaler import Scaler
from sotdd.projections.turns import TurnedDirections

Rows = NDArray[np.float32]  # (B, n): one row per projection, one value per point
Doubles = NDArray[np.float64]

# Values that a thread works on at a time: with their copies, a second-level cache's worth.
ITEM_VALUES = 1 << 17
# Rows are finished in about this many pieces per thread.
_ITEMS = 4


def scale_rows(rows: NDArray[np.generic], scaler: Scaler | None, name: str = "data", spare: Rows | None = None) -> Rows:
    """Points (m, d) as float32, centred and scaled; in ``spare``, where it is given, if they have to be copied."""
    if scaler is not None:
        result = np.empty(rows.shape, np.float32) if spare is None else spare[: len(rows)]
        if scaler.arcsinh:
            result[...] = scaler.apply(rows)
        else:
            kernels.standardise(rows, scaler.centre, scaler.inverse, result)
        return result
    with np.errstate(over="ignore"):  # found, and explained, where rows are checked
        result = rows.astype(np.float32, copy=False)
    if result is not rows and rows.any() and not result.any():
        raise SotddError(f"features of dataset {name!r} are too small for float32 products: use scale='pooled'.")
    return result


def project(features: Rows, drawn: Drawn, tile: int, rows: Rows, points: slice) -> None:
    """Write the feature projections of points (m, d) to these columns of rows (B, n)."""
    out = rows[:, points]
    with np.errstate(all="ignore"):  # overflow is found, and explained, where rows are checked
        if isinstance(drawn, TurnedDirections):
            drawn.write(features, rows, points.start)
            return
        if not isinstance(drawn, Directions):
            out[...] = drawn(features)
            return
        whole = len(out) // tile * tile
        if whole:  # in one call, though each tile is a product of its own
            tiles = drawn.theta[:whole].reshape(-1, tile, drawn.theta.shape[1])
            np.matmul(tiles, features.T, out=rows[:whole].reshape(-1, tile, rows.shape[1])[:, :, points])
        if whole < len(out):
            np.matmul(drawn.theta[whole:], features.T, out=out[whole:])
        if drawn.clamp is not None:
            np.clip(out, np.float32(-drawn.clamp), np.float32(drawn.clamp), out=out)


def sum_classes(rows: Rows, offsets: NDArray[np.int64], terms: Polynomials) -> Doubles:
    """Sums (B, C) of each row's polynomial over each class; they add up over parts of a dataset."""
    sums = np.empty((len(rows), len(offsets) - 1))
    kernels.class_sums(rows, offsets, terms.coefficients, terms.limit, sums)
    return sums


def find_class_terms(rows: Rows, offsets: NDArray[np.int64], terms: LabelTerms) -> Doubles:
    """The label term (B, C) of every class in every projection; may reorder the values within a class."""
    if isinstance(terms, Polynomials):
        return sum_classes(rows, offsets, terms) / np.diff(offsets)
    if isinstance(terms, Quantiles):
        result = np.empty((len(rows), len(offsets) - 1))
        sort_classes(rows, offsets)
        kernels.quantile_terms(rows, offsets, terms.coefficients, result)
        return result
    assert isinstance(terms, Summaries)
    return np.stack([summarise_class(terms, rows[:, first:last]) for first, last in neighbours(offsets)], axis=1)


def sort_rows(rows: Rows) -> None:
    """Sort every row ascending, in place."""
    sort_classes(rows, np.array([0, rows.shape[1]]))


def sort_classes(rows: Rows, offsets: NDArray[np.int64]) -> None:
    """Sort the values of each class within every row: NumPy's networks are faster with few, counting with many."""
    spare, counts = np.empty(rows.shape[1], np.int32), np.empty((4, 2048), np.uint32)
    for first, last in neighbours(offsets.tolist()):
        if last - first < SHORT_ROW:
            rows[:, first:last].sort(axis=1)
        else:
            kernels.sort_part(rows.view(np.int32), first, last, spare, counts)


def cut_rows(count: int, n_points: int, values: int = ITEM_VALUES) -> list[slice]:
    """Cut ``count`` rows of ``n_points`` values into parts that a thread takes at a time."""
    return cut_range(count, -(-count // -(-count * n_points // values)))  # all of about the same size


def size_item(total: int, least: int, workers: Workers) -> int:
    """How much of some work a thread takes at a time: each comes back for more a few times."""
    return max(least, -(-total // (_ITEMS * workers.count)))
