"""Class moments on a torch device, for control variates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

import torch

from sotdd.engines.protocol import ClassMoments
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
    width = (0 if fused.available(rows) else rows.shape[1]) + degree * len(counts)
    size = max(1, _SUMMARISED // width)
    for start in range(0, len(rows), size):  # some rows at a time: float64 copies stay small
        part = slice(start, start + size)
        if fused.available(rows):
            sums = fused.class_powers(rows[part], edges, degree, cut)
            moments = sums * _inverse_factorials(degree, rows.device) / counts[:, None]
            uncut, by_class = moments[:, :, :4], torch.cat([moments[:, :, :1], moments[:, :, 4:]], dim=2)
        else:
            uncut = _class_moments(rows[part], edges, (1, *_EVEN), math.inf)
            cut_ones = _class_moments(rows[part], edges, range(1, degree + 1), cut)
            by_class = torch.cat([uncut[:, :, :1], cut_ones], dim=2)
        even[part] = torch.einsum("c,bck->bk", shares, uncut[:, :, 1:])
        mean[part] = torch.einsum("c,bcd->bd", shares, by_class)
        centred = by_class - mean[part, None]
        covariance[part] = (centred * shares[:, None]).transpose(1, 2) @ centred
    return mean, covariance, even


@cache
def _inverse_factorials(degree: int, device: torch.device) -> torch.Tensor:
    """1 / k! of the powers that the fused loop sums: 1, 2, 4 and 6 without a cut, then 1, …, D."""
    orders = (1, *_EVEN, *range(1, degree + 1))
    return torch.tensor([1 / math.factorial(k) for k in orders], dtype=torch.float64, device=device)


@cache
def _factorials(count: int, device: torch.device) -> torch.Tensor:
    return torch.tensor([math.factorial(k) for k in range(count)], dtype=torch.float64, device=device)


def label_places(moments: ClassMoments, weights: torch.Tensor, coefficients: torch.Tensor) -> torch.Tensor:
    """Mean and standard deviation (2, B, J) of projected points under J draws of label terms.

    The twin of ``gaussian_places`` of the compiled loops.
    """
    mean, covariance = moments.mean, moments.covariance
    known = min(mean.shape[1], coefficients.shape[2])
    terms = coefficients[:, :, :known] * _factorials(known, mean.device)
    terms[:, :, 0] = weights
    within = (2 * moments.even[:, 0] - mean[:, 0].square() - covariance[:, 0, 0]).clamp_min(0)
    places = (terms @ mean[:, :known, None])[:, :, 0]
    variances = ((terms @ covariance[:, :known, :known]) * terms).sum(dim=2) + weights.square() * within[:, None]
    return torch.stack([places, variances.clamp_min(0).sqrt()])


def label_gaps(places: torch.Tensor, first: torch.Tensor, second: torch.Tensor, p: float) -> torch.Tensor:
    """What the first draw gives less the mean of the others, (B, P, 3), of places (N, 2, B, J) and pairs (P,), (P,)."""
    (mean_a, root_a), (mean_b, root_b) = (places[side].transpose(0, 1) for side in (first, second))
    gap = (mean_a - mean_b).square()
    columns = []
    for squares in (gap + (root_a - root_b).square(), gap, root_a.square() + root_b.square()):
        powers = squares if p == 2 else squares.pow(p / 2)
        columns.append((powers[:, :, 0] - powers[:, :, 1:].mean(dim=2)).T)
    return torch.stack(columns, dim=2)


def _class_moments(rows: Rows, edges: torch.Tensor, orders: Sequence[int], cut: float) -> torch.Tensor:
    """Mean of t^k / k! over each class for some ascending orders k, t cut to ±cut: (b, C, orders)."""
    counts = edges.diff()
    t = rows.T.clamp(-cut, cut).double()  # (n, b): classes are runs of the first axis
    powers, moments = torch.ones_like(t), []
    for order in range(1, max(orders) + 1):
        powers = powers * (t / order)
        if order in orders:
            moments.append(torch.segment_reduce(powers, "mean", lengths=counts, axis=0))
    return torch.stack(moments, dim=2).permute(1, 0, 2)
