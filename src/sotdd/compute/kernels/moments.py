"""The loops that sum up moments of points and of classes, and Gaussian costs with them."""

from __future__ import annotations

import math

import numpy as np

from sotdd.compute.engine import LARGEST_TERM
from sotdd.compute.kernels.rows import sum_polynomial
from sotdd.projections.compiling import Doubles, Floats, Integers, allocating_kernel, exact_kernel, kernel, step
from sotdd.projections.draws import ORDERS

# --------------------------------------------------------------------------- points


@kernel
def norm_sums(points: Floats, codes: Integers, powers: Doubles, first: int, class_sums: Doubles) -> None:
    """Add Σ |x|^2, Σ |x|^4, … over points (m, d) to ``powers``, and each point to its class's row of ``class_sums``.

    Of the latter only the features from ``first`` on, as many as ``class_sums`` has.
    """
    for i in range(points.shape[0]):
        line, point, square = class_sums[codes[i]], points[i], 0.0
        for j in range(line.size):
            line[j] += np.float64(point[first + j])
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

# Draws that there is room for, a number that the compiler knows: then it works on several of them at once.
ROOM = 64


@step
def _sum_powers(members: Floats, cut: np.float32, sums: Doubles) -> None:
    """Write sums over a class: of t, t², t⁴ and t⁶, then of t, …, t⁸ for t cut to ±cut, (12,); in one sweep."""
    u1 = u2 = u4 = u6 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = 0.0
    for i in range(members.size):
        t = np.float64(members[i])
        square = t * t
        fourth = square * square
        u1 += t
        u2 += square
        u4 += fourth
        u6 += fourth * square
        t = np.float64(min(max(members[i], -cut), cut))
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
def _has_no_more(coefficients: Doubles) -> bool:
    """Whether a polynomial has no higher orders than moments are taken of."""
    none = True
    for k in range(1 + ORDERS, coefficients.size):
        none &= coefficients[k] == 0.0
    return none


@step
def _find_term(sums: Doubles, size: int, coefficients: Doubles) -> float:
    """The mean of a polynomial without higher orders over a class of this size, from the sums of its powers."""
    total = np.float64(coefficients[0] * size)
    for k in range(1, min(coefficients.size, 1 + ORDERS)):
        if coefficients[k] != 0.0:  # what is not wanted may be infinite
            total += coefficients[k] * sums[3 + k]
    return float(total / size)


@step
def _sum_up(
    row: Floats,
    offsets: Integers,
    cut: np.float32,
    coefficients: Doubles,
    known: Doubles,
    values: Doubles,
    terms: Doubles,
) -> None:
    """Sum up what is known of the classes of a row (n,): the mean of t, then means of t^k / k!, k ≤ 8, t cut to ±cut.

    Write their mean over points (9,) to known[0], and means of their products to the lower triangle of the next nine
    rows; the last two are for use meanwhile. values (5,) are those of `group_rows`, terms (C,) means of the polynomial.
    """
    centre, moments, sums, even = known[0], known[10], known[11], values[2:]
    even[0] = even[1] = even[2] = 0.0
    width = known.shape[0] - 3  # nine: where the compiler knows that, it takes longer
    for i in range(width + 1):
        for j in range(width):
            known[i, j] = 0.0
    for c in range(offsets.size - 1):
        members = row[offsets[c] : offsets[c + 1]]
        _sum_powers(members, cut, sums)
        if terms.size > 0:
            terms[c] = _find_term(sums, members.size, coefficients)
        even[0] += sums[1]
        even[1] += sums[2]
        even[2] += sums[3]
        moments[0], scale, share = sums[0] / members.size, np.float64(members.size), members.size / row.size
        for k in range(1, width):
            scale *= k
            moments[k] = sums[3 + k] / scale
        for i in range(width):
            weighted = share * moments[i]
            centre[i] += weighted
            for j in range(i + 1):
                known[i + 1, j] += weighted * moments[j]
    values[0], values[1] = centre[0], known[1, 0]
    even[0] /= 2.0 * row.size
    even[1] /= 24.0 * row.size
    even[2] /= 720.0 * row.size


@step
def _place(known: Doubles, square: float, counted: Doubles, drawn: Doubles, out: Doubles) -> None:
    """Write mean and standard deviation (J, 2) of a dataset's projected points under J draws of label terms.

    counted (10, J) are what t and the moments count by, the last row all beyond; ``square`` is the mean of t², and
    drawn (9 · 64,) is for use meanwhile.
    """
    known[1, 0] = max(known[1, 0], square)  # what lies within classes, and what comes with their means
    for i in range(known.shape[0] - 3):
        known[i + 1, i] *= 0.5
        for j in range(out.shape[0]):
            drawn[ROOM * i + j] = counted[i, j]
    table, placed = known.reshape(-1), out.reshape(-1)
    for j in range(out.shape[0]):
        mean = second = 0.0
        for i in range(9):
            half = table[12 * i + 12] * drawn[j]
            for k in range(1, i + 1):
                half += table[12 * i + 12 + k] * drawn[ROOM * k + j]
            mean += table[i] * drawn[ROOM * i + j]
            second += half * drawn[ROOM * i + j]
        placed[2 * j], placed[2 * j + 1] = mean, math.sqrt(max(0.0, 2.0 * second - mean * mean))


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
    spare: Doubles,
    known: Doubles,
    drawn: Doubles,
) -> None:
    """Bring the points of each row together by class, write what controls are made of, and shift them by class.

    Points ``index`` (n,) of source (B, N), given class by class, go to out (B, n), which may be the source. places
    (B, J, 2) are means and standard deviations under draws of label terms that counted (B, 10, J) tells; values (B, 5)
    the mean of t, the mean square of class means, and the even moments. terms (B, C) are those of polynomials; rows
    with one that is too large stay as they are. What is not wanted has no rows or no columns. All is done to one row
    before the next, in fast caches; row (n,), spare (n,), known (12, 12) and drawn (9 · 64,) are for use meanwhile, so
    there are at most 64 draws.
    """
    for line in range(out.shape[0]):
        for i in range(index.size):
            row[i] = source[line, index[i]]
        fits, summed = terms.shape[1] > 0, values.shape[0] > 0
        if summed:
            _sum_up(row, offsets, np.float32(cut), coefficients[line], known, values[line], terms[line])
            _place(known, 2.0 * values[line, 2], counted[line], drawn, places[line])
        if fits and not (summed and _has_no_more(coefficients[line])):
            sum_polynomial(row, offsets, coefficients[line], np.float32(-cut), np.float32(cut), spare, terms[line])
            for c in range(terms.shape[1]):
                terms[line, c] /= offsets[c + 1] - offsets[c]
        for c in range(terms.shape[1]):
            fits &= abs(terms[line, c]) < LARGEST_TERM
        for c in range(offsets.size - 1):
            weight, term = 1.0, 0.0
            if fits:
                weight, term = weights[line], terms[line, c]
            members, shifted = row[offsets[c] : offsets[c + 1]], out[line, offsets[c] : offsets[c + 1]]
            for i in range(members.size):
                shifted[i] = weight * members[i] + term


@allocating_kernel
def power_sums(rows: Floats, offsets: Integers, cut: float, sums: Doubles, even: Doubles) -> None:
    """Write what `group_rows` takes means of, as sums: (B, C, 9) over classes, and (B, 3) over all points."""
    powers = np.empty(4 + ORDERS)
    even[:, :] = 0.0
    for line in range(rows.shape[0]):
        for c in range(offsets.size - 1):
            _sum_powers(rows[line, offsets[c] : offsets[c + 1]], np.float32(cut), powers)
            sums[line, c, 0], scale = powers[0], 1.0
            for k in range(1, 1 + ORDERS):
                scale *= k
                sums[line, c, k] = powers[3 + k] / scale
            for k in range(3):
                even[line, k] += powers[1 + k]


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
