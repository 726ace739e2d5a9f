"""The loops that sum up moments of points and of classes, and Gaussian costs with them."""

from __future__ import annotations

import math

import numpy as np

from sotdd.projections.compiling import Doubles, Floats, Integers, exact_kernel, exact_step, kernel, step

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
def _even_sums(members: Floats, sums: Doubles) -> float:
    """Add Σ t^2, Σ t^4 and Σ t^6 over a class to ``sums``; returns Σ t."""
    total = s2 = s4 = s6 = 0.0
    for i in range(members.size):
        t = np.float64(members[i])
        square = t * t
        fourth = square * square
        total += t
        s2 += square
        s4 += fourth
        s6 += fourth * square
    sums[0] += s2
    sums[1] += s4
    sums[2] += s6
    return total


@step
def _class_moments(members: Floats, cut: np.float32, powers: Doubles, moments: Doubles) -> None:
    """Write the mean of t^k / k! over a class for k = 1, …, D, t cut to ±cut; D is a multiple of four.

    Four orders per sweep, so that memory is read and written once in four.
    """
    for i in range(members.size):
        powers[i] = 1.0
    factorial = 1.0
    for order in range(0, moments.size, 4):
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
        sums = (s1, s2, s3, s4)
        for k in range(4):
            factorial *= order + k + 1
            moments[order + k] = sums[k] / (members.size * factorial)


@kernel
def summarise_rows(
    rows: Floats, offsets: Integers, cut: float, mean: Doubles, covariance: Doubles, even: Doubles
) -> None:
    """Write mean (B, D + 1) and covariance (B, D + 1, D + 1), over points, of what is known of their class.

    That is the mean of t, then the moments of orders 1, …, D of t cut to ±cut. Also the means (B, 3) over
    points of t^2/2!, t^4/4! and t^6/6!, without a cut. rows (B, n) are feature projections t grouped by class.
    """
    n, known = rows.shape[1], mean.shape[1]
    powers, moments = np.empty(n), np.empty(known)
    bound = np.float32(cut)
    for line in range(rows.shape[0]):
        centre, products = mean[line], covariance[line]
        centre[:] = 0.0
        products[:, :] = 0.0
        even[line, :] = 0.0
        for c in range(offsets.size - 1):
            first, last = offsets[c], offsets[c + 1]
            moments[0] = _even_sums(rows[line, first:last], even[line]) / (last - first)
            _class_moments(rows[line, first:last], bound, powers, moments[1:])
            share = (last - first) / n
            for i in range(known):
                weighted = share * moments[i]
                centre[i] += weighted
                for j in range(i + 1):
                    products[i, j] += weighted * moments[j]
        even[line, 0] /= 2.0 * n
        even[line, 1] /= 24.0 * n
        even[line, 2] /= 720.0 * n
        for i in range(known):
            for j in range(i + 1):
                products[i, j] -= centre[i] * centre[j]
                products[j, i] = products[i, j]


@kernel
def power_sums(rows: Floats, offsets: Integers, cut: float, sums: Doubles, even: Doubles) -> None:
    """Write what `summarise_rows` takes means of, as sums: (B, C, D + 1) over classes, and (B, 3) over all points."""
    powers, moments = np.empty(rows.shape[1]), np.empty(sums.shape[2] - 1)
    bound = np.float32(cut)
    for line in range(rows.shape[0]):
        even[line, :] = 0.0
        for c in range(offsets.size - 1):
            members = rows[line, offsets[c] : offsets[c + 1]]
            sums[line, c, 0] = _even_sums(members, even[line])
            _class_moments(members, bound, powers, moments)
            for k in range(moments.size):
                sums[line, c, k + 1] = moments[k] * members.size


@step
def _place(
    mean: Doubles, covariance: Doubles, half_square: float, weight: float, orders: Integers, values: Doubles, count: int
) -> tuple[float, float]:
    """Mean and variance of a dataset's projected points with the label terms of one draw."""
    # Of the variance of t, what lies within classes: the rest comes with the class means.
    variance = weight * weight * max(0.0, 2 * half_square - mean[0] * mean[0] - covariance[0, 0])
    place = 0.0
    for i in range(count):
        at, value = orders[i], values[i]
        place += value * mean[at]
        half = 0.5 * value * covariance[at, at]
        for j in range(i):
            half += values[j] * covariance[at, orders[j]]
        variance += 2 * value * half
    return place, max(0.0, variance)


@kernel
def gaussian_places(
    mean: Doubles, covariance: Doubles, even: Doubles, weights: Doubles, coefficients: Doubles, out: Doubles
) -> None:
    """Write mean and standard deviation (B, J, 2) of a dataset's projected points under J draws of label terms.

    weights (B, J) and coefficients (B, J, D') of the polynomials, lowest order first, orders beyond D left out.
    """
    degree = min(mean.shape[1] - 1, coefficients.shape[2] - 1)
    orders, values = np.empty(degree + 1, np.int64), np.empty(degree + 1)
    factorials = np.ones(degree + 1)
    for k in range(1, degree + 1):
        factorials[k] = factorials[k - 1] * k
    for line in range(out.shape[0]):
        for draw in range(out.shape[1]):
            weight = weights[line, draw]
            orders[0], values[0], count = 0, weight, 1
            for k in range(1, degree + 1):
                value = coefficients[line, draw, k]
                if value != 0.0:
                    orders[count], values[count] = k, value * factorials[k]
                    count += 1
            place, variance = _place(mean[line], covariance[line], even[line, 0], weight, orders, values, count)
            out[line, draw, 0], out[line, draw, 1] = place, math.sqrt(variance)


@exact_kernel
def gaussian_gaps(a: Doubles, b: Doubles, p: float, out: Doubles) -> None:
    """Write what the first of J draws of label terms gives, less the mean of the others, (B, 3).

    Of W_2² between Gaussians with means and standard deviations a and b (B, J, 2), of the squared gap between means,
    and of the sum of variances, each to the power p/2. Nothing is fused: both orders of a and b give the same bits.
    """
    draws = a.shape[1]
    for line in range(a.shape[0]):
        cost = gap = variance = 0.0
        for draw in range(1, draws):
            first, second, third = _powers(a[line, draw], b[line, draw], p)
            cost, gap, variance = cost + first, gap + second, variance + third
        first, second, third = _powers(a[line, 0], b[line, 0], p)
        out[line, 0] = first - cost / (draws - 1)
        out[line, 1] = second - gap / (draws - 1)
        out[line, 2] = third - variance / (draws - 1)


@exact_step
def _powers(a: Doubles, b: Doubles, p: float) -> tuple[float, float, float]:
    gap, root = a[0] - b[0], a[1] - b[1]
    squares = gap * gap + root * root, gap * gap, a[1] * a[1] + b[1] * b[1]
    if p == 2.0:
        return squares
    return squares[0] ** (0.5 * p), squares[1] ** (0.5 * p), squares[2] ** (0.5 * p)
