"""The distance as a loss, differentiable in the features of both datasets and in soft labels; and the descent along it.

Here a dataset is a tensor of points and a matrix of memberships (n, C): the probability that each
point belongs to each class, zeros and ones for hard labels. The term of a class is the mean of the
projection's polynomial weighted by membership; each point is shifted by its expected term.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sotdd.basics.errors import SotddError, check_order, describe, require
from sotdd.compute.kernels.rows import Overlaps
from sotdd.inputs.arrays import Labels as NumberedLabels
from sotdd.inputs.data import LabelledData
from sotdd.projections.maps import BLOCK, Block
from sotdd.projections.projections import Projections
from sotdd.projections.scaler import Scaler

require("torch", "sotdd.gradients.sotdd_loss", "'sotdd[torch]'")

import torch  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from sotdd.compute.torch.rows import check_device  # noqa: E402

__all__ = ["sotdd_loss"]

Labels: TypeAlias = Tensor | ArrayLike | Sequence[Hashable]

# Projected values that a chunk holds; polynomials keep a copy per order for the backward pass.
_CHUNK_VALUES = 1 << 20

# How far a row of probabilities may be from summing to one.
_SUM_TOLERANCE = 1e-4

# Projections whose weights are looked at before a descent, and how often a step is halved that leads nowhere.
_SAMPLE, _MOST_HALVINGS = 256, 12


def sotdd_loss(
    x: Tensor,
    y: Labels,
    x2: Tensor,
    y2: Labels,
    projections: Projections,
    p: float = 2,
) -> Tensor:
    """How far apart two labelled datasets are, as a tensor to minimise.

    The loss is the mean over projections of W_p^p, as of the plain estimator, without control variates:
    ``sotdd.distance(..., projections=projections, estimator="plain").value ** p``.
    Where all projections at once would take much memory, chunks of them are computed again in the backward pass
    instead of being kept.

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
        must enter by moments.
    p
        The order of transport, any real number from 1.

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
    >>> loss = sotdd.gradients.sotdd_loss(x, y, x2, y2, projections)
    >>> loss.backward()
    >>> x.grad.shape
    torch.Size([100, 3])
    >>> pair = (x.detach(), y), (x2, y2)
    >>> round(loss.item() ** 0.5 / sotdd.distance(*pair, projections=projections, estimator="plain").value, 3)
    1.0
    """
    p = check_order(p)
    if not isinstance(projections, Projections):
        raise SotddError(f"projections is {describe(projections)}: expected Projections.fit(...) or from_arrays(...).")
    _check_points(x, "x", projections)
    _check_points(x2, "x2", projections)
    _check_alike(x, x2, "x2")
    with torch.autocast(x.device.type, enabled=False):  # products in half precision would lose the digits that matter
        points, others = (_standardise(part, projections.scaler) for part in (x, x2))
        memberships, theirs = _find_memberships(y, x, "x", "y"), _find_memberships(y2, x2, "x2", "y2")
        loss = _average_costs((points, memberships, others, theirs), projections, p)
    if not bool(loss.isfinite()):
        raise SotddError(
            f"the loss is not finite at p={p:g}: class moments or powers overflow; scale the features, bring outliers "
            "in, or take lower orders, such as moments=sotdd.projections.UniformOrders(4)."
        )
    return loss.to(x.dtype)


class Descent:
    """A labelled dataset on its way to a target, down the slope of the loss; see `sotdd.flow`.

    Points are held in the unit of the scaler, in float32. A step is plain gradient descent, with the gradient brought
    to the length that the mathematics suggests: see docs/decisions/package.md.

    Parameters
    ----------
    source, target
        The dataset that moves, and where it moves to.
    projections
        What its distance to the target is measured through; their scaler serves every step.
    p
        The order of transport.
    device
        Where to compute, as in `sotdd.flow`.
    """

    def __init__(
        self,
        source: LabelledData,
        target: LabelledData,
        projections: Projections,
        p: float,
        device: str | torch.device,
    ) -> None:
        home, self._scaler, self._p = check_device(device), projections.scaler, p
        self._yardstick = replace(projections, scaler=None)  # points are scaled already
        wide = (torch.tensor(data.rows(slice(None)), dtype=torch.float64) for data in (source, target))
        self._points, self._target = (_standardise(x, self._scaler).float().to(home) for x in wide)  # (n, d), (m, d)
        self._codes, self._target_codes = (torch.tensor(data.codes, device=home) for data in (source, target))
        # No point moves farther in one step: where high moments make the slope steep, only its direction is followed.
        pooled = torch.cat([self._points, self._target])
        self._longest = float((pooled - pooled.mean(0)).square().mean().sqrt()) or 1.0  # their standard deviation
        # The weights of some projections tell how much features count.
        weights = projections.draw(0, _SAMPLE).terms.weights
        self._square = float(np.mean(weights**2)) or 1.0
        self._kurtosis = float(np.mean(weights**4)) / self._square**2
        self._share = 1.0  # of a step that is taken: less where labels bend the slope

    def locate(self) -> tuple[float, NDArray[np.float64]]:
        """The distance to the target, and the points (n, d) in the unit of the source."""
        with torch.no_grad():
            loss = float(self._measure(self._points, self._yardstick))
        points = self._points.cpu().double().numpy()
        return math.pow(loss, 1 / self._p), points if self._scaler is None else self._scaler.invert(points)

    def step(self, projections: Projections, rate: float) -> None:
        """Go down the slope of the squared distance that these projections see.

        The length is a share of the step that, for features alone, would be Newton's, were it not for the choice of
        projections: the Hessian for one point is 2 E[w²] / (n d) times the identity. With L random directions a step of
        stochastic descent is stable if shorter by 1 + κ d / L, κ the kurtosis of the weights. Labels bend the slope
        more than features do, most of all in many dimensions: a step that goes too far for them is shortened.
        """
        points, (n, d) = self._points.clone().requires_grad_(), self._points.shape
        seen = replace(projections, scaler=None)
        cost = self._measure(points, seen)
        newton = n * d / (2 * self._square) / (1 + self._kurtosis * d / projections.n_projections)
        # Turn the slope of W^p into that of W^2, whose steps shrink with the distance for any p.
        loss = cost.item()
        turned = 2 / self._p * loss ** (2 / self._p - 1) if loss > 0 else 0.0
        slope = torch.autograd.grad(cost, points)[0]
        move = slope * turned * (rate * newton)
        if not bool(move.isfinite().all()):
            raise SotddError(
                "the slope of the distance is not finite: use a smaller learning_rate, or lower orders, such as "
                "moments=sotdd.projections.UniformOrders(4)."
            )
        lengths = move.norm(dim=1, keepdim=True) / math.sqrt(d)
        move /= (lengths / self._longest).clamp_min(1)
        self._points = self._go_down(self._points, slope, move, loss, seen)

    def _go_down(self, points: Tensor, slope: Tensor, move: Tensor, before: float, seen: Projections) -> Tensor:
        """The points after as much of a move as lowers the cost by half of what the slope promises.

        A move is halved until it does, and the next one begins where this one ended. Points stay where they are if no
        part of the move does.
        """
        promised = float((slope * move).sum())
        for _ in range(_MOST_HALVINGS):
            moved = points - self._share * move
            with torch.no_grad():
                after = float(self._measure(moved, seen))
            if after <= before - 0.5 * self._share * promised:
                self._share = min(1.0, 2 * self._share)
                return moved
            self._share /= 2
        return points

    def _measure(self, points: Tensor, projections: Projections) -> Tensor:
        return sotdd_loss(points, self._codes, self._target, self._target_codes, projections, self._p)


# ------------------------------------------------------------------ what the loss takes


def _check_points(x: Tensor, name: str, projections: Projections) -> None:
    """Refuse what is no floating-point tensor of finite points that the projections are for."""
    if not isinstance(x, torch.Tensor):
        raise SotddError(f"{name} is {describe(x)}: expected a torch tensor of shape (n, ...).")
    _check_plain(x, name)
    if not x.is_floating_point() or x.ndim == 0 or x.numel() == 0:
        arrived = f"{name} has dtype {x.dtype} and shape {tuple(x.shape)}"
        raise SotddError(f"{arrived}: expected floating point (n, ...), at least one point and one feature.")
    n_features = x[0].numel()
    if n_features != projections.n_features:
        raise SotddError(
            f"{name} has {n_features:,} features but the projections are for {projections.n_features:,}: fit them on "
            "the datasets that are compared."
        )
    projections.check_shape(tuple(x.shape[1:]), name)
    n_bad = int((~x.detach().isfinite()).sum())
    if n_bad:
        raise SotddError(f"{name} has {n_bad:,} of {x.numel():,} values NaN or infinite: drop or impute them first.")


def _check_plain(x: Tensor, name: str) -> None:
    """Refuse tensors without a plain array of numbers behind them."""
    if x.is_nested or x.layout is not torch.strided or x.is_quantized or x.is_meta:
        raise SotddError(f"{name} is sparse, nested, quantized or meta: expected a dense tensor of plain numbers.")


def _check_alike(x: Tensor, other: Tensor, name: str) -> None:
    """Refuse a tensor that is not on the device of x and of its dtype."""
    if (other.device, other.dtype) != (x.device, x.dtype):
        kinds = f"x is {x.dtype} on {x.device} but {name} is {other.dtype} on {other.device}"
        raise SotddError(f"{kinds}: convert one to the other's, as in {name}.to(x).")


def _standardise(x: Tensor, scaler: Scaler | None) -> Tensor:
    """Points as a matrix (n, d), centred and scaled, in single precision at least."""
    points = x.reshape(len(x), -1)
    if points.dtype.itemsize < 4:
        points = points.float()
    if scaler is None:
        return points
    # What rounding the centre leaves is subtracted too: features far from zero keep their digits.
    centre = torch.tensor(scaler.centre)
    rounded = centre.to(points.dtype)
    rest = (centre - rounded).to(points.dtype)
    scales = torch.tensor(scaler.scales).to(points)
    scaled = ((points - rounded.to(points.device)) - rest.to(points.device)) / scales
    return scaled.asinh() if scaler.arcsinh else scaled


def _find_memberships(y: Labels, x: Tensor, x_name: str, name: str) -> Tensor:
    """The probability (n, C) that each point of x belongs to each class."""
    dtype = torch.promote_types(x.dtype, torch.float32)
    if isinstance(y, torch.Tensor):
        _check_plain(y, name)
    if isinstance(y, torch.Tensor) and y.ndim == 2 and y.is_floating_point():
        _check_alike(x, y, name)
        _check_probabilities(y, len(x), name)
        return y.to(dtype)
    if isinstance(y, torch.Tensor):
        y = y.detach().cpu()
    labels = NumberedLabels.of_classes(y, len(x), x_name)
    index = torch.tensor(labels.codes, dtype=torch.int64, device=x.device)
    return torch.nn.functional.one_hot(index, len(labels.classes)).to(dtype)


def _check_probabilities(y: Tensor, n_points: int, name: str) -> None:
    if len(y) != n_points or y.shape[1] == 0:
        raise SotddError(
            f"{name} has shape {tuple(y.shape)} but there are {n_points:,} points: expected one row of class "
            "probabilities per point."
        )
    least, off = float(y.detach().min()), float((y.detach().sum(1) - 1).abs().max())
    if not (least >= 0 and off <= max(_SUM_TOLERANCE, 8 * torch.finfo(y.dtype).eps)):  # nor is NaN
        arrived = f"{name} holds values from {least:.3g}, and its rows sum to one only to within {off:.3g}"
        raise SotddError(f"{arrived}: expected softmax(..., dim=1).")


# ------------------------------------------------------------------ the distance, differentiable


def _average_costs(sides: tuple[Tensor, Tensor, Tensor, Tensor], projections: Projections, p: float) -> Tensor:
    """The weighted mean over projections of W_p^p, which torch differentiates.

    Of each side it gets scaled points (n, d) and memberships (n, C). With more than one chunk of projections, rows are
    made again for the gradient, so that one chunk is in memory at a time.
    """
    n, m, count = len(sides[0]), len(sides[2]), projections.n_projections
    overlaps = None if n == m else Overlaps.of(n, m)
    chunk = max(1, _CHUNK_VALUES // (n + m) // BLOCK) * BLOCK
    parts = []
    for start in range(0, count, chunk):
        block = projections.draw(start, start + chunk)

        def measure(*tensors: Tensor, block: Block = block) -> Tensor:
            a, b = (_sort_rows(points, members, block) for points, members in (tensors[:2], tensors[2:]))
            return _transport(a, b, p, overlaps)

        if count > chunk:
            costs: Tensor = checkpoint(measure, *sides, use_reentrant=False, preserve_rng_state=False)
        else:
            costs = measure(*sides)
        parts.append((_like(block.importance, costs) * costs).sum() / count)
    return torch.stack(parts).sum()


def _sort_rows(points: Tensor, members: Tensor, block: Block) -> Tensor:
    """Sorted data point projections (B, n): weight × t + the expected term of the point's class."""
    terms = block.terms
    if not terms.differentiable:
        raise SotddError(
            f"the label law draws {type(terms).__name__}, which have no gradient", use={"label_law": "moments"}
        )
    if not all(drawn.differentiable for drawn in block.directions):
        raise SotddError(
            "the law of directions draws point maps without project_tensor, so there is no gradient: write it."
        )
    projected = [drawn.project_tensor(points) for drawn in block.directions]
    values, of_labels = projected[0], projected[-1]  # (B, n)
    totals = members.sum(0)  # (C,)
    shares = members / totals.where(totals > 0, 1)  # (n, C): of each class, what each point is; none of an empty one
    class_terms: Tensor = terms.evaluate_tensor(of_labels) @ shares  # (B, C)
    rows: Tensor = _like(terms.weights[:, None], values) * values + class_terms @ members.T
    return rows.sort(dim=1).values


def _transport(a: Tensor, b: Tensor, p: float, overlaps: Overlaps | None) -> Tensor:
    """W_p^p (B,) between sorted rows of a (B, n) and of b (B, m); no overlaps are needed if n = m."""
    if overlaps is None:
        return _power(a - b, p).mean(1)
    left, right = (torch.tensor(side, dtype=torch.int64, device=a.device) for side in (overlaps.left, overlaps.right))
    return _power(a.index_select(1, left) - b.index_select(1, right), p) @ _like(overlaps.width, a)


def _power(gaps: Tensor, p: float) -> Tensor:
    """|gap|^p; squares are spared the detour, whose derivative at zero is not finite beyond the first."""
    return gaps.square() if p == 2 else gaps.abs() if p == 1 else gaps.abs().pow(p)


def _like(array: NDArray[np.floating], tensor: Tensor) -> Tensor:
    """Numbers of a recipe, on the device and in the dtype of a tensor."""
    return torch.tensor(array, dtype=tensor.dtype, device=tensor.device)
