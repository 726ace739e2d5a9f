"""The distance as a loss: differentiable in the features of both datasets, and in soft labels.

Here a dataset is a tensor of points and a matrix of memberships (n, C): the probability that each
point belongs to each class, zeros and ones for hard labels. The term of a class is the mean of the
projection's polynomial weighted by membership, or a functional of the weighted quantile function of the
class; each point is shifted by its expected term.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_count, check_order, described
from sotdd.basics.errors import SotddError, require
from sotdd.basics.memory import within_memory
from sotdd.gradients.loss_inputs import check_alike, check_features, check_finite, memberships, standardised
from sotdd.gradients.soft_quantiles import quantile_terms
from sotdd.kernels.rows import Overlaps
from sotdd.projections.directions import Directions, Drawn
from sotdd.projections.draws import BLOCK, Block
from sotdd.projections.labels import Quantiles, Summaries
from sotdd.projections.recipe import Projections
from sotdd.projections.turns import TurnedDirections

if TYPE_CHECKING:
    from torch import Tensor

    from sotdd.gradients.loss_inputs import Labels

__all__ = ["sotdd_loss"]

# Projected values that a chunk holds by default; polynomials keep a copy per order for the backward pass.
_CHUNK_VALUES = 1 << 20


@within_memory("pass a smaller chunk, such as 64, or fewer points")
def sotdd_loss(
    x: Tensor,
    y: Labels,
    x2: Tensor,
    y2: Labels,
    projections: Projections,
    p: float = 2,
    *,
    chunk: int | None = None,
) -> Tensor:
    """How far apart two labelled datasets are, as a tensor to minimise.

    The loss is the mean over projections of W_p^p: ``sotdd.distance(..., projections=projections).value ** p``.

    Parameters
    ----------
    x, x2
        (n, ...) and (m, ...) floating-point tensors on one device, of one dtype. Half precision is
        computed in float32.
    y, y2
        The labels of each: one per row, integers in a tensor or any hashable values in a sequence;
        or a floating-point tensor (n, C) of class probabilities whose rows sum to one, in which
        the loss is differentiable too. The two datasets may have different classes.
    projections
        What the datasets are projected by, scaler included. Directions must be linear, and classes
        must enter by moments or quantiles, as in every law that comes with the package.
    p
        The order of transport, any real number from 1.
    chunk
        How many projections are in memory at a time, a multiple of 64. If there are several chunks, each
        is computed again in the backward pass instead of being kept.

    Returns
    -------
    Tensor
        The loss, without dimensions, on the device and in the dtype of ``x``.

    Examples
    --------
    >>> import torch, sotdd
    >>> _ = torch.manual_seed(0)
    >>> x, x2 = torch.randn(100, 3, requires_grad=True), torch.randn(80, 3)
    >>> y, y2 = torch.arange(100) % 2, torch.arange(80) % 4
    >>> projections = sotdd.Projections.fit([x.detach(), x2], n_projections=256)
    >>> loss = sotdd.torch.sotdd_loss(x, y, x2, y2, projections)
    >>> loss.backward()
    >>> x.grad.shape
    torch.Size([100, 3])
    >>> pair = (x.detach(), y), (x2, y2)
    >>> round(loss.item() ** 0.5 / sotdd.distance(*pair, projections=projections, estimator="plain").value, 3)
    1.0
    """
    require("torch", "sotdd_loss", "'sotdd[torch]'")
    p = check_order(p)
    if not isinstance(projections, Projections):
        raise SotddError(f"projections is {described(projections)}: expected Projections.fit(...) or from_arrays(...).")
    check_features(x, "x", projections)
    check_features(x2, "x2", projections)
    check_alike(x, x2, "x2")
    check_finite(x, "x")
    check_finite(x2, "x2")
    import torch

    with torch.autocast(x.device.type, enabled=False):  # products in half precision would lose the digits that matter
        sides = [standardised(features, projections.scaler) for features in (x, x2)]
        members = [memberships(y, x, "x", "y"), memberships(y2, x2, "x2", "y2")]
        loss = _mean_transport(sides, members, projections, p, chunk)
    if not bool(loss.isfinite()):
        raise SotddError(
            f"the loss is not finite at p={p:g}: class moments or powers overflow; scale the features, bring outliers "
            "in, or take lower orders, such as moments=sotdd.UniformOrders(4)."
        )
    return loss.to(x.dtype)


def _mean_transport(
    sides: list[Tensor], members: list[Tensor], projections: Projections, p: float, chunk: int | None
) -> Tensor:
    """The mean over all projections, by their weights, of W_p^p, a chunk of projections at a time."""
    from torch.utils.checkpoint import checkpoint

    n, m = len(sides[0]), len(sides[1])
    size = _chunk_size(chunk, n + m)
    steps = None if n == m else _Steps.of(n, m, sides[0])
    count = projections.n_projections

    def portion(start: int, *tensors: Tensor) -> Tensor:
        block = projections.draw(start, start + size)
        a, b = (_sorted_rows(tensors[i], tensors[i + 2], block) for i in (0, 1))
        return (_like(block.importance, a) * _transport(a, b, p, steps)).sum() / count

    if count <= size:
        return portion(0, *sides, *members)
    total = sides[0].new_zeros(())
    for start in range(0, count, size):
        total = total + checkpoint(portion, start, *sides, *members, use_reentrant=False, preserve_rng_state=False)
    return total


def _chunk_size(chunk: int | None, n_points: int) -> int:
    """How many projections are in memory at a time."""
    if chunk is None:
        return max(1, _CHUNK_VALUES // n_points // BLOCK) * BLOCK
    if check_count(chunk, "chunk") % BLOCK:
        raise SotddError(f"chunk is {chunk}: expected a multiple of {BLOCK}.")
    return chunk


def _sorted_rows(points: Tensor, members: Tensor, block: Block) -> Tensor:
    """Sorted data point projections (B, n): weight × t + the expected term of the point's class."""
    terms = block.terms
    if isinstance(terms, Summaries):
        raise SotddError(
            "the label law draws Summaries, which have no gradient: expected Moments(...), ClassQuantiles(...) or a "
            "law that draws as they do."
        )
    values = _projected(points, block.features)  # (B, n)
    for_labels = values if block.label_features is None else _projected(points, block.label_features)
    totals = members.sum(0)  # (C,)
    shares = members / totals.where(totals > 0, 1)  # (n, C): of each class, what each point is; none of an empty one
    if isinstance(terms, Quantiles):
        class_terms = quantile_terms(for_labels, shares, _like(terms.coefficients, values))
    else:
        cut = for_labels if terms.cut is None else for_labels.clamp(-terms.cut, terms.cut)
        class_terms = _polynomial(cut, terms.coefficients) @ shares  # (B, C)
    rows = _like(terms.weights[:, None], values) * values + class_terms @ members.T
    return rows.sort(dim=1).values


def _projected(points: Tensor, drawn: Drawn) -> Tensor:
    """Feature projections (B, n) of points (n, d)."""
    if not isinstance(drawn, (Directions, TurnedDirections)):
        raise SotddError("the law of directions draws point maps, which have no gradient: expected linear directions.")
    values = _like(drawn.theta, points) @ points.T
    return values if drawn.clamp is None else values.clamp(-drawn.clamp, drawn.clamp)


def _polynomial(values: Tensor, coefficients: NDArray[np.float64]) -> Tensor:
    """The polynomial of each row at its values (B, n), by Horner's rule."""
    columns = _like(coefficients, values).unsqueeze(2).unbind(1)  # from the lowest order, (B, 1) each
    result = columns[-1].expand_as(values)
    for column in reversed(columns[:-1]):
        result = column.addcmul(result, values)
    return result


@dataclass(frozen=True, eq=False)
class _Steps:
    """`Overlaps` as tensors: which of n steps meets which of m steps, and on how much of [0, 1]."""

    left: Tensor
    right: Tensor
    width: Tensor

    @classmethod
    def of(cls, n: int, m: int, like: Tensor) -> _Steps:
        """Align on the device of ``like``, widths in its dtype."""
        import torch

        overlaps = Overlaps.of(n, m)
        left, right = (
            torch.tensor(side, dtype=torch.int64, device=like.device) for side in (overlaps.left, overlaps.right)
        )
        return cls(left, right, _like(overlaps.width, like))


def _transport(a: Tensor, b: Tensor, p: float, steps: _Steps | None) -> Tensor:
    """W_p^p (B,) between sorted rows of a (B, n) and of b (B, m); no steps are needed if n = m."""
    if steps is None:
        return _power(a - b, p).mean(1)
    return _power(a.index_select(1, steps.left) - b.index_select(1, steps.right), p) @ steps.width


def _power(gaps: Tensor, p: float) -> Tensor:
    """|gap|^p; squares are spared the detour, whose derivative at zero is not finite beyond the first."""
    return gaps.square() if p == 2 else gaps.abs() if p == 1 else gaps.abs().pow(p)


def _like(array: NDArray[np.floating], tensor: Tensor) -> Tensor:
    """Numbers of a recipe, on the device and in the dtype of a tensor."""
    import torch

    return torch.tensor(array, dtype=tensor.dtype, device=tensor.device)
