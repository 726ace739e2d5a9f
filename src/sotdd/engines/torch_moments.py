"""Class moments on a torch device, for control variates."""

from __future__ import annotations

import math

import torch

from sotdd.engines import fused
from sotdd.engines.torch_verbs import Rows

# Values whose powers are taken at a time.
_SUMMARISED = 1 << 24


def summarise(rows: Rows, edges: torch.Tensor, degree: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean (B, D) and covariance (B, D, D), over points, of their class's moments of orders 1, …, D, in float64."""
    counts = edges.diff()
    shares = (counts / counts.sum()).to(torch.float64)
    mean = torch.empty((len(rows), degree), dtype=torch.float64, device=rows.device)
    spread = torch.empty((len(rows), degree, degree), dtype=torch.float64, device=rows.device)
    size = max(1, _SUMMARISED // (rows.shape[1] + degree * len(counts)))
    for start in range(0, len(rows), size):  # some rows at a time: float64 copies stay small
        part = slice(start, start + size)
        by_class = _class_moments(rows[part], edges, degree)  # (b, C, D)
        mean[part] = torch.einsum("c,bcd->bd", shares, by_class)
        centred = by_class - mean[part, None]
        spread[part] = (centred * shares[:, None]).transpose(1, 2) @ centred
    return mean, spread


def _class_moments(rows: Rows, edges: torch.Tensor, degree: int) -> torch.Tensor:
    """Mean of t^k / k! over each class for k = 1, …, D, as (b, C, D)."""
    counts = edges.diff()
    if fused.available(rows):  # one power at a time is a polynomial: memory is read D times, nothing is written
        moments = []
        for order in range(1, degree + 1):
            power = torch.zeros((len(rows), order + 1), dtype=torch.float64, device=rows.device)
            power[:, order] = 1 / math.factorial(order)
            moments.append(fused.class_sums(rows, edges, power) / counts)
        return torch.stack(moments, dim=2)
    t = rows.T.double()  # (n, b): classes are runs of the first axis
    powers, moments = torch.ones_like(t), []
    for order in range(1, degree + 1):
        powers = powers * (t / order)
        moments.append(torch.segment_reduce(powers, "mean", lengths=counts, axis=0))
    return torch.stack(moments, dim=2).permute(1, 0, 2)
