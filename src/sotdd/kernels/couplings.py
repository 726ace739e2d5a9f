"""Compiled loops over classes: what transport moves between them, and how far apart they are.

Rows hold class after class, each sorted; see ``rows.py`` for what a row is.
"""

from __future__ import annotations

import numpy as np

from sotdd.kernels.compiling import Doubles, Floats, Integers, kernel, step


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
