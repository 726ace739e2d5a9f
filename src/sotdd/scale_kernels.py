"""The compiled loops of scaling: how far features lie from a point, and their moments about it.

Importing this module imports Numba; callers import it where they use it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sotdd.kernels import Doubles, kernel


@kernel
def block_reach(block: NDArray[np.generic], pivot: Doubles, reach: Doubles) -> None:
    """Write the largest deviation of each feature from ``pivot`` over a block of points."""
    reach[:] = 0.0
    for i in range(block.shape[0]):
        for j in range(reach.size):
            reach[j] = max(reach[j], abs(np.float64(block[i, j]) - pivot[j]))


@kernel
def block_moments(block: NDArray[np.generic], pivot: Doubles, reach: Doubles, mean: Doubles, squares: Doubles) -> int:
    """Write means and summed squared deviations of (features - pivot) / reach over a block of points.

    Returns the row that lies farthest from the mean of the block.
    """
    rows, inverse, unit = block.shape[0], 1.0 / reach, reach / reach.max()
    mean[:] = 0.0
    squares[:] = 0.0
    for i in range(rows):
        for j in range(mean.size):
            mean[j] += (np.float64(block[i, j]) - pivot[j]) * inverse[j]
    for j in range(mean.size):
        mean[j] /= rows
    farthest, longest = 0, -1.0
    for i in range(rows):
        length = 0.0
        for j in range(mean.size):
            deviation = (np.float64(block[i, j]) - pivot[j]) * inverse[j] - mean[j]
            squares[j] += deviation * deviation
            length += (deviation * unit[j]) ** 2
        if length > longest:
            farthest, longest = i, length
    return farthest
