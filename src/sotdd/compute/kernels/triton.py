"""The Triton programs behind ``fused.py``. Importing this module imports Triton."""

# Triton reads annotations as its own language, so there are none of Python's here.
# ruff: noqa: ANN001, ANN201, ANN202, N803, N806, PLR0124
# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def scale_points(raw, position, centre, inverse, out, d, GROUPED: tl.constexpr, WIDTH: tl.constexpr):
    """One program scales one point in float64 and writes it to its place."""
    line = tl.program_id(0).to(tl.int64)
    place = line if GROUPED else tl.load(position + line)
    for start in range(0, d, WIDTH):
        at = start + tl.arange(0, WIDTH)
        x = tl.load(raw + line * d + at, mask=at < d, other=0).to(tl.float64)
        x = (x - tl.load(centre + at, mask=at < d, other=0.0)) * tl.load(inverse + at, mask=at < d, other=0.0)
        tl.store(out + place * d + at, x.to(tl.float32), mask=at < d)


@triton.jit
def sum_points(points, offsets, sums, d, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """One program sums some features of the points of one class, in float64."""
    label, at = tl.program_id(0), tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    first, last = tl.load(offsets + label), tl.load(offsets + label + 1)
    total = tl.zeros((ROWS, WIDTH), dtype=tl.float64)
    for start in range(first, last, ROWS):
        line = start + tl.arange(0, ROWS).to(tl.int64)
        inside = (line[:, None] < last) & (at[None, :] < d)
        total += tl.load(points + line[:, None] * d + at[None, :], mask=inside, other=0.0).to(tl.float64)
    tl.store(sums + label.to(tl.int64) * d + at, tl.sum(total, axis=0), mask=at < d)


@triton.jit
def square_lengths(points, squares, d, WIDTH: tl.constexpr):
    """One program sums the squared features of one point, in float64."""
    line = tl.program_id(0).to(tl.int64)
    total = tl.zeros((WIDTH,), dtype=tl.float64)
    for start in range(0, d, WIDTH):
        at = start + tl.arange(0, WIDTH)
        x = tl.load(points + line * d + at, mask=at < d, other=0.0).to(tl.float64)
        total += x * x
    tl.store(squares + line, tl.sum(total))


@triton.jit
def average_classes(
    rows, offsets, coefficients, means, n, n_classes, n_coefficients, cut, MOST: tl.constexpr, WIDTH: tl.constexpr
):
    """One program takes the mean of one row's polynomial over one class, at values cut to ±cut."""
    line, label = tl.program_id(0).to(tl.int64), tl.program_id(1)
    order = tl.arange(0, MOST)
    drawn = tl.load(coefficients + line * n_coefficients + order, mask=order < n_coefficients, other=0.0)
    highest = tl.max(tl.where(drawn != 0, order, 0))
    first, last = tl.load(offsets + label), tl.load(offsets + label + 1)
    total = tl.zeros((WIDTH,), dtype=tl.float64)
    for start in range(first, last, WIDTH):
        at = start + tl.arange(0, WIDTH)
        inside = at < last
        t = tl.load(rows + line * n + at, mask=inside, other=0.0).to(tl.float64)
        t = tl.where(t > cut, cut, tl.where(t < -cut, -cut, t))  # NaN stays NaN
        value = tl.zeros((WIDTH,), dtype=tl.float64)
        for step in range(highest + 1):
            value = value * t + tl.load(coefficients + line * n_coefficients + (highest - step))
        total += tl.where(inside, value, 0.0)
    tl.store(means + line * n_classes + label, tl.sum(total) / (last - first).to(tl.float64))


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
def class_powers(rows, offsets, sums, n, n_classes, cut, WIDTH: tl.constexpr):
    """One program sums powers of one row's values over one class: t, t², t⁴ and t⁶, then t, …, t⁸ of t cut to ±cut."""
    line, label = tl.program_id(0).to(tl.int64), tl.program_id(1)
    first, last = tl.load(offsets + label), tl.load(offsets + label + 1)
    at, a = tl.arange(0, WIDTH)[None, :], tl.arange(0, 4)[:, None]
    uncut = tl.zeros((4, WIDTH), dtype=tl.float64)
    low_orders = tl.zeros((4, WIDTH), dtype=tl.float64)
    high_orders = tl.zeros((4, WIDTH), dtype=tl.float64)
    for start in tl.range(first, last, WIDTH, num_stages=3):
        value = tl.load(rows + line * n + start + at, mask=start + at < last, other=0.0)
        t = value.to(tl.float64)
        fourth = t * t * (t * t)
        uncut += tl.where(a == 0, t, tl.where(a == 1, t * t, tl.where(a == 2, fourth, fourth * (t * t))))
        t = tl.where(value > cut, cut, tl.where(value < -cut, -cut, value)).to(tl.float64)  # NaN stays NaN
        fourth = t * t * (t * t)
        low = tl.where(a == 0, t, tl.where(a == 1, t * t, tl.where(a == 2, t * t * t, fourth)))
        low_orders += low
        high_orders += low * fourth
    place = sums + (line * n_classes + label) * 12 + tl.arange(0, 4)
    tl.store(place, tl.sum(uncut, axis=1))
    tl.store(place + 4, tl.sum(low_orders, axis=1))
    tl.store(place + 8, tl.sum(high_orders, axis=1))


@triton.jit
def place_labels(
    sums, offsets, inverse, counted, places, values, n, n_classes, n_draws, KNOWN: tl.constexpr, DRAWS: tl.constexpr
):
    """One program finds where one row's points lie under draws of label terms, from its sums of powers by class.

    What is known of a class are KNOWN means: of t, then of t^k / k! with t cut; ``inverse`` holds 1 / k! of all sums.
    """
    line, k, e, j = tl.program_id(0).to(tl.int64), tl.arange(0, 16), tl.arange(0, 4), tl.arange(0, DRAWS)
    known, column, own = k < KNOWN, tl.where(k == 0, 0, 3 + k), sums + line * n_classes * 12
    mean, even = tl.zeros((16,), dtype=tl.float64), tl.zeros((4,), dtype=tl.float64)
    for label in range(n_classes):
        mean += tl.load(own + label * 12 + column, mask=known, other=0.0)
        even += tl.load(own + label * 12 + e)
    scale = tl.load(inverse + column, mask=known, other=0.0)
    mean, even = mean * scale / n, even * tl.load(inverse + e) / n
    inside = known[:, None] & (j[None, :] < n_draws)
    drawn = tl.load(counted + (line * (KNOWN + 1) + k[:, None]) * n_draws + j[None, :], mask=inside, other=0.0)
    variance, between = tl.zeros((DRAWS,), dtype=tl.float64), tl.zeros((16,), dtype=tl.float64)
    for label in range(n_classes):
        count = (tl.load(offsets + label + 1) - tl.load(offsets + label)).to(tl.float64)
        apart = tl.load(own + label * 12 + column, mask=known, other=0.0) * scale / count - mean
        along = tl.sum(apart[:, None] * drawn, axis=0)
        variance += count / n * along * along
        between += count / n * apart * apart
    first, between = tl.sum(tl.where(k == 0, mean, 0.0)), tl.sum(tl.where(k == 0, between, 0.0))
    within = 2.0 * tl.sum(tl.where(e == 1, even, 0.0)) - first * first - between
    weight = tl.sum(tl.where(k[:, None] == 0, drawn, 0.0), axis=0)
    variance += tl.where(within < 0.0, 0.0, within) * weight * weight
    place = places + (line * n_draws + j) * 2
    tl.store(place, tl.sum(mean[:, None] * drawn, axis=0), mask=j < n_draws)
    tl.store(place + 1, tl.sqrt(tl.where(variance < 0.0, 0.0, variance)), mask=j < n_draws)
    tl.store(values + line * 5 + 1 + e, tl.where(e == 0, between + first * first, even))
    tl.store(values + line * 5, first)


@triton.jit
def transport(addresses, sizes, pairs, costs, n_pairs, p, POWER: tl.constexpr, WIDTH: tl.constexpr):
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
            y = tl.load(b + at, mask=inside, other=0.0).to(tl.float64)
            total += m * _power(tl.abs(x - y), p, POWER)
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
def project_rotation(
    points,
    signs,
    scales,
    out,
    m,
    d,
    row_stride,
    first,
    count,
    point_stride,
    P: tl.constexpr,
    A: tl.constexpr,
    B: tl.constexpr,
):
    """One program projects P points along all A · B rows of a rotation and writes those from ``first`` on.

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
    x *= tl.load(scales + row, mask=wanted, other=0.0)[:, None]
    places = out + row.to(tl.int64)[:, None] * row_stride + p[None, :]
    tl.store(places, x, mask=wanted[:, None] & (p[None, :] < m))
