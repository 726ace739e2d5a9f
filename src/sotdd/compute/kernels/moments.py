"""The loops that sum up moments of points and of classes, and Gaussian costs with them."""

from __future__ import annotations

import math

import numpy as np

from sotdd.compute.engine import LARGEST_TERM
from sotdd.compute.kernels.rows import shift, sum_polynomial
from sotdd.projections.compiling import Doubles, Floats, Integers, exact_kernel, kernel, step

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
    even[0], even[1], even[2] = even[0] + s2, even[1] + s4, even[2] + s6
    moments[0], scale = total / members.size, np.float64(members.size)
    for order in range(1, moments.size, 4):
        s1 = s2 = s3 = s4 = 0.0
        for i in range(members.size):
            t = np.float64(min(max(members[i], -cut), cut))
            v1 = powers[i] * t
            v2 = v1 * t
            v3 = v2 * t
            v4 = v3 * t
            s1, s2, s3, s4 = s1 + v1, s2 + v2, s3 + v3, s4 + v4
            powers[i] = v4
        moments[order], moments[order + 1], moments[order + 2], moments[order + 3] = s1, s2, s3, s4
        for k in range(order, order + 4):
            scale *= k
            moments[k] /= scale


@step
def _sum_up(row: Floats, offsets: Integers, cut: np.float32, powers: Doubles, known: Doubles, even: Doubles) -> None:
    """Sum up what is known of the classes of a row (n,): the mean of t, then moments of orders 1, …, D, t cut to ±cut.

    Write their mean over points (D + 1,) to known[0], and their covariance to the next D + 1 rows; the last is for use
    meanwhile. Also the means (3,) over points of t^2/2!, t^4/4! and t^6/6!, without a cut.
    """
    n, centre, moments = row.size, known[0], known[-1]
    even[0] = even[1] = even[2] = 0.0
    for i in range(known.shape[0]):  # a loop is compiled faster than a slice
        for j in range(known.shape[1]):
            known[i, j] = 0.0
    for c in range(offsets.size - 1):
        members = row[offsets[c] : offsets[c + 1]]
        _class_moments(members, cut, powers, moments, even)
        share = members.size / n
        for i in range(moments.size):
            weighted = share * moments[i]
            centre[i] += weighted
            for j in range(i + 1):
                known[i + 1, j] += weighted * moments[j]
    even[0], even[1], even[2] = even[0] / (2.0 * n), even[1] / (24.0 * n), even[2] / (720.0 * n)
    for i in range(moments.size):
        for j in range(i + 1):
            known[i + 1, j] -= centre[i] * centre[j]


@step
def _place(known: Doubles, even: Doubles, counted: Doubles, sums: Doubles, out: Doubles) -> None:
    """Write mean and standard deviation (J, 2) of a dataset's projected points under J draws of label terms.

    counted (D + 2, J) are what t and the moments count by, the last row all beyond; sums (2, J) are for use meanwhile.
    """
    centre, products, place, half = known[0], known[1:], sums[0], sums[1]
    # Of the variance of t, all of it: what lies within classes, and what comes with the class means.
    products[0, 0] = max(products[0, 0], 2 * even[0] - centre[0] * centre[0])
    for j in range(place.size):
        place[j] = half[j] = 0.0
    for i in range(centre.size):
        own, mean = counted[i], centre[i]
        products[i, i] *= 0.5
        for k in range(0, i + 1, 4):  # four at a time, so that memory is read and written once in four
            c0, c1, c2, c3 = counted[k], counted[min(k + 1, i)], counted[min(k + 2, i)], counted[min(k + 3, i)]
            p0 = products[i, k]
            p1 = products[i, k + 1] if k + 1 <= i else 0.0
            p2 = products[i, k + 2] if k + 2 <= i else 0.0
            p3 = products[i, k + 3] if k + 3 <= i else 0.0
            for j in range(place.size):
                half[j] += own[j] * (p0 * c0[j] + p1 * c1[j] + p2 * c2[j] + p3 * c3[j])
        for j in range(place.size):
            place[j] += mean * own[j]
    for j in range(place.size):
        out[j, 0], out[j, 1] = place[j], math.sqrt(max(0.0, 2 * half[j]))


@kernel
def group_rows(
    source: Floats,
    index: Integers,
    offsets: Integers,
    cut: float,
    degree: int,
    counted: Doubles,
    weights: Doubles,
    coefficients: Doubles,
    out: Floats,
    places: Doubles,
    values: Doubles,
    terms: Doubles,
) -> None:
    """Bring the points of each row together by class, write what controls are made of, and shift them by class.

    Points ``index`` (n,) of source (B, N), given class by class, go to out (B, n), which may be the source. Class
    moments are taken up to ``degree``, D. places (B, J, 2) are means and standard deviations under draws of label terms
    that counted (B, D + 2, J) tells; values (B, 5) the mean of t, the mean square of class means, and the even moments.
    terms (B, C) are those of polynomials; rows with one that is too large stay as they are. What is not wanted has no
    rows or no columns. All is done to one row before the next, in fast caches.
    """
    n, even, sums = index.size, np.empty(3), np.empty((2, places.shape[1]))
    row, powers, known = np.empty(n, np.float32), np.empty(n), np.empty((degree + 3, degree + 1))
    for line in range(out.shape[0]):
        for i in range(n):
            row[i] = source[line, index[i]]
        if degree > 0:
            _sum_up(row, offsets, np.float32(cut), powers, known, even)
            values[line, 0], values[line, 1] = known[0, 0], known[1, 0] + known[0, 0] * known[0, 0]
            values[line, 2], values[line, 3], values[line, 4] = even[0], even[1], even[2]
            _place(known, even, counted[line], sums, places[line])
        if terms.shape[1] > 0:
            sum_polynomial(row, offsets, coefficients[line], np.float32(-cut), np.float32(cut), powers, terms[line])
            fits = True
            for c in range(terms.shape[1]):
                terms[line, c] /= offsets[c + 1] - offsets[c]
                fits &= abs(terms[line, c]) < LARGEST_TERM
            if fits:
                shift(row, offsets, weights[line], terms[line])
        for i in range(n):
            out[line, i] = row[i]


@kernel
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
            apart, root = a[line, draw, 0] - b[line, draw, 0], a[line, draw, 1] - b[line, draw, 1]
            first, second = apart * apart + root * root, apart * apart
            third = a[line, draw, 1] * a[line, draw, 1] + b[line, draw, 1] * b[line, draw, 1]
            if p != 2.0:
                first, second, third = first ** (0.5 * p), second ** (0.5 * p), third ** (0.5 * p)
            cost, gap, variance = cost + first, gap + second, variance + third
        out[line, 0], out[line, 1], out[line, 2] = cost, gap, variance
