"""The Triton programs behind ``fused.py``. Importing this module imports Triton."""

# Triton reads annotations as its own language, so there are none of Python's here.
# ruff: noqa: ANN001, ANN201, ANN202, N803, N806, PLR0124
# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def class_sums(rows, offsets, coefficients, sums, n, n_classes, n_coefficients, cut, WIDTH: tl.constexpr):
    """One program sums one row's polynomial over one class, at values cut to ±cut."""
    line, label = tl.program_id(0).to(tl.int64), tl.program_id(1)
    first, last = tl.load(offsets + label), tl.load(offsets + label + 1)
    total = tl.zeros((WIDTH,), dtype=tl.float64)
    for start in range(first, last, WIDTH):
        at = start + tl.arange(0, WIDTH)
        inside = at < last
        t = tl.load(rows + line * n + at, mask=inside, other=0.0).to(tl.float64)
        t = tl.where(t > cut, cut, tl.where(t < -cut, -cut, t))  # NaN stays NaN
        value = tl.zeros((WIDTH,), dtype=tl.float64)
        for order in range(n_coefficients):
            value = value * t + tl.load(coefficients + line * n_coefficients + (n_coefficients - 1 - order))
        total += tl.where(inside, value, 0.0)
    tl.store(sums + line * n_classes + label, tl.sum(total))


@triton.jit
def shift_rows(rows, codes, weights, terms, n, n_classes, WIDTH: tl.constexpr):
    """One program shifts a part of one row: weight * t + the term of each point's class."""
    line = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    inside = at < n
    t = tl.load(rows + line * n + at, mask=inside, other=0.0).to(tl.float64)
    code = tl.load(codes + at, mask=inside, other=0)
    shifted = tl.load(weights + line) * t + tl.load(terms + line * n_classes + code, mask=inside, other=0.0)
    tl.store(rows + line * n + at, shifted.to(tl.float32), mask=inside)


@triton.jit
def _power(gap, p, POWER: tl.constexpr):
    if POWER == 2:
        return gap * gap
    if POWER == 1:
        return gap
    return tl.where(gap > 0, tl.exp(p * tl.log(tl.where(gap > 0, gap, 1.0))), 0.0)


@triton.jit
def transport(
    a, b, left, right, width, sums, n, m, count, p, ALIGNED: tl.constexpr, POWER: tl.constexpr, WIDTH: tl.constexpr
):
    """One program sums a part of one row's transport cost; POWER is 1, 2, or 0 for any p."""
    line = tl.program_id(0).to(tl.int64)
    total = tl.zeros((WIDTH,), dtype=tl.float64)
    for start in range(tl.program_id(1) * WIDTH, count, tl.num_programs(1) * WIDTH):
        at = start + tl.arange(0, WIDTH)
        inside = at < count
        if ALIGNED:
            x = tl.load(a + line * n + tl.load(left + at, mask=inside, other=0), mask=inside, other=0.0)
            y = tl.load(b + line * m + tl.load(right + at, mask=inside, other=0), mask=inside, other=0.0)
        else:
            x = tl.load(a + line * n + at, mask=inside, other=0.0)
            y = tl.load(b + line * m + at, mask=inside, other=0.0)
        gap = tl.abs(x.to(tl.float64) - y.to(tl.float64))
        cost = _power(gap, p, POWER)
        if ALIGNED:
            cost = cost * tl.load(width + at, mask=inside, other=0.0)
        total += tl.where(inside, cost, 0.0)
    tl.store(sums + line * tl.num_programs(1) + tl.program_id(1), tl.sum(total))


@triton.jit
def class_powers(rows, offsets, sums, n, n_classes, n_sums, cut, WIDTH: tl.constexpr):
    """One program sums four powers of one row's values over one class.

    The first group of four is t, t², t⁴ and t⁶; the others are four orders after another, of t cut to ±cut.
    """
    line, label, group = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    first, last = tl.load(offsets + label), tl.load(offsets + label + 1)
    one = tl.zeros((WIDTH,), dtype=tl.float64)
    two, three, four = one, one, one
    for start in range(first, last, WIDTH):
        at = start + tl.arange(0, WIDTH)
        inside = at < last
        t = tl.load(rows + line * n + at, mask=inside, other=0.0).to(tl.float64)
        if group == 0:
            square = t * t
            one += t
            two += square
            three += square * square
            four += square * square * square
        else:
            t = tl.where(t > cut, cut, tl.where(t < -cut, -cut, t))  # NaN stays NaN
            fourth = t * t * t * t
            power = tl.where(inside, 1.0, 0.0).to(tl.float64)
            for _ in range(1, group):
                power = power * fourth
            one += power * t
            two += power * t * t
            three += power * t * t * t
            four += power * fourth
    place = sums + (line * n_classes + label) * n_sums + 4 * group
    tl.store(place, tl.sum(one))
    tl.store(place + 1, tl.sum(two))
    tl.store(place + 2, tl.sum(three))
    tl.store(place + 3, tl.sum(four))


@triton.jit
def transport_pairs(addresses, sizes, pairs, costs, n_pairs, p, POWER: tl.constexpr, WIDTH: tl.constexpr):
    """One program sums the transport cost of one row of one pair, of which the first has no fewer points.

    A step of the longer row meets at most two of the other. Edges are whole multiples of 1 / (n m).
    """
    line, number = tl.program_id(0).to(tl.int64), tl.program_id(1)
    i, j = tl.load(pairs + 2 * number), tl.load(pairs + 2 * number + 1)
    n, m = tl.load(sizes + i), tl.load(sizes + j)
    a = tl.load(addresses + i).to(tl.pointer_type(tl.float32)) + line * n
    b = tl.load(addresses + j).to(tl.pointer_type(tl.float32)) + line * m
    total = tl.zeros((WIDTH,), dtype=tl.float64)
    for start in range(0, n, WIDTH):
        at = start + tl.arange(0, WIDTH).to(tl.int64)
        inside = at < n
        x = tl.load(a + at, mask=inside, other=0.0).to(tl.float64)
        if n == m:
            gap = tl.abs(x - tl.load(b + at, mask=inside, other=0.0).to(tl.float64))
            total += m * _power(gap, p, POWER)
        else:
            left = at * m
            first = left // n
            here = tl.minimum((first + 1) * n - left, m)
            second = tl.where(here < m, first + 1, first)
            y = tl.load(b + first, mask=inside, other=0.0).to(tl.float64)
            z = tl.load(b + second, mask=inside, other=0.0).to(tl.float64)
            cost = here * _power(tl.abs(x - y), p, POWER) + (m - here) * _power(tl.abs(x - z), p, POWER)
            total += tl.where(inside, cost, 0.0)
    tl.store(costs + line * n_pairs + number, tl.sum(total) / n.to(tl.float64) / m.to(tl.float64))


@triton.jit
def _parity(i, j):
    """Whether i and j have an odd number of ones in common: where a Hadamard matrix is negative."""
    v = i & j
    v = v ^ (v >> 8)
    v = v ^ (v >> 4)
    v = v ^ (v >> 2)
    return (v ^ (v >> 1)) & 1


@triton.jit
def _times_hadamard(x, SIZE: tl.constexpr):
    """Multiply x (M, SIZE) by the Hadamard matrix, whose entries are exact in tf32; x goes in two parts that are."""
    at = tl.arange(0, SIZE)
    h = 1.0 - 2.0 * _parity(at[:, None], at[None, :]).to(tl.float32)
    coarse = (x.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)  # ten bits of the fraction
    fine = x - coarse
    fine = tl.where(fine == fine, fine, 0.0)  # infinities stay as they are
    return tl.dot(coarse, h, input_precision="tf32") + tl.dot(fine, h, input_precision="tf32")


@triton.jit
def project_turn(
    points,
    signs,
    along,
    lean,
    scales,
    out,
    m,
    d,
    row_stride,
    first,
    count,
    n_along,
    point_stride,
    P: tl.constexpr,
    A: tl.constexpr,
    B: tl.constexpr,
):
    """One program projects P points along all A · B rows of a turn and writes those from ``first`` on.

    Position a · B + b of a point is at [a, b] of a matrix: transforms of its rows and of its columns together are one
    of the whole. Between the two it is turned over, so it lies as [b, a] after an odd number of transforms.
    """
    D: tl.constexpr = A * B
    p = tl.program_id(0).to(tl.int64) * P + tl.arange(0, P)
    j = tl.arange(0, D)
    inside = (p[:, None] < m) & (j[None, :] < d)
    x = tl.load(points + p[:, None] * point_stride + j[None, :], mask=inside, other=0.0)
    x = x * tl.load(signs + j)[None, :]
    x = tl.reshape(_times_hadamard(tl.reshape(x, (P * A, B)), B), (P, A, B))
    x = tl.reshape(tl.permute(x, (0, 2, 1)), (P * B, A))
    x = tl.reshape(_times_hadamard(x, A), (P, D))
    over = (j % A) * B + j // A  # what position lies at j where matrices are turned over
    x = x * tl.load(signs + D + over)[None, :]
    x = tl.reshape(_times_hadamard(tl.reshape(x, (P * B, A)), A), (P, B, A))
    x = tl.reshape(tl.permute(x, (0, 2, 1)), (P * A, B))
    x = tl.reshape(_times_hadamard(x, B), (P, D))
    x = x * tl.load(signs + 2 * D + j)[None, :]
    x = tl.reshape(_times_hadamard(tl.reshape(x, (P * A, B)), B), (P, A, B))
    x = tl.reshape(tl.permute(x, (0, 2, 1)), (P * B, A))
    x = tl.reshape(_times_hadamard(x, A), (P, B, A))
    x = tl.reshape(tl.permute(x, (2, 1, 0)), (D, P))
    row = j - first
    wanted = (row >= 0) & (row < count)
    for k in range(n_along):
        leaning = tl.load(lean + row * n_along + k, mask=wanted, other=0.0)
        x += leaning[:, None] * tl.load(along + k * m + p, mask=p < m, other=0.0)[None, :]
    x *= tl.load(scales + row, mask=wanted, other=0.0)[:, None]
    places = out + row.to(tl.int64)[:, None] * row_stride + p[None, :]
    tl.store(places, x, mask=wanted[:, None] & (p[None, :] < m))
