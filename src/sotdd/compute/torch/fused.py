"""Loops of our own on CUDA: fused by Triton, where it is installed, and a sort by keys alone, with cuda-core.

Each fused loop passes over memory once. Without Triton the torch engine does the same in plain torch, and without
cuda-core rows are sorted by torch, whose sort also moves indices.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import torch

_WIDTH = 1024  # values that one program takes at a time
_NARROW = 64  # the same, where it keeps a sum of every power
_MOST_PROGRAMS = 65_535  # along the second axis of a grid
LARGEST_ROTATION = 1 << 14  # dimensions of a rotation that one program can hold
_ROTATION_VALUES = 1 << 13  # values that it works on


def available(rows: torch.Tensor) -> bool:
    """Whether these rows are where Triton can reach them."""
    return rows.is_cuda and _kernels() is not None


def scale_points(
    raw: torch.Tensor, position: torch.Tensor | None, centre: torch.Tensor, inverse: torch.Tensor, out: torch.Tensor
) -> None:
    """Write points (n, d) centred and scaled, in float64, each to its place in out (n, d), float32."""
    grouped = position is None
    with torch.cuda.device(out.device):
        _kernels().scale_points[(len(raw),)](
            raw, out if grouped else position, centre, inverse, out, raw.shape[1], GROUPED=grouped, WIDTH=_WIDTH
        )


def sum_points(points: torch.Tensor, offsets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sums (C, d) of grouped points (n, d) over each class, and the squared length (n,) of each, in float64."""
    (n, d), n_classes = points.shape, len(offsets) - 1
    sums, squares = (torch.empty(shape, dtype=torch.float64, device=points.device) for shape in ((n_classes, d), n))
    with torch.cuda.device(points.device):
        _kernels().sum_points[(n_classes, -(-d // _NARROW))](points, offsets, sums, d, ROWS=32, WIDTH=_NARROW)
        _kernels().square_lengths[(n,)](points, squares, d, WIDTH=_WIDTH)
    return sums, squares


def average_classes(rows: torch.Tensor, offsets: torch.Tensor, coefficients: torch.Tensor, cut: float) -> torch.Tensor:
    """Means (B, C) of each row's polynomial, at values cut to ±cut, over each class; sums in float64."""
    n_classes = len(offsets) - 1
    means = torch.empty((len(rows), n_classes), dtype=torch.float64, device=rows.device)
    with torch.cuda.device(rows.device):
        _kernels().average_classes[(len(rows), n_classes)](
            rows, offsets, coefficients, means, rows.shape[1], n_classes, coefficients.shape[1], float(cut),
            MOST=1 << (coefficients.shape[1] - 1).bit_length(), WIDTH=_WIDTH,
        )  # fmt: skip
    return means


def shift_rows(rows: torch.Tensor, codes: torch.Tensor, weights: torch.Tensor, terms: torch.Tensor) -> None:
    """Turn grouped feature projections into data point projections, in place."""
    n, n_classes = rows.shape[1], terms.shape[1]
    with torch.cuda.device(rows.device):
        _kernels().shift_rows[(len(rows), -(-n // _WIDTH))](rows, codes, weights, terms, n, n_classes, WIDTH=_WIDTH)


def place_labels(
    rows: torch.Tensor, offsets: torch.Tensor, cut: float, counted: torch.Tensor, inverse: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and deviation (B, J, 2) of projected points under draws of label terms, and what `Sorted` has as values.

    From sums over each class of t, t², t⁴ and t⁶, then of t, …, t⁸ with t cut to ±cut; ``inverse`` (12,) holds 1 / k!
    for their orders, and counted (B, 10, J) what they count by in each draw.
    """
    n_classes, n_draws = len(offsets) - 1, counted.shape[2]
    shapes = (n_classes, len(inverse)), (n_draws, 2), (5,)
    sums, places, values = (
        torch.empty((len(rows), *shape), dtype=torch.float64, device=rows.device) for shape in shapes
    )
    with torch.cuda.device(rows.device):
        _kernels().class_powers[(len(rows), n_classes)](
            rows, offsets, sums, rows.shape[1], n_classes, float(cut), WIDTH=_NARROW, num_warps=2
        )
        _kernels().place_labels[(len(rows),)](
            sums, offsets, inverse, counted, places, values, rows.shape[1], n_classes, n_draws,
            KNOWN=counted.shape[1] - 1, DRAWS=max(16, 1 << (n_draws - 1).bit_length()),
        )  # fmt: skip
    return places, values


def transport(rows: Sequence[torch.Tensor], pairs: Sequence[tuple[int, int]], p: float) -> torch.Tensor:
    """W_p^p (B, P) between the sorted rows of every pair of datasets, float64."""
    device, count = rows[0].device, len(rows[0])
    lengths = [part.shape[1] for part in rows]
    longer_first = [side for i, j in pairs for side in ((i, j) if lengths[i] >= lengths[j] else (j, i))]
    numbers = [*(part.data_ptr() for part in rows), *lengths, *longer_first]
    table = torch.tensor(numbers, dtype=torch.int64).pin_memory().to(device, non_blocking=True)
    where, sizes, members = table.split([len(rows), len(rows), len(longer_first)])  # type: ignore[no-untyped-call]
    costs = torch.empty((count, len(pairs)), dtype=torch.float64, device=device)
    with torch.cuda.device(device):
        for start in range(0, len(pairs), _MOST_PROGRAMS):
            stop = min(len(pairs), start + _MOST_PROGRAMS)
            _kernels().transport[(count, stop - start)](
                where, sizes, members[2 * start :], costs[:, start:], len(pairs), float(p),
                POWER=int(p) if p in (1, 2) else 0, WIDTH=_WIDTH,
            )  # fmt: skip
    return costs


def project_rotation(
    points: torch.Tensor, signs: torch.Tensor, scales: torch.Tensor, first: int, out: torch.Tensor
) -> None:
    """Write projections (B, m) of points (m, d) by rows of a rotation with signs (3, D), from ``first`` on."""
    (m, d), size = points.shape, signs.shape[1]
    levels = size.bit_length() - 1
    side_by_side = max(1, min(16, _ROTATION_VALUES // size))
    with torch.cuda.device(points.device):
        _kernels().project_rotation[(-(-m // side_by_side),)](
            points, signs, scales, out, m, d, out.stride(0), first, len(scales), points.stride(0),
            P=side_by_side, A=1 << levels // 2, B=1 << levels - levels // 2,
            num_warps=max(4, min(16, side_by_side * size // 2048)),
        )  # fmt: skip


@cache
def _kernels() -> Any:  # noqa: ANN401  # a module, or None without Triton
    try:
        from sotdd.compute.kernels import triton as programs
    except ImportError:
        return None
    return programs


# ------------------------------------------------------------------ rows sorted by keys alone

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
    blocks: int = 1  # that share a row


# Measured on an H200. Longer rows leave room for fewer blocks, so each takes more threads; the longest are scattered
# outside of shared memory.
_WAYS = (
    _Way(4_000, threads=128, resident=8, sample=256, cells=4),
    _Way(6_000, threads=256, resident=5, sample=256, cells=8),
    _Way(14_000, threads=512, resident=2, sample=512, cells=16),
    _Way(33_000, threads=1024, resident=1, sample=1024, cells=64),
    _Way(66_000, threads=768, resident=1, sample=1024, cells=48, blocks=2),
    _Way(_LONGEST, threads=1024, resident=1, sample=1024, cells=32),
)


def sort_in_place(rows: torch.Tensor) -> bool:
    """Sort every row (B, n) ascending, in place, or return False where that is left to torch."""
    count, n = rows.shape
    if not rows.is_cuda or not _SHORTEST <= n <= _LONGEST or count < _FEWEST or not rows.is_contiguous():
        return False
    alone = torch.cuda.get_device_capability(rows.device) < (9, 0)  # clusters came with Hopper
    way = next(way for way in _WAYS if n <= way.longest and not (alone and way.blocks > 1))
    sort = _make_sorter(rows.device.index, way)
    if sort is None:
        return False
    sort(rows)
    return True


@cache
def _make_sorter(device: int, way: _Way) -> Callable[[torch.Tensor], None] | None:
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
        source = files("sotdd.compute.kernels").joinpath("sort.cu").read_text(encoding="utf-8")
        names = ("threads", "resident", "sample", "cells", "blocks")
        macros = "".join(f"#define {name.upper()} {getattr(way, name)}\n" for name in names)
        program = Program(macros + source, "c++", options)
        kernel: Any = program.compile("cubin", cache=FileStreamProgramCache()).get_kernel("sort_rows")
        limits = at_work.properties
        # What a block has of shared memory beside what the kernel needs itself.
        room = min(
            limits.max_shared_memory_per_block_optin,
            limits.max_shared_memory_per_multiprocessor // way.resident - limits.reserved_shared_memory_per_block,
        )
        room -= kernel.attributes.shared_size_bytes
        limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        (refused,) = driver.cuKernelSetAttribute(
            limit, room, driver.CUkernel(int(kernel.handle)), driver.CUdevice(device)
        )
        if int(refused):
            raise RuntimeError(f"the device refuses {room} bytes of shared memory for a sort: {refused}")

    def sort(rows: torch.Tensor) -> None:
        count, n = rows.shape
        clusters = min(count, way.resident * limits.multiprocessor_count // way.blocks)
        share = -(-n // way.blocks)
        stage = 4 * max(way.sample, way.threads // 32 * (256 + 8))  # that warps stage values in, some for padding
        noted = max(stage, 4 * -(-share // 2))  # the cells of its share take two bytes each
        capacity = min(n, (room - noted) // 4) if 4 * share + noted <= room else 0
        inside = noted <= room
        spare = torch.empty(1 if capacity == n else clusters * (n + -(-n // 2)), device=rows.device)
        with torch.cuda.device(device):
            stream = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
            config = LaunchConfig(
                grid=clusters,
                cluster=way.blocks if way.blocks > 1 else None,
                block=way.threads,
                shmem_size=4 * capacity + (noted if inside else stage),
            )
            sizes = (ctypes.c_int32(size) for size in (count, n, capacity, inside))
            launch(stream, config, kernel, rows.data_ptr(), spare.data_ptr(), *sizes)

    return sort
