"""Label terms of classes by their quantiles or by a user's function, and the sorting of classes that they need."""

from __future__ import annotations

from itertools import pairwise as neighbours

import numpy as np
from numpy.typing import NDArray

from sotdd.engines.faults import summarised
from sotdd.kernels import classes as kernels
from sotdd.kernels.rows import SHORT_ROW
from sotdd.projections.labels import Quantiles, Summaries

Rows = NDArray[np.float32]
Doubles = NDArray[np.float64]


def other_terms(rows: Rows, offsets: NDArray[np.int64], terms: Quantiles | Summaries) -> Doubles:
    """The label term (B, C) of every class where it is no polynomial; may reorder the values within a class."""
    if isinstance(terms, Quantiles):
        result = np.empty((len(rows), len(offsets) - 1))
        sort_classes(rows, offsets)
        kernels.quantile_terms(rows, offsets, terms.coefficients, result)
        return result
    columns = [summarised(rows[:, first:last], terms) for first, last in neighbours(offsets)]
    return np.stack(columns, axis=1)


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
