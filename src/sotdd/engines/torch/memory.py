"""How much of a device's memory is free, and how many projections fit in it."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from sotdd.basics.errors import SotddError
from sotdd.inputs.data import LabelledData
from sotdd.projections.draws import BLOCK

# Of the memory that is free: for datasets that stay on the device, and for one chunk's work.
_RESIDENT_SHARE = 0.4
_CHUNK_SHARE = 0.5
# On the processor the engine takes this much memory for a chunk.
_HOST_BYTES = 256 << 20
# Bytes per value of the dataset at work: projections, their sort, and the indices that torch sorts along.
_WORK_BYTES = 24
_LARGEST_CHUNK = 32 * BLOCK
# Directions that are drawn ahead may take this much of the processor's memory.
_DRAWN_BYTES = 1 << 30


def free_bytes(device: torch.device) -> int:
    """Memory that a chunk may take, what torch holds without using it included."""
    if device.type != "cuda":
        return _HOST_BYTES
    free, _ = torch.cuda.mem_get_info(device)
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(free) + int(unused)


def fitting_chunk(datasets: Sequence[LabelledData], device: torch.device, turn_size: int | None = None) -> int:
    """How many projections of all datasets fit in memory at a time: a multiple of 64, or a power of two of a turn."""
    sizes = [data.n_points for data in datasets]
    per_projection = 4 * sum(sizes) + _WORK_BYTES * max(sizes)
    fitting = int(_CHUNK_SHARE * free_bytes(device)) // per_projection
    if turn_size is not None:  # projections of a turn share most of their work
        largest = max(_LARGEST_CHUNK, turn_size)
        return min(largest, 1 << max(BLOCK, fitting).bit_length() - 1)
    fitting = min(fitting, _DRAWN_BYTES // (3 * 4 * datasets[0].n_features))
    return max(1, min(_LARGEST_CHUNK, fitting) // BLOCK) * BLOCK


def can_stay(datasets: Sequence[LabelledData], device: torch.device) -> bool:
    """Whether the points of all datasets fit on the device for the whole comparison."""
    needed = 4 * sum(data.n_points * data.n_features for data in datasets)
    return device.type == "cuda" and 2 * needed <= _RESIDENT_SHARE * free_bytes(device)


def can_double(points: torch.Tensor) -> bool:
    """Whether some more copies of points would leave most of what is free to the work on them."""
    return 10 * points.numel() * points.element_size() <= free_bytes(points.device)


def halved(size: int, device: torch.device, error: torch.OutOfMemoryError) -> int:
    """Half as many rows, after memory ran out, or an error where there is a single one."""
    if size <= 1:
        raise SotddError(
            f"a single projection does not fit in the memory of {device}: use device='cpu', or fewer points."
        ) from error
    give_back(device)
    return size // 2


def give_back(device: torch.device) -> None:
    """Give memory that torch holds without using it back to the device."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
