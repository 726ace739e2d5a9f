"""Threads that share the work, each with a BLAS of its own size: one; and projections that they draw ahead."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from itertools import count
from queue import Empty, SimpleQueue
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_count
from sotdd.basics.threads import find_libraries, serial_blas
from sotdd.projections.draws import BLOCK, Block, Laws
from sotdd.projections.moments import Moments
from sotdd.projections.recipe import Projections

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_P = ParamSpec("_P")


def _begin_thread() -> None:
    for library in find_libraries():
        if getattr(library, "threading_layer", "") == "openmp":  # which keeps a number for every thread
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
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._team: list[threading.Thread] = []
        self._here = threading.local()
        self.count: int = 0  # threads at work, the caller's among them

    def __enter__(self) -> Workers:
        """Find how many threads there may be; they start with the first work for them."""
        share = serial_blas.enter()
        self.count = self.threads or share
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop the threads; work not begun is dropped."""
        try:
            with suppress(Empty):
                while True:
                    self._jobs.get_nowait()
            for _ in self._team:
                self._jobs.put(None)
            for thread in self._team:
                thread.join()
            self._team.clear()
        finally:
            serial_blas.leave()

    def _hand_over(self, jobs: Sequence[Callable[[], None]]) -> None:
        """Give work to other threads."""
        for _ in range(min(self.count - 1, len(self._team) + len(jobs)) - len(self._team)):
            self._team.append(threading.Thread(target=self._work, name=f"sotdd_{len(self._team)}", daemon=True))
            self._team[-1].start()
        for job in jobs:
            self._jobs.put(job)

    def _work(self) -> None:
        _begin_thread()
        while (job := self._jobs.get()) is not None:
            job()
            del job  # which holds what it made

    @property
    def free(self) -> int:
        """How many threads work begun here is shared among: this one alone, where it is part of such work."""
        return 1 if getattr(self._here, "busy", False) else self.count

    def submit(self, function: Callable[_P, _Result], *args: _P.args, **kwargs: _P.kwargs) -> Future[_Result]:
        """Begin one piece of work beside what the caller does; a single thread does it at once."""
        done: Future[_Result] = Future()

        def work() -> None:
            try:
                done.set_result(function(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001  # raised again where the result is asked for
                done.set_exception(error)

        if self.count > 1:
            self._hand_over([work])
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
                    if not failures:
                        results[number] = function(all_items[number])
                except BaseException as error:  # noqa: BLE001  # raised again below, where it is waited for
                    failures[number] = error
                if next(finished) == len(all_items):
                    done.put(None)
            self._here.busy = False

        self._hand_over([take_items] * (min(self.count, len(all_items)) - 1))
        try:
            take_items()
            done.get()  # not for threads that found nothing left to do
        finally:
            list(numbers)  # whoever waits may be interrupted: nothing more is begun
        if failures:
            raise failures[min(failures)]
        return [results[number] for number in range(len(all_items))]


# ------------------------------------------------------------------ projections drawn ahead


# Further draws follow from the label law and the seed alone. Those of comparisons of few projections, in so many chunks
# no larger than this, are kept for the next one: to make them takes longer than a small comparison.
_KEPT, _KEPT_BYTES, _FEW = 2, 12 << 20, 1024
_kept: dict[Hashable, NDArray[np.float64]] = {}


class Draws:
    """Projections that threads draw ahead of the work.

    Parameters
    ----------
    workers
        The threads.
    projections
        What is drawn.
    more, degree
        How many further draws of the label law each projection gets, and the highest order told apart in them.
    blocks
        How many blocks a thread draws at a time.
    """

    def __init__(self, workers: Workers, projections: Projections, more: int, degree: int, blocks: int) -> None:
        self.projections: Projections = projections
        self.more: int = more
        self.degree: int = degree
        self._workers, self._size = workers, BLOCK * blocks
        self._begun: deque[tuple[list[Future[Block]], Hashable, NDArray[np.float64] | None]] = deque()

    def begin(self, part: slice) -> None:
        """Begin to draw some projections, those that follow on what was begun last."""
        name = self._name(part)
        kept = _kept.get(name)
        more, size = (self.more, self._size) if kept is None else (0, part.stop - part.start)
        starts, draw = range(part.start, part.stop, size), self.projections.draw
        futures = [
            self._workers.submit(draw, start, min(start + size, part.stop), more, self.degree) for start in starts
        ]
        self._begun.append((futures, name, kept))

    def follow(self, parts: Sequence[slice], ahead: int) -> Iterator[tuple[int, Block]]:
        """Draw one part after another, this many begun at a time: where it starts, and what was drawn.

        The first parts may have been begun before.
        """
        for number, part in enumerate(parts):
            for later in parts[number + len(self._begun) : number + ahead]:
                self.begin(later)
            futures, name, kept = self._begun.popleft()
            block = Block.join([drawing.result() for drawing in futures])
            del futures  # which hold what was drawn
            if kept is not None:
                block = replace(block, draws=kept)
            elif name is not None and block.draws is not None and block.draws.nbytes <= _KEPT_BYTES:
                _kept[name] = block.draws
                for old in list(_kept)[:-_KEPT]:
                    _kept.pop(old, None)
            yield part.start, block

    def _name(self, part: slice) -> Hashable:
        """What the further draws of some projections follow from; None where they are not kept."""
        laws = self.projections.source
        if not self.more or self.projections.n_projections > _FEW:
            return None
        if not isinstance(laws, Laws) or type(laws.label) is not Moments:
            return None
        return laws.label, laws.seed, laws.first_block, part.start, part.stop, self.more, self.degree
