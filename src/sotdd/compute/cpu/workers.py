"""Threads that share the work, each with a BLAS of its own size: one; and projections that they draw ahead."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from sotdd.basics.checks import check_count
from sotdd.basics.threads import find_libraries, serial_blas
from sotdd.projections.draws import BLOCK, Block
from sotdd.projections.recipe import Projections

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_P = ParamSpec("_P")


def _begin_thread() -> None:
    for library in find_libraries():
        if getattr(library, "threading_layer", "") == "openmp":  # which keeps a number for every thread
            library.set_num_threads(1)


class Workers:
    """A pool of threads for the time of a ``with`` block.

    By default as many as BLAS may use in this process and never more than it has cores, so that
    ``OPENBLAS_NUM_THREADS`` and ``threadpoolctl.threadpool_limits`` hold here too; callers at the
    same time share them.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads: int | None = None if threads is None else check_count(threads, "threads")
        self._pool: ThreadPoolExecutor
        self.count: int = 0  # threads at work

    def __enter__(self) -> Workers:
        """Start the threads."""
        share = serial_blas.enter()
        self.count = self.threads or share
        self._pool = ThreadPoolExecutor(self.count, thread_name_prefix="sotdd", initializer=_begin_thread)
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop the threads; work not begun is dropped."""
        try:
            self._pool.shutdown(cancel_futures=True)
        finally:
            serial_blas.leave()

    def submit(self, function: Callable[_P, _Result], *args: _P.args, **kwargs: _P.kwargs) -> Future[_Result]:
        """Begin one piece of work."""
        return self._pool.submit(function, *args, **kwargs)

    def each(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        """Do one piece of work per item and wait; the first failure, in the order of items, is raised.

        Threads take the next item themselves: to hand over thousands of them would be work for one thread.
        """
        all_items = list(items)
        results: dict[int, _Result] = {}
        failures: dict[int, BaseException] = {}
        numbers = iter(range(len(all_items)))
        taking, stopped = threading.Lock(), threading.Event()

        def take_items() -> None:
            while not stopped.is_set():
                with taking:
                    number = next(numbers, None)
                if number is None:
                    return
                try:
                    results[number] = function(all_items[number])
                except BaseException as error:  # noqa: BLE001  # raised again below, where it is waited for
                    failures[number] = error
                    stopped.set()

        many = min(self.count, len(all_items))
        try:
            for future in [self._pool.submit(take_items) for _ in range(many)]:
                future.result()
        finally:
            stopped.set()  # whoever waits may be interrupted, and a thread may not start
        if failures:
            raise failures[min(failures)]
        return [results[number] for number in range(len(all_items))]


# ------------------------------------------------------------------ projections drawn ahead


class Draws:
    """Projections that threads draw ahead of the work.

    Parameters
    ----------
    workers
        The threads.
    projections
        What is drawn.
    more
        How many further draws of the label law each projection gets.
    blocks
        How many blocks a thread draws at a time.
    """

    def __init__(self, workers: Workers, projections: Projections, more: int, blocks: int) -> None:
        self.projections: Projections = projections
        self.more: int = more
        self._workers, self._size = workers, BLOCK * blocks
        self._begun: deque[list[Future[Block]]] = deque()

    def begin(self, part: slice) -> None:
        """Begin to draw some projections, those that follow on what was begun last."""
        starts = range(part.start, part.stop, self._size)
        draw, size = self.projections.draw, self._size
        self._begun.append(
            [self._workers.submit(draw, start, min(start + size, part.stop), self.more) for start in starts]
        )

    def follow(self, parts: Sequence[slice], ahead: int) -> Iterator[tuple[int, Block]]:
        """Draw one part after another, this many begun at a time: where it starts, and what was drawn.

        The first parts may have been begun before.
        """
        for number, part in enumerate(parts):
            for later in parts[number + len(self._begun) : number + ahead]:
                self.begin(later)
            yield part.start, Block.join([drawing.result() for drawing in self._begun.popleft()])
