"""Compiled loops that walk along couplings: between classes, between columns of two pooled tables, and between cells.

Rows hold class after class, each sorted; see ``rows.py`` for what a row is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sotdd.compute.kernels.rows import advance, power, write_costs
from sotdd.projections.compiling import Doubles, Floats, Integers, kernel, step

Sides = NDArray[np.uint8]
Keys = NDArray[np.uint64]
Counts = NDArray[np.uint32]

_SIGN = np.uint32(0x80000000)
# Fewer keys are sorted by digits of 8 bits.
_SHORT = 1024


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


# --------------------------------------------------------------------------- splits of large pools
#
# What two sides of many points cost hardly depends on where each lies within a small cell: neighbouring points of a
# class. So cells are made once for every row, and a split counts how many points of each are on its smaller side: the
# other side has the rest.


@step
def _order(keys: Keys, spare: Keys, counts: Counts, size: int) -> None:
    """Sort the first keys by their upper half, in place, if they are not in order: by digits of 11 bits, or of 8."""
    ordered = True
    for i in range(1, size):
        ordered &= keys[i - 1] <= keys[i]
    if ordered:
        return
    width = np.uint64(11) if size >= _SHORT else np.uint64(8)
    digits, mask = 3 if size >= _SHORT else 4, (np.uint64(1) << width) - np.uint64(1)
    source, target = keys, spare
    for digit in range(digits):
        shift, before = np.uint64(32) + np.uint64(digit) * width, np.uint32(0)
        for j in range(np.int64(mask) + 1):
            counts[j] = np.uint32(0)
        for i in range(size):
            counts[(source[i] >> shift) & mask] += np.uint32(1)
        for j in range(np.int64(mask) + 1):
            count = counts[j]
            counts[j] = before
            before += count
        for i in range(size):
            value = (source[i] >> shift) & mask
            target[counts[value]] = source[i]
            counts[value] += np.uint32(1)
        source, target = target, source
    if digits == 3:
        for i in range(size):
            keys[i] = spare[i]


@step
def _make_key(value: np.float32, bits: Counts, mass: int) -> np.uint64:
    """A value and a mass as a number that is ordered as the value is."""
    bits.view(np.float32)[0] = value
    key = bits[0] ^ (np.uint32(np.int32(bits[0]) >> np.int32(31)) | _SIGN)
    return (np.uint64(key) << np.uint64(32)) | np.uint64(mass)


@step
def _read_keys(keys: Keys, size: int, values: Floats, masses: Integers) -> None:
    """Write the values and masses of the first keys, and no mass after them."""
    bits = values.view(np.uint32)
    for i in range(size):
        key = np.uint32(keys[i] >> np.uint64(32))
        bits[i] = key ^ (((key >> np.uint32(31)) - np.uint32(1)) | _SIGN)
        masses[i] = np.int64(keys[i] & np.uint64(0xFFFFFFFF))
    masses[size] = 0


@kernel
def make_cells(
    rows: Floats,
    point_labels: Doubles,
    order: Integers,
    offsets: Integers,
    edges: Integers,
    firsts: Integers,
    cells: NDArray[np.uint16],
    values: Doubles,
    labels: Doubles,
    sizes: Integers,
) -> None:
    """Write which cell each point of rows (B, N) is in, and of each cell its mean, its label term and its size (B, K).

    Label terms are means of point_labels (B, N). order (N,) lists points class by class, offsets (C + 1,) say where
    classes begin; edges (K + 1,) are the places in sorted classes where cells begin, firsts (C + 1,) the first cell of
    each class. Points of equal value are in one cell, so some may be empty.
    """
    row, begins = np.empty(order.size, np.float32), np.empty(edges.size, np.int64)
    keys, spare, counts = np.empty(order.size, np.uint64), np.empty(order.size, np.uint64), np.empty(2048, np.uint32)
    bits, places = np.empty(1, np.uint32), np.empty(order.size + 1, np.int64)
    for line in range(rows.shape[0]):
        for c in range(offsets.size - 1):
            size = offsets[c + 1] - offsets[c]
            for i in range(size):
                keys[i] = _make_key(rows[line, order[offsets[c] + i]], bits, order[offsets[c] + i])
            _order(keys, spare, counts, size)
            _read_keys(keys, size, row[offsets[c] :], places[offsets[c] :])
            for k in range(firsts[c], firsts[c + 1]):
                at = edges[k]
                while offsets[c] < at < offsets[c + 1] and row[at] == row[at - 1]:
                    at += 1
                begins[k] = at
        begins[edges.size - 1] = order.size
        for k in range(edges.size - 1):
            total, label, size = 0.0, 0.0, begins[k + 1] - begins[k]
            for i in range(begins[k], begins[k + 1]):
                total += row[i]
                label += point_labels[line, places[i]]
                cells[line, places[i]] = k
            sizes[line, k] = size
            values[line, k] = total / max(size, 1)
            labels[line, k] = label / max(size, 1)


@step
def _fill_keys(
    here: Integers, weight: float, made: tuple[Doubles, Doubles, Integers], keys: Keys, filled: Integers, spare: Counts
) -> None:
    """Add the cells of one class to the keys of both sides, with class terms of each side's own."""
    values, labels, sizes = made
    first, second, n_first, n_second = 0.0, 0.0, 0, 0
    for k in range(here.size):
        rest = sizes[k] - here[k]
        first += here[k] * labels[k]
        second += rest * labels[k]
        n_first += here[k]
        n_second += rest
    first /= max(n_first, 1)
    second /= max(n_second, 1)
    for k in range(here.size):
        for side in range(2):
            mass = sizes[k] - here[k] if side else here[k]
            shifted = np.float32(weight * values[k] + (second if side else first))
            keys[side, filled[side]] = _make_key(shifted, spare, mass)
            filled[side] += int(mass > 0)  # an empty one is written over


@step
def _transport_masses(x: Floats, mass_x: Integers, y: Floats, mass_y: Integers, m: int, n: int) -> tuple[float, float]:
    """W_1 and W_2^2 between sorted values with masses, which are m and n together, and are summed in place."""
    for masses, others in ((mass_x, n), (mass_y, m)):
        before = 0
        for i in range(masses.size):
            before += masses[i] * others  # in units of 1 / (n m)
            masses[i] = before
    first = second = 0.0
    i = j = here = 0
    while here < m * n:
        end, gap = min(mass_x[i], mass_y[j]), np.float64(x[i]) - np.float64(y[j])
        width = end - here
        first += width * abs(gap)
        second += width * gap * gap
        i += int(mass_x[i] == end)
        j += int(mass_y[j] == end)
        here = end
    unit = 1.0 / (float(m) * float(n))
    return first * unit, second * unit


@kernel
def split_cells(
    firsts: Integers,
    few: Integers,
    weights: Doubles,
    orders: Doubles,
    costs: Doubles,
    cells: NDArray[np.uint16],
    values: Doubles,
    labels: Doubles,
    sizes: Integers,
) -> None:
    """Write W_p^p (B, S, orders), of orders 1 and 2, between two sides of cells.

    few (S, m) names the points of the smaller side; all others are on the other side.
    """
    n_cells, m = values.shape[1], few.shape[1]
    here, filled, counts = np.empty(n_cells, np.int64), np.empty(2, np.int64), np.empty(2048, np.uint32)
    keys, spare = np.empty((2, n_cells + 1), np.uint64), np.empty(n_cells, np.uint64)
    ordered, masses = np.empty((2, n_cells), np.float32), np.empty((2, n_cells + 1), np.int64)
    for line in range(values.shape[0]):
        for number in range(few.shape[0]):
            here[:] = filled[:] = 0
            for i in range(m):
                here[cells[line, few[number, i]]] += 1
            for c in range(firsts.size - 1):
                own = slice(firsts[c], firsts[c + 1])
                made = values[line, own], labels[line, own], sizes[line, own]
                _fill_keys(here[own], weights[line], made, keys, filled, counts)
            for side in range(2):  # one place for both, since each is compiled anew
                _order(keys[side], spare, counts, filled[side])
                _read_keys(keys[side], filled[side], ordered[side], masses[side])
            heaps = masses[0, : filled[0]], masses[1, : filled[1]]
            found = _transport_masses(ordered[0], heaps[0], ordered[1], heaps[1], m, cells.shape[1] - m)
            for column in range(orders.size):
                costs[line, number, column] = found[int(orders[column] == 2.0)]
