"""The compiled loops of streams: values are counted in bins, and counts become quantile functions.

Bins are even on a scale of their own: values from -1 to 1 lie on it as they are, and beyond that each doubling is
as long as the unit. Scaled features have projections of about that size, so bins are even where most values are,
and an outlier costs as many bins as it has doublings, not all of them.
"""

from __future__ import annotations

import math

import numpy as np

from sotdd.compute.kernels.quantiles import add_gaps, reaches_of, write_function
from sotdd.projections.compiling import Doubles, Floats, Integers, kernel, step

_BITS_OF_ONE = np.int32(0x3F800000)  # 1.0 as a float32
_BITS_OF_SIZE = np.int32(0x7FFFFFFF)  # all but the sign of a float32
_STEP = 2.0**-23  # of a float32 from 1 to 2
_ROUNDING = 1e-14


@step
def _even(value: float) -> float:
    """Where a value lies on the scale of the bins."""
    size = abs(value)
    if size <= 1.0:
        return value
    mantissa, exponent = math.frexp(size)
    return math.copysign(exponent - 1 + 2.0 * mantissa, value)


@step
def _value(position: float) -> float:
    """The value at a position on the scale of the bins."""
    size = abs(position)
    if size <= 1.0:
        return position
    doublings = math.floor(size) - 1
    return math.copysign(math.ldexp(size - doublings, int(doublings)), position)


@step
def _exponent(low: float, high: float, bins: int) -> int:
    """The smallest e for which ``bins`` bins [k 2^e, (k + 1) 2^e) cover low … high, both on the scale of the bins.

    It never falls when the range grows, so counts only ever move from finer to coarser bins; and no
    bin is finer than float32 tells values of this size apart.
    """
    largest = max(abs(low), abs(high))
    if largest == 0.0:
        return -149
    e = max(math.frexp(largest)[1] - 25, -149)
    if high > low:
        e = max(e, math.frexp((high - low) / bins)[1] - 1)
    while math.floor(math.ldexp(high, -e)) - math.floor(math.ldexp(low, -e)) >= bins:
        e += 1
    return e


@step
def _grid(low: float, high: float, bins: int) -> tuple[int, int]:
    """The exponent of the bins that cover values low … high, and the number of the first of them."""
    begin = _even(low)
    e = _exponent(begin, _even(high), bins)
    return e, math.floor(math.ldexp(begin, -e))


@step
def _widen(counts: Integers, spare: Integers, old: tuple[float, float], new: tuple[float, float]) -> None:
    """Move counts from the bins that cover ``old`` (low, high) to those that cover ``new``, around it."""
    if old[0] > old[1]:  # nothing is counted yet
        return
    fine, first_fine = _grid(old[0], old[1], counts.size)
    coarse, first_coarse = _grid(new[0], new[1], counts.size)
    if fine == coarse and first_fine == first_coarse:
        return
    halvings = min(coarse - fine, 63)  # a number of 64 bits has no more
    spare[:] = counts
    counts[:] = 0
    for i in range(counts.size):
        if spare[i]:
            counts[((first_fine + i) >> halvings) - first_coarse] += spare[i]


@kernel
def count_values(rows: Floats, begin: int, end: int, counts: Integers, low: Doubles, high: Doubles) -> int:
    """Count values begin, …, end - 1 of each row (B, m) in its bins, counts (B, H).

    Bins are as wide as a power of two on their scale and begin at its multiples, as fine as the range (low,
    high) of what was counted so far allows. So what is counted in the end depends on the values alone, not on
    their order nor on how they were portioned. Returns the first row with a value that is not finite,
    or -1.
    """
    spare = np.empty_like(counts[0])
    for line in range(rows.shape[0]):
        row = rows[line]
        smallest, largest = low[line], high[line]
        bad = 0
        for i in range(begin, end):
            value = np.float64(row[i])
            bad += not abs(value) < np.inf
            smallest = min(smallest, value)
            largest = max(largest, value)
        if bad:
            return line
        if smallest > largest:
            continue
        _widen(counts[line], spare, (low[line], high[line]), (smallest, largest))
        low[line], high[line] = smallest, largest
        e, first = _grid(smallest, largest, counts.shape[1])
        bins_per_unit = math.ldexp(1.0, -e)
        row_counts = counts[line]
        bits = row.view(np.int32)
        for i in range(begin, end):
            # Beyond 1 the bits of a float, read as an integer, are even on the scale of the bins; without a branch.
            beyond = max((bits[i] & _BITS_OF_SIZE) - _BITS_OF_ONE, 0)
            value = np.float64(row[i])
            position = math.copysign(min(abs(value), 1.0) + beyond * _STEP, value)
            row_counts[math.floor(position * bins_per_unit) - first] += 1
    return -1


@kernel
def add_counts(
    counts: Integers, low: Doubles, high: Doubles, other: Integers, other_low: Doubles, other_high: Doubles
) -> None:
    """Add the counts of other rows to those of rows, in bins that cover both."""
    spare, moved = np.empty_like(counts[0]), np.empty_like(counts[0])
    for line in range(counts.shape[0]):
        if other_low[line] > other_high[line]:
            continue
        both = min(low[line], other_low[line]), max(high[line], other_high[line])
        _widen(counts[line], spare, (low[line], high[line]), both)
        moved[:] = other[line]
        _widen(moved, spare, (other_low[line], other_high[line]), both)
        low[line], high[line] = both
        counts[line] += moved


@kernel
def last_bins(low: Doubles, high: Doubles, bins: int, out: Integers) -> None:
    """Write the number of the last bin of each row that its range reaches; -1 where nothing was counted."""
    for line in range(out.size):
        if low[line] > high[line]:
            out[line] = -1
            continue
        e, first = _grid(low[line], high[line], bins)
        out[line] = math.floor(math.ldexp(_even(high[line]), -e)) - first


@step
def _write_intervals(counts: Integers, low: float, high: float, masses: Doubles, edges: Doubles) -> None:
    """Write what is known of counted values: masses (H + 2,) that lie evenly between edges (H + 3,).

    One value is the lowest and one the highest, so the first and the last interval are points; the others are the
    bins, none of them beyond.
    """
    e, first = _grid(low, high, counts.size)
    masses[0] = masses[-1] = 0.0
    for i in range(counts.size):
        masses[i + 1] = counts[i]
    if low < high:
        last = math.floor(math.ldexp(_even(high), -e)) - first
        masses[1] -= 1.0
        masses[last + 1] -= 1.0
        masses[0] = masses[-1] = 1.0
    edges[0], edges[-1] = low, high
    for i in range(counts.size + 1):
        edges[i + 1] = min(max(_value(math.ldexp(float(first + i), e)), low), high)


@kernel
def bin_widths(counts: Integers, low: Doubles, high: Doubles, out: Doubles) -> None:
    """Write how wide the bins of each row (B, H) are, in the root mean square over what is counted in them."""
    masses, edges = np.empty(counts.shape[1] + 2), np.empty(counts.shape[1] + 3)
    for line in range(out.size):
        out[line] = 0.0
        if low[line] < high[line]:
            _write_intervals(counts[line], low[line], high[line], masses, edges)
            out[line] = _mean_width(masses, edges)


@step
def _mean_width(masses: Doubles, edges: Doubles) -> float:
    """The root mean square of the widths of intervals, each counted by its mass."""
    total, squares = 0.0, 0.0
    for i in range(masses.size):
        width = edges[i + 1] - edges[i]
        total += masses[i]
        squares += masses[i] * width * width
    return math.sqrt(squares / total) if total > 0.0 else 0.0


# --------------------------------------------------------------------------- quantiles of counts


@step
def _means_of_parts(masses: Doubles, intervals: Doubles, edges: Doubles, out: Floats) -> None:
    """Write the means over parts of the probability that lies evenly within each of some intervals.

    intervals (M + 1,) are the edges of these, in values; edges (Q + 1,) those of the parts, in probability.
    """
    total = masses.sum()
    interval, used = 0, 0.0  # how much of the interval's mass is spent
    for q in range(out.size):
        size = (edges[q + 1] - edges[q]) * total
        moment, wanted = 0.0, size
        origin = intervals[min(interval, masses.size - 1)]  # values are taken from here, so that sums keep their digits
        while interval < masses.size:
            taken = min(wanted, masses[interval] - used)
            if taken > 0.0:
                width = intervals[interval + 1] - intervals[interval]
                moment += taken * (intervals[interval] - origin + width * (used + 0.5 * taken) / masses[interval])
                wanted -= taken
                used += taken
            if wanted <= 0.0:
                break
            interval += 1
            used = 0.0
        out[q] = np.float32(origin + moment / (size - wanted) if size > wanted else intervals[masses.size])


@step
def _losses_of_parts(
    masses: Doubles,
    intervals: Doubles,
    edges: Doubles,
    function: tuple[Doubles, Doubles, Doubles, Doubles],
    lost: Doubles,
) -> None:
    """Write how far these values are from the function of their means: the mean and the root mean square."""
    low, high, start, stop = function
    total, sums = masses.sum(), np.empty(2)
    interval, used = 0, 0.0
    lost[0] = lost[1] = 0.0
    for q in range(low.size):
        size = (edges[q + 1] - edges[q]) * total
        wanted, sums[:] = size, 0.0
        while interval < masses.size:
            taken = min(wanted, masses[interval] - used)
            if taken > 0.0:
                width = (intervals[interval + 1] - intervals[interval]) / masses[interval]
                value = intervals[interval] + width * used
                place = 1.0 - wanted / size, 1.0 - (wanted - taken) / size
                add_gaps((value, value + width * taken), place, (low[q], high[q], start[q], stop[q]), sums)
                wanted -= taken
                used += taken
            if wanted <= 0.0:
                break
            interval += 1
            used = 0.0
        lost[0] += (edges[q + 1] - edges[q]) * sums[0]
        lost[1] += (edges[q + 1] - edges[q]) * sums[1]
    lost[1] = math.sqrt(lost[1])


@step
def _write_cells(begin: float, end: float, edges: Doubles) -> None:
    """Write the edges of cells that are even on the scale of the bins, but for the first and the last: points."""
    low, high = _even(begin), _even(end)
    n_cells = edges.size - 3
    for k in range(n_cells + 1):
        edges[k + 1] = min(max(_value(low + (high - low) * k / n_cells), begin), end)
    edges[0] = edges[1] = begin
    edges[-1] = edges[-2] = end


@step
def _put_in_cells(masses: Doubles, intervals: Doubles, cells: Doubles, edges: Doubles) -> None:
    """Add masses that lie evenly between the edges of intervals, in whichever order, to cells of `_write_cells`."""
    begin = _even(edges[0])
    n_cells = cells.size - 2
    per_unit = n_cells / (_even(edges[-1]) - begin)
    # The ends come from the same numbers as the intervals, but for the last bit: products and sums may be fused.
    lowest, highest = edges[0] + _ROUNDING * abs(edges[0]), edges[-1] - _ROUNDING * abs(edges[-1])
    for i in range(masses.size):
        if not masses[i] > 0.0:
            continue
        left, right = min(intervals[i], intervals[i + 1]), max(intervals[i], intervals[i + 1])
        if right <= lowest or left >= highest:
            cells[0 if right <= lowest else cells.size - 1] += masses[i]
            continue
        cell = 1 + min(max(int((_even(left) - begin) * per_unit), 0), n_cells - 1)
        last = 1 + min(max(int((_even(right) - begin) * per_unit), cell - 1), n_cells - 1)
        if cell == last:
            cells[cell] += masses[i]
            continue
        density = masses[i] / (right - left)
        cells[cell] += density * max(edges[cell + 1] - left, 0.0)
        for k in range(cell + 1, last):
            cells[k] += density * (edges[k + 1] - edges[k])
        cells[last] += density * max(right - edges[last], 0.0)


@step
def _span(low: Doubles, high: Doubles, weight: float, shifts: Doubles) -> tuple[float, float, int]:
    """The range of weight * t + shift over all groups, and how many of them have values."""
    begin, end, filled = np.inf, -np.inf, 0
    for g in range(low.size):
        if low[g] <= high[g]:
            one, two = weight * low[g], weight * high[g]
            begin = min(begin, min(one, two) + shifts[g])
            end = max(end, max(one, two) + shifts[g])
            filled += 1
    return begin, end, filled


@kernel
def quantiles_of_counts(
    counts: Integers,
    low: Doubles,
    high: Doubles,
    weights: Doubles,
    shifts: Doubles,
    n_cells: int,
    levels: Doubles,
    smooth: bool,
    out: Floats,
    lost: Doubles,
) -> None:
    """Write the quantile functions, out (B, Q), of values counted group by group, counts (G, B, H).

    Values of group g in row l are carried to weights[l] * t + shifts[l, g] first. Several groups are put together
    in ``n_cells`` cells. levels (Q + 1,) are the edges of the parts. What is lost, lost (B, 3): how far the function
    of the means is from the values, in the mean and in the root mean square; and the width of the cells.
    """
    n_groups, n_bins, n_parts = counts.shape[0], counts.shape[2], out.shape[1]
    lows, highs, starts, stops = np.empty(n_parts), np.empty(n_parts), np.empty(n_parts), np.empty(n_parts)
    function = lows, highs, starts, stops
    reaches = reaches_of(levels)
    masses, intervals = np.empty(n_bins + 2), np.empty(n_bins + 3)
    cells, edges = np.empty(n_cells + 2), np.empty(n_cells + 3)
    for line in range(out.shape[0]):
        begin, end, filled = _span(low[:, line], high[:, line], weights[line], shifts[line])
        lost[line] = 0.0
        if not _even(begin) < _even(end):
            out[line] = np.float32(begin)
            continue
        cells[:] = 0.0
        _write_cells(begin, end, edges)
        for g in range(n_groups):
            if low[g, line] > high[g, line]:
                continue
            _write_intervals(counts[g, line], low[g, line], high[g, line], masses, intervals)
            for i in range(intervals.size):
                intervals[i] = weights[line] * intervals[i] + shifts[line, g]
            if filled > 1:
                _put_in_cells(masses, intervals, cells, edges)
                continue
            if weights[line] < 0.0:
                masses[:], intervals[:] = masses[::-1].copy(), intervals[::-1].copy()
            _means_of_parts(masses, intervals, levels, out[line])
            write_function(out[line], reaches, smooth, lows, highs, starts, stops)
            _losses_of_parts(masses, intervals, levels, function, lost[line])
        if filled > 1:
            _means_of_parts(cells, edges, levels, out[line])
            write_function(out[line], reaches, smooth, lows, highs, starts, stops)
            _losses_of_parts(cells, edges, levels, function, lost[line])
            lost[line, 2] = _mean_width(cells, edges)


@kernel
def count_below(rows: Floats, parts: Integers, grid: Doubles, out: Doubles) -> None:
    """Write how many values of each part of the points are at most each threshold, out (P, B, T).

    rows (B, n) are in any order, parts (n,) say which of the P each point is in, grid (B, T) is ascending.
    """
    n_thresholds = grid.shape[1]
    for line in range(rows.shape[0]):
        out[:, line] = 0.0
        for i in range(rows.shape[1]):
            low, high = 0, n_thresholds
            while low < high:
                middle = (low + high) // 2
                if rows[line, i] <= grid[line, middle]:
                    high = middle
                else:
                    low = middle + 1
            if low < n_thresholds:
                out[parts[i], line, low] += 1.0
        for part in range(out.shape[0]):
            for place in range(1, n_thresholds):
                out[part, line, place] += out[part, line, place - 1]
