"""The Triton programs behind ``fused.py``. Importing this module imports Triton."""

# Triton reads annotations as its own language, so there are none of Python's here.
# ruff: noqa: ANN001, ANN201, N803
# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def class_sums(rows, offsets, coefficients, sums, n, n_classes, n_coefficients, WIDTH: tl.constexpr):
    """One program sums one row's polynomial over one class."""
    line, label = tl.program_id(0).to(tl.int64), tl.program_id(1)
    first, last = tl.load(offsets + label), tl.load(offsets + label + 1)
    total = tl.zeros((WIDTH,), dtype=tl.float64)
    for start in range(first, last, WIDTH):
        place = start + tl.arange(0, WIDTH)
        inside = place < last
        t = tl.load(rows + line * n + place, mask=inside, other=0.0).to(tl.float64)
        value = tl.zeros((WIDTH,), dtype=tl.float64)
        for order in range(n_coefficients):
            value = value * t + tl.load(coefficients + line * n_coefficients + (n_coefficients - 1 - order))
        total += tl.where(inside, value, 0.0)
    tl.store(sums + line * n_classes + label, tl.sum(total))


@triton.jit
def place(rows, codes, weights, terms, n, n_classes, WIDTH: tl.constexpr):
    """One program shifts a part of one row: weight * t + the term of each point's class."""
    line = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    inside = at < n
    t = tl.load(rows + line * n + at, mask=inside, other=0.0).to(tl.float64)
    code = tl.load(codes + at, mask=inside, other=0)
    shifted = tl.load(weights + line) * t + tl.load(terms + line * n_classes + code, mask=inside, other=0.0)
    tl.store(rows + line * n + at, shifted.to(tl.float32), mask=inside)
