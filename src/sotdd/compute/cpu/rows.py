"""What the processor's engine does to rows, one verb each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.resources import Workers
from sotdd.compute.kernels import rows as kernels
from sotdd.inputs.data import cut_range
from sotdd.projections.scaler import Scaler

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


def cut_rows(count: int, n_points: int, values: int = ITEM_VALUES) -> list[slice]:
    """Cut ``count`` rows of ``n_points`` values into parts that a thread takes at a time."""
    return cut_range(count, -(-count // -(-count * n_points // values)))  # all of about the same size


def size_item(total: int, least: int, workers: Workers) -> int:
    """How much of some work a thread takes at a time: each comes back for more a few times."""
    return max(least, -(-total // (_ITEMS * workers.count)))
