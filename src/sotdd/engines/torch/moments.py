"""Class moments on a torch device, for control variates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import torch

from sotdd.engines.torch import fused
from sotdd.engines.torch.verbs import Rows

# Values whose powers are taken at a time.
_SUMMARISED = 1 << 24

# Orders of the moments over all points, which are not cut.
_EVEN = (2, 4, 6)


# Mean, covariance and even moments over points: see `sotdd.engines.protocol.ClassMoments`.
Moments: TypeAlias = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def summarise(rows: Rows, edges: torch.Tensor, degree: int, cut: float) -> Moments:
    """Mean (B, D + 1), covariance (B, D + 1, D + 1) and even moments (B, 3) over points, in float64."""
    counts = edges.diff()
    shares = (counts / counts.sum()).to(torch.float64)
    mean, covariance, even = (
        torch.empty((len(rows), *shape), dtype=torch.float64, device=rows.device)
        for shape in ((degree + 1,), (degree + 1, degree + 1), (len(_EVEN),))
    )
    size = max(1, _SUMMARISED // (rows.shape[1] + degree * len(counts)))
    for start in range(0, len(rows), size):  # some rows at a time: float64 copies stay small
        part = slice(start, start + size)
        uncut = _class_moments(rows[part], edges, (1, *_EVEN), math.inf)
        by_class = torch.cat([uncut[:, :, :1], _class_moments(rows[part], edges, range(1, degree + 1), cut)], dim=2)
        even[part] = torch.einsum("c,bck->bk", shares, uncut[:, :, 1:])
        mean[part] = torch.einsum("c,bcd->bd", shares, by_class)
        centred = by_class - mean[part, None]
        covariance[part] = (centred * shares[:, None]).transpose(1, 2) @ centred
    return mean, covariance, even


def _class_moments(rows: Rows, edges: torch.Tensor, orders: Sequence[int], cut: float) -> torch.Tensor:
    """Mean of t^k / k! over each class for some ascending orders k, t cut to ±cut: (b, C, orders)."""
    counts = edges.diff()
    if fused.available(rows):  # one power at a time is a polynomial: memory is read once for each, nothing is written
        moments = []
        for order in orders:
            power = torch.zeros((len(rows), order + 1), dtype=torch.float64, device=rows.device)
            power[:, order] = 1 / math.factorial(order)
            moments.append(fused.class_sums(rows, edges, power, cut) / counts)
        return torch.stack(moments, dim=2)
    t = rows.T.clamp(-cut, cut).double()  # (n, b): classes are runs of the first axis
    powers, moments = torch.ones_like(t), []
    for order in range(1, max(orders) + 1):
        powers = powers * (t / order)
        if order in orders:
            moments.append(torch.segment_reduce(powers, "mean", lengths=counts, axis=0))
    return torch.stack(moments, dim=2).permute(1, 0, 2)
