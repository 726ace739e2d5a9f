"""The loops that sum up moments of points and of classes, and Gaussian costs with them."""

from __future__ import annotations

import math

import numpy as np

from sotdd.compute.engine import LARGEST_TERM
from sotdd.compute.kernels.rows import sum_polynomial
from sotdd.projections.compiling import Doubles, Floats, Integers, allocating_kernel, exact_kernel, kernel, step

# --------------------------------------------------------------------------- points


@kernel
def norm_sums(points: Floats, codes: Integers, powers: Doubles, first: int, class_sums: Doubles) -> None:
    """Add Σ |x|^2, Σ |x|^4, … over points (m, d) to ``powers``, and each point to its class's row of ``class_sums``.

    Of the latter only the features from ``first`` on, as many as ``class_sums`` has.
    """
    for i in range(points.shape[0]):
        line = class_sums[codes[i]]
        for j in range(line.size):
            line[j] += np.float64(points[i, first + j])
        if powers.size == 0:
            continue
        square = 0.0
        for j in range(points.shape[1]):
            value = np.float64(points[i, j])
            square += value * value
        power = 1.0
        for k in range(powers.size):
            power *= square
            powers[k] += power


# --------------------------------------------------------------------------- classes of projected points


@step
def _class_moments(members: Floats, cut: np.float32, powers: Doubles, moments: Doubles, even: Doubles) -> None:
    """Write the mean of t over a class, then those of t^k / k!, k = 1, …, D, for t cut to ±cut, to moments (D + 1,).

    Add Σ t^2, Σ t^4 and Σ t^6 to ``even``, without a cut. D is a multiple of four: as many orders per sweep, so that
    memory is read and written once in four.
    """
    total = s2 = s4 = s6 = 0.0
    for i in range(members.size):
        t = np.float64(members[i])
        square = t * t
        total += t
        s2 += square
        s4 += square * square
        s6 += square * square * square
        powers[i] = 1.0
    even[0] += s2
    even[1] += s4
    even[2] += s6
    moments[0], scale = total / members.size, np.float64(members.size)
    for order in range(1, moments.size, 4):
        s1 = s2 = s3 = s4 = 0.0
        for i in range(members.size):
            t = np.float64(min(max(members[i], -cut), cut))
            v1 = powers[i] * t
            v2 = v1 * t
            v3 = v2 * t
            v4 = v3 * t
            s1 += v1
            s2 += v2
            s3 += v3
            s4 += v4
            powers[i] = v4
        moments[order], moments[order + 1] = s1, s2
        moments[order + 2], moments[order + 3] = s3, s4
        for k in range(order, order + 4):
            scale *= k
            moments[k] /= scale


@step
def _sum_up(row: Floats, offsets: Integers, cut: np.float32, powers: Doubles, known: Doubles, values: Doubles) -> None:
    """Sum up what is known of the classes of a row (n,): the mean of t, then moments of orders 1, …, D, t cut to ±cut.

    Write their mean over points (D + 1,) to known[0], and means of their products to the lower triangle of the next
    D + 1 rows; the last is for use meanwhile. values (5,) are those of `group_rows`.
    """
    centre, moments, even = known[0], known[-1], values[2:]
    even[0] = even[1] = even[2] = 0.0
    for i in range(known.shape[0]):  # a loop is compiled faster than a slice
        for j in range(known.shape[1]):
            known[i, j] = 0.0
    for c in range(offsets.size - 1):
        members = row[offsets[c] : offsets[c + 1]]
        _class_moments(members, cut, powers, moments, even)
        share = members.size / row.size
        for i in range(moments.size):
            weighted = share * moments[i]
            centre[i] += weighted
            for j in range(i + 1):
                known[i + 1, j] += weighted * moments[j]
    values[0], values[1] = centre[0], known[1, 0]
    even[0] /= 2.0 * row.size
    even[1] /= 24.0 * row.size
    even[2] /= 720.0 * row.size


@step
def _place(known: Doubles, square: float, counted: Doubles, sums: Doubles, out: Doubles) -> None:
    """Write mean and standard deviation (J, 2) of a dataset's projected points under J draws of label terms.

    counted (D + 2, J) are what t and the moments count by, the last row all beyond; ``square`` is the mean of t², and
    sums (2, J) are for use meanwhile.
    """
    centre, place, half = known[0], sums[0], sums[1]
    for j in range(place.size):
        place[j] = half[j] = 0.0
    known[1, 0] = max(known[1, 0], square)  # what lies within classes, and what comes with their means
    for i in range(centre.size):
        known[i + 1, i] *= 0.5
        mean, first = centre[i], known[i + 1, 0]
        for j in range(place.size):
            place[j] += mean * counted[i, j]
            half[j] += counted[i, j] * first * counted[0, j]
        for k in range(1, i + 1, 4):  # four at a time, so that memory is read and written once in four
            one, two, three = known[i + 1, k], known[i + 1, k + 1], known[i + 1, k + 2]
            four = known[i + 1, k + 3]
            for j in range(place.size):
                total = one * counted[k, j] + two * counted[k + 1, j] + three * counted[k + 2, j]
                half[j] += counted[i, j] * (total + four * counted[k + 3, j])
    for j in range(place.size):
        out[j, 0], out[j, 1] = place[j], math.sqrt(max(0.0, 2.0 * half[j] - place[j] * place[j]))


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
) -> None:
    """Bring the points of each row together by class, write what controls are made of, and shift them by class.

    Points ``index`` (n,) of source (B, N), given class by class, go to out (B, n), which may be the source. places
    (B, J, 2) are means and standard deviations under draws of label terms that counted (B, D + 2, J) tells; values
    (B, 5) the mean of t, the mean square of class means, and the even moments. terms (B, C) are those of polynomials;
    rows with one that is too large stay as they are. What is not wanted has no rows or no columns. All is done to one
    row before the next, in fast caches; row (n,), powers (n,), known (D + 3, D + 1) and sums (2, J) are for use
    meanwhile.
    """
    for line in range(out.shape[0]):
        for i in range(index.size):
            row[i] = source[line, index[i]]
        if values.shape[0] > 0:
            _sum_up(row, offsets, np.float32(cut), powers, known, values[line])
            _place(known, 2.0 * values[line, 2], counted[line], sums, places[line])
        fits = terms.shape[1] > 0
        if fits:
            sum_polynomial(row, offsets, coefficients[line], np.float32(-cut), np.float32(cut), powers, terms[line])
            for c in range(terms.shape[1]):
                terms[line, c] /= offsets[c + 1] - offsets[c]
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
    """Write what `group_rows` takes means of, as sums: (B, C, D + 1) over classes, and (B, 3) over all points."""
    powers = np.empty(rows.shape[1])
    even[:, :] = 0.0
    for line in range(rows.shape[0]):
        for c in range(offsets.size - 1):
            members = rows[line, offsets[c] : offsets[c + 1]]
            _class_moments(members, np.float32(cut), powers, sums[line, c], even[line])
            for k in range(sums.shape[2]):
                sums[line, c, k] *= members.size


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
