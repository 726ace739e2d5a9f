"""What a call uses while it runs: threads, memory and random streams; and how it reports its progress."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, check_count

_T = TypeVar("_T")
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# The share of free memory that a call may take, and the bytes below which nobody asks how much there is.
_SHARE = 0.8
_FEW = 1 << 25

# Called with what is done and how much there is; True draws a bar.
Report: TypeAlias = Callable[[int, int], None]
Progress: TypeAlias = bool | Report | None


# ------------------------------------------------------------------ random streams


class Stream(IntEnum):
    """What is drawn. The numbers are part of what a seed means: never change or reuse one."""

    DIRECTIONS = 0  # by block of projections
    LABEL_DIRECTIONS = 1  # of labels, if they have their own, by block
    LABEL_TERMS = 2  # by block
    MORE_LABEL_TERMS = 3  # for the means of controls, by block
    SPLITS = 5  # pooled points dealt to two sides, by split
    HALF_SAMPLES = 7  # half of the points of each dataset of an explanation, by sample
    FLOW_STEPS = 8  # seeds of the projections that a step of a flow uses, by step
    STREAM_GROUPS = 9  # groups that points of a stream are dealt to, by how many came before
    DEBIASING_HALVES = 10  # points of a dataset dealt to two sides, whose distance is a peer's sampling floor
    FEATURE_DIRECTIONS = 21  # that features are compared along
    FEATURE_TIES = 24  # the order of equal values, by feature
    CLASS_TIES = 26  # the order of points that are equal, by dataset
    CLASS_MATCHES = 27  # samples of classes that are matched, their halves, and how pairs of them are split
    SCALE_ROWS = 31  # points that scales of features are learnt from, by how many there are
    MIXTURE_PARTS = 32  # rows dealt to parts, from which weights of a mixture get their errors, by how many there are


def sequence(seed: int, stream: Stream, number: int) -> np.random.SeedSequence:
    """The seed sequence of the ``number``-th draw of a stream."""
    return np.random.SeedSequence(seed, spawn_key=(number, int(stream)))


def generator(seed: int, stream: Stream, number: int) -> np.random.Generator:
    """A generator for the ``number``-th draw of a stream, which depends on no other draw.

    Examples
    --------
    >>> draws = [generator(7, Stream.SPLITS, 0).random() for _ in range(2)]
    >>> draws[0] == draws[1] != generator(7, Stream.SPLITS, 1).random()
    True
    """
    return np.random.Generator(np.random.Philox(sequence(seed, stream, number)))


# ------------------------------------------------------------------ memory


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
    >>> from sotdd.basics.resources import kept_property
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


# ------------------------------------------------------------------ threads


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


# ------------------------------------------------------------------ progress


@contextmanager
def report_progress(progress: Progress, title: str) -> Iterator[Report]:
    """Yield a function of (done, total): the caller's own, one that draws a bar, or one that is silent."""
    if callable(progress):
        yield progress
    elif progress is None or progress is False:
        yield lambda done, total: None
    elif progress is True:
        # It disappears when the work is done: on standard error, or in a notebook that has ipywidgets.
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with RichProgress(*columns, console=Console(stderr=True), transient=True) as bars:
            task = bars.add_task(title, total=None)
            yield lambda done, total: bars.update(task, completed=done, total=total)
    else:
        raise SotddError(f"is {progress!r}: expected True, None or a function of (done, total).", setting="progress")
