"""Progress of long computations: reported to a callback, or drawn as a bar."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TypeAlias

from sotdd.basics.errors import SotddError, random_state_kept

Report: TypeAlias = Callable[[int, int], None]
Progress: TypeAlias = bool | Report | None

# A bar in a notebook is drawn again after this long.
_SECONDS = 0.1


@contextmanager
def reporting(progress: Progress, title: str) -> Iterator[Report]:
    """Yield a function of (done, total): the caller's own, one that draws a bar, or one that is silent."""
    if callable(progress):
        yield progress
    elif progress is None or progress is False:
        yield lambda done, total: None
    elif progress is True:
        with _notebook_bar(title) if _in_notebook() else _bar(title) as report:
            yield report
    else:
        raise SotddError(f"progress is {progress!r}: expected True, None or a function of (done, total).")


def _in_notebook() -> bool:
    """Whether a notebook shows what is displayed; IPython in a terminal does not."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


@contextmanager
def _notebook_bar(title: str) -> Iterator[Report]:
    """Show a bar under the cell that disappears when the work is done; no widgets are needed."""
    display = import_module("IPython.display")
    shown_at = 0.0
    bar = display.display(display.HTML(""), display_id=True)

    def report(done: int, total: int) -> None:
        nonlocal shown_at
        now = time.monotonic()
        if now - shown_at >= _SECONDS:
            shown_at = now
            bar.update(display.HTML(f"{html.escape(title)} <progress value='{done}' max='{total}'></progress> "
                                    f"{done:,} of {total:,}"))  # fmt: skip

    try:
        yield report
    finally:
        bar.update(display.HTML(""))


@contextmanager
def _bar(title: str) -> Iterator[Report]:
    """Draw a bar on standard error that disappears when the work is done."""
    with random_state_kept():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)
