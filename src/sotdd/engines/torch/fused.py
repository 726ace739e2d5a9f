"""Loops fused for CUDA with Triton, where it is installed: what the CPU engine compiles with Numba.

Each passes over memory once. Without Triton the torch engine does the same in plain torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import TypeAlias

import torch

from sotdd.basics.errors import SotddError

_WIDTH = 1024  # values that one program takes at a time
_NARROW = 256  # the same, where it keeps several sums of each
_MOST_PROGRAMS = 65_535  # along the second axis of a grid
_SPLITS = 8  # programs that share the transport of a row
_LARGEST_TURN = 1 << 14  # dimensions of a turn that one program can hold
_TURN_VALUES = 1 << 14  # values that it works on

Steps: TypeAlias = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def available(rows: torch.Tensor) -> bool:
    """Whether these rows are where Triton can reach them."""
    return rows.is_cuda and _kernels() is not None


def class_sums(rows: torch.Tensor, offsets: torch.Tensor, coefficients: torch.Tensor, cut: float) -> torch.Tensor:
    """Sums (B, C) of each row's polynomial, at values cut to ±cut, over each class; sums in float64."""
    n_classes = len(offsets) - 1
    sums = torch.empty((len(rows), n_classes), dtype=torch.float64, device=rows.device)
    with torch.cuda.device(rows.device):
        _loaded().class_sums[(len(rows), n_classes)](
            rows, offsets, coefficients, sums, rows.shape[1], n_classes, coefficients.shape[1], float(cut), WIDTH=_WIDTH
        )
    return sums


def shift_rows(rows: torch.Tensor, codes: torch.Tensor, weights: torch.Tensor, terms: torch.Tensor) -> None:
    """Turn grouped feature projections into data point projections, in place."""
    n = rows.shape[1]
    with torch.cuda.device(rows.device):
        _loaded().shift_rows[(len(rows), -(-n // _WIDTH))](rows, codes, weights, terms, n, terms.shape[1], WIDTH=_WIDTH)


def transport(a: torch.Tensor, b: torch.Tensor, p: float, steps: Steps | None) -> torch.Tensor:
    """W_p^p (B,) between sorted rows, float64; ``steps`` are overlaps as tensors (left, right, width)."""
    n, m = a.shape[1], b.shape[1]
    left, right, width = steps or (a, a, a)  # not read where n = m
    count = n if steps is None else len(left)
    sums = torch.empty((len(a), _SPLITS), dtype=torch.float64, device=a.device)
    with torch.cuda.device(a.device):
        _loaded().transport[(len(a), _SPLITS)](
            a, b, left, right, width, sums, n, m, count, float(p),
            ALIGNED=steps is not None, POWER=int(p) if p in (1, 2) else 0, WIDTH=_WIDTH,
        )  # fmt: skip
    totals = sums.sum(dim=1)
    return totals / n if steps is None else totals


def class_powers(rows: torch.Tensor, offsets: torch.Tensor, degree: int, cut: float) -> torch.Tensor:
    """Sums (B, C, 4 + D) over each class of t, t², t⁴ and t⁶, then of t, …, t^D with t cut to ±cut, in float64."""
    n_classes, groups = len(offsets) - 1, 1 + degree // 4
    sums = torch.empty((len(rows), n_classes, 4 * groups), dtype=torch.float64, device=rows.device)
    with torch.cuda.device(rows.device):
        _loaded().class_powers[(len(rows), n_classes, groups)](
            rows, offsets, sums, rows.shape[1], n_classes, 4 * groups, float(cut), WIDTH=_NARROW
        )
    return sums


def transport_pairs(rows: Sequence[torch.Tensor], pairs: Sequence[tuple[int, int]], p: float) -> torch.Tensor:
    """W_p^p (B, P) between the sorted rows of every pair of datasets, float64."""
    device, count = rows[0].device, len(rows[0])
    lengths = [part.shape[1] for part in rows]
    longer_first = [(i, j) if lengths[i] >= lengths[j] else (j, i) for i, j in pairs]
    addresses = torch.tensor([part.data_ptr() for part in rows], dtype=torch.int64)
    tables = [addresses, torch.tensor(lengths, dtype=torch.int64), torch.tensor(longer_first, dtype=torch.int64)]
    where, sizes, members = (table.pin_memory().to(device, non_blocking=True) for table in tables)
    costs = torch.empty((count, len(pairs)), dtype=torch.float64, device=device)
    with torch.cuda.device(device):
        for start in range(0, len(pairs), _MOST_PROGRAMS):
            stop = min(len(pairs), start + _MOST_PROGRAMS)
            _loaded().transport_pairs[(count, stop - start)](
                where, sizes, members[start:], costs[:, start:], len(pairs), float(p),
                POWER=int(p) if p in (1, 2) else 0, WIDTH=_WIDTH,
            )  # fmt: skip
    return costs


def turns_of(size: int) -> bool:
    """Whether turns of this many dimensions fit in the registers of one program."""
    return size <= _LARGEST_TURN


def project_turn(
    points: torch.Tensor,
    signs: torch.Tensor,
    along: torch.Tensor,
    lean: torch.Tensor,
    scales: torch.Tensor,
    first: int,
    out: torch.Tensor,
) -> None:
    """Write projections (B, m) of points (m, d) by rows of a turn; see `sotdd.engines.torch.turns`."""
    (m, d), size = points.shape, signs.shape[1]
    levels = size.bit_length() - 1
    side_by_side = max(1, min(16, _TURN_VALUES // size))
    with torch.cuda.device(points.device):
        _loaded().project_turn[(-(-m // side_by_side),)](
            points, signs, along, lean, scales, out, m, d, out.stride(0), first, len(scales), along.shape[0],
            points.stride(0), P=side_by_side, A=1 << levels // 2, B=1 << levels - levels // 2,
            num_warps=max(4, min(16, side_by_side * size // 2048)),
        )  # fmt: skip


def _loaded() -> ModuleType:
    kernels = _kernels()
    if kernels is None:
        raise SotddError("the fused loops need Triton, which is not installed: pip install triton")
    return kernels


@cache
def _kernels() -> ModuleType | None:
    try:
        from sotdd.kernels import triton as programs
    except ImportError:
        return None
    return programs
