"""How results show themselves as pictures, and how work shows its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from sotdd.basics.errors import SotddError, require

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


# Called with what is done and how much there is; True draws a bar.
Report: TypeAlias = Callable[[int, int], None]
Progress: TypeAlias = bool | Report | None


def picture(name: str) -> Callable[..., Axes]:
    """The function of `sotdd.reports` that draws ``name``.

    Pictures know the results, so a plain import of them here would be circular: they are looked up when asked for.
    """
    require("matplotlib", "a picture", "'sotdd[report]'")
    draw: Callable[..., Axes] = getattr(import_module("sotdd.reports.plots"), f"draw_{name}")
    return draw


def make_frame(data: object, **names: Sequence[object]) -> pd.DataFrame:
    """Numbers, or rows by column, as a frame of pandas; ``index`` and ``columns`` name its sides."""
    frame: pd.DataFrame = require("pandas", "a data frame", "pandas").DataFrame(data, **names)
    return frame


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
