"""The compiled loops of sketches: sorted rows become quantile functions, and these are compared.

A quantile function is kept as its means over parts of probability. Between them it is put together again: within each
part it rises evenly, as its neighbours do, or it jumps where they lie on two levels with a gap between, as the values
of two classes do. Where in the part it jumps follows from the mean. Parts keep their means, so nothing moves; what is
within a part is no longer lost. (Numerical schemes for waves know this as subcell resolution.)
"""

from __future__ import annotations

import math

import numpy as np

from sotdd.kernels.compiling import Doubles, Floats, kernel, step

# A gap counts as a jump where it is this many times as wide as the steps on either side of it.
_JUMP = 4.0

# Gaps that differ by less than this share count as one, where their difference is divided by.
_ALIKE = 1e-6


@kernel
def part_means(rows: Floats, edges: Doubles, out: Floats) -> None:
    """Write the means of each sorted row (B, n) over parts of probability, out (B, Q); their edges are (Q + 1,)."""
    n = rows.shape[1]
    for line in range(rows.shape[0]):
        row = rows[line]
        for q in range(out.shape[1]):
            begin, end = edges[q] * n, edges[q + 1] * n
            first, last = min(int(begin), n - 1), min(int(end), n - 1)
            if first == last:
                out[line, q] = row[first]
                continue
            total = np.float64(row[first]) * (first + 1 - begin) + np.float64(row[last]) * (end - last)
            for i in range(first + 1, last):
                total += np.float64(row[i])
            out[line, q] = np.float32(total / (end - begin))


# --------------------------------------------------------------------------- functions put together from means


@step
def write_function(means: Floats, edges: Doubles, smooth: bool, begins: Doubles, ends: Doubles, jumps: Doubles) -> None:
    """Write what a quantile function is within each of its parts.

    It rises evenly from ``begins`` to ``ends`` where ``jumps`` is negative, and otherwise it is the one up to that
    share of the part, and the other after it. Without ``smooth`` it is its mean throughout.
    """
    last = means.size - 1
    for q in range(means.size):
        mean = np.float64(means[q])
        begins[q], ends[q], jumps[q] = mean, mean, -1.0
        if not smooth or q == 0 or q == last:
            continue
        before, after = np.float64(means[q - 1]), np.float64(means[q + 1])
        step_before = before - np.float64(means[max(q - 2, 0)])
        step_after = np.float64(means[min(q + 2, last)]) - after
        low, high = min(before + 0.5 * step_before, mean), max(after - 0.5 * step_after, mean)
        if high - low > _JUMP * max(step_before, step_after):
            begins[q], ends[q], jumps[q] = low, high, (high - mean) / (high - low)
            continue
        width, width_before, width_after = edges[q + 1] - edges[q], edges[q] - edges[q - 1], edges[q + 2] - edges[q + 1]
        rise = (mean - before) * width / (width + width_before)
        rise = max(min(rise, (after - mean) * width / (width + width_after)), 0.0)
        begins[q], ends[q] = mean - rise, mean + rise


@step
def _at(begin: float, end: float, jump: float, place: float, middle: float) -> float:
    """The value of a function at a place in its part, seen from the middle of a piece without a jump."""
    if jump < 0.0:
        return begin + (end - begin) * place
    return begin if middle < jump else end


@step
def _mean_power(one: float, two: float, p: float) -> float:
    """The mean of |x|^p over x between two numbers."""
    if p == 2.0:
        return (one * one + one * two + two * two) / 3.0
    if p == 1.0:
        same_side = one * two >= 0.0
        return 0.5 * abs(one + two) if same_side else 0.5 * (one * one + two * two) / abs(two - one)
    if abs(two - one) <= _ALIKE * max(abs(one), abs(two)):
        return float(abs(0.5 * (one + two)) ** p)
    above = math.copysign(abs(two) ** (p + 1.0), two) - math.copysign(abs(one) ** (p + 1.0), one)
    return float(above / ((p + 1.0) * (two - one)))


@kernel
def compare_functions(
    a: Floats, b: Floats, edges: Doubles, smooth: bool, p: float, out: Doubles, within: Doubles
) -> None:
    """Write W_p^p (B,) between quantile functions of the same parts, whose means are a and b (B, Q).

    For p = 2 also the part of it that is within parts, beyond the means, (B,).
    """
    count = a.shape[1]
    begins_a, ends_a, jumps_a = np.empty(count), np.empty(count), np.empty(count)
    begins_b, ends_b, jumps_b = np.empty(count), np.empty(count), np.empty(count)
    for line in range(a.shape[0]):
        write_function(a[line], edges, smooth, begins_a, ends_a, jumps_a)
        write_function(b[line], edges, smooth, begins_b, ends_b, jumps_b)
        total, beyond = 0.0, 0.0
        for q in range(count):
            near, far = min(jumps_a[q], jumps_b[q]), max(jumps_a[q], jumps_b[q])
            here, power = 0.0, 0.0
            for piece in range(3):
                there = 1.0 if piece == 2 else max(near if piece == 0 else far, 0.0)
                if there <= here:
                    continue
                middle = 0.5 * (here + there)
                first = _at(begins_a[q], ends_a[q], jumps_a[q], here, middle)
                first -= _at(begins_b[q], ends_b[q], jumps_b[q], here, middle)
                second = _at(begins_a[q], ends_a[q], jumps_a[q], there, middle)
                second -= _at(begins_b[q], ends_b[q], jumps_b[q], there, middle)
                power += (there - here) * _mean_power(first, second, p)
                here = there
            share = edges[q + 1] - edges[q]
            total += share * power
            beyond += share * (power - (np.float64(a[line, q]) - np.float64(b[line, q])) ** 2)
        out[line], within[line] = total, max(beyond, 0.0)


# --------------------------------------------------------------------------- what the means leave out


@step
def add_gaps(
    x: tuple[float, float], s: tuple[float, float], begin: float, end: float, jump: float, sums: Doubles
) -> None:
    """Add the integrals of a gap and of its square to ``sums``, from place s[0] to s[1] of a part.

    The gap is between values that go evenly from x[0] to x[1] and a function of `write_function`.
    """
    here = s[0]
    for piece in range(2):
        there = s[1] if piece == 1 else min(max(jump, s[0]), s[1])
        if there <= here:
            continue
        middle, length = 0.5 * (here + there), s[1] - s[0]
        first = x[0] + (x[1] - x[0]) * (here - s[0]) / length - _at(begin, end, jump, here, middle)
        second = x[0] + (x[1] - x[0]) * (there - s[0]) / length - _at(begin, end, jump, there, middle)
        sums[0] += (there - here) * _mean_power(first, second, 1.0)
        sums[1] += (there - here) * _mean_power(first, second, 2.0)
        here = there


@kernel
def row_losses(rows: Floats, means: Floats, edges: Doubles, smooth: bool, out: Doubles) -> None:
    """Write how far each sorted row (B, n) is from the function of its means (B, Q), out (B, 2).

    In the mean, and in the root mean square.
    """
    n, count = rows.shape[1], means.shape[1]
    begins, ends, jumps, sums = np.empty(count), np.empty(count), np.empty(count), np.empty(2)
    for line in range(rows.shape[0]):
        write_function(means[line], edges, smooth, begins, ends, jumps)
        out[line] = 0.0
        for q in range(count):
            begin, end = edges[q] * n, edges[q + 1] * n
            size = end - begin
            sums[:] = 0.0
            for i in range(min(int(begin), n - 1), min(int(end), n - 1) + 1):
                value = np.float64(rows[line, i])
                place = max((i - begin) / size, 0.0), min((i + 1 - begin) / size, 1.0)
                add_gaps((value, value), place, begins[q], ends[q], jumps[q], sums)
            out[line] += (edges[q + 1] - edges[q]) * sums
        out[line, 1] = math.sqrt(out[line, 1])
