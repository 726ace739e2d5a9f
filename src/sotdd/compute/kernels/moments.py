"""The loops that sum up moments of points and of classes, and Gaussian costs with them."""

from __future__ import annotations

import math

import numpy as np

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


@kernel
def group_rows(
    source: Floats,
    index: Integers,
    offsets: Integers,
    cut: float,
    out: Floats,
    mean: Doubles,
    covariance: Doubles,
    even: Doubles,
) -> None:
    """Bring the points of each row together by class, and sum up what is known of their classes.

    Points ``index`` (n,) of source (B, N), given class by class, go to out (B, n), which may be the source. What is
    known of a class is the mean of t, then the moments of orders 1, …, D of t cut to ±cut: write their mean (B, D + 1)
    and covariance (B, D + 1, D + 1) over points. Also the means (B, 3) over points of t^2/2!, t^4/4! and t^6/6!,
    without a cut. With mean (B, 0) points are grouped, and that is all.
    """
    n, known = index.size, mean.shape[1]
    row, powers, moments = np.empty(n, np.float32), np.empty(n), np.empty(known)
    for line in range(out.shape[0]):
        for i in range(n):
            row[i] = source[line, index[i]]
        for i in range(n):
            out[line, i] = row[i]
        if known == 0:
            continue
        centre, products, squares = mean[line], covariance[line], even[line]
        centre[:], products[:, :], squares[:] = 0.0, 0.0, 0.0
        for c in range(offsets.size - 1):
            members = row[offsets[c] : offsets[c + 1]]
            _class_moments(members, np.float32(cut), powers, moments, squares)
            share = members.size / n
            for i in range(known):
                weighted = share * moments[i]
                centre[i] += weighted
                for j in range(i + 1):
                    products[i, j] += weighted * moments[j]
        squares[0], squares[1], squares[2] = squares[0] / (2.0 * n), squares[1] / (24.0 * n), squares[2] / (720.0 * n)
        for i in range(known):
            for j in range(i + 1):
                products[i, j] -= centre[i] * centre[j]
                products[j, i] = products[i, j]


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


@kernel
def gaussian_places(
    mean: Doubles, covariance: Doubles, even: Doubles, weights: Doubles, coefficients: Doubles, out: Doubles
) -> None:
    """Write mean and standard deviation (B, J, 2) of a dataset's projected points under J draws of label terms.

    weights (B, J) and coefficients (B, J, D') of the polynomials, lowest order first, orders beyond D left out.
    """
    known = min(mean.shape[1], coefficients.shape[2])
    orders, values, factorials = np.empty(known + 1, np.int64), np.empty(known + 1), np.empty(known)
    factorials[0] = 1.0
    for k in range(1, known):
        factorials[k] = factorials[k - 1] * k
    for line in range(out.shape[0]):
        centre, products = mean[line], covariance[line]
        # Of the variance of t, what lies within classes: the rest comes with the class means.
        within = max(0.0, 2 * even[line, 0] - centre[0] * centre[0] - products[0, 0])
        for draw in range(out.shape[1]):
            weight, drawn, count = weights[line, draw], coefficients[line, draw], 1
            orders[0], values[0] = 0, weight
            for k in range(1, known):  # without branches, since which orders are drawn is random
                orders[count], values[count] = k, drawn[k] * factorials[k]
                count += int(drawn[k] != 0.0)
            place, variance = 0.0, weight * weight * within
            for i in range(count):
                at, value = orders[i], values[i]
                place += value * centre[at]
                half = 0.5 * value * products[at, at]
                for j in range(i):
                    half += values[j] * products[at, orders[j]]
                variance += 2 * value * half
            out[line, draw, 0], out[line, draw, 1] = place, math.sqrt(max(0.0, variance))


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
