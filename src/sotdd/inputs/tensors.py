"""Torch tensors as features: those on the processor become arrays, those on a device stay there.

Torch is never imported here; a tensor brings its own methods. Torch datasets and loaders, which yield points
one by one or in batches, are another thing: `loaders.torch_datasets` opens them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError

# This many values on a device are widened to float64 at a time.
_VALUES = 1 << 26
# Deviations smaller than this are not divided by, so that their inverse stays in float64.
_SMALLEST = 1e-300


def is_tensor(value: object) -> bool:
    """Whether a value is a torch tensor."""
    return type(value).__module__.split(".")[0] == "torch" and hasattr(value, "detach")


def from_tensor(tensor: Any, name: str) -> NDArray[Any] | DeviceFeatures:  # noqa: ANN401  # torch is optional
    """Features held in a tensor: an array that shares its memory, or the tensor itself if it is on a device."""
    tensor = tensor.detach()
    if str(tensor.layout) != "torch.strided":
        raise SotddError(f"features of dataset {name!r} are a sparse tensor: pass features.to_dense().")
    try:
        return host_array(tensor) if tensor.device.type == "cpu" else DeviceFeatures(_widen(tensor))
    except (TypeError, RuntimeError, NotImplementedError) as error:
        raise SotddError(
            f"{name!r} is a tensor of {tensor.dtype} on {tensor.device}: convert it, as by .float()."
        ) from error


def host_array(values: Any) -> NDArray[Any]:  # noqa: ANN401  # torch is optional
    """Whatever forms an array as one of NumPy's; tensors are brought to the host."""
    if not is_tensor(values):
        return np.asarray(values)
    array: NDArray[Any] = _widen(values.detach().cpu().resolve_neg()).numpy()
    return array


def _widen(tensor: Any) -> Any:  # noqa: ANN401  # torch is optional
    """A tensor of a dtype that NumPy has."""
    return tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor


class DeviceFeatures:
    """A tensor on a device that reads like an array: rows are copied to the host when they are asked for."""

    def __init__(self, tensor: Any) -> None:  # noqa: ANN401
        self.tensor = tensor
        self.shape: tuple[int, ...] = tuple(tensor.shape)
        self.ndim: int = len(self.shape)
        self.size: int = int(np.prod(self.shape, dtype=np.int64))
        self.dtype: np.dtype[Any] = tensor.new_empty(0).cpu().numpy().dtype

    def __len__(self) -> int:
        """How many points there are."""
        return self.shape[0]

    def __getitem__(self, rows: slice | NDArray[np.integer]) -> NDArray[Any]:
        """Some points as an array on the host."""
        host: NDArray[Any] = self.tensor[rows].cpu().numpy()
        return host

    def all_finite(self) -> bool:
        """Whether no value is NaN or infinite, which is found out on the device."""
        return not self.tensor.is_floating_point() or bool(self.tensor.isfinite().all().item())

    def moments(
        self, pivot: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], int]:
        """Reach, mean and summed squared deviations of every feature, and the farthest row.

        The reach (d,) is the largest deviation from ``pivot`` of float64, otherwise one; mean and deviations are those
        of (x - pivot) / reach. All are computed on the device, in float64.
        """
        flat = self.tensor.reshape(len(self), -1)
        origin = flat.new_tensor(pivot, dtype=flat.new_empty(0).double().dtype)
        rows = max(1, _VALUES // max(1, len(origin)))
        starts = range(0, len(flat), rows)

        def gaps(start: int) -> Any:  # noqa: ANN401  # a tensor
            apart = flat[start : start + rows].double() - origin
            return apart.div_(reach) if wide else apart

        reach, wide = origin.new_ones(len(origin)), flat.dtype == origin.dtype
        if wide:  # squares of what is narrower stay in float64 as they are
            lowest, highest = flat.aminmax(dim=0)  # the same as of all gaps, in one pass
            reach = (highest - origin).maximum(origin - lowest)
            reach = reach.where(reach > 0, reach.new_ones(())).clamp_min(_SMALLEST)
        mean = sum(gaps(start).sum(0) for start in starts) / len(flat)
        squares, lengths = reach.new_zeros(len(reach)), reach.new_empty(len(flat))
        for start in starts:
            deviations = gaps(start).sub_(mean).square_()
            squares += deviations.sum(0)
            lengths[start : start + rows] = deviations @ (reach / reach.max()) ** 2
        # Brought to the host at once: every copy is waited for.
        together = reach.new_empty((4, len(reach)))
        together[0], together[1], together[2], together[3] = reach, mean, squares, lengths.argmax()
        host = together.cpu().numpy()
        return host[0], host[1], host[2], int(host[3, 0])
