"""The loops over points as they come: their scale, their moments, their lengths, and directions of convolutions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sotdd.kernels.compiling import Doubles, Floats, Integers, kernel


@kernel
def standardise(block: NDArray[np.generic], centre: Doubles, inverse_scale: Doubles, out: Floats) -> None:
    """Write (block - centre) * inverse_scale as float32; the difference is taken in float64."""
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            out[i, j] = np.float32((np.float64(block[i, j]) - centre[j]) * inverse_scale[j])


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


@kernel
def norm_sums(points: Floats, codes: Integers, powers: Doubles, class_sums: Doubles) -> None:
    """Add Σ |x|^2, Σ |x|^4, … over points (m, d) to ``powers``, and each point to its class's row of ``class_sums``."""
    for i in range(points.shape[0]):
        square = 0.0
        line = class_sums[codes[i]]
        for j in range(points.shape[1]):
            value = np.float64(points[i, j])
            square += value * value
            line[j] += value
        power = 1.0
        for k in range(powers.size):
            power *= square
            powers[k] += power


@kernel
def spread(reach: Doubles, weights: Doubles, step_h: int, step_w: int, out: Doubles) -> None:
    """Send values (B, h, w) backwards through one convolution (B, C, kh, kw) with the given steps.

    Adds to out (B, C, height, width), which is zero before.
    """
    for b in range(out.shape[0]):
        for c in range(out.shape[1]):
            for y in range(reach.shape[1]):
                for i in range(weights.shape[2]):
                    line = out[b, c, y * step_h + i]
                    for j in range(weights.shape[3]):
                        weight = weights[b, c, i, j]
                        for x in range(reach.shape[2]):
                            line[x * step_w + j] += weight * reach[b, y, x]
