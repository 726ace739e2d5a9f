"""Sorting by NumPy into the very bits that sorting by digits gives."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sotdd.kernels.compiling import Floats, exact_kernel


@exact_kernel
def flip_negatives(rows: NDArray[np.int32]) -> None:
    """Turn the bits of floats into integers of the same order, and such integers back."""
    for line in range(rows.shape[0]):
        row = rows[line]
        for i in range(row.size):
            row[i] ^= (row[i] >> np.int32(31)) & np.int32(0x7FFFFFFF)


def sort_by_numpy(rows: Floats) -> None:
    """Sort every row ascending, in place, into the bits that `radix_sort_rows` gives.

    As integers, since vector instructions that sort floats take zeros of both signs for equal and may return one of
    them twice.
    """
    bits = rows.view(np.int32)
    flip_negatives(bits)
    bits.sort(axis=1)
    flip_negatives(bits)
