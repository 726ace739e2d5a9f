"""Threads that share the work, each with a BLAS of its own size: one; and projections that they draw ahead."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import ParamSpec, TypeVar

from sotdd.basics.checks import check_count
from sotdd.basics.threads import find_libraries, serial_blas
from sotdd.projections.draws import BLOCK, Block, FurtherDraws, Laws
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
    """A pool of threads for the time of a ``with`` block.

    By default as many as BLAS may use in this process and never more than it has cores, so that
    ``OPENBLAS_NUM_THREADS`` and ``threadpoolctl.threadpool_limits`` hold here too; callers at the
    same time share them.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads: int | None = None if threads is None else check_count(threads, "threads")
        self._pool: ThreadPoolExecutor
        self._here = threading.local()
        self.count: int = 0  # threads at work, the caller's among them

    def __enter__(self) -> Workers:
        """Start the threads."""
        share = serial_blas.enter()
        self.count = self.threads or share
        self._pool = ThreadPoolExecutor(max(1, self.count - 1), thread_name_prefix="sotdd", initializer=_begin_thread)
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop the threads; work not begun is dropped."""
        try:
            self._pool.shutdown(cancel_futures=True)
        finally:
            serial_blas.leave()

    @property
    def free(self) -> int:
        """How many threads work begun here is shared among: this one alone, where it is part of such work."""
        return 1 if getattr(self._here, "busy", False) else self.count

    def submit(self, function: Callable[_P, _Result], *args: _P.args, **kwargs: _P.kwargs) -> Future[_Result]:
        """Begin one piece of work beside what the caller does; a single thread does it at once."""
        if self.count > 1:
            return self._pool.submit(function, *args, **kwargs)
        done: Future[_Result] = Future()
        done.set_result(function(*args, **kwargs))
        return done

    def each(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        """Do one piece of work per item and wait; the first failure, in the order of items, is raised.

        The caller and other threads take the next item themselves: to hand over thousands of them would be work for
        one thread. A single item is the caller's, so small work meets no other thread.
        """
        all_items = list(items)
        results: dict[int, _Result] = {}
        failures: dict[int, BaseException] = {}
        numbers = iter(range(len(all_items)))  # whose next is one step of the interpreter

        def take_items() -> None:
            self._here.busy = True
            for number in numbers:
                try:
                    results[number] = function(all_items[number])
                except BaseException as error:  # noqa: BLE001  # raised again below, where it is waited for
                    failures[number] = error
                if failures:
                    break
            self._here.busy = False

        if self.free == 1:
            return [function(item) for item in all_items]
        others = [self._pool.submit(take_items) for _ in range(min(self.count, len(all_items)) - 1)]
        try:
            take_items()
            for other in others:
                other.result()
        finally:
            list(numbers)  # whoever waits may be interrupted: nothing more is begun
        if failures:
            raise failures[min(failures)]
        return [results[number] for number in range(len(all_items))]


# ------------------------------------------------------------------ projections drawn ahead


# Further draws follow from the label law and the seed alone. Those of comparisons of few projections, in so many chunks
# no larger than this, are kept for the next one: to make them takes longer than a small comparison.
_KEPT, _KEPT_BYTES, _FEW = 2, 12 << 20, 1024
_kept: dict[Hashable, FurtherDraws] = {}


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
        self._begun: deque[tuple[list[Future[Block]], Hashable, FurtherDraws | None]] = deque()

    def begin(self, part: slice) -> None:
        """Begin to draw some projections, those that follow on what was begun last."""
        name = self._name(part)
        kept = _kept.get(name)
        more, size = (self.more, self._size) if kept is None else (0, part.stop - part.start)
        starts, draw = range(part.start, part.stop, size), self.projections.draw
        futures = [self._workers.submit(draw, start, min(start + size, part.stop), more) for start in starts]
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
        return laws.label, laws.seed, laws.first_block, part.start, part.stop, self.more
