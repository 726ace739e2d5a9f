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

Bits = NDArray[np.int32]
Counts = NDArray[np.uint32]
Marks = NDArray[np.uint8]

# How many values a polynomial is evaluated on at a time: small enough to stay in the first cache.
_TILE = 1024

# Rows and classes shorter than this are sorted faster by NumPy's sorting networks than by counting digits.
SHORT_ROW = 1024
# As few as this are put in their place one by one.
_FEW = 32

_SIGN, _ALL_BUT_SIGN = -(1 << 31), (1 << 31) - 1
_NONE, _ONE = np.uint32(0), np.uint32(1)  # what is counted, since a place is found faster by a number without a sign


@kernel
def standardise(block: NDArray[np.generic], centre: Doubles, inverse_scale: Doubles, out: Floats) -> None:
    """Write (block - centre) * inverse_scale as float32; the difference is taken in float64."""
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            out[i, j] = np.float32((np.float64(block[i, j]) - centre[j]) * inverse_scale[j])


@step
def sum_polynomial(
    row: Floats, offsets: Integers, drawn: Doubles, low: np.float32, high: np.float32, values: Doubles, sums: Doubles
) -> None:
    """Write the sums (C,) of a row's polynomial over each class; ``values`` (n,) is for its values meanwhile."""
    width = drawn.size
    while width > 1 and drawn[width - 1] == 0.0:
        width -= 1
    for start in range(0, row.size, _TILE):
        x, y = row[start : start + _TILE], values[start : start + _TILE]
        for i in range(x.size):
            y[i] = 0.0
        for j in range((width - 1) // 4 * 4, -1, -4):
            c0 = drawn[j]
            c1 = drawn[j + 1] if j + 1 < width else 0.0
            c2 = drawn[j + 2] if j + 2 < width else 0.0
            c3 = drawn[j + 3] if j + 3 < width else 0.0
            for i in range(x.size):
                v = np.float64(min(max(x[i], low), high))
                y[i] = (((y[i] * v + c3) * v + c2) * v + c1) * v + c0
    for c in range(offsets.size - 1):
        members, total = values[offsets[c] : offsets[c + 1]], 0.0
        for i in range(members.size):
            total += members[i]
        sums[c] = total


@kernel
def class_sums(rows: Floats, offsets: Integers, coefficients: Doubles, cut: float, sums: Doubles) -> None:
    """Write the sum of each row's polynomial, at values cut to ±cut, over each class, in float64.

    rows (B, n) grouped by class, offsets (C + 1,), coefficients (B, D + 1) lowest order first, sums (B, C). By
    Horner's rule, four steps per sweep, so that memory is read and written once in four.
    """
    values = np.empty(rows.shape[1])
    for line in range(rows.shape[0]):
        sum_polynomial(rows[line], offsets, coefficients[line], np.float32(-cut), np.float32(cut), values, sums[line])


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


# --------------------------------------------------------------------------- classes


@step
def _insert(row: Bits, spare: Bits) -> None:
    """Sort a few values, in place: each goes where it belongs among those before it."""
    for i in range(row.size):
        key = row[i] ^ (row[i] >> 31 & _ALL_BUT_SIGN)
        j = i
        while j > 0 and spare[j - 1] > key:
            spare[j] = spare[j - 1]
            j -= 1
        spare[j] = key
    for i in range(row.size):
        row[i] = spare[i] ^ (spare[i] >> 31 & _ALL_BUT_SIGN)


@step
def _deal(row: Bits, spare: Bits, counts: Counts, width: int, digits: int, mask: int) -> None:
    """Sort many values, in place: three passes over 11-bit digits, or four over 8-bit ones of a short row."""
    for digit in range(digits):
        for j in range(mask + 1):
            counts[digit, j] = 0
    for i in range(row.size):
        key = row[i] ^ (row[i] >> 31 | _SIGN)
        row[i] = key
        counts[0, key & mask] += _ONE
        counts[1, key >> width & mask] += _ONE
        counts[2, key >> 2 * width & mask] += _ONE
    if digits == 4:
        for i in range(row.size):
            counts[3, row[i] >> 24 & mask] += _ONE
    source, target = row, spare
    for digit in range(digits):
        places, shift, before = counts[digit], digit * width, _NONE
        for j in range(mask + 1):
            count = places[j]
            places[j] = before
            before += count
        for i in range(row.size):
            value = source[i] >> shift & mask
            target[places[value]] = source[i]
            places[value] += _ONE
        source, target = target, source
    for i in range(row.size):
        row[i] = source[i] ^ (~(source[i] >> 31) | _SIGN)


@step
def sort(row: Bits, spare: Bits, counts: Counts) -> None:
    """Sort the values of a row, in place; spare (n,) and counts (4, 2048) are for use meanwhile.

    The bits of a float order like an integer once those of negative numbers, but for the sign, are inverted.
    """
    if row.size <= _FEW:
        _insert(row, spare)
    else:
        short = row.size < SHORT_ROW
        _deal(row, spare, counts, 8 if short else 11, 4 if short else 3, 255 if short else 2047)


@kernel
def sort_part(bits: Bits, first: int, last: int, spare: Bits, counts: Counts) -> None:
    """Sort values first, …, last - 1 of every row (B, n), in place, as `sort` does with many."""
    for line in range(bits.shape[0]):
        _deal(bits[line, first:last], spare, counts, 11, 3, 2047)


@kernel
def quantile_terms(rows: Floats, offsets: Integers, coefficients: Doubles, terms: Doubles) -> None:
    """Write each class's mean over K equal bins of its sorted values, times the bins' coefficients.

    rows (B, n) sorted within classes, offsets (C + 1,), coefficients (B, K), terms (B, C). Of m
    values, value i reaches from i K to (i + 1) K and bin k from k m to (k + 1) m, in units of
    1 / (m K): what they share is a whole number.
    """
    levels = coefficients.shape[1]
    for line in range(rows.shape[0]):
        for c in range(offsets.size - 1):
            members = rows[line, offsets[c] : offsets[c + 1]]
            size = members.size
            total = 0.0
            for k in range(levels):
                low, high = k * size, (k + 1) * size
                first, last = low // levels, high // levels  # the values in which the bin begins and ends
                whole = 0.0
                for i in range(first, last):
                    whole += np.float64(members[i])
                mass = float(levels) * whole - float(low - first * levels) * np.float64(members[first])
                if last * levels < high:
                    mass += float(high - last * levels) * np.float64(members[last])
                total += coefficients[line, k] * mass
            terms[line, c] = total / size


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


@step
def _list_sides(grouped: Integers, edges: Integers, marks: Marks, index: Integers, offsets: Integers) -> int:
    """Write the points that are marked 0, then those that are marked 1, each class by class, and where classes begin.

    Returns how many classes both sides have; those without a point are left out.
    """
    place = classes = 0
    offsets[0] = 0
    for side in range(2):
        for c in range(edges.size - 1):
            for i in range(edges[c], edges[c + 1]):
                if marks[grouped[i]] == side:
                    index[place] = grouped[i]
                    place += 1
            if place > offsets[classes]:
                classes += 1
                offsets[classes] = place
    return classes


@kernel
def split_rows(
    rows: Floats,
    grouped: Integers,
    edges: Integers,
    marks: Marks,
    sizes: tuple[int, int],
    weights: Doubles,
    coefficients: Doubles,
    cut: float,
    left: Integers,
    right: Integers,
    width: Doubles,
    orders: Doubles,
    out: Doubles,
) -> None:
    """Write W_p^p (B, S, orders) between two sides of the points of rows (B, N), with class terms of each side's own.

    grouped (N,) are the points class by class, where edges (C + 1,) bound the classes, and marks (S, N) say where each
    point goes: 0 and 1 are the sides. All is done to one row before the next, so that it stays in the fastest caches.
    """
    n, both = sizes[0], sizes[0] + sizes[1]
    index, all_offsets, all_terms = (
        np.empty(both, np.int64),
        np.empty(2 * edges.size, np.int64),
        np.empty(2 * edges.size),
    )
    row, values = np.empty(both, np.float32), np.empty(both)
    bits, spare, counts = row.view(np.int32), np.empty(both, np.int32), np.empty((4, 2048), np.uint32)
    for number in range(marks.shape[0]):
        classes = _list_sides(grouped, edges, marks[number], index, all_offsets)
        offsets, terms = all_offsets[: classes + 1], all_terms[:classes]
        for line in range(rows.shape[0]):
            source = rows[line]
            for i in range(index.size):
                row[i] = source[index[i]]
            sum_polynomial(row, offsets, coefficients[line], np.float32(-cut), np.float32(cut), values, terms)
            for c in range(terms.size):
                terms[c] /= offsets[c + 1] - offsets[c]
            shift(row, offsets, weights[line], terms)
            for side in range(2):  # one place for both, since each is compiled anew
                sort(bits[:n] if side == 0 else bits[n:], spare, counts)
            write_costs(row[:n], row[n:], left, right, width, orders, out[line, number])


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
