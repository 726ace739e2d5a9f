"""The loops that sum up moments of points and of classes, and what a projection costs between Gaussians with them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sotdd.kernels.compiling import Doubles, Floats, Integers, kernel, step

# --------------------------------------------------------------------------- points


@kernel
def block_reach(block: NDArray[np.generic], pivot: Doubles, reach: Doubles) -> None:
    """Write the largest deviation of each feature from ``pivot`` over a block of points."""
    reach[:] = 0.0
    for i in range(block.shape[0]):
        for j in range(reach.size):
            reach[j] = max(reach[j], abs(np.float64(block[i, j]) - pivot[j]))


@kernel
def block_moments(block: NDArray[np.generic], pivot: Doubles, reach: Doubles, mean: Doubles, squares: Doubles) -> int:
    """Write means and summed squared deviations of (features - pivot) / reach over a block of points.

    Returns the row that lies farthest from the mean of the block.
    """
    rows, inverse, unit = block.shape[0], 1.0 / reach, reach / reach.max()
    mean[:] = 0.0
    squares[:] = 0.0
    for i in range(rows):
        for j in range(mean.size):
            mean[j] += (np.float64(block[i, j]) - pivot[j]) * inverse[j]
    for j in range(mean.size):
        mean[j] /= rows
    farthest, longest = 0, -1.0
    for i in range(rows):
        length = 0.0
        for j in range(mean.size):
            deviation = (np.float64(block[i, j]) - pivot[j]) * inverse[j] - mean[j]
            squares[j] += deviation * deviation
            length += (deviation * unit[j]) ** 2
        if length > longest:
            farthest, longest = i, length
    return farthest


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


@step
def _gaussian_cost(
    mean_a: Doubles, covariance_a: Doubles, half_square_a: float,
    mean_b: Doubles, covariance_b: Doubles, half_square_b: float,
    weight: float, orders: Integers, values: Doubles, count: int,
) -> tuple[float, float, float]:  # fmt: skip
    """W_2² between Gaussians with the mean and variance of each dataset's projected points.

    Also the part of it that is the gap between the means, and the sum of both variances.
    """
    # Of the variance of t, what lies within classes: the rest comes with the class means.
    within_a = max(0.0, 2 * half_square_a - mean_a[0] * mean_a[0] - covariance_a[0, 0])
    within_b = max(0.0, 2 * half_square_b - mean_b[0] * mean_b[0] - covariance_b[0, 0])
    gap = 0.0
    variance_a = weight * weight * within_a
    variance_b = weight * weight * within_b
    for i in range(count):
        at, value = orders[i], values[i]
        gap += value * (mean_a[at] - mean_b[at])
        half_a = 0.5 * value * covariance_a[at, at]
        half_b = 0.5 * value * covariance_b[at, at]
        for j in range(i):
            half_a += values[j] * covariance_a[at, orders[j]]
            half_b += values[j] * covariance_b[at, orders[j]]
        variance_a += 2 * value * half_a
        variance_b += 2 * value * half_b
    variance_a, variance_b = max(0.0, variance_a), max(0.0, variance_b)
    root = math.sqrt(variance_a) - math.sqrt(variance_b)
    return gap * gap + root * root, gap * gap, variance_a + variance_b


@kernel
def gaussian_costs(
    mean_a: Doubles, covariance_a: Doubles, even_a: Doubles, mean_b: Doubles, covariance_b: Doubles, even_b: Doubles,
    weights: Doubles, coefficients: Doubles, p: float, out: Doubles,
) -> None:  # fmt: skip
    """Write, for each of B projections, means over draws of label terms, (B, 3).

    Of W_2² between Gaussians, of the squared gap between means, and of the sum of variances, each to the power p/2.

    weights (B, J) and coefficients (B, J, D') of the polynomials, lowest order first, orders beyond D left out.
    """
    degree = min(mean_a.shape[1] - 1, coefficients.shape[2] - 1)
    orders, values = np.empty(degree + 1, np.int64), np.empty(degree + 1)
    factorials = np.ones(degree + 1)
    for k in range(1, degree + 1):
        factorials[k] = factorials[k - 1] * k
    for line in range(out.shape[0]):
        out[line, :] = 0.0
        for draw in range(weights.shape[1]):
            weight = weights[line, draw]
            orders[0], values[0], count = 0, weight, 1
            for k in range(1, degree + 1):
                value = coefficients[line, draw, k]
                if value != 0.0:
                    orders[count], values[count] = k, value * factorials[k]
                    count += 1
            parts = _gaussian_cost(
                mean_a[line], covariance_a[line], even_a[line, 0], mean_b[line], covariance_b[line], even_b[line, 0],
                weight, orders, values, count,
            )  # fmt: skip
            for column in range(3):
                out[line, column] += parts[column] if p == 2.0 else parts[column] ** (0.5 * p)
        for column in range(3):
            out[line, column] /= weights.shape[1]
