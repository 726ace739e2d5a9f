"""How much memory this process can still use."""

from __future__ import annotations

import math
import os
from pathlib import Path


def available_bytes() -> int:
    """How many bytes this process can still use, as far as the system says."""
    free = min(_free_by_kernel(), _free_by_limit())
    limit, used = (_read_number(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    return int(free if limit is None or used is None else max(0, min(free, limit - used)))


def _free_by_kernel() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        if hasattr(os, "sysconf"):
            return int(os.sysconf("SC_PHYS_PAGES")) * int(os.sysconf("SC_PAGE_SIZE"))
        return 8 << 30


def _free_by_limit() -> float:
    """What is left of the address space that this process may have; endless where that has no limit."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return math.inf
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        return max(0, limit - pages * resource.getpagesize())
    except (ImportError, OSError):
        return math.inf


def _read_number(path: str) -> int | None:
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):  # no control group, or no limit ("max")
        return None
