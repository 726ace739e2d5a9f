"""The compiled loops of sketches: rows of sorted values, or counts of them, become quantile functions."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sotdd.kernels.compiling import kernel

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Integers = NDArray[np.integer]


@kernel
def bin_means(rows: Floats, out: Floats) -> None:
    """Write the means of each sorted row (B, n) over Q parts of equal probability, out (B, Q).

    The edges of the parts are whole multiples of 1 / Q of a point, so the share of every point
    in every part is found in integers.
    """
    n, parts = rows.shape[1], out.shape[1]
    for line in range(rows.shape[0]):
        row = rows[line]
        for q in range(parts):
            begin, end = q * n, (q + 1) * n
            first, last = begin // parts, (end - 1) // parts
            if first == last:
                out[line, q] = row[first]
                continue
            total = np.float64(row[first]) * ((first + 1) * parts - begin)
            total += np.float64(row[last]) * (end - last * parts)
            inner = 0.0
            for i in range(first + 1, last):
                inner += np.float64(row[i])
            out[line, q] = np.float32((total + inner * parts) / n)


@kernel
def bin_losses(rows: Floats, means: Floats, out: Doubles) -> None:
    """Write how far each sorted row (B, n) is from its means (B, Q): in the mean and in the mean square, out (B, 2)."""
    n, parts = rows.shape[1], means.shape[1]
    for line in range(rows.shape[0]):
        row = rows[line]
        first_power, second_power = 0.0, 0.0
        for q in range(parts):
            begin, end = q * n, (q + 1) * n
            first, last = begin // parts, (end - 1) // parts
            mean = np.float64(means[line, q])
            for i in range(first, last + 1):
                share = min(end, (i + 1) * parts) - max(begin, i * parts)
                gap = abs(np.float64(row[i]) - mean)
                first_power += share * gap
                second_power += share * gap * gap
        out[line, 0] = first_power / (float(n) * parts)
        out[line, 1] = math.sqrt(second_power / (float(n) * parts))


# --------------------------------------------------------------------------- counts in bins


@kernel
def _exponent(low: float, high: float, bins: int) -> int:
    """The smallest e for which ``bins`` bins [k 2^e, (k + 1) 2^e) cover low … high.

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


@kernel
def _widen(counts: Integers, spare: Integers, old: tuple[float, float], new: tuple[float, float]) -> None:
    """Move counts from the bins that cover ``old`` (low, high) to those that cover ``new``, around it."""
    if old[0] > old[1]:  # nothing is counted yet
        return
    fine, coarse = _exponent(old[0], old[1], counts.size), _exponent(new[0], new[1], counts.size)
    first_fine = math.floor(math.ldexp(old[0], -fine))
    first_coarse = math.floor(math.ldexp(new[0], -coarse))
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

    Bins are as wide as a power of two and begin at its multiples, as fine as the range (low, high) of
    what was counted so far allows. So what is counted in the end depends on the values alone, not on
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
        e = _exponent(smallest, largest, counts.shape[1])
        bins_per_unit = math.ldexp(1.0, -e)
        first = math.floor(smallest * bins_per_unit)
        row_counts = counts[line]
        for i in range(begin, end):
            row_counts[math.floor(np.float64(row[i]) * bins_per_unit) - first] += 1
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
def _rebin(
    counts: Integers, low: float, high: float, weight: float, shift: float, cells: Doubles, span: Doubles
) -> None:
    """Add the counted values, taken as even within each bin and carried to weight * t + shift, to cells.

    The cells are even between span[0] and span[1].
    """
    e = _exponent(low, high, counts.size)
    width = math.ldexp(1.0, e)
    first = math.floor(math.ldexp(low, -e))
    per_unit = cells.size / (span[1] - span[0])
    for i in range(counts.size):
        if not counts[i]:
            continue
        left = weight * max(low, (first + i) * width) + shift
        right = weight * min(high, (first + i + 1) * width) + shift
        begin = max((min(left, right) - span[0]) * per_unit, 0.0)
        end = min((max(left, right) - span[0]) * per_unit, float(cells.size))
        cell, last = min(int(begin), cells.size - 1), min(int(end), cells.size - 1)
        if cell == last:
            cells[cell] += counts[i]
            continue
        density = counts[i] / (end - begin)
        cells[cell] += density * (cell + 1 - begin)
        for k in range(cell + 1, last):
            cells[k] += density
        cells[last] += density * (end - last)


@kernel
def last_bins(low: Doubles, high: Doubles, bins: int, out: Integers) -> None:
    """Write the number of the last bin of each row that its range reaches; -1 where nothing was counted."""
    for line in range(out.size):
        if low[line] > high[line]:
            out[line] = -1
            continue
        e = _exponent(low[line], high[line], bins)
        out[line] = math.floor(math.ldexp(high[line], -e)) - math.floor(math.ldexp(low[line], -e))


@kernel
def bin_widths(low: Doubles, high: Doubles, bins: int, out: Doubles) -> None:
    """Write the width of the bins of each row, zero where all its values are one."""
    for line in range(out.size):
        out[line] = math.ldexp(1.0, _exponent(low[line], high[line], bins)) if low[line] < high[line] else 0.0


@kernel
def _means_of_cells(cells: Doubles, span: Doubles, out: Floats, lost: Doubles) -> None:
    """Write the means over equal parts of the probability that lies evenly within each of even cells.

    And what is lost by them, lost (3,): the mean and the root mean square of the deviations within parts,
    and the width of a cell.
    """
    total = 0.0
    for k in range(cells.size):
        total += cells[k]
    width = (span[1] - span[0]) / cells.size
    part_mass = total / out.size
    cell, used = 0, 0.0  # how much of the cell's mass is spent
    deviations, squares = 0.0, 0.0
    for q in range(out.size):
        wanted, moment, second = part_mass, 0.0, 0.0
        origin = cell  # positions are counted from here, so that squares keep their digits
        while cell < cells.size:
            taken = min(wanted, cells[cell] - used)
            if taken > 0.0:
                position = cell - origin + (used + 0.5 * taken) / cells[cell]
                moment += taken * position
                second += taken * (position * position + (taken / cells[cell]) ** 2 / 12)
                wanted -= taken
                used += taken
            if wanted <= 0.0:
                break
            cell += 1
            used = 0.0
        got = part_mass - max(wanted, 0.0)
        if got > 0.0:
            out[q] = np.float32(span[0] + width * (origin + moment / got))
            variance = max(second / got - (moment / got) ** 2, 0.0)
            deviations += math.sqrt(variance)
            squares += variance
        else:
            out[q] = np.float32(span[1])
    lost[0] = width * deviations / out.size
    lost[1] = width * math.sqrt(squares / out.size)
    lost[2] = width


@kernel
def quantiles_of_counts(
    counts: Integers,
    low: Doubles,
    high: Doubles,
    weights: Doubles,
    shifts: Doubles,
    cells: Doubles,
    out: Floats,
    lost: Doubles,
) -> None:
    """Write the quantile functions, out (B, Q), of values counted group by group, counts (G, B, H).

    Values of group g in row l are carried to weights[l] * t + shifts[l, g] first; ``cells`` is room to
    work in, and its size how finely the groups are put together. What is lost by that, lost (B, 3), is
    as `_means_of_cells` says.
    """
    span = np.empty(2)
    for line in range(out.shape[0]):
        span[0], span[1] = np.inf, -np.inf
        for g in range(counts.shape[0]):
            if low[g, line] <= high[g, line]:
                one, two = weights[line] * low[g, line], weights[line] * high[g, line]
                span[0] = min(span[0], min(one, two) + shifts[line, g])
                span[1] = max(span[1], max(one, two) + shifts[line, g])
        if not span[0] < span[1]:
            out[line] = np.float32(span[0])
            lost[line] = 0.0
            continue
        cells[:] = 0.0
        for g in range(counts.shape[0]):
            if low[g, line] <= high[g, line]:
                _rebin(counts[g, line], low[g, line], high[g, line], weights[line], shifts[line, g], cells, span)
        _means_of_cells(cells, span, out[line], lost[line])
