"""The loops of label terms: polynomials at projected points, their sums over classes, and means over bins.

A *row* is one projection of one dataset: n float32 values, grouped by class, stored contiguously.
"""

from __future__ import annotations

import numpy as np

from sotdd.projections.compiling import Doubles, Floats, Integers, kernel, step

# How many values a polynomial is evaluated on at a time: small enough to stay in the first cache.
_TILE = 1024


@step
def _evaluate(row: Floats, drawn: Doubles, low: np.float32, high: np.float32, values: Doubles) -> None:
    """Write a row's polynomial at each of its values (n,), cut to low … high."""
    width = drawn.size
    while width > 1 and drawn[width - 1] == 0.0:
        width -= 1
    for start in range(0, row.size, _TILE):
        x, y = row[start : start + _TILE], values[start : start + _TILE]
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
def evaluate_polynomials(rows: Floats, coefficients: Doubles, cut: float, values: Doubles) -> None:
    """Write each row's polynomial, at values cut to ±cut, in float64.

    rows (B, n), coefficients (B, D + 1) lowest order first, values (B, n). By Horner's rule, four steps per sweep, so
    that memory is read and written once in four.
    """
    for line in range(rows.shape[0]):
        _evaluate(rows[line], coefficients[line], np.float32(-cut), np.float32(cut), values[line])


@kernel
def class_sums(
    rows: Floats, offsets: Integers, coefficients: Doubles, cut: float, values: Doubles, sums: Doubles
) -> None:
    """Write the sum (B, C) of each row's polynomial over each class, which offsets (C + 1,) bound; values are (n,)."""
    for line in range(rows.shape[0]):
        _evaluate(rows[line], coefficients[line], np.float32(-cut), np.float32(cut), values)
        for c in range(offsets.size - 1):
            total = 0.0
            for i in range(offsets[c], offsets[c + 1]):
                total += values[i]
            sums[line, c] = total


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
