"""How many threads BLAS uses: one, wherever results must have the same bits for any number of threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import threadpoolctl


def _set_threads(library: threadpoolctl.LibController, count: int) -> None:
    """Set how many threads a BLAS uses, whichever thread asks: threadpoolctl listens to one of them at a time."""
    release = getattr(library, "clear_controlling_thread", lambda **_: None)
    release(force=True)
    library.set_num_threads(count)
    release(force=True)


@cache
def find_libraries() -> list[threadpoolctl.LibController]:
    """The BLAS libraries that are loaded."""
    return list(threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers)


class _SerialBlas:
    """Holds BLAS to one thread while anyone is inside, and restores it when the last one leaves.

    The number belongs to the whole process, so callers in several threads share one hold. A child that is forked
    meanwhile has none of those threads: it begins anew.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._at_work = 0  # those of them that have threads of their own
        self._before: list[int] = []
        self._held_at_fork = False

    def enter(self, *, at_work: bool = True) -> int:
        """Come in; returns a fair share, for those at work, of the threads that BLAS was allowed."""
        with self._lock:
            if self._inside == 0:
                if not self._held_at_fork:  # otherwise what was found is still what to restore
                    self._before = [int(library.num_threads or 1) for library in find_libraries()]
                self._held_at_fork = False
                for library in find_libraries():
                    _set_threads(library, 1)
            self._inside += 1
            self._at_work += at_work
            cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
            return max(1, min([cores, *self._before]) // max(1, self._at_work))

    def leave(self, *, at_work: bool = True) -> None:
        """Go out; the last one restores what was found."""
        with self._lock:
            if self._inside == 0:  # forked inside the block: the child has begun anew
                return
            self._inside -= 1
            self._at_work -= at_work
            if self._inside == 0:
                for library, threads in zip(find_libraries(), self._before, strict=True):
                    _set_threads(library, threads)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """One thread for the time of a ``with`` block or of a function."""
        self.enter(at_work=False)
        try:
            yield
        finally:
            self.leave(at_work=False)

    def begin_anew(self) -> None:
        """In a forked child: nobody is inside, and nobody holds the lock."""
        self._lock = threading.Lock()
        self._held_at_fork = self._inside > 0
        self._inside = self._at_work = 0


serial_blas = _SerialBlas()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=serial_blas.begin_anew)
