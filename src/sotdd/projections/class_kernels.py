"""The loops of label terms: polynomials at projected points, sorts, and means over bins.

A *row* is one projection of one dataset: n float32 values, grouped by class, stored contiguously.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sotdd.projections.compiling import Doubles, Floats, Integers, kernel

Bits = NDArray[np.int32]
Counts = NDArray[np.uint32]

# How many values a polynomial is evaluated on at a time: small enough to stay in the first cache.
_TILE = 1024

_SIGN = -(1 << 31)
_NONE, _ONE = np.uint32(0), np.uint32(1)  # what is counted, since a place is found faster by a number without a sign


@kernel
def evaluate_polynomials(rows: Floats, coefficients: Doubles, cut: float, values: Doubles) -> None:
    """Write each row's polynomial, at values cut to ±cut, in float64.

    rows (B, n), coefficients (B, D + 1) lowest order first, values (B, n). By Horner's rule, four steps per sweep, so
    that memory is read and written once in four.
    """
    low, high = np.float32(-cut), np.float32(cut)
    for line in range(rows.shape[0]):
        drawn, width = coefficients[line], coefficients.shape[1]
        while width > 1 and drawn[width - 1] == 0.0:
            width -= 1
        for start in range(0, rows.shape[1], _TILE):
            x, y = rows[line, start : start + _TILE], values[line, start : start + _TILE]
            for i in range(x.size):
                y[i] = 0.0
            for j in range((width - 1) // 4 * 4, -1, -4):
                c0 = drawn[j]
                c1 = drawn[j + 1] if j + 1 < width else 0.0
                c2 = drawn[j + 2] if j + 2 < width else 0.0
                c3 = drawn[j + 3] if j + 3 < width else 0.0
                for i in range(x.size):
                    v = np.float64(min(max(x[i], low), high))
                    y[i] = (((y[i] * v + c3) * v + c2) * v + c1) * v + c0


@kernel
def sort_digits(rows: Bits, first: int, last: int, spare: Bits, counts: Counts) -> None:
    """Sort values first, …, last - 1 of every row (B, n), in place, by three passes over digits of 11 bits.

    The bits of a float order like an integer once those of negative numbers, but for the sign, are inverted. spare (n,)
    and counts (3, 2048) are for use meanwhile.
    """
    for line in range(rows.shape[0]):
        row = rows[line, first:last]
        counts[:, :] = _NONE
        for i in range(row.size):
            key = row[i] ^ (row[i] >> 31 | _SIGN)
            row[i] = key
            for digit in range(3):
                counts[digit, key >> 11 * digit & 2047] += _ONE
        source, target = row, spare
        for digit in range(3):
            places, shift, before = counts[digit], 11 * digit, _NONE
            for j in range(2048):
                count = places[j]
                places[j] = before
                before += count
            for i in range(row.size):
                value = source[i] >> shift & 2047
                target[places[value]] = source[i]
                places[value] += _ONE
            source, target = target, source
        for i in range(row.size):
            row[i] = spare[i] ^ (~(spare[i] >> 31) | _SIGN)


@kernel
def quantile_terms(rows: Floats, offsets: Integers, coefficients: Doubles, terms: Doubles) -> None:
    """Write each class's mean over K equal bins of its sorted values, times the bins' coefficients.

    rows (B, n) sorted within classes, offsets (C + 1,), coefficients (B, K), terms (B, C). Of m
    values, value i reaches from i K to (i + 1) K and bin k from k m to (k + 1) m, in units of
    1 / (m K): what they share is a whole number.
    """
    levels = coefficients.shape[1]
    for line in range(rows.shape[0]):
        for c in range(offsets.size - 1):
            members = rows[line, offsets[c] : offsets[c + 1]]
            size = members.size
            total = 0.0
            for k in range(levels):
                low, high = k * size, (k + 1) * size
                first, last = low // levels, high // levels  # the values in which the bin begins and ends
                whole = 0.0
                for i in range(first, last):
                    whole += np.float64(members[i])
                mass = float(levels) * whole - float(low - first * levels) * np.float64(members[first])
                if last * levels < high:
                    mass += float(high - last * levels) * np.float64(members[last])
                total += coefficients[line, k] * mass
            terms[line, c] = total / size
