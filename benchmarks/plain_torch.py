"""The algorithm as one would first write it in PyTorch: powers, concatenation, sort, searchsorted.

The yardstick for the CPU engine. It is a fair one: vectorised over projections, one product
per class, nothing wasteful on purpose.
"""

from __future__ import annotations

import torch


def per_projection(
    a: tuple[torch.Tensor, torch.Tensor],
    b: tuple[torch.Tensor, torch.Tensor],
    theta: torch.Tensor,
    psi: torch.Tensor,
    orders: torch.Tensor,
    p: float = 2,
) -> torch.Tensor:
    """W_p^p (L,) between two labelled datasets under given projections."""
    return _transport(_projected(*a, theta, psi, orders), _projected(*b, theta, psi, orders), p)


def _projected(
    features: torch.Tensor, labels: torch.Tensor, theta: torch.Tensor, psi: torch.Tensor, orders: torch.Tensor
) -> torch.Tensor:
    """Data point projections (L, n), class after class."""
    factorials = torch.exp(torch.lgamma(orders + 1.0))  # (L, k)
    parts = []
    for label in labels.unique():
        t = theta @ features[labels == label].T  # (L, n_c)
        moments = [(t ** orders[:, i : i + 1]).mean(dim=1) for i in range(orders.shape[1])]
        term = (psi[:, 1:] * torch.stack(moments, dim=1) / factorials).sum(dim=1, keepdim=True)
        parts.append(psi[:, :1] * t + term)
    return torch.cat(parts, dim=1)


def _transport(a: torch.Tensor, b: torch.Tensor, p: float) -> torch.Tensor:
    """Sort, and for unequal sizes look both quantile functions up where either of them steps."""
    a, b = a.sort(dim=1).values, b.sort(dim=1).values
    n, m = a.shape[1], b.shape[1]
    if n == m:
        return ((a - b).abs() ** p).mean(dim=1)
    rows = len(a)
    levels_a = (torch.arange(1, n + 1, dtype=torch.float64) / n).expand(rows, n).contiguous()
    levels_b = (torch.arange(1, m + 1, dtype=torch.float64) / m).expand(rows, m).contiguous()
    levels = torch.cat([levels_a, levels_b], dim=1).sort(dim=1).values
    quantiles_a = a.gather(1, torch.searchsorted(levels_a, levels).clamp(max=n - 1))
    quantiles_b = b.gather(1, torch.searchsorted(levels_b, levels).clamp(max=m - 1))
    widths = torch.diff(levels, dim=1, prepend=torch.zeros(rows, 1, dtype=torch.float64))
    return (widths * (quantiles_a - quantiles_b).abs() ** p).sum(dim=1)
