"""Torch tensors as features: those on the processor become arrays, those on a device stay there.

Torch is never imported here; a tensor brings its own methods.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.errors import SotddError, require

# DLPack's number for the processor.
_HOST = 1


def is_tensor(value: object) -> bool:
    """Whether a value is a torch tensor."""
    return type(value).__module__.split(".")[0] == "torch" and hasattr(value, "detach")


def from_tensor(tensor: Any, name: str) -> NDArray[Any] | DeviceFeatures:  # noqa: ANN401  # torch is optional
    """Features held in a tensor: an array that shares its memory, or the tensor where it is."""
    tensor = tensor.detach()
    if str(tensor.layout) != "torch.strided":
        raise SotddError(f"features of dataset {name!r} are a sparse tensor: pass features.to_dense().")
    if tensor.is_complex():
        raise SotddError(f"features of dataset {name!r} are complex numbers: expected real numbers.")
    if str(tensor.dtype) == "torch.bfloat16":  # NumPy has none
        tensor = tensor.float()
    try:
        if tensor.device.type == "cpu":
            array: NDArray[Any] = tensor.resolve_neg().numpy()
            return array
        return DeviceFeatures(tensor)
    except (TypeError, RuntimeError, NotImplementedError) as error:
        raise SotddError(
            f"features of dataset {name!r} are a tensor of {tensor.dtype} on {tensor.device}, which cannot be read: "
            "convert it first, such as by .float()."
        ) from error


def from_dlpack(array: Any, name: str) -> NDArray[Any] | DeviceFeatures:  # noqa: ANN401  # of whatever library
    """Features of a library that shares its memory by DLPack, such as CuPy: where they are, if torch can hold them."""
    on_host = array.__dlpack_device__()[0] == _HOST
    try:
        if on_host:
            return np.from_dlpack(array)
        torch = require("torch", f"dataset {name!r}, which is on a device,", "'sotdd[torch]'")
        return from_tensor(torch.from_dlpack(array), name)
    except (BufferError, TypeError, RuntimeError, AttributeError) as error:
        raise SotddError(
            f"features of dataset {name!r} are a {type(array).__name__} that cannot be read: pass a NumPy array."
        ) from error


def host_labels(tensor: Any) -> NDArray[Any]:  # noqa: ANN401  # torch is optional
    """Labels held in a tensor, wherever it is."""
    tensor = tensor.detach().cpu()
    labels: NDArray[Any] = (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    return labels


class DeviceFeatures:
    """A tensor on a device that reads like an array: blocks of rows come to the host when asked for."""

    def __init__(self, tensor: Any) -> None:  # noqa: ANN401
        self.tensor = tensor
        self.shape: tuple[int, ...] = tuple(tensor.shape)
        self.ndim = len(self.shape)
        self.size = int(np.prod(self.shape, dtype=np.int64))
        self.dtype: np.dtype[Any] = tensor.new_empty(0).cpu().numpy().dtype

    def __len__(self) -> int:
        """How many points there are."""
        return self.shape[0]

    def __getitem__(self, rows: slice | NDArray[np.integer]) -> NDArray[Any]:
        """Some points, on the host."""
        host: NDArray[Any] = self.tensor[rows].cpu().numpy()
        return host

    def all_finite(self) -> bool:
        """Whether nothing is NaN or infinite, found on the device."""
        return not self.tensor.is_floating_point() or bool(self.tensor.isfinite().all().item())

    def moments(self, pivot: NDArray[np.float64], unit: float) -> tuple[NDArray[np.float64], float]:
        """Mean of (x - pivot) * unit and the summed squares of deviations from it, in float64 on the device."""
        flat = self.tensor.reshape(len(self), -1)
        origin = flat.new_tensor(pivot, dtype=flat.new_empty(0).double().dtype)
        blocks = [flat[start : start + 8192] for start in range(0, len(flat), 8192)]
        mean = sum(((block.double() - origin) * unit).sum(0) for block in blocks) / len(flat)
        variation = sum(float((((block.double() - origin) * unit - mean) ** 2).sum().item()) for block in blocks)
        return mean.cpu().numpy(), variation
