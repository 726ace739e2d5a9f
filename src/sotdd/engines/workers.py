"""Threads that share the work, each with a BLAS of its own size: one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import threadpoolctl

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_P = ParamSpec("_P")


@cache
def _blas() -> threadpoolctl.ThreadpoolController:
    return threadpoolctl.ThreadpoolController().select(user_api="blas")


def available_threads() -> int:
    """As many threads as BLAS may use in this process, and never more than it has cores.

    So ``OPENBLAS_NUM_THREADS`` and ``threadpoolctl.threadpool_limits`` hold here too.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = [int(library["num_threads"]) for library in _blas().info()]
    return max(1, min([cores, *allowed]))


class _SerialBlas:
    """Holds BLAS to one thread while anyone is inside, and restores it when the last one leaves.

    The setting belongs to the whole process, so callers in several threads share one hold.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limits: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limits = _blas().limit(limits=1)
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limits.restore_original_limits()


_serial_blas = _SerialBlas()


class Workers:
    """A pool of threads for the time of a ``with`` block."""

    def __init__(self, threads: int | None = None) -> None:
        """Take the given number of threads, or as many as the process allows."""
        self.threads = threads or available_threads()
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Workers:
        """Start the threads."""
        _serial_blas.enter()
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="sotdd")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the threads; work not begun is dropped."""
        try:
            assert self._pool is not None
            self._pool.shutdown(cancel_futures=True)
        finally:
            _serial_blas.leave()

    def submit(self, function: Callable[_P, _Result], *args: _P.args, **kwargs: _P.kwargs) -> Future[_Result]:
        """Begin one piece of work."""
        assert self._pool is not None
        return self._pool.submit(function, *args, **kwargs)

    def each(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        """Do one piece of work per item and wait; the first failure, in the order of items, is raised."""
        assert self._pool is not None
        return list(self._pool.map(function, items))
