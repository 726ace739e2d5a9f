"""Rows sorted by keys alone, by a kernel of our own, where cuda-core is installed; torch's sort also moves indices."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import torch

# Shorter rows are sorted as fast by torch, and so are those whose cells are too large for a warp. With few rows most of
# the device would idle: a block of threads takes one.
_SHORTEST, _LONGEST, _FEWEST = 1024, 400_000, 64


@dataclass(frozen=True)
class _Way:
    """How rows up to some length are sorted fastest; see ``sort.cu``."""

    longest: int
    threads: int
    resident: int  # blocks of threads that a processor is to have at work
    sample: int
    cells: int
    per_lane: int

    @property
    def macros(self) -> str:
        """What the kernel is compiled with."""
        named = {
            "THREADS": self.threads, "RESIDENT": self.resident, "SAMPLE": self.sample, "CELLS": self.cells,
            "PER_LANE": self.per_lane,
        }  # fmt: skip
        return "".join(f"#define {name} {value}\n" for name, value in named.items())


# Rows are read once for each of their parts: beyond this many it is faster to scatter them outside of shared memory.
_MOST_PARTS = 2
# Bytes of a value, and of the number of its cell.
_VALUE, _CELL = 4, 2
# Measured on an H200. Longer rows leave room for fewer blocks, so each takes more threads.
_WAYS = (
    _Way(4_000, threads=128, resident=8, sample=256, cells=4, per_lane=4),
    _Way(6_000, threads=256, resident=5, sample=256, cells=8, per_lane=4),
    _Way(14_000, threads=512, resident=2, sample=512, cells=16, per_lane=8),
    _Way(100_000, threads=1024, resident=1, sample=1024, cells=16, per_lane=8),
    _Way(_LONGEST, threads=1024, resident=1, sample=1024, cells=32, per_lane=8),
)


def sort_in_place(rows: torch.Tensor) -> bool:
    """Sort every row (B, n) ascending, in place, or return False where that is left to torch."""
    count, n = rows.shape
    if not rows.is_cuda or not _SHORTEST <= n <= _LONGEST or count < _FEWEST or not rows.is_contiguous():
        return False
    sort = _sorter(rows.device.index, next(way for way in _WAYS if n <= way.longest))
    if sort is None:
        return False
    sort(rows)
    return True


def _placing(n: int, room: int) -> tuple[int, bool]:
    """How many of n values are in this much shared memory at a time, and whether the cells of all are."""
    if _VALUE * n + _CELL * (n + 1) <= room:
        return n, True
    part = room // _VALUE
    return (part, False) if n <= _MOST_PARTS * part else (0, _CELL * (n + 1) <= room)


@cache
def _sorter(device: int, way: _Way) -> Callable[[torch.Tensor], None] | None:
    """What sorts rows on a device; None without cuda-core. Compiled once per machine: cuda-core keeps the program."""
    try:
        from cuda.bindings import driver
        from cuda.core import Device, LaunchConfig, Program, ProgramOptions, Stream, launch
        from cuda.core.utils import FileStreamProgramCache
    except ImportError:  # not installed, or older than the programs that it keeps
        return None

    with torch.cuda.device(device):
        at_work = Device(device)
        at_work.set_current()
        options = ProgramOptions(arch=f"sm_{at_work.arch}", std="c++17")
        source = files("sotdd.kernels").joinpath("sort.cu").read_text(encoding="utf-8")
        program = Program(way.macros + source, "c++", options)
        kernel: Any = program.compile("cubin", cache=FileStreamProgramCache()).get_kernel("sort_rows")
        processors = torch.cuda.get_device_properties(device).multi_processor_count
        # What is left of shared memory beside what the kernel needs itself.
        room = at_work.properties.max_shared_memory_per_block_optin - kernel.attributes.shared_size_bytes
        limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        (refused,) = driver.cuKernelSetAttribute(
            limit, room, driver.CUkernel(int(kernel.handle)), driver.CUdevice(device)
        )
        if int(refused):
            raise RuntimeError(f"the device refuses {room} bytes of shared memory for a sort: {refused}")

    def sort(rows: torch.Tensor) -> None:
        count, n = rows.shape
        blocks = min(count, way.resident * processors)
        capacity, inside = _placing(n, room)
        spare = torch.empty(1 if capacity == n else blocks * (n + -(-n // 2)), device=rows.device)
        with torch.cuda.device(device):
            stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
            needed = _VALUE * capacity + inside * _CELL * (n + 1)
            config = LaunchConfig(grid=blocks, block=way.threads, shmem_size=needed)
            sizes = (ctypes.c_int32(size) for size in (count, n, capacity, inside))
            launch(stream, config, kernel, rows.data_ptr(), spare.data_ptr(), *sizes)

    return sort
