"""What is held in memory: a guard of what a call will take, and properties that are computed once."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from sotdd.basics.errors import SotddError

_T = TypeVar("_T")

# The share of free memory that a call may take, and the bytes below which nobody asks how much there is.
_SHARE = 0.8
_FEW = 1 << 25


def check_fits(n_bytes: int, what: str, setting: str, value: float, power: int = 1) -> None:
    """Refuse ``what`` if its bytes do not fit, and name the largest value of a setting that does.

    ``value`` is what the setting is now, and the bytes grow with this power of it.
    """
    if n_bytes <= _FEW or n_bytes <= _SHARE * (free := available_bytes()):
        return
    fitting = max(1, math.floor(value * (_SHARE * free / n_bytes) ** (1 / power)))
    raise SotddError(
        f"{what} would take about {n_bytes / 1e9:,.1f} GB of memory, and {free / 1e9:,.1f} GB are free",
        use={setting: fitting},
    )


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


class kept_property(cached_property[_T]):  # noqa: N801  # used as a decorator
    """A property that keeps its first value.

    Until Python 3.12 `functools.cached_property` holds a lock while it computes, one for all instances. A process
    that forks while another thread computes leaves that lock held in the child for good. Without it, two threads may
    both compute the value, and one of them is kept.

    Examples
    --------
    >>> from sotdd.basics.memory import kept_property
    >>> class Circle:
    ...     @kept_property
    ...     def area(self):
    ...         print("computing")
    ...         return 3.14
    >>> circle = Circle()
    >>> circle.area + circle.area
    computing
    6.28
    """

    def __init__(self, function: Callable[[Any], _T]) -> None:
        super().__init__(function)
        self.lock: nullcontext[None] = nullcontext()  # in place of the lock; from Python 3.12 on, nobody looks for it
