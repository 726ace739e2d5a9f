"""Which engine does the work: asked for, or chosen by where the data are and how much there is to do."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, get_args

from sotdd.basics.checks import check_choice
from sotdd.basics.errors import SotddError, require
from sotdd.engines.cpu.engine import CpuEngine
from sotdd.engines.protocol import Engine, Precision
from sotdd.inputs.data import LabelledData
from sotdd.inputs.tensors import DeviceFeatures

if TYPE_CHECKING:
    from sotdd.engines.torch.engine import TorchEngine

# Multiplications from which on a GPU is worth the loading of torch and the copying of data: some
# seconds of work for a few cores.
_WORTH_A_GPU = 2e11


def engine_for(
    device: str, datasets: Sequence[LabelledData], n_projections: int, precision: Precision = "float32"
) -> Engine:
    """The engine for a ``device`` argument."""
    check_choice(precision, "precision", get_args(Precision))
    name = str(device)  # a torch.device reads as its name
    if name == "cpu":
        return CpuEngine()
    if name != "auto":
        return _torch_engine(name, precision)
    homes = {str(data.features.tensor.device) for data in datasets if isinstance(data.features, DeviceFeatures)}
    if len(homes) > 1:
        raise SotddError(f"the datasets are on {' and '.join(sorted(homes))}: move them to one device, or name one.")
    if homes:
        return _torch_engine(homes.pop(), precision)
    work = n_projections * sum(data.n_points * data.n_features for data in datasets)
    if work >= _WORTH_A_GPU and _has_gpu():
        return _torch_engine("cuda", precision)
    return CpuEngine()


def _torch_engine(device: str, precision: Precision) -> TorchEngine:
    require("torch", f"device={device!r}", "'sotdd[torch]'")
    from sotdd.engines.torch.engine import TorchEngine

    return TorchEngine(device, precision)


def _has_gpu() -> bool:
    """Whether torch could use a GPU; it is loaded to ask only where there is a driver for one."""
    if find_spec("torch") is None or not _has_driver():
        return False
    import torch

    return bool(torch.cuda.is_available())


def _has_driver() -> bool:
    try:
        ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return False
    return True
