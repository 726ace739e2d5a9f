"""What the processor's engine does to rows, one verb each: the twins of those in ``torch/verbs.py``."""

from __future__ import annotations

from itertools import pairwise as neighbours

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.kernels import rows as kernels
from sotdd.kernels.rows import SHORT_ROW
from sotdd.projections.directions import Directions, Drawn
from sotdd.projections.labels import LabelTerms, Quantiles, summarise_class
from sotdd.projections.moments import Polynomials
from sotdd.projections.scaler import Scaler
from sotdd.projections.turns import TurnedDirections

Rows = NDArray[np.float32]  # (B, n): one row per projection, one value per point
Doubles = NDArray[np.float64]


def scaled(rows: NDArray[np.generic], scaler: Scaler | None, name: str = "data") -> Rows:
    """Points (m, d) as float32, centred and scaled."""
    if scaler is not None:
        result = np.empty(rows.shape, np.float32)
        kernels.standardise(rows, scaler.centre, scaler.inverse, result)
        return result
    with np.errstate(over="ignore"):  # found, and explained, where rows are checked
        result = rows.astype(np.float32, copy=False)
    if result is not rows and rows.any() and not result.any():
        raise SotddError(f"features of dataset {name!r} are too small for float32 products: use scale='pooled'.")
    return result


def project(features: Rows, drawn: Drawn, tile: int, out: Rows) -> None:
    """Write the feature projections (B, m) of points (m, d)."""
    with np.errstate(all="ignore"):  # overflow is found, and explained, where rows are checked
        if isinstance(drawn, TurnedDirections):
            drawn.write(features, out)
            return
        if not isinstance(drawn, Directions):
            out[...] = drawn(features)
            return
        for start in range(0, len(out), tile):
            np.matmul(drawn.theta[start : start + tile], features.T, out=out[start : start + tile])


def group(rows: Rows, position: NDArray[np.integer] | None, drawn: Drawn) -> None:
    """Clamp values where the directions ask for it, and bring the points of each class together."""
    if isinstance(drawn, Directions) and drawn.clamp is not None:
        kernels.clamp_rows(rows, drawn.clamp)
    if position is not None:
        kernels.group_rows(rows, position)


def class_sums(rows: Rows, offsets: NDArray[np.int64], terms: Polynomials) -> Doubles:
    """Sums (B, C) of each row's polynomial over each class; they add up over parts of a dataset."""
    sums = np.empty((len(rows), len(offsets) - 1))
    kernels.class_sums(rows, offsets, terms.coefficients, terms.degrees, terms.limit, sums)
    return sums


def class_terms(rows: Rows, offsets: NDArray[np.int64], terms: LabelTerms) -> Doubles:
    """The label term (B, C) of every class in every projection; may reorder the values within a class."""
    if isinstance(terms, Polynomials):
        return class_sums(rows, offsets, terms) / np.diff(offsets)
    if isinstance(terms, Quantiles):
        result = np.empty((len(rows), len(offsets) - 1))
        sort_classes(rows, offsets)
        kernels.quantile_terms(rows, offsets, terms.coefficients, result)
        return result
    return np.stack([summarise_class(terms, rows[:, first:last]) for first, last in neighbours(offsets)], axis=1)


def sort_rows(rows: Rows) -> None:
    """Sort every row ascending, in place."""
    if rows.shape[1] < SHORT_ROW:
        rows.sort(axis=1)
    else:
        kernels.radix_sort_rows(rows)


def sort_classes(rows: Rows, offsets: NDArray[np.int64]) -> None:
    """Sort the values of each class within every row.

    Large classes are sorted as rows are. The others are sorted by NumPy, side by side: one call for
    all classes of up to twice the same size, so that many small classes cost no more than a few.
    """
    sizes = np.diff(offsets)
    kernels.sort_large_classes(rows, offsets, np.flatnonzero(sizes >= SHORT_ROW))
    doublings = np.ceil(np.log2(sizes)).astype(np.int64)
    for doubling in np.unique(doublings[(sizes > 1) & (sizes < SHORT_ROW)]):
        classes = np.flatnonzero((doublings == doubling) & (sizes < SHORT_ROW))
        together = np.empty((len(rows), len(classes), sizes[classes].max()), np.float32)
        kernels.gather_classes(rows, offsets, classes, together)
        together.sort(axis=2)
        kernels.scatter_classes(together, offsets, classes, rows)
