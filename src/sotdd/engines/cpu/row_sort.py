"""Rows are sorted by NumPy or by their digits, whichever this machine does faster; the bits are the same.

Short rows are NumPy's and long ones are sorted by digits, but where one gives way to the other depends on the
processor: NumPy's vector sort is the faster one up to any length on some, and microcoded on others. So both are timed
once, when there is enough to sort, and the choice is kept beside the compiled loops for later processes.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.files import write_whole
from sotdd.kernels.rows import SHORT_ROW, radix_sort_rows
from sotdd.kernels.sorting import sort_by_numpy

Rows = NDArray[np.float32]

# Nothing is timed before this many values of long rows were sorted: 10 ms of work or more.
_ENOUGH = 1 << 22

# Both ways are timed on rows of these lengths, with this many values, so many times each.
_LENGTHS = (2048, 8192, 32768)
_VALUES = 1 << 16
_TIMES = 3

# Rows that no processor was seen to sort faster by digits are longer than any.
_NEVER = 1 << 62


class RowSort:
    """Sorts rows in place, those of ``limit`` values and more by their digits.

    Parameters
    ----------
    folder
        Where the limit of this machine is kept; None for nowhere.
    """

    def __init__(self, folder: Path | None) -> None:
        self.limit: int = SHORT_ROW  # until both ways were timed
        self._folder = folder
        self._left = _ENOUGH
        self._settling = threading.Lock()

    def __call__(self, rows: Rows) -> None:
        """Sort every row ascending."""
        if rows.shape[1] >= SHORT_ROW and self._left > 0:
            self._left -= rows.size
            if self._left <= 0 and self._settling.acquire(blocking=False):  # one thread settles it, the others go on
                self.limit = self._settled()
        if rows.shape[1] < SHORT_ROW:
            rows.sort(axis=1)
        elif rows.shape[1] < self.limit:
            sort_by_numpy(rows)
        else:
            radix_sort_rows(rows)

    def _settled(self) -> int:
        """The limit that was found before, or else now."""
        place = None if self._folder is None else self._folder / f"row-sort-{_machine()}.json"
        if place is not None:
            found = _read(place)
            if found is not None:
                return found
        limit = timed_limit()
        if place is not None:
            _write(limit, place)
        return limit


def timed_limit() -> int:
    """The length from which on rows are sorted faster by their digits."""
    rng, limit = np.random.default_rng(0), _NEVER
    for length in reversed(_LENGTHS):
        rows = rng.standard_normal((_VALUES // length, length), np.float32)
        by_numpy: list[float] = []
        by_digits: list[float] = []
        for _ in range(_TIMES):
            for sort, seconds in ((sort_by_numpy, by_numpy), (radix_sort_rows, by_digits)):
                own = rows.copy()
                began = time.thread_time()
                sort(own)
                seconds.append(time.thread_time() - began)
        if min(by_numpy) < min(by_digits):
            break
        limit = length
    return SHORT_ROW if limit == _LENGTHS[0] else limit


def _machine() -> str:
    """What the choice depends on, in a few letters."""
    from llvmlite.binding import get_host_cpu_features, get_host_cpu_name

    parts = (get_host_cpu_name(), get_host_cpu_features().flatten(), np.__version__)
    return sha256(" ".join(parts).encode()).hexdigest()[:16]


def _read(place: Path) -> int | None:
    """A limit that was kept; None where there is none that makes sense."""
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        limit = json.loads(place.read_text(encoding="ascii"))["limit"]
        if limit in (SHORT_ROW, *_LENGTHS, _NEVER) and type(limit) is int:
            return limit
    return None


def _write(limit: int, place: Path) -> None:
    """Keep a limit, whole or not at all; a folder that cannot be written to is no harm."""
    with suppress(SotddError, OSError):
        write_whole(place, json.dumps({"limit": limit}).encode())


def _cache_folder() -> Path | None:
    """Where compiled loops are kept, which depends on the machine as this choice does."""
    folder = radix_sort_rows.stats.cache_path  # type: ignore[attr-defined]  # a compiled loop has them
    return None if folder is None else Path(folder)


sort_rows: RowSort = RowSort(_cache_folder())
