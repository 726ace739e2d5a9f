"""The loops of projections: fast Hadamard transforms, polynomials and bins of label terms, and moments of features."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sotdd.projections.compiling import Doubles, Floats, Integers, exact_kernel, kernel, step

# ------------------------------------------------------------------ eight values at once
#
# A *line* is eight neighbouring float32 values of a flat array, named by where it begins. The compiler does not find
# these instructions by itself. Every operation is that of its values one by one: nothing is reordered, and products
# and sums are rounded each.

# As many float32 as most registers hold. The values of a transform of 1,024 lines then stay in the first cache.
LANES = 8

_LINE = ir.VectorType(ir.FloatType(), LANES)


def _butterflies(radix: int) -> Callable[..., None]:
    """An instruction ``(z, at, step)``: the Hadamard transform of ``radix`` lines, ``step`` values apart, in place."""

    def transform(_context: Any, z: Any, at: Any, step: Any) -> Any:  # noqa: ANN401  # what Numba passes
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
            array, at, step = args
            places = []
            for _ in range(radix):
                places.append(_place(context, builder, signature.args[0], array, at))
                at = builder.add(at, step)
            lines = [builder.load(place, align=4) for place in places]
            half = radix // 2
            while half:
                for first in range(0, radix, 2 * half):
                    for i in range(first, first + half):
                        a, b = lines[i], lines[i + half]
                        lines[i], lines[i + half] = builder.fadd(a, b), builder.fsub(a, b)
                half //= 2
            for line, place in zip(lines, places, strict=True):
                builder.store(line, place, align=4)
            return context.get_dummy_value()

        return types.void(z, types.intp, types.intp), build

    return cast("Callable[..., None]", intrinsic(transform))


def _multiple(*, added: bool) -> Callable[..., None]:
    """An instruction ``(z, at, factor, other, other_at)``: write a multiple of a line of other, or add it to z."""

    def multiply(_context: Any, z: Any, at: Any, factor: Any, other: Any, other_at: Any) -> Any:  # noqa: ANN401
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
            array, at, factor, other, other_at = args
            place = _place(context, builder, signature.args[0], array, at)
            line = builder.load(_place(context, builder, signature.args[3], other, other_at), align=4)
            line = builder.fmul(_spread(builder, factor), line)
            if added:
                line = builder.fadd(builder.load(place, align=4), line)
            builder.store(line, place, align=4)
            return context.get_dummy_value()

        return types.void(z, types.intp, types.float32, other, types.intp), build

    return cast("Callable[..., None]", intrinsic(multiply))


def _transpose(_context: Any, z: Any, at: Any, flat: Any, flat_at: Any, step: Any) -> Any:  # noqa: ANN401
    """``(z, at, flat, flat_at, step)``: read eight lines ``step`` apart, write their columns as lines."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
        array, at, flat, flat_at, step = args
        lines = []
        for _ in range(LANES):
            lines.append(builder.load(_place(context, builder, signature.args[2], flat, flat_at), align=4))
            flat_at = builder.add(flat_at, step)
        half = LANES // 2
        while half:  # squares of this size beside the diagonal change places
            upper = [c if not c & half else LANES + c - half for c in range(LANES)]
            lower = [c + half if not c & half else LANES + c for c in range(LANES)]
            for i in (i for i in range(LANES) if not i & half):
                a, b = lines[i], lines[i + half]
                lines[i], lines[i + half] = (_shuffle(builder, a, b, mask) for mask in (upper, lower))
            half //= 2
        for number, line in enumerate(lines):
            here = builder.add(at, ir.Constant(at.type, LANES * number))
            builder.store(line, _place(context, builder, signature.args[0], array, here), align=4)
        return context.get_dummy_value()

    return types.void(z, types.intp, flat, types.intp, types.intp), build


def _place(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:  # noqa: ANN401
    """The address of a line."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), _LINE.as_pointer())


def _spread(builder: Any, value: Any) -> Any:  # noqa: ANN401
    """A line that holds one value everywhere."""
    nothing = ir.Constant(_LINE, ir.Undefined)
    single = builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
    return _shuffle(builder, single, nothing, [0] * LANES)


def _shuffle(builder: Any, a: Any, b: Any, mask: list[int]) -> Any:  # noqa: ANN401
    """A line of values of a, counted from 0, and of b, counted from LANES."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), LANES), mask))


_two, _four, _eight, _sixteen = _butterflies(2), _butterflies(4), _butterflies(8), _butterflies(16)
_write_multiple, _add_multiple = _multiple(added=False), _multiple(added=True)
_transpose_lines = cast("Callable[..., None]", intrinsic(_transpose))


# ------------------------------------------------------------------ Hadamard transforms
#
# H is the Hadamard matrix of a power of two, in its natural order and without a factor. It is never formed: a transform
# adds and subtracts values that are half of what is left apart, again and again. Eight points go side by side, one to a
# lane of the processor's registers. Nothing depends on which points stand beside a point, nor on how many rows are
# requested: sums are always formed in the same order, so results have the same bits.


@step
def _transform(z: Floats, size: int) -> None:
    """Multiply the first ``size`` lines of z by H of that size: four levels at a time, then those that are left."""
    left = size
    while left > 1:
        radix = min(left, 16)
        stride = left // radix
        for first in range(0, size, left):
            for i in range(first, first + stride):
                if radix == 16:
                    _sixteen(z, LANES * i, LANES * stride)
                elif radix == 8:
                    _eight(z, LANES * i, LANES * stride)
                elif radix == 4:
                    _four(z, LANES * i, LANES * stride)
                else:
                    _two(z, LANES * i, LANES * stride)
        left = stride


@step
def _fold(z: Floats, size: int, first: int, rows: int) -> None:
    """The levels of a transform that lead to rows first, …, first + rows - 1 alone; the rest is left to a smaller H."""
    stride = size // 2
    while stride >= rows:
        sign = np.float32(-1.0) if first & stride else np.float32(1.0)
        for i in range(stride):
            _add_multiple(z, LANES * i, sign, z, LANES * (i + stride))
        stride //= 2


@step
def _load(points: Floats, start: int, z: Floats) -> None:
    """Write as many points as there are lanes, of at least as many features, to the lanes of z, then zeros."""
    width = points.shape[1]
    for j in range(0, width, LANES):
        first = min(j, width - LANES)  # the last lines are read twice, where the features are no multiple of eight
        _transpose_lines(z, LANES * first, points, start * width + first, width)
    for i in range(LANES * width, z.size):
        z[i] = 0.0


@exact_kernel
def project_rows(
    points: Floats,
    signs: Floats,
    scales: Floats,
    first: int,
    skipped: int,
    out: Floats,
    at: int,
    z: Floats,
) -> None:
    """Write scale_i · u_i·x for points x, u_i the rows of H·S₃·H·S₂·H·S₁.

    points (m, d), neither less than eight, signs (3, D), scales (B,); columns ``at`` and following of out (B, n) are
    written. The rows are those from ``first`` + ``skipped`` on, of an aligned power of two of them that begins at
    ``first``. z is for D lines meanwhile.
    """
    size, rows = signs.shape[1], 1
    while rows < skipped + out.shape[0]:
        rows *= 2
    for place in range(0, points.shape[0], LANES):
        start = min(place, points.shape[0] - LANES)  # the last points go through with some of those before them
        _load(points, start, z)
        for number in range(3):  # one place for all transforms, since each is compiled anew
            for i in range(size):
                _write_multiple(z, LANES * i, signs[number, i], z, LANES * i)
            if number == 2:
                _fold(z, size, first, rows)
            _transform(z, rows if number == 2 else size)
        for i in range(out.shape[0]):
            _write_multiple(out[i], at + start, scales[i], z, LANES * (skipped + i))


# ------------------------------------------------------------------ label terms

# How many values a polynomial is evaluated on at a time: small enough to stay in the first cache.
_TILE = 1024

# From this many values on, rows and classes are sorted by their digits.
_LONG_ROW = 1024

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
        own, width = coefficients[line], coefficients.shape[1]
        while width > 1 and own[width - 1] == 0.0:
            width -= 1
        for start in range(0, rows.shape[1], _TILE):
            x, y = rows[line, start : start + _TILE], values[line, start : start + _TILE]
            for i in range(x.size):
                y[i] = 0.0
            for j in range((width - 1) // 4 * 4, -1, -4):
                c0 = own[j]
                c1 = own[j + 1] if j + 1 < width else 0.0
                c2 = own[j + 2] if j + 2 < width else 0.0
                c3 = own[j + 3] if j + 3 < width else 0.0
                for i in range(x.size):
                    v = np.float64(min(max(x[i], low), high))
                    y[i] = (((y[i] * v + c3) * v + c2) * v + c1) * v + c0


def sort_classes(rows: Floats, offsets: NDArray[np.int64]) -> None:
    """Sort the values of each class within every row, in place: few by NumPy, many by their digits."""
    spare, counts = np.empty(rows.shape[1], np.int32), np.empty((3, 2048), np.uint32)
    for first, last in pairwise(offsets.tolist()):
        if last - first < _LONG_ROW:
            rows[:, first:last].sort(axis=1)
        else:
            _sort_digits(rows.view(np.int32), first, last, spare, counts)


@kernel
def _sort_digits(rows: Integers, first: int, last: int, spare: Integers, counts: NDArray[np.uint32]) -> None:
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


@exact_kernel
def count_orders(normals: Doubles, uniforms: Doubles, cumulative: Doubles, counted: Doubles) -> None:
    """Add weights of t and of moments in J samples of the label law to all but the first of counted (B, D + 2, 1 + J).

    Sample j of projection b has row b J + j of normals (B J, k + 1), brought to length one, and of uniforms (B J, k),
    from which orders follow by their cumulative probabilities (k, …). Orders beyond D count as one.
    """
    n_samples, beyond = counted.shape[2] - 1, min(counted.shape[1] - 1, cumulative.shape[1]) - 1
    for b in range(counted.shape[0]):
        for j in range(1, 1 + n_samples):
            row, length = b * n_samples + j - 1, 0.0
            for i in range(normals.shape[1]):
                length += normals[row, i] * normals[row, i]
            length = 1.0 / math.sqrt(length)
            counted[b, 0, j] += normals[row, 0] * length
            for i in range(uniforms.shape[1]):
                order = 1
                for below in range(beyond):  # all of them: to stop at the right one takes longer
                    order += int(cumulative[i, below] <= uniforms[row, i])
                counted[b, order, j] += normals[row, i + 1] * length


# ------------------------------------------------------------------ features


@kernel
def block_moments(
    block: NDArray[np.generic], pivot: Doubles, inverse: Doubles, unit: Doubles, mean: Doubles, squares: Doubles
) -> int:
    """Add means and summed squared deviations of (features - pivot) * inverse over a block of points to zeros.

    Returns the row that lies farthest from the mean of the block, where features count by their ``unit``.
    """
    rows = block.shape[0]
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
