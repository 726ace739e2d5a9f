"""Quantile label terms of classes to which points belong by degrees, differentiable in both."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def quantile_terms(values: Tensor, shares: Tensor, coefficients: Tensor) -> Tensor:
    """The terms (B, C) of classes by their weighted quantile functions.

    values (B, n) are projected points. shares (n, C) say which share of each class each point makes up:
    columns sum to one, or to zero for an empty class, whose term is zero. coefficients (B, K) are those of
    the bins.

    The k-th bin ends where the class has k/K of its mass below. The integral of the quantile function up
    to there is the sum of the values wholly below, plus a part of the value in which the bin ends. It is
    differentiable in the values, whose order is locally fixed, and in the shares.
    """
    import torch

    columns = []
    for share in shares.unbind(1):
        # A point outside the class has no gradient through its value, nor through its share if that is fixed.
        chosen = slice(None) if shares.requires_grad else share.nonzero()[:, 0]
        if share[chosen].numel() == 0:
            columns.append(values.new_zeros(len(values)))
            continue
        columns.append(_one_class(values[:, chosen], share[chosen], coefficients))
    return torch.stack(columns, dim=1)


def _one_class(values: Tensor, share: Tensor, coefficients: Tensor) -> Tensor:
    """The term (B,) of one class."""
    import torch

    levels = coefficients.shape[1]
    ordered, order = values.double().sort(dim=1)
    masses = share.double()[order]  # (B, m)
    filled = torch.nn.functional.pad(masses.cumsum(1), (1, 0))  # mass before each value
    summed = torch.nn.functional.pad((masses * ordered).cumsum(1), (1, 0))
    inner = torch.arange(1, levels, dtype=filled.dtype, device=values.device) / levels * filled[:, -1:].detach()
    within = torch.searchsorted(filled[:, 1:].detach().contiguous(), inner).clamp(max=values.shape[1] - 1)
    # Up to the end of a bin: all values before the one it ends in, and a part of that one.
    before = summed.gather(1, within) + (inner - filled.gather(1, within)) * ordered.gather(1, within)
    ends = torch.cat([summed[:, :1], before, summed[:, -1:]], dim=1)  # (B, K + 1)
    return (ends.diff(dim=1) * levels * coefficients.double()).sum(1).to(values.dtype)
