"""Compiled loops that walk along couplings: between classes, and between the columns of two pooled tables.

Rows hold class after class, each sorted; see ``rows.py`` for what a row is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sotdd.kernels.compiling import Doubles, Floats, Integers, kernel, step

Sides = NDArray[np.uint8]


@step
def power(gap: float, p: float) -> float:
    """|gap|^p."""
    if p == 2.0:
        return gap * gap
    if p == 1.0:
        return abs(gap)
    return float(abs(gap) ** p)


@step
def _transport(x: Floats, y: Floats, p: float) -> float:
    """W_p^p between two sorted samples of any sizes; breakpoints are compared as integers."""
    n, m = x.size, y.size
    total = 0.0
    i = j = here = 0
    while i < n and j < m:
        end_left = (i + 1) * m
        end_right = (j + 1) * n
        end = min(end_left, end_right)
        total += float(end - here) * power(np.float64(x[i]) - np.float64(y[j]), p)
        here = end
        if end_left == end:
            i += 1
        if end_right == end:
            j += 1
    return total / (float(n) * float(m))


@kernel
def class_costs(
    a: Floats,
    edges_a: Integers,
    b: Floats,
    edges_b: Integers,
    weights: Doubles,
    p: float,
    upper: bool,
    sums: Doubles,
    squares: Doubles,
) -> None:
    """Add weighted W_p^p between every class of a and of b, and its square, over the rows; (C, C') each.

    weights (B,) are what each row counts by. With ``upper`` only pairs with i < j: for a dataset against
    itself.
    """
    for line in range(a.shape[0]):
        for i in range(edges_a.size - 1):
            x = a[line, edges_a[i] : edges_a[i + 1]]
            for j in range(i + 1 if upper else 0, edges_b.size - 1):
                value = weights[line] * _transport(x, b[line, edges_b[j] : edges_b[j + 1]], p)
                sums[i, j] += value
                squares[i, j] += value * value


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
    mass: Doubles,
    costs: Doubles,
) -> None:
    """Add what the optimal coupling of each two rows moves from class to class: how much, and at what cost.

    order (B, n) sorts the rows, codes (n,) tell the class of each place in a row, weights (B,) what each row
    counts by; mass and costs (C, C').
    """
    n, m = a.shape[1], b.shape[1]
    unit = 1.0 / (float(n) * float(m))
    for line in range(a.shape[0]):
        share = unit * weights[line]
        i = j = here = 0
        while i < n and j < m:
            end_left = (i + 1) * m
            end_right = (j + 1) * n
            end = min(end_left, end_right)
            x, y = order_a[line, i], order_b[line, j]
            width = float(end - here) * share
            mass[codes_a[x], codes_b[y]] += width
            costs[codes_a[x], codes_b[y]] += width * power(np.float64(a[line, x]) - np.float64(b[line, y]), p)
            here = end
            if end_left == end:
                i += 1
            if end_right == end:
                j += 1


# --------------------------------------------------------------------------- columns of two pooled tables
#
# ``values`` (d, N) hold every column of the pool sorted, ``order`` (d, N) which point each value is of, and ``side``
# (N,) where each point is: 0 in the one, 1 in the other, 2 in neither.


@step
def _parted(values: Floats, order: Integers, side: Sides, first: Integers, second: Integers) -> None:
    """Write the places in the sorted pool that belong to either side, in order, and one more at the end of each.

    Without branches on the side, which is random.
    """
    a = b = 0
    for place in range(values.size):
        where = side[order[place]]
        first[a] = place
        second[b] = place
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


@step
def _transport_places(values: Floats, first: Integers, second: Integers, p: float) -> float:
    """W_p^p between the values at two lists of places; breakpoints are compared as integers."""
    n, m = first.size, second.size
    total = 0.0
    i = j = here = 0
    while i < n and j < m:
        end_left, end_right = (i + 1) * m, (j + 1) * n
        end = min(end_left, end_right)
        gap = np.float64(values[first[i]]) - np.float64(values[second[j]])
        total += float(end - here) * power(gap, p)
        here = end
        if end_left == end:
            i += 1
        if end_right == end:
            j += 1
    return total / (float(n) * float(m))


@kernel
def split_ranks(values: Floats, order: Integers, sides: Sides, sizes: Integers, largest: Doubles) -> None:
    """Write a statistic of ranks of every column, (d, S), for S ways to deal out all points of the pool.

    The largest squared gap between the distribution functions of both sides, each in units of what chance gives at its
    place, so that tails count as the middle does. Equal values are one step.
    """
    unit_a, unit_b = 1.0 / float(sizes[0]), 1.0 / float(sizes[1])
    last = values.shape[1] - 1
    weights = np.zeros(last + 1)
    for place in range(last):
        share = (place + 1.0) / (last + 1.0)
        weights[place] = 1.0 / (share * (1.0 - share))
    for column in range(values.shape[0]):
        row, places = values[column], order[column]
        for number in range(sides.shape[0]):
            side = sides[number]
            most = 0.0
            b = 0
            for place in range(last):
                b += int(side[places[place]])
                if row[place + 1] != row[place]:
                    gap = (place + 1 - b) * unit_a - b * unit_b
                    most = max(most, weights[place] * gap * gap)
            largest[column, number] = most


@kernel
def split_costs(values: Floats, order: Integers, sides: Sides, sizes: Integers, p: float, costs: Doubles) -> None:
    """Write W_p^p of every column, (d, S), for S ways to deal out all points of the pool."""
    n, m = sizes[0], sizes[1]
    first, second = np.empty(n + 1, np.int32), np.empty(m + 1, np.int32)
    for column in range(values.shape[0]):
        for number in range(sides.shape[0]):
            _parted(values[column], order[column], sides[number], first, second)
            costs[column, number] = _transport_places(values[column], first[:n], second[:m], p)


@kernel
def own_gaps(values: Floats, order: Integers, side: Sides, sizes: Integers, gaps: Floats) -> None:
    """Write how far each point is, column by column, from half-way to the other side's value at its rank; (d, N).

    Less these gaps, both sides have the same distribution in every column. Points of neither side get zeros.
    """
    n, m = sizes[0], sizes[1]
    first, second = np.empty(n + 1, np.int32), np.empty(m + 1, np.int32)
    unit_first, unit_second = 0.5 / float(m), 0.5 / float(n)
    for column in range(values.shape[0]):
        row, places, out = values[column], order[column], gaps[column]
        out[:] = 0.0
        _parted(row, places, side, first, second)
        i = j = here = 0
        total_i = total_j = 0.0
        while i < n and j < m:
            end_left, end_right = (i + 1) * m, (j + 1) * n
            end = min(end_left, end_right)
            gap = float(end - here) * (np.float64(row[first[i]]) - np.float64(row[second[j]]))
            total_i += gap
            total_j += gap
            here = end
            if end_left == end:
                out[places[first[i]]] = np.float32(total_i * unit_first)
                total_i = 0.0
                i += 1
            if end_right == end:
                out[places[second[j]]] = np.float32(-total_j * unit_second)
                total_j = 0.0
                j += 1


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
        a = b = 0
        for place in range(rows.shape[1]):
            point = order[line, place]
            where = side[point]
            first[a] = point
            second[b] = point
            a += int(where == 0)
            b += int(where == 1)
        total = 0.0
        i = j = here = 0
        while i < n and j < m:
            end_left, end_right = (i + 1) * m, (j + 1) * n
            end = min(end_left, end_right)
            width = float(end - here) * unit
            gap = np.float64(rows[line, first[i]]) - np.float64(rows[line, second[j]])
            total += width * power(gap, p)
            slope = np.float32(weight * width * _slope(gap, p))
            slopes[line, first[i]] += slope
            slopes[line, second[j]] -= slope
            here = end
            if end_left == end:
                i += 1
            if end_right == end:
                j += 1
        costs[line] = total
