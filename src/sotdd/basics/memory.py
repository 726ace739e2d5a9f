"""What is held in memory: a guard of what a call will take, and properties that are computed once."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

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
    """How many bytes this process can still use: the least of what the system, a container and a limit leave."""
    free = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 8 << 30]
    with suppress(OSError, KeyError):
        known = dict(line.split(":") for line in _read("/proc/meminfo").splitlines())
        free.append(1024 * int(known["MemAvailable"].split()[0]))
    with suppress(OSError, ValueError):  # no control group, or no limit ("max")
        free.append(int(_read("/sys/fs/cgroup/memory.max")) - int(_read("/sys/fs/cgroup/memory.current")))
    with suppress(OSError, ImportError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            free.append(limit - int(_read("/proc/self/statm").split()[0]) * resource.getpagesize())
    return max(0, min(free))


def _read(path: str) -> str:
    return Path(path).read_text(encoding="ascii")


def empty_lines(count: int) -> NDArray[np.float32]:
    """An array of float32 that begins where a line of the processor's cache does.

    Loops over whole lines of one that begins elsewhere read and write two for each.
    """
    spare = np.empty(count + 16, np.float32)
    first = -(spare.ctypes.data // 4) % 16
    return spare[first : first + count]


class kept_property(Generic[_T]):  # noqa: N801  # used as a decorator
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
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: object, owner: type | None = None) -> _T:
        """Compute the value and write it over this property of the instance; the class has the property itself."""
        if instance is None:
            return self  # type: ignore[return-value]  # for documentation alone
        return vars(instance).setdefault(self._function.__name__, self._function(instance))  # type: ignore[no-any-return]
