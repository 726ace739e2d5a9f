"""Threads that share work, and BLAS, which uses one wherever results must have the same bits for any number of them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from queue import Empty, SimpleQueue
from typing import TypeVar

import threadpoolctl

from sotdd.basics.checks import check_count

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


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
        _blocks.outermost = None  # whose threads are the parent's


serial_blas = _SerialBlas()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=serial_blas.begin_anew)


# ------------------------------------------------------------------ threads that share work


# The outermost block of each thread.
_blocks = threading.local()


class Workers:
    """Threads for the time of a ``with`` block.

    By default as many as BLAS may use in this process and never more than it has cores, so that
    ``OPENBLAS_NUM_THREADS`` and ``threadpoolctl.threadpool_limits`` hold here too; callers at the
    same time share them. A thread that leaves compiled code waits for the interpreter while others hold it, on many
    cores for longer than a short piece of work takes: pieces should be few, and call few functions each.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads: int | None = None if threads is None else check_count(threads, "threads")
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._team: list[threading.Thread] = []
        self._size = 0  # of the team, once all have started
        self._here = threading.local()
        self._outer: Workers | None = None
        self.count: int = 0  # threads at work, the caller's among them

    def __enter__(self) -> Workers:
        """Find how many threads there may be; they start with the first work for them.

        Within another block of the same thread, its threads do the work.
        """
        self._outer = getattr(_blocks, "outermost", None)
        share = serial_blas.enter(at_work=self._outer is None)
        self.count = self.threads or (share if self._outer is None else self._outer.count)
        if self._outer is None:
            _blocks.outermost = self
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop the threads; work not begun is dropped."""
        outer = self._outer
        if outer is not None:
            serial_blas.leave(at_work=False)
            return
        _blocks.outermost = None
        try:
            with suppress(Empty):
                while True:
                    self._jobs.get_nowait()
            for _ in range(self._size):
                self._jobs.put(None)
            for thread in self._team:  # which grows meanwhile, until all have started
                thread.join()
            self._team, self._size = [], 0
        finally:
            serial_blas.leave()

    def _hand_over(self, jobs: Sequence[Callable[[], None]], count: int) -> None:
        """Give work to other threads, and start as many as there are not yet, up to this many with the caller's."""
        if self._outer is not None:
            self._outer._hand_over(jobs, min(count, self._outer.count))
            return
        more = max(0, min(count - 1 - self._size, len(jobs)))
        self._size += more
        self._start(more)
        for job in jobs:
            self._jobs.put(job)

    def _start(self, threads: int) -> None:
        """Start one thread, which starts the others: one after another they would keep the caller for milliseconds."""
        if threads:
            thread = threading.Thread(target=self._work, args=[threads - 1], name="sotdd", daemon=True)
            thread.start()
            self._team.append(thread)

    def _work(self, others: int) -> None:
        with suppress(RuntimeError):  # there may be no more threads: those that there are do all of the work
            self._start(others // 2)
            self._start(others - others // 2)
        for library in find_libraries():
            if getattr(library, "threading_layer", "") == "openmp":  # which keeps a number for every thread
                library.set_num_threads(1)
        while (job := self._jobs.get()) is not None:
            job()
            del job  # which holds what it made

    @property
    def free(self) -> int:
        """How many threads work begun here is shared among: this one alone, where it is part of such work."""
        return 1 if getattr(self._here, "busy", False) else self.count

    def submit(self, function: Callable[[], _Result]) -> Future[_Result]:
        """Begin one piece of work beside what the caller does; a single thread does it at once."""
        done: Future[_Result] = Future()

        def work() -> None:
            try:
                done.set_result(function())
            except BaseException as error:  # noqa: BLE001  # raised again where the result is asked for
                done.set_exception(error)

        if self.count > 1:
            self._hand_over([work], self.count)
        else:
            work()
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
        numbers = iter(range(len(all_items)))  # whose next is one step of the interpreter
        finished, done = count(1), SimpleQueue[None]()

        def take_items() -> None:
            self._here.busy = True
            for number in numbers:
                try:
                    if number < min(failures, default=len(all_items)):  # all that comes before the first is done
                        results[number] = function(all_items[number])
                except BaseException as error:  # noqa: BLE001  # raised again below, where it is waited for
                    failures[number] = error
                if next(finished) == len(all_items):
                    done.put(None)
            self._here.busy = False

        self._hand_over([take_items] * (min(self.count, len(all_items)) - 1), self.count)
        try:
            take_items()
            done.get()  # not for threads that found nothing left to do
        finally:
            list(numbers)  # whoever waits may be interrupted: nothing more is begun
        if failures:
            raise failures[min(failures)]
        return [results[number] for number in range(len(all_items))]
