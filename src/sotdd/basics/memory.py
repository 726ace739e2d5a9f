"""How much memory this process can still use, and what is said when that is not enough."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError

# How libraries say that they got no memory, or no thread, where they do not raise a MemoryError.
_SIGNS = ("can't start new thread", "Failed to launch worker thread", "malloc of size", "allocation_failed",
          "Cannot allocate memory", "failed to map segment")  # fmt: skip


def available_bytes() -> int:
    """How many bytes this process can still use, as far as the system says."""
    free = _free_by_kernel()
    limit, used = (_read_number(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    free = free if limit is None or used is None else min(free, limit - used)
    return max(0, min(free, _allowed()))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory was too short, in whatever way."""
    if isinstance(error, SotddError):
        return False
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    return any(sign in str(error) for sign in _SIGNS)


def beyond_memory(what: str, error: BaseException, advice: str) -> SotddError:
    """The error for what does not fit, with what would."""
    said = f"{first_line(error)}; " if str(error) else ""
    return SotddError(f"{what} does not fit into memory ({said}{available_bytes() / 1e9:,.1f} GB are free): {advice}.")


def _allowed() -> int:
    """What the user's own limit (``ulimit -v``) leaves."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return 1 << 62
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        return limit - pages * resource.getpagesize()
    except (ImportError, OSError):  # not on this system
        return 1 << 62


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
