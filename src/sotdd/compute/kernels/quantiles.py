"""The compiled loops of sketches: sorted rows become quantile functions, and these are compared.

A quantile function is kept as its means over parts of probability. Between them it is put together again: within each
part it rises evenly, as its neighbours do, or it rises at once where they lie on two levels with a gap between, as the
values of two classes do. Where in the part it does follows from the mean. Parts keep their means, and what is within
them is no longer lost. (Numerical schemes for waves know this as subcell resolution.)
"""

from __future__ import annotations

import math

import numpy as np

from sotdd.projections.compiling import Doubles, Floats, kernel, step

# A gap counts as a jump where it is this many times as wide as the steps on either side of it.
_JUMP = 8.0

# A jump takes this share of its part on either side of its place. Where a function jumps is known but for what its
# neighbours leave open; if it did so at once, functions with the same far outlier would differ by that times the square
# of the jump.
_RISE = 1 / 32

# Gaps that differ by less than this share count as one, where their difference is divided by.
_ALIKE = 1e-6


@kernel
def part_means(rows: Floats, places: Doubles, edges: Doubles, out: Floats) -> None:
    """Write the means of each ascending row (B, n) over parts of probability, out (B, Q); their edges are (Q + 1,).

    places (n + 1,) are where the values of a row begin and end: multiples of 1 / n, where they are points.
    """
    for line in range(rows.shape[0]):
        row, i = rows[line], 0
        for q in range(out.shape[1]):
            here, end = edges[q], edges[q + 1]
            while places[i + 1] <= here:
                i += 1
            if places[i + 1] >= end:
                out[line, q] = row[i]
                continue
            total, first = np.float64(row[i]) * (places[i + 1] - here), i + 1
            while places[i + 1] < end:
                i += 1
            for k in range(first, i):
                total += np.float64(row[k]) * (places[k + 1] - places[k])
            total += np.float64(row[i]) * (end - places[i])
            out[line, q] = np.float32(total / (end - edges[q]))


# --------------------------------------------------------------------------- functions put together from means


@step
def reaches_of(edges: Doubles) -> Doubles:
    """How far each part reaches on the way from its middle to those of its neighbours, (Q, 2) from 0 to 1."""
    reaches = np.ones((edges.size - 1, 2))
    for q in range(1, edges.size - 2):
        width = edges[q + 1] - edges[q]
        reaches[q, 0] = width / (edges[q + 1] - edges[q - 1])
        reaches[q, 1] = width / (edges[q + 2] - edges[q])
    return reaches


@step
def write_function(
    means: Floats, reaches: Doubles, smooth: bool, lows: Doubles, highs: Doubles, starts: Doubles, stops: Doubles
) -> None:
    """Write what a quantile function is within each of its parts.

    It is ``lows`` up to the share ``starts`` of the part, ``highs`` from ``stops`` on, and rises evenly between
    these. Without ``smooth`` it is its mean throughout. ``reaches`` (Q, 2) are from `reaches_of`.
    """
    last = means.size - 1
    for q in range(means.size):
        mean = np.float64(means[q])
        lows[q], highs[q], starts[q], stops[q] = mean, mean, 0.0, 1.0
        if not smooth or q in (0, last):
            continue
        before, after = np.float64(means[q - 1]), np.float64(means[q + 1])
        step_before = before - np.float64(means[max(q - 2, 0)])
        step_after = np.float64(means[min(q + 2, last)]) - after
        low, high = min(before + step_before, mean), max(after - step_after, mean)
        if high - low > _JUMP * max(step_before, step_after):
            place = (high - mean) / (high - low)
            reach = min(_RISE, place, 1.0 - place)
            if reach > 0.0:  # not at an edge, where all of the part is on one level
                lows[q], highs[q], starts[q], stops[q] = low, high, place - reach, place + reach
            continue
        rise = max(min((mean - before) * reaches[q, 0], (after - mean) * reaches[q, 1]), 0.0)
        lows[q], highs[q] = mean - rise, mean + rise


@step
def _at(low: float, high: float, start: float, stop: float, place: float) -> float:
    """The value of a function at a place in its part."""
    if place <= start:
        return low
    if place >= stop:
        return high
    return low + (high - low) * (place - start) / (stop - start)


@step
def _next(place: float, cut: float, end: float) -> float:
    """The cut where it comes after this place, and before the end; otherwise the end."""
    return cut if place < cut < end else end


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
    low, high, start, stop = np.empty((4, a.shape[1]))
    low_b, high_b, start_b, stop_b = np.empty((4, a.shape[1]))
    reaches = reaches_of(edges)
    for line in range(a.shape[0]):
        write_function(a[line], reaches, smooth, low, high, start, stop)
        write_function(b[line], reaches, smooth, low_b, high_b, start_b, stop_b)
        total, beyond = 0.0, 0.0
        for q in range(low.size):
            here, power, gap = 0.0, 0.0, low[q] - low_b[q]
            if start[q] + start_b[q] == 0.0 and stop[q] + stop_b[q] == 2.0:  # most rise evenly, both of them
                here, power = 1.0, _mean_power(gap, high[q] - high_b[q], p)
            while here < 1.0:
                there = _next(here, start[q], _next(here, stop[q], 1.0))
                there = _next(here, start_b[q], _next(here, stop_b[q], there))
                coming = _at(low[q], high[q], start[q], stop[q], there)
                coming -= _at(low_b[q], high_b[q], start_b[q], stop_b[q], there)
                power += (there - here) * _mean_power(gap, coming, p)
                here, gap = there, coming
            share = edges[q + 1] - edges[q]
            total += share * power
            beyond += share * (power - (np.float64(a[line, q]) - np.float64(b[line, q])) ** 2)
        out[line], within[line] = total, max(beyond, 0.0)


# --------------------------------------------------------------------------- what the means leave out


@step
def add_gaps(
    x: tuple[float, float], s: tuple[float, float], part: tuple[float, float, float, float], sums: Doubles
) -> None:
    """Add integrals of a gap, at most, and of its square to ``sums``, from place s[0] to s[1] of a part.

    The gap is between values that go evenly from x[0] to x[1] and a function of `write_function`.
    """
    low, high, start, stop = part
    here, slope = s[0], (x[1] - x[0]) / (s[1] - s[0])
    gap = x[0] - _at(low, high, start, stop, here)
    while here < s[1]:
        there = _next(here, start, _next(here, stop, s[1]))
        coming = x[0] + slope * (there - s[0]) - _at(low, high, start, stop, there)
        sums[0] += (there - here) * 0.5 * (abs(gap) + abs(coming))  # more than the mean, where the gap changes sign
        sums[1] += (there - here) * _mean_power(gap, coming, 2.0)
        here, gap = there, coming


@step
def _add_even_gaps(
    row: Floats, places: Doubles, i: int, part: tuple[float, float], ends: tuple[float, float], sums: Doubles
) -> int:
    """Do what `add_gaps` does for all values of a part where the function rises evenly; returns where the next begins.

    The loop that most of the time goes into: values within the part, each as wide as the others.
    """
    size, slope = part[1] - part[0], (ends[1] - ends[0]) / (part[1] - part[0])
    first, second, here = 0.0, 0.0, part[0]
    last = i
    while places[last + 1] < part[1]:
        last += 1
    for k in range(i, last + 1):
        begin, end = max(places[k], here), min(places[k + 1], part[1])
        value = np.float64(row[k]) - ends[0]
        one, two = value - slope * (begin - here), value - slope * (end - here)
        first += (end - begin) * (abs(one) + abs(two))
        second += (end - begin) * (one * one + one * two + two * two)
    sums[0] += 0.5 * first / size
    sums[1] += second / (3.0 * size)
    return last + 1 if places[last + 1] <= part[1] and last + 1 < row.size else last


@kernel
def row_losses(rows: Floats, places: Doubles, means: Floats, edges: Doubles, smooth: bool, out: Doubles) -> None:
    """Write how far each row (B, n) of `part_means` is from the function of its means (B, Q), out (B, 2).

    At most, in the mean; and in the root mean square.
    """
    low, high, start, stop = np.empty((4, means.shape[1]))
    sums, reaches = np.empty(2), reaches_of(edges)
    for line in range(rows.shape[0]):
        write_function(means[line], reaches, smooth, low, high, start, stop)
        row, i = rows[line], 0
        out[line] = 0.0
        for q in range(low.size):
            here, end = edges[q], edges[q + 1]
            part, size = (low[q], high[q], start[q], stop[q]), end - here
            sums[:] = 0.0
            if start[q] == 0.0 and stop[q] == 1.0:
                i = _add_even_gaps(row, places, i, (here, end), (low[q], high[q]), sums)
                here = end
            while here < end:
                there = min(places[i + 1], end)
                if there > here:
                    value = np.float64(row[i])
                    places_in_part = (here - edges[q]) / size, (there - edges[q]) / size
                    add_gaps((value, value), places_in_part, part, sums)
                    here = there
                if places[i + 1] <= end and i + 1 < row.size:
                    i += 1
            out[line, 0] += size * sums[0]
            out[line, 1] += size * sums[1]
        out[line, 1] = math.sqrt(out[line, 1])


@kernel
def invert_functions(means: Floats, edges: Doubles, grid: Doubles, out: Doubles) -> None:
    """Write the share of values that are at most each threshold, out (B, T), from quantile functions (B, Q).

    Between the middles of parts with these edges (Q + 1,) functions rise evenly. grid (B, T) is ascending.
    """
    last = means.shape[1] - 1
    for line in range(means.shape[0]):
        row, q = means[line], 0
        for place in range(grid.shape[1]):
            value = grid[line, place]
            while q <= last and row[q] <= value:
                q += 1
            if q == 0 or q > last:
                out[line, place] = 0.0 if q == 0 else 1.0
                continue
            low, high = np.float64(row[q - 1]), np.float64(row[q])
            below, above = (edges[q - 1] + edges[q]) / 2, (edges[q] + edges[q + 1]) / 2
            out[line, place] = below + (above - below) * (value - low) / (high - low)
