"""Progress bars that may lie within each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_T = TypeVar("_T")

_COLUMNS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
_shared = Progress(*_COLUMNS, console=Console(stderr=True), transient=True)


def track(things: Iterable[_T], title: str, total: int | None = None) -> Iterator[_T]:
    """Yield things under a bar; the display begins with the outermost bar and ends with it."""
    outermost = not _shared.tasks
    if outermost:
        _shared.start()
    task = _shared.add_task(title, total=total if total is not None else len(things))  # type: ignore[arg-type]
    try:
        for thing in things:
            yield thing
            _shared.advance(task)
    finally:
        _shared.remove_task(task)
        if outermost:
            _shared.stop()
