"""The loops of projections: points times rows of H·S₃·H·S₂·H·S₁, draws of label terms, and moments of features.

H is the Hadamard matrix of a power of two, in its natural order and without a factor. It is never formed: a transform
adds and subtracts values that are half of what is left apart, again and again. Eight points go side by side, one to a
lane of the processor's registers. Nothing depends on which points stand beside a point, nor on how many rows are asked
for: sums are always formed in the same order, so results have the same bits.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sotdd.projections.compiling import Doubles, Floats, exact_kernel, kernel, step
from sotdd.projections.lanes import LANES, add_multiple, butterflies, transpose, write_multiple

_two, _four, _eight, _sixteen = butterflies(2), butterflies(4), butterflies(8), butterflies(16)


@step
def _transform(z: Floats, size: int) -> None:
    """Multiply the first ``size`` lines of z by H of that size: four levels at a time, then those that are left."""
    left = size
    while left > 1:
        radix = min(left, 16)
        stride = left // radix
        for first in range(0, size, left):
            for i in range(first, first + stride):
                if radix == 16:
                    _sixteen(z, LANES * i, LANES * stride)
                elif radix == 8:
                    _eight(z, LANES * i, LANES * stride)
                elif radix == 4:
                    _four(z, LANES * i, LANES * stride)
                else:
                    _two(z, LANES * i, LANES * stride)
        left = stride


@step
def _multiply_lines(z: Floats, factors: Floats, count: int) -> None:
    """Multiply the first lines of z, each by a factor of its own."""
    for i in range(count):
        write_multiple(z, LANES * i, factors[i], z, LANES * i)


@step
def _fold(z: Floats, size: int, first: int, rows: int) -> None:
    """The levels of a transform that lead to rows first, …, first + rows - 1 alone; the rest is left to a smaller H."""
    stride = size // 2
    while stride >= rows:
        sign = np.float32(-1.0) if first & stride else np.float32(1.0)
        for i in range(stride):
            add_multiple(z, LANES * i, sign, z, LANES * (i + stride))
        stride //= 2


@step
def _load(points: Floats, start: int, z: Floats) -> None:
    """Write as many points as there are lanes, of at least as many features, to the lanes of z, then zeros."""
    width = points.shape[1]
    for j in range(0, width, LANES):
        first = min(j, width - LANES)  # the last lines are read twice, where the features are no multiple of eight
        transpose(z, LANES * first, points, start * width + first, width)
    for i in range(LANES * width, z.size):
        z[i] = 0.0


@exact_kernel
def project_rows(
    points: Floats,
    signs: Floats,
    scales: Floats,
    first: int,
    skipped: int,
    out: Floats,
    at: int,
    z: Floats,
) -> None:
    """Write scale_i · u_i·x for points x, u_i the rows of H·S₃·H·S₂·H·S₁.

    points (m, d), neither less than eight, signs (3, D), scales (B,); columns ``at`` and following of out (B, n) are
    written. The rows are those from ``first`` + ``skipped`` on, of an aligned power of two of them that begins at
    ``first``. z is for D lines meanwhile.
    """
    size, rows = signs.shape[1], 1
    while rows < skipped + out.shape[0]:
        rows *= 2
    for place in range(0, points.shape[0], LANES):
        start = min(place, points.shape[0] - LANES)  # the last points go through with some of those before them
        _load(points, start, z)
        for turn in range(3):  # one place for all transforms, since each is compiled anew
            _multiply_lines(z, signs[turn], size)
            if turn == 2:
                _fold(z, size, first, rows)
            _transform(z, rows if turn == 2 else size)
        for i in range(out.shape[0]):
            write_multiple(out[i], at + start, scales[i], z, LANES * (skipped + i))


# --------------------------------------------------------------------------- label terms


@exact_kernel
def count_draws(normals: Doubles, uniforms: Doubles, known: Doubles, counted: Doubles) -> None:
    """Add what t and the moments count by in J draws of the label law to counted (B, D + 2, 1 + J), all but the first.

    Draw j of projection b is row b J + j of normals (B J, k + 1), brought to length one, and of uniforms (B J, k), from
    which orders follow by their cumulative probabilities, known (k, …). Orders beyond D count as one.
    """
    draws, beyond = counted.shape[2] - 1, min(counted.shape[1] - 1, known.shape[1]) - 1
    for b in range(counted.shape[0]):
        for j in range(1, 1 + draws):
            row, length = b * draws + j - 1, 0.0
            for i in range(normals.shape[1]):
                length += normals[row, i] * normals[row, i]
            length = 1.0 / math.sqrt(length)
            counted[b, 0, j] += normals[row, 0] * length
            for i in range(uniforms.shape[1]):
                order = 1
                for below in range(beyond):  # all of them: nobody can tell where to stop, which takes longer
                    order += int(known[i, below] <= uniforms[row, i])
                counted[b, order, j] += normals[row, i + 1] * length


# --------------------------------------------------------------------------- features


@kernel
def block_moments(
    block: NDArray[np.generic], pivot: Doubles, inverse: Doubles, unit: Doubles, mean: Doubles, squares: Doubles
) -> int:
    """Add means and summed squared deviations of (features - pivot) * inverse over a block of points to zeros.

    Returns the row that lies farthest from the mean of the block, where features count by their ``unit``.
    """
    rows = block.shape[0]
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
