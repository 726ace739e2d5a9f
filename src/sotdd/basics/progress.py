"""Progress of long computations: reported to a callback, or drawn as a bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from sotdd.basics.errors import SotddError

Report: TypeAlias = Callable[[int, int], None]
Progress: TypeAlias = bool | Report | None


@contextmanager
def reporting(progress: Progress, title: str) -> Iterator[Report]:
    """Yield a function of (done, total): the caller's own, one that draws a bar, or one that is silent."""
    if callable(progress):
        yield progress
    elif progress is None or progress is False:
        yield lambda done, total: None
    elif progress is True:
        with _bar(title) as report:
            yield report
    else:
        raise SotddError(f"progress is {progress!r}: expected True, None or a function of (done, total).")


@contextmanager
def _bar(title: str) -> Iterator[Report]:
    """Draw a bar that disappears when the work is done: on standard error, or in a notebook that has ipywidgets."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)
