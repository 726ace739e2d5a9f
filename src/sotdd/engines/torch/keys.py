"""Rows sorted by keys alone, by a kernel of our own, where cuda-core is installed; torch's sort also moves indices."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

import torch

# Shorter rows are sorted as fast by torch. With few rows most of the device would idle: a block of threads takes one.
_SHORTEST, _FEWEST = 2048, 64
# What the kernel keeps of a value has this many bits for its rank.
_LONGEST = 1 << 21
_THREADS = 512


def sort_in_place(rows: torch.Tensor) -> bool:
    """Sort every row (B, n) ascending, in place, or return False where that is left to torch."""
    count, n = rows.shape
    if not rows.is_cuda or not _SHORTEST <= n < _LONGEST or count < _FEWEST or not rows.is_contiguous():
        return False
    launch = _launcher(rows.device.index)
    if launch is None:
        return False
    launch(rows, torch.empty_like(rows), torch.empty_like(rows))
    return True


@cache
def _launcher(device: int) -> Callable[..., None] | None:
    """What sorts rows on a device; None without cuda-core. Compiled once per machine: cuda-core keeps the program."""
    if find_spec("cuda") is None or find_spec("cuda.core") is None:
        return None
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, Stream, launch
    from cuda.core.utils import FileStreamProgramCache

    with torch.cuda.device(device):
        at_work = Device(device)
        at_work.set_current()
        options = ProgramOptions(arch=f"sm_{at_work.arch}", std="c++17")
        program = Program(files("sotdd.kernels").joinpath("sort.cu").read_text(encoding="utf-8"), "c++", options)
        kernel: Any = program.compile("cubin", cache=FileStreamProgramCache()).get_kernel("sort_rows")

    def sort(rows: torch.Tensor, *spares: torch.Tensor) -> None:
        with torch.cuda.device(device):
            stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
            config = LaunchConfig(grid=len(rows), block=_THREADS)
            launch(stream, config, kernel, *(part.data_ptr() for part in (rows, *spares)), _int32(rows.shape[1]))

    return sort


def _int32(value: int) -> Any:  # noqa: ANN401  # as the kernel takes it
    import ctypes

    return ctypes.c_int32(value)
