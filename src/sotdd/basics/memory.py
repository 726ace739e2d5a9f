"""How much memory this process can still use, and what is said when that is not enough."""

from __future__ import annotations

import errno
import math
import os
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

from sotdd.basics.checks import first_line
from sotdd.basics.errors import OutOfMemory, SotddError

# How libraries say that they got no memory, or no thread, where they do not raise a MemoryError.
_SIGNS = ("can't start new thread", "Failed to launch worker thread", "malloc of size", "allocation_failed",
          "Cannot allocate memory", "can't allocate memory", "out of memory", "failed to map segment")  # fmt: skip

# What NumPy and torch say of an allocation, without what is only for their developers.
_ALLOCATION = re.compile(r"([Uu]nable|[Tt]ried) to allocate [\d.,]+ \w+")

_Call = TypeVar("_Call", bound=Callable[..., Any])


def available_bytes() -> int:
    """How many bytes this process can still use, as far as the system says."""
    free = min(_free_by_kernel(), _free_by_limit())
    limit, used = (_read_number(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    return int(free if limit is None or used is None else max(0, min(free, limit - used)))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory was too short, in whatever way."""
    if isinstance(error, SotddError):
        return False
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    return any(sign in str(error) for sign in _SIGNS)


def within_memory(instead: str) -> Callable[[_Call], _Call]:
    """Make a call say in one line that memory ran out, how much was asked for, and what to do instead.

    Of calls that call each other, the outermost has the last word: it is the one that the user knows.
    """

    def decorate(call: _Call) -> _Call:
        @wraps(call)
        def guarded(*arguments: object, **settings: object) -> object:
            try:
                return call(*arguments, **settings)
            except (MemoryError, RuntimeError, OutOfMemory) as error:
                if not isinstance(error, OutOfMemory) and not is_out_of_memory(error):
                    raise
                why = _ALLOCATION.search(str(error))
                asked = f" ({why[0][0].lower()}{why[0][1:]})" if why else ""
                raise OutOfMemory(f"{guarded.__qualname__} ran out of memory{asked}: {instead}.") from error

        return cast("_Call", guarded)

    return decorate


def beyond_memory(what: str, error: BaseException, advice: str) -> OutOfMemory:
    """The error for what does not fit, with what would."""
    said = f"{first_line(error)}; " if str(error) else ""
    return OutOfMemory(f"{what} does not fit into memory ({said}{available_bytes() / 1e6:,.0f} MB are free): {advice}.")


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
