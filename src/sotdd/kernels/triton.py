"""The Triton programs behind ``fused.py``. Importing this module imports Triton."""

# Triton reads annotations as its own language, so there are none of Python's here.
# ruff: noqa: ANN001, ANN201, N803
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
        if POWER == 2:
            cost = gap * gap
        elif POWER == 1:
            cost = gap
        else:
            cost = tl.where(gap > 0, tl.exp(p * tl.log(tl.where(gap > 0, gap, 1.0))), 0.0)
        if ALIGNED:
            cost = cost * tl.load(width + at, mask=inside, other=0.0)
        total += tl.where(inside, cost, 0.0)
    tl.store(sums + line * tl.num_programs(1) + tl.program_id(1), tl.sum(total))
