"""Threads that share work, and BLAS, which uses one wherever results must have the same bits for any number of them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from typing import TypeVar

import threadpoolctl

from sotdd.basics.checks import check_count

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@cache
def find_libraries() -> list[threadpoolctl.LibController]:
    """The BLAS libraries that are loaded."""
    return list(threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers)


def _set_threads(library: threadpoolctl.LibController, count: int) -> None:
    """Set how many threads a BLAS uses, whichever thread asks: threadpoolctl listens to one of them at a time."""
    release = getattr(library, "clear_controlling_thread", lambda **_: None)
    release(force=True)
    library.set_num_threads(count)
    release(force=True)


# Of each thread: the outermost `Workers` that it entered, and whether it is at work on a part of shared work.
_here = threading.local()


class _SerialBlas:
    """BLAS at one thread while anyone is inside; the last one to leave restores what the first one found.

    The number belongs to the whole process. `threadpoolctl.threadpool_limits` restores what its own caller found, so
    callers that overlap would give BLAS its threads back while others compute, and leave it one thread for good.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = self._callers = 0
        self._found: list[int] = []
        if hasattr(os, "register_at_fork"):  # BLAS has a lock too, which a child would wait for if it were held now
            acquire, release = self._lock.acquire, self._lock.release
            os.register_at_fork(before=acquire, after_in_parent=release, after_in_child=self._begin_anew)

    def _begin_anew(self) -> None:
        """In a forked child nobody is inside; what was found before the fork is still what to restore."""
        self._inside = self._callers = 0
        _here.outer = None
        self._lock.release()

    @contextmanager
    def hold(self, callers: int = 0) -> Iterator[int]:
        """For the time of a block or of a function: a fair share of the threads, among callers that start some."""
        with self._lock:
            if self._inside == 0:
                self._found = self._found or [int(library.num_threads or 1) for library in find_libraries()]
                for library in find_libraries():
                    _set_threads(library, 1)
            self._inside += 1
            self._callers += callers
            cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
            share = max(1, min([cores, *self._found]) // max(1, self._callers))
        try:
            yield share
        finally:
            with self._lock:
                if self._inside > 0:  # not in a child that was forked inside
                    self._inside -= 1
                    self._callers -= callers
                    if self._inside == 0:
                        for library, threads in zip(find_libraries(), self._found, strict=True):
                            _set_threads(library, threads)
                        self._found = []


serial_blas = _SerialBlas()


def _limit_openmp() -> None:
    """Hold BLAS to one thread in a new thread too, where OpenMP keeps a number for each."""
    for library in find_libraries():
        if getattr(library, "threading_layer", "") == "openmp":
            library.set_num_threads(1)


class Workers:
    """Threads for the time of a ``with`` block.

    By default as many as BLAS may use in this process and never more than it has cores, so that
    ``OPENBLAS_NUM_THREADS`` and ``threadpoolctl.threadpool_limits`` hold here too; callers at the
    same time share them. A thread that leaves compiled code waits for the interpreter while others hold it, on many
    cores for longer than a short piece of work takes: pieces should be few, and call few functions each.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads: int | None = None if threads is None else check_count(threads, "threads")
        self.count: int = 0  # threads at work, the caller's among them
        self._outer: Workers | None = None
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Workers:
        """Find how many threads there may be; within another block of the same thread, its threads do the work."""
        self._outer = getattr(_here, "outer", None)
        self._hold: AbstractContextManager[int] = serial_blas.hold(callers=int(self._outer is None))
        share = self._hold.__enter__()
        self.count = self.threads or (share if self._outer is None else self._outer.count)
        _here.outer = self._outer or self
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop the threads; work not begun is dropped."""
        _here.outer = self._outer
        try:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
                self._pool = None
        finally:
            self._hold.__exit__(None, None, None)

    @property
    def free(self) -> int:
        """How many threads work begun here is shared among: this one alone, where it is part of such work."""
        return 1 if getattr(_here, "busy", False) else self.count

    def submit(self, function: Callable[[], _Result]) -> Future[_Result]:
        """Begin one piece of work beside what the caller does; a single thread does it at once."""
        if self.count > 1:
            return self._find_pool().submit(function)
        done: Future[_Result] = Future()
        try:
            done.set_result(function())
        except Exception as error:  # noqa: BLE001  # raised again where the result is asked for
            done.set_exception(error)
        return done

    def each(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        """Do one piece of work per item and wait; the first failure, in the order of items, is raised.

        The caller and other threads take the next item themselves: to hand over thousands of them would be work for
        one thread. A single item is the caller's, so small work meets no other thread.
        """
        all_items = list(items)
        if self.free == 1 or len(all_items) < 2:
            return [function(item) for item in all_items]
        results: dict[int, _Result] = {}
        failures: dict[int, BaseException] = {}
        others: list[Future[None]] = []
        numbers = iter(range(len(all_items)))  # whose next is one step of the interpreter

        def take_items() -> None:
            _here.busy, number = True, 0
            try:
                for number in numbers:
                    results[number] = function(all_items[number])
            except BaseException as error:  # noqa: BLE001  # raised again below, where it is waited for
                failures[number] = error
                list(numbers)  # nothing more is begun; all that comes before is
            finally:
                _here.busy = False

        try:
            with suppress(RuntimeError):  # there may be no more threads: those that there are do all of the work
                others.extend(self._find_pool().submit(take_items) for _ in range(min(self.count, len(all_items)) - 1))
            take_items()
        finally:
            list(numbers)  # whoever waits may be interrupted
            for other in others:
                _ = other.cancel() or other.result()
        if failures:
            raise failures[min(failures)]
        return [results[number] for number in range(len(all_items))]

    def _find_pool(self) -> ThreadPoolExecutor:
        """The threads of the outermost block, each of which starts with the first work for it."""
        outer = self._outer or self
        if outer._pool is None:
            outer._pool = ThreadPoolExecutor(max(1, self.count - 1), "sotdd", _limit_openmp)
        return outer._pool
