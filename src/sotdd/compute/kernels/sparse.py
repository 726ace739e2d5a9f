"""The loops over points of which only the values other than zero are stored.

Such points come as ``values`` (z,), the ``columns`` (z,) they stand in, and ``edges`` (m + 1,): point i has those from
edges[i] up to edges[i + 1]. Sums are formed in the order in which values are stored, so results do not depend on how
points are portioned.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sotdd.projections.compiling import Doubles, Floats, exact_kernel

Indices = NDArray[np.int64]

# Points whose projections are written together.
_POINTS = 16


@exact_kernel
def multiply_points(
    values: Doubles, columns: Indices, edges: Indices, turned: Floats, shift: Doubles, out: Floats
) -> None:
    """Write θ·x - shift for points x and B directions θ, the columns of ``turned`` (d, B); out (B, m)."""
    sums = np.empty((_POINTS, turned.shape[1]))
    count = edges.size - 1
    for start in range(0, count, _POINTS):
        here = min(_POINTS, count - start)
        for i in range(here):
            line = sums[i]
            for b in range(line.size):
                line[b] = -shift[b]
            for k in range(edges[start + i], edges[start + i + 1]):
                value, theta = values[k], turned[columns[k]]
                for b in range(line.size):
                    line[b] += value * np.float64(theta[b])
        for b in range(sums.shape[1]):
            for i in range(here):
                out[b, start + i] = np.float32(sums[i, b])


@exact_kernel
def multiply_one(point: Doubles, turned: Floats, out: Doubles) -> None:
    """Write θ·x for one point x (d,) that has few zeros, as `multiply_points` does; out (B,)."""
    out[:] = 0.0
    for j in range(point.size):
        for b in range(out.size):
            out[b] += point[j] * np.float64(turned[j, b])


@exact_kernel
def sums_of_points(
    values: Doubles, columns: Indices, edges: Indices, codes: NDArray[np.integer], zero: Doubles, length: float,
    first: int, powers: Doubles, class_sums: Doubles,
) -> None:  # fmt: skip
    """As `norm_sums` of points x that are ``zero`` (d,), of this squared length, but for ``values`` added to it.

    Class sums are of what is added alone.
    """
    last = first + class_sums.shape[1]
    for i in range(edges.size - 1):
        line, square = class_sums[codes[i]], length
        for k in range(edges[i], edges[i + 1]):
            j = columns[k]
            if first <= j < last:
                line[j - first] += values[k]
            square += values[k] * (values[k] + 2.0 * zero[j])
        power = 1.0
        for order in range(powers.size):
            power *= max(square, 0.0)
            powers[order] += power
