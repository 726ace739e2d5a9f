"""Rows sorted by keys alone, by a kernel of our own, where cuda-core is installed; torch's sort also moves indices."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

import torch

# Shorter rows are sorted as fast by torch. With few rows most of the device would idle: a block of threads takes one.
_SHORTEST, _FEWEST = 2048, 64

# Long rows take more threads each. Few blocks of them are at work, so that what they scatter to stays in the cache.
_LONG_ROW = 1 << 15
_THREADS_LONG, _THREADS_SHORT, _BLOCKS = 1024, 512, 2


def sort_in_place(rows: torch.Tensor) -> bool:
    """Sort every row (B, n) ascending, in place, or return False where that is left to torch."""
    count, n = rows.shape
    if not rows.is_cuda or n < _SHORTEST or count < _FEWEST or not rows.is_contiguous():
        return False
    launch = _launcher(rows.device.index, _THREADS_LONG if n >= _LONG_ROW else _THREADS_SHORT)
    if launch is None:
        return False
    processors = torch.cuda.get_device_properties(rows.device).multi_processor_count
    launch(rows, torch.empty((min(count, _BLOCKS * processors), n), device=rows.device))
    return True


@cache
def _launcher(device: int, threads: int) -> Callable[[torch.Tensor, torch.Tensor], None] | None:
    """What sorts rows on a device; None without cuda-core. Compiled once per machine: cuda-core keeps the program."""
    try:
        from cuda.core import Device, LaunchConfig, Program, ProgramOptions, Stream, launch
        from cuda.core.utils import FileStreamProgramCache
    except ImportError:  # not installed, or older than the programs that it keeps
        return None

    with torch.cuda.device(device):
        at_work = Device(device)
        at_work.set_current()
        options = ProgramOptions(arch=f"sm_{at_work.arch}", std="c++17")
        source = files("sotdd.kernels").joinpath("sort.cu").read_text(encoding="utf-8")
        program = Program(f"#define THREADS {threads}\n{source}", "c++", options)
        kernel: Any = program.compile("cubin", cache=FileStreamProgramCache()).get_kernel("sort_rows")

    def sort(rows: torch.Tensor, spare: torch.Tensor) -> None:
        with torch.cuda.device(device):
            stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
            config = LaunchConfig(grid=len(spare), block=threads)
            sizes = (ctypes.c_int32(size) for size in rows.shape)
            launch(stream, config, kernel, rows.data_ptr(), spare.data_ptr(), *sizes)

    return sort
