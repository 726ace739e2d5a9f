"""Compiled loops that walk along couplings: between classes, and between the columns of two pooled tables.

Rows hold class after class, each sorted; see ``rows.py`` for what a row is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.compute.kernels.rows import advance, power, write_costs
from sotdd.projections.compiling import Doubles, Floats, Integers, kernel, step

Sides = NDArray[np.uint8]
Row = NDArray[Any]


@step
def _transport(x: Floats, y: Floats, p: float) -> float:
    """W_p^p between two sorted samples of any sizes."""
    n, m = x.size, y.size
    total = 0.0
    i = j = here = 0
    while i < n and j < m:
        gap = np.float64(x[i]) - np.float64(y[j])
        end, i, j = advance(i, j, n, m)
        total += float(end - here) * power(gap, p)
        here = end
    return total / (float(n) * float(m))


@kernel
def class_costs(
    a: Floats,
    edges_a: Integers,
    b: Floats,
    edges_b: Integers,
    weights: Doubles,
    p: float,
    sums: Doubles,
) -> None:
    """Add weighted W_p^p between every class of a and of b, and its square, over the rows; (C, C', 2).

    weights (B,) are what each row counts by.
    """
    for line in range(a.shape[0]):
        for i in range(edges_a.size - 1):
            x = a[line, edges_a[i] : edges_a[i + 1]]
            for j in range(edges_b.size - 1):
                value = weights[line] * _transport(x, b[line, edges_b[j] : edges_b[j + 1]], p)
                sums[i, j, 0] += value
                sums[i, j, 1] += value * value


@kernel
def couple_rows(
    a: Floats,
    order_a: Integers,
    codes_a: Integers,
    b: Floats,
    order_b: Integers,
    codes_b: Integers,
    weights: Doubles,
    p: float,
    sums: Doubles,
) -> None:
    """Add what the optimal coupling of each two rows moves from class to class: how much, and at what cost; (C, C', 2).

    order (B, n) sorts the rows, codes (n,) tell the class of each place in a row, weights (B,) what each row
    counts by.
    """
    n, m = a.shape[1], b.shape[1]
    unit = 1.0 / (float(n) * float(m))
    for line in range(a.shape[0]):
        share = unit * weights[line]
        i = j = here = 0
        while i < n and j < m:
            x, y = order_a[line, i], order_b[line, j]
            end, i, j = advance(i, j, n, m)
            width = float(end - here) * share
            sums[codes_a[x], codes_b[y], 0] += width
            sums[codes_a[x], codes_b[y], 1] += width * power(np.float64(a[line, x]) - np.float64(b[line, y]), p)
            here = end


# --------------------------------------------------------------------------- columns of two pooled tables
#
# ``values`` (d, N) hold every column of the pool sorted, ``order`` (d, N) which point each value is of, and ``side``
# (N,) where each point is: 0 in the one, 1 in the other, 2 in neither.


@step
def _part(
    values: NDArray[np.generic], order: Integers, side: Sides, first: NDArray[np.generic], second: NDArray[np.generic]
) -> None:
    """Write the values (N,) of either side, in their order, and one more at the end of each.

    order (N,) tells which point each value is of. Without branches on the side, which is random.
    """
    a = b = 0
    for place in range(order.size):
        where = side[order[place]]
        first[a] = values[place]
        second[b] = values[place]
        a += int(where == 0)
        b += int(where == 1)


@step
def _slope(gap: float, p: float) -> float:
    """The derivative of |gap|^p."""
    if p == 2.0:
        return 2.0 * gap
    if gap == 0.0:
        return 0.0
    size = p * abs(gap) ** (p - 1.0)
    return float(size if gap > 0 else -size)


@kernel
def split_costs(
    values: Floats,
    order: Integers,
    sides: Sides,
    left: Integers,
    right: Integers,
    width: Doubles,
    orders: Doubles,
    costs: Doubles,
) -> None:
    """Write W_p^p (d, S, orders) of every column, for S ways to deal out points: in order as they are, none is sorted.

    left, right and width are `Overlaps` of the sizes of both sides.
    """
    first, second = np.empty(values.shape[1] + 1, np.float32), np.empty(values.shape[1] + 1, np.float32)
    for column in range(values.shape[0]):
        for number in range(sides.shape[0]):
            _part(values[column], order[column], sides[number], first, second)
            write_costs(first, second, left, right, width, orders, costs[column, number])


@kernel
def own_gaps(values: Floats, order: Integers, side: Sides, sizes: Integers, gaps: Floats) -> None:
    """Write how far each point is, column by column, from half-way to the other side's value at its rank; (d, N).

    Less these gaps, both sides have the same distribution in every column. Points of neither side get zeros.
    """
    n, m = sizes[0], sizes[1]
    first, second = np.empty(n + 1, np.int32), np.empty(m + 1, np.int32)
    unit_first, unit_second, every = 0.5 / float(m), 0.5 / float(n), np.arange(values.shape[1])
    for column in range(values.shape[0]):
        row, places, out = values[column], order[column], gaps[column]
        out[:] = 0.0
        _part(every, places, side, first, second)
        i = j = here = 0
        total_i = total_j = 0.0
        while i < n and j < m:
            end, after_i, after_j = advance(i, j, n, m)
            gap = float(end - here) * (np.float64(row[first[i]]) - np.float64(row[second[j]]))
            total_i += gap
            total_j += gap
            if after_i > i:
                out[places[first[i]]] = np.float32(total_i * unit_first)
                total_i = 0.0
            if after_j > j:
                out[places[second[j]]] = np.float32(-total_j * unit_second)
                total_j = 0.0
            here, i, j = end, after_i, after_j


@kernel
def add_slopes(
    rows: Floats, order: Integers, side: Sides, sizes: Integers, p: float, weight: float, slopes: Floats, costs: Doubles
) -> None:
    """Write W_p^p (B,) between the sides of each row (B, N), and add its derivative by every value to ``slopes``.

    order (B, N) sorts the rows. The derivative counts ``weight`` times.
    """
    n, m = sizes[0], sizes[1]
    first, second = np.empty(n + 1, np.int32), np.empty(m + 1, np.int32)
    unit = 1.0 / (float(n) * float(m))
    for line in range(rows.shape[0]):
        _part(order[line], order[line], side, first, second)
        total = 0.0
        i = j = here = 0
        while i < n and j < m:
            x, y = first[i], second[j]
            end, i, j = advance(i, j, n, m)
            width = float(end - here) * unit
            gap = np.float64(rows[line, x]) - np.float64(rows[line, y])
            total += width * power(gap, p)
            slope = np.float32(weight * width * _slope(gap, p))
            slopes[line, x] += slope
            slopes[line, y] -= slope
            here = end
        costs[line] = total
