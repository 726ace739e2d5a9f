"""The loops from points to distances: everything that touches each projected value, and transport between rows.

A *row* is one projection of one dataset: n float32 values, stored contiguously, so that
a row of 10,000 points fits the fastest caches. Each loop works on a few rows at a time,
releases the GIL, and never allocates anything of the size of the whole problem.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sotdd.compute.engine import LARGEST_TERM
from sotdd.projections.compiling import Doubles, Floats, Integers, exact_kernel, kernel, step
from sotdd.projections.maps import ORDERS

# 8!, and the order of the first moment beyond those that are summed in one sweep.
_FACTORIAL, _BEYOND = 40320.0, 1 + ORDERS
# Label samples that there is room for, a number that the compiler knows: then it works on several of them at once.
ROOM = 40

# --------------------------------------------------------------------------- points


@kernel
def standardise(block: NDArray[np.generic], centre: Doubles, inverse_scale: Doubles, out: Floats) -> None:
    """Write (block - centre) * inverse_scale as float32; the difference is taken in float64."""
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            out[i, j] = np.float32((np.float64(block[i, j]) - centre[j]) * inverse_scale[j])


@kernel
def norm_sums(points: Floats, codes: Integers, powers: Doubles, first: np.uint64, class_sums: Doubles) -> None:
    """Add Σ |x|^2, Σ |x|^4, … over points (m, d) to ``powers``, and each point to its class's row of ``class_sums``.

    Of the latter only the features from ``first`` on, a number without a sign, as many as ``class_sums`` has.
    """
    last = first + np.uint64(class_sums.shape[1])
    for i in range(points.shape[0]):
        line, point, square = class_sums[codes[i]], points[i], 0.0
        for j in range(first, last):
            line[j - first] += np.float64(point[j])
        if powers.size == 0:
            continue
        for j in range(point.size):  # by itself: how a loop that also writes adds up may depend on where arrays lie
            value = np.float64(point[j])
            square += value * value
        power = 1.0
        for k in range(powers.size):
            power *= square
            powers[k] += power


# --------------------------------------------------------------------------- classes of projected points


@step
def _cut(t: np.float32, low: np.float32, high: np.float32) -> np.float64:
    """A value brought between low and high; `min` and `max` would be compiled each by itself."""
    above = t if t > low else low
    return np.float64(above if above < high else high)


@step
def _sum_powers(row: Floats, first: int, last: int, low: np.float32, high: np.float32, sums: Doubles) -> None:
    """Write sums over a class: of t, t², t⁴ and t⁶, then of t, …, t⁸ for t cut to low … high, (12,); in one sweep.

    Where ``first`` and ``last`` have no sign, nothing is counted from the end of a row, which lets loops be vectorised.
    """
    u1 = u2 = u4 = u6 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = 0.0
    for i in range(first, last):
        t = np.float64(row[i])
        square = t * t
        fourth = square * square
        u1 += t
        u2 += square
        u4 += fourth
        u6 += fourth * square
        t = _cut(row[i], low, high)
        square = t * t
        third, fourth = square * t, square * square
        s1 += t
        s2 += square
        s3 += third
        s4 += fourth
        s5 += fourth * t
        s6 += fourth * square
        s7 += fourth * third
        s8 += fourth * fourth
    sums[0], sums[1], sums[2], sums[3] = u1, u2, u4, u6
    sums[4], sums[5], sums[6], sums[7] = s1, s2, s3, s4
    sums[8], sums[9], sums[10], sums[11] = s5, s6, s7, s8


@step
def _find_width(drawn: Doubles, line: int) -> int:
    """How many coefficients a polynomial has, but for zeros at its end."""
    width = int(drawn.shape[1])
    while width > 1 and drawn[line, width - 1] == 0.0:
        width -= 1
    return width


@step
def _find_term(
    row: Floats,
    first: int,
    last: int,
    low: np.float32,
    high: np.float32,
    drawn: Doubles,
    line: int,
    width: int,
    sums: Doubles,
    powers: Doubles,
) -> float:
    """The mean over a class of a polynomial, row ``line`` of drawn, from the sums of powers and of higher ones.

    Those are kept as t^k / k!, which stays in float64 for longer; powers (n,) are for use meanwhile.
    """
    total, scale = np.float64(drawn[line, 0] * np.float64(last - first)), _FACTORIAL
    for k in range(1, min(width, _BEYOND)):
        if drawn[line, k] != 0.0:  # what is not wanted may be infinite
            total += drawn[line, k] * sums[3 + k]
    if width > _BEYOND:
        for i in range(first, last):
            t = _cut(row[i], low, high)
            powers[i] = t * t * (t * t) * (t * t * (t * t) / _FACTORIAL)
    for k in range(_BEYOND, width):
        scale *= k
        power, inverse = 0.0, 1.0 / k
        for i in range(first, last):
            powers[i] *= _cut(row[i], low, high) * inverse
            power += powers[i]
        if drawn[line, k] != 0.0:
            total += drawn[line, k] * scale * power
    return total / np.float64(last - first)


@step
def _add_class(sums: Doubles, size: float, share: float, known: Doubles, even: Doubles) -> None:
    """Add what is known of a class of this size and share to means over points; see `group_rows`."""
    for k in range(3):
        even[k] += sums[1 + k]
    sums[3], scale = sums[0], size
    for k in range(_BEYOND):
        if k > 1:
            scale *= k
        sums[3 + k] /= scale
    for i in range(_BEYOND):
        weighted = share * sums[3 + i]
        known[i] += weighted
        for j in range(i + 1):
            known[9 * i + 9 + j] += weighted * sums[3 + j]


@step
def _place(known: Doubles, counted: Doubles, line: int, drawn: Doubles, count: int, places: Doubles) -> None:
    """Write mean and standard deviation (J, 2) of a dataset's projected points under J draws of label terms.

    known (90,) are means of what is known of classes, and the lower triangle of means of their products. Row ``line``
    of counted (B, 10, J) are what these count by, drawn (9 · 40,) is for use meanwhile, and places are (B · J · 2,).
    """
    for i in range(_BEYOND):
        known[10 * i + 9] *= 0.5
        for j in range(count):
            drawn[ROOM * i + j] = counted[line, i, j]
    for j in range(count):
        mean = second = 0.0
        for i in range(_BEYOND):
            half = 0.0
            for k in range(i + 1):
                half += known[9 * i + 9 + k] * drawn[ROOM * k + j]
            mean += known[i] * drawn[ROOM * i + j]
            second += half * drawn[ROOM * i + j]
        variance = 2.0 * second - mean * mean
        places[2 * (line * count + j)] = mean
        places[2 * (line * count + j) + 1] = math.sqrt(variance if variance > 0.0 else 0.0)


@kernel
def group_rows(
    source: Floats,
    index: Integers,
    offsets: Integers,
    cut: float,
    counted: Doubles,
    weights: Doubles,
    coefficients: Doubles,
    out: Floats,
    places: Doubles,
    values: Doubles,
    terms: Doubles,
    row: Floats,
    powers: Doubles,
    known: Doubles,
    sums: Doubles,
    drawn: Doubles,
) -> None:
    """Bring the points of each row together by class, write what controls are made of, and shift them by class.

    Points ``index`` (n,) of source (B, N), given class by class, go to out (B, n), which may be the source. places
    (B · J · 2,) are means and standard deviations under draws of label terms that counted (B, 10, J) tells, at most 40;
    values (B, 5) the mean of t, the mean square of class means, and the even moments. terms (B, C) are those of
    polynomials; rows with one that is too large stay as they are. What is not wanted has no rows or no columns.

    What is known of a class is the mean of t, then means of t^k / k! for k ≤ 8, t cut to ±cut. All is done to one row
    before the next, in fast caches. It takes few views: each would take as long to compile as a loop. row (n,),
    powers (n,), known (90,), sums (15,) and drawn (9 · 40,) are for use meanwhile.
    """
    low, high, even = np.float32(-cut), np.float32(cut), sums[12:]
    for line in range(out.shape[0]):
        for i in range(index.size):
            row[i] = source[line, index[i]]
        for i in range(known.size):
            known[i] = 0.0
        even[0] = even[1] = even[2] = 0.0
        fits, width = terms.shape[1] > 0, _find_width(coefficients, line)
        for c in range(offsets.size - 1 if fits or values.shape[0] > 0 else 0):
            first, last = offsets[c], offsets[c + 1]
            _sum_powers(row, first, last, low, high, sums)
            if terms.shape[1] > 0:
                terms[line, c] = _find_term(row, first, last, low, high, coefficients, line, width, sums, powers)
                fits &= abs(terms[line, c]) < LARGEST_TERM
            if values.shape[0] > 0:
                size = np.float64(last - first)
                _add_class(sums, size, size / row.size, known, even)
        if values.shape[0] > 0:
            values[line, 0], values[line, 1] = known[0], known[9]
            values[line, 2], values[line, 3] = even[0] / (2.0 * row.size), even[1] / (24.0 * row.size)
            values[line, 4] = even[2] / (720.0 * row.size)
            known[9] = max(known[9], even[0] / row.size)  # what lies within classes, and what comes with their means
            _place(known, counted, line, drawn, counted.shape[2], places)
        weight = weights[line] if fits else 1.0
        for c in range(offsets.size - 1):
            term = terms[line, c] if fits else 0.0
            for i in range(offsets[c], offsets[c + 1]):
                out[line, i] = weight * row[i] + term


@kernel
def power_sums(rows: Floats, offsets: Integers, cut: float, sums: Doubles, even: Doubles) -> None:
    """Write what `group_rows` takes means of, as sums: (B, C, 9) over classes, and (B, 3) over all points."""
    powers = np.empty(4 + ORDERS)
    even[:, :] = 0.0
    for line in range(rows.shape[0]):
        for c in range(offsets.size - 1):
            _sum_powers(rows[line], offsets[c], offsets[c + 1], np.float32(-cut), np.float32(cut), powers)
            sums[line, c, 0], scale = powers[0], 1.0
            for k in range(1, 1 + ORDERS):
                scale *= k
                sums[line, c, k] = powers[3 + k] / scale
            for k in range(3):
                even[line, k] += powers[1 + k]


@kernel
def shift_rows(rows: Floats, offsets: Integers, weights: Doubles, terms: Doubles) -> None:
    """Turn feature projections, class by class, into data point projections: weight * t + the term of its class."""
    for line in range(rows.shape[0]):
        for c in range(offsets.size - 1):
            members, weight, term = rows[line, offsets[c] : offsets[c + 1]], weights[line], terms[line, c]
            for i in range(members.size):
                members[i] = np.float32(weight * np.float64(members[i]) + term)


@exact_kernel
def gaussian_gaps(a: Doubles, b: Doubles, p: float, out: Doubles) -> None:
    """Write what the first of J draws of label terms gives, less the mean of the others, (B, 3).

    Of W_2² between Gaussians with means and standard deviations a and b (B, J, 2), of the squared gap between means,
    and of the sum of variances, each to the power p/2. Nothing is fused: both orders of a and b give the same bits.
    """
    others = a.shape[1] - 1
    for line in range(a.shape[0]):
        cost = gap = variance = 0.0
        for number in range(1, others + 2):
            draw = number if number <= others else 0
            if draw == 0:
                cost, gap, variance = -cost / others, -gap / others, -variance / others
            apart, one, two = a[line, draw, 0] - b[line, draw, 0], a[line, draw, 1], b[line, draw, 1]
            second, third = apart * apart, one * one + two * two
            first = second + (one - two) * (one - two)
            if p != 2.0:
                first, second, third = first ** (0.5 * p), second ** (0.5 * p), third ** (0.5 * p)
            cost, gap, variance = cost + first, gap + second, variance + third
        out[line, 0], out[line, 1], out[line, 2] = cost, gap, variance


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
