"""The compiled loops over the classes of a row: what a class's quantile function needs."""

from __future__ import annotations

import numpy as np

from sotdd.kernels.compiling import Doubles, Floats, Integers, kernel
from sotdd.kernels.rows import radix_sort


@kernel
def sort_large_classes(rows: Floats, offsets: Integers, classes: Integers) -> None:
    """Sort the values of these classes within every row (B, n), in place, as whole rows are sorted."""
    spare = np.empty(rows.shape[1], np.uint32)
    counts = np.empty((3, 2048), np.uint32)
    for line in range(rows.shape[0]):
        for c in classes:
            radix_sort(rows[line, offsets[c] : offsets[c + 1]].view(np.uint32), spare, counts)


@kernel
def gather_classes(rows: Floats, offsets: Integers, classes: Integers, out: Floats) -> None:
    """Copy the values of these classes out of rows (B, n) into out (B, classes, width), infinity behind them."""
    for line in range(rows.shape[0]):
        for number in range(classes.size):
            members = rows[line, offsets[classes[number]] : offsets[classes[number] + 1]]
            out[line, number, : members.size] = members
            out[line, number, members.size :] = np.inf


@kernel
def scatter_classes(values: Floats, offsets: Integers, classes: Integers, rows: Floats) -> None:
    """Copy values (B, classes, width) back to where ``gather_classes`` took them from."""
    for line in range(rows.shape[0]):
        for number in range(classes.size):
            members = rows[line, offsets[classes[number]] : offsets[classes[number] + 1]]
            members[:] = values[line, number, : members.size]


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
