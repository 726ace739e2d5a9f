"""How much memory this process can still use."""

from __future__ import annotations

import os
from pathlib import Path


def available_bytes() -> int:
    """How many bytes this process can still use, as far as the system says."""
    free = _free_by_kernel()
    limit, used = (_read_number(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    return free if limit is None or used is None else max(0, min(free, limit - used))


def _free_by_kernel() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        if hasattr(os, "sysconf"):
            return int(os.sysconf("SC_PHYS_PAGES")) * int(os.sysconf("SC_PAGE_SIZE"))
        return 8 << 30


def _read_number(path: str) -> int | None:
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):  # no control group, or no limit ("max")
        return None
