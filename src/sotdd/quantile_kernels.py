"""The compiled loops of sketches: rows of sorted values, or counts of them, become quantile functions.

Importing this module imports Numba; callers import it where they use it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sotdd.kernels import kernel

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Integers = NDArray[np.integer]


@kernel
def bin_means(rows: Floats, out: Floats) -> None:
    """Write the means of each sorted row (B, n) over Q parts of equal probability, out (B, Q).

    The edges of the parts are whole multiples of 1 / Q of a point, so the share of every point
    in every part is found in integers.
    """
    n, parts = rows.shape[1], out.shape[1]
    for line in range(rows.shape[0]):
        row = rows[line]
        for q in range(parts):
            begin, end = q * n, (q + 1) * n
            first, last = begin // parts, (end - 1) // parts
            if first == last:
                out[line, q] = row[first]
                continue
            total = np.float64(row[first]) * ((first + 1) * parts - begin)
            total += np.float64(row[last]) * (end - last * parts)
            inner = 0.0
            for i in range(first + 1, last):
                inner += np.float64(row[i])
            out[line, q] = np.float32((total + inner * parts) / n)
