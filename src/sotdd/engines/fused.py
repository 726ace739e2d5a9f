"""Loops fused for CUDA with Triton, where it is installed: what the CPU engine compiles with Numba.

Each passes over memory once. Without Triton the torch engine does the same in plain torch.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from sotdd.errors import SotddError

_WIDTH = 1024  # values that one program takes at a time


def available(rows: torch.Tensor) -> bool:
    """Whether these rows are where Triton can reach them."""
    return rows.is_cuda and _kernels() is not None


def class_sums(rows: torch.Tensor, offsets: torch.Tensor, coefficients: torch.Tensor) -> torch.Tensor:
    """Sums (B, C) of each row's polynomial over each class; Horner's rule and sums in float64."""
    kernels = _kernels()
    if kernels is None:
        raise SotddError("Triton is not installed.")
    n_classes = len(offsets) - 1
    sums = torch.empty((len(rows), n_classes), dtype=torch.float64, device=rows.device)
    with torch.cuda.device(rows.device):
        kernels["class_sums"][(len(rows), n_classes)](
            rows, offsets, coefficients, sums, rows.shape[1], n_classes, coefficients.shape[1], WIDTH=_WIDTH
        )
    return sums


def place(rows: torch.Tensor, codes: torch.Tensor, weights: torch.Tensor, terms: torch.Tensor) -> None:
    """Turn grouped feature projections into data point projections, in place."""
    kernels = _kernels()
    if kernels is None:
        raise SotddError("Triton is not installed.")
    n = rows.shape[1]
    with torch.cuda.device(rows.device):
        kernels["place"][(len(rows), -(-n // _WIDTH))](rows, codes, weights, terms, n, terms.shape[1], WIDTH=_WIDTH)


@cache
def _kernels() -> dict[str, Any] | None:
    try:
        from sotdd.engines import triton_kernels
    except ImportError:
        return None
    return {"class_sums": triton_kernels.class_sums, "place": triton_kernels.place}
