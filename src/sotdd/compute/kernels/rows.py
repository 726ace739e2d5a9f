"""The loops from points to distances: everything that touches each projected value, and transport between rows.

A *row* is one projection of one dataset: n float32 values, stored contiguously, so that
a row of 10,000 points fits the fastest caches. Each loop works on a few rows at a time,
releases the GIL, and never allocates anything of the size of the whole problem.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sotdd.projections.compiling import Doubles, Floats, Integers, kernel, step


@kernel
def standardise(block: NDArray[np.generic], centre: Doubles, inverse_scale: Doubles, out: Floats) -> None:
    """Write (block - centre) * inverse_scale as float32; the difference is taken in float64."""
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            out[i, j] = np.float32((np.float64(block[i, j]) - centre[j]) * inverse_scale[j])


@step
def shift(row: Floats, offsets: Integers, weight: float, terms: Doubles) -> None:
    """Turn a row of feature projections into data point projections, class by class."""
    for c in range(offsets.size - 1):
        members, term = row[offsets[c] : offsets[c + 1]], terms[c]
        for i in range(members.size):
            members[i] = np.float32(weight * np.float64(members[i]) + term)


@kernel
def shift_rows(rows: Floats, offsets: Integers, weights: Doubles, terms: Doubles) -> None:
    """Turn feature projections into data point projections: weight * t + the term of its class."""
    for line in range(rows.shape[0]):
        shift(rows[line], offsets, weights[line], terms[line])


# --------------------------------------------------------------------------- transport
#
# Between equally weighted samples W_p^p is the integral of |F⁻¹ - G⁻¹|^p over [0, 1], where both inverse
# distribution functions are steps of width 1/n and 1/m. Which steps overlap depends on n and m alone,
# never on the data, and is found in integers.


@step
def advance(i: int, j: int, n: int, m: int) -> tuple[int, int, int]:
    """Where the overlap of step i of n and step j of m ends, in units of 1 / (n m), and the two steps after it.

    Every breakpoint is a whole multiple of that unit, so they are compared as integers and nothing is rounded.
    """
    end_left, end_right = (i + 1) * m, (j + 1) * n
    end = min(end_left, end_right)
    return end, i + int(end_left == end), j + int(end_right == end)


@step
def power(gap: float, p: float) -> float:
    """|gap|^p."""
    if p == 2.0:
        return gap * gap
    if p == 1.0:
        return abs(gap)
    return float(abs(gap) ** p)


@kernel
def transport_equal(a: Floats, b: Floats, p: float, out: Doubles) -> None:
    """Write W_p^p between sorted rows of the same length."""
    for line in range(a.shape[0]):
        x, y = a[line], b[line]
        total = 0.0
        for i in range(x.size):
            total += power(np.float64(x[i]) - np.float64(y[i]), p)
        out[line] = total / x.size


@kernel
def transport_aligned(
    a: Floats, b: Floats, left: Integers, right: Integers, width: Doubles, p: float, out: Doubles
) -> None:
    """Write W_p^p between sorted rows of any two lengths, along `Overlaps` of the two."""
    for line in range(a.shape[0]):
        x, y = a[line], b[line]
        total = 0.0
        for k in range(width.size):
            total += width[k] * power(np.float64(x[left[k]]) - np.float64(y[right[k]]), p)
        out[line] = total


@step
def write_costs(
    x: Floats, y: Floats, left: Integers, right: Integers, width: Doubles, orders: Doubles, out: Doubles
) -> None:
    """Write W_p^p between two sorted samples for each of the orders p; 1 and 2 take no more time than one of them."""
    first = second = 0.0
    for k in range(width.size):
        gap = np.float64(x[left[k]]) - np.float64(y[right[k]])
        first += width[k] * abs(gap)
        second += width[k] * gap * gap
    for column in range(orders.size):
        p, total = orders[column], first if orders[column] == 1.0 else second
        if p not in (1.0, 2.0):
            total = 0.0
            for k in range(width.size):
                total += width[k] * abs(np.float64(x[left[k]]) - np.float64(y[right[k]])) ** p
        out[column] = total


class Overlaps(NamedTuple):
    """Which of n steps meets which of m steps, and on how much of [0, 1].

    Examples
    --------
    >>> from sotdd.compute.kernels.rows import Overlaps
    >>> thirds_and_halves = Overlaps.of(3, 2)
    >>> thirds_and_halves.left.tolist(), thirds_and_halves.right.tolist()
    ([0, 1, 1, 2], [0, 0, 1, 1])
    """

    left: NDArray[np.integer]
    right: NDArray[np.integer]
    width: NDArray[np.float64]

    @classmethod
    def of(cls, n: int, m: int) -> Overlaps:
        """Walk along both staircases at once, in units of 1 / (n m)."""
        both = [np.arange(1, n + 1, dtype=np.int64) * m, np.arange(1, m + 1, dtype=np.int64) * n]
        ends = np.sort(np.concatenate(both), kind="stable")  # which merges what is in order
        ends = ends[np.diff(ends, prepend=0) > 0]  # where both end, a step ends once
        starts = np.concatenate([[0], ends[:-1]])
        index = np.dtype(np.int32 if len(ends) < 2**31 else np.int64)
        return cls((starts // m).astype(index), (starts // n).astype(index), (ends - starts) / (float(n) * float(m)))


def transport_rows(a: Floats, b: Floats, p: float, overlaps: Overlaps | None, out: Doubles | None = None) -> Doubles:
    """W_p^p between each sorted row of a (B, n) and of b (B, m), in out (B,); no overlaps are needed if n = m.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.compute.kernels.rows import Overlaps, transport_rows
    >>> a, b = np.float32([[0, 0, 3]]), np.float32([[0, 3]])
    >>> print(transport_rows(a, b, 1.0, Overlaps.of(3, 2)).round(6))
    [0.5]
    """
    out = np.empty(len(a)) if out is None else out
    if overlaps is None:
        transport_equal(a, b, p, out)
    else:
        transport_aligned(a, b, overlaps.left, overlaps.right, overlaps.width, p, out)
    return out
