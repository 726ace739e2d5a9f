"""What `sotdd_loss` is called with, checked and brought into one form: points and memberships."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from numpy.typing import ArrayLike

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.inputs.labels import class_codes
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scaler

if TYPE_CHECKING:
    from torch import Tensor

    Labels: TypeAlias = Tensor | ArrayLike | Sequence[Hashable]

# How far a row of probabilities may be from summing to one.
_SUM_TOLERANCE = 1e-4


def check_features(x: Tensor, name: str, projections: Projections) -> None:
    """Refuse what is no floating-point tensor of points that the projections are for."""
    import torch

    if not isinstance(x, torch.Tensor):
        raise SotddError(f"{name} is {described(x)}: expected a torch tensor of shape (n, ...).")
    check_dense(x, name)
    if not x.is_floating_point():
        raise SotddError(f"{name} has dtype {x.dtype}: expected floating point, such as {name}.float().")
    if x.ndim == 0 or x.numel() == 0:
        raise SotddError(f"{name} has shape {tuple(x.shape)}: expected (n, ...), at least one point and one feature.")
    n_features = x[0].numel()
    if n_features != projections.n_features:
        raise SotddError(
            f"{name} has {n_features:,} features but the projections are for {projections.n_features:,}: fit them on "
            "the datasets that are compared."
        )
    projections.source.check_points(tuple(x.shape[1:]), name)


def check_dense(x: Tensor, name: str) -> None:
    """Refuse tensors without a plain array of numbers behind them: sparse, nested or quantized."""
    import torch

    if x.is_nested:
        raise SotddError(f"{name} is a nested tensor: expected a dense one, such as {name}.to_padded_tensor(0.0).")
    if x.layout is not torch.strided:
        raise SotddError(f"{name} is a sparse tensor ({x.layout}): expected a dense one, such as {name}.to_dense().")
    if x.is_quantized:
        raise SotddError(f"{name} is quantized ({x.dtype}): expected plain numbers, such as {name}.dequantize().")


def check_real(x: Tensor, name: str) -> None:
    """Refuse a tensor that is on no device."""
    if x.is_meta:
        raise SotddError(f"{name} is on the meta device, which holds no numbers: move the data to a real device.")


def check_finite(x: Tensor, name: str) -> None:
    """Refuse points with values that are not finite."""
    check_real(x, name)
    n_bad = int((~x.detach().isfinite()).sum())
    if n_bad:
        raise SotddError(f"{name} has {n_bad:,} of {x.numel():,} values NaN or infinite: drop or impute them first.")


def check_alike(x: Tensor, other: Tensor, name: str) -> None:
    """Refuse a tensor that is not on the device of x and of its dtype."""
    if other.device != x.device:
        raise SotddError(f"x is on {x.device} but {name} is on {other.device}: move both to one device.")
    if other.dtype != x.dtype:
        raise SotddError(f"x has dtype {x.dtype} but {name} has {other.dtype}: convert one to the other's.")


def standardised(x: Tensor, scaler: Scaler | None) -> Tensor:
    """Points as a matrix (n, d), centred and scaled, in single precision at least."""
    import torch

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
    return ((points - rounded.to(points.device)) - rest.to(points.device)) / scales


def memberships(y: Labels, x: Tensor, x_name: str, name: str) -> Tensor:
    """The probability (n, C) that each point of x belongs to each class."""
    import torch

    dtype = torch.promote_types(x.dtype, torch.float32)
    if isinstance(y, torch.Tensor):
        check_dense(y, name)
    if isinstance(y, torch.Tensor) and y.ndim == 2 and y.is_floating_point():
        check_alike(x, y, name)
        _check_probabilities(y, len(x), name)
        return y.to(dtype)
    if isinstance(y, torch.Tensor):
        check_real(y, name)
        y = y.detach().cpu()
    classes, codes = class_codes(y, len(x), x_name)
    index = torch.tensor(codes, dtype=torch.int64, device=x.device)
    return torch.nn.functional.one_hot(index, len(classes)).to(dtype)


def _check_probabilities(y: Tensor, n_points: int, name: str) -> None:
    import torch

    if len(y) != n_points or y.shape[1] == 0:
        raise SotddError(
            f"{name} has shape {tuple(y.shape)} but there are {n_points:,} points: expected one row of class "
            "probabilities per point."
        )
    values = y.detach()
    if not bool(values.isfinite().all()) or bool((values < 0).any()):
        raise SotddError(f"{name} holds probabilities that are negative or not finite: expected softmax(..., dim=1).")
    off = float((values.sum(1) - 1).abs().max())
    if off > max(_SUM_TOLERANCE, 8 * torch.finfo(y.dtype).eps):
        raise SotddError(f"rows of {name} sum to one only to within {off:.3g}: expected softmax(..., dim=1).")
