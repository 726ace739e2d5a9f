"""How results show themselves: lines and tables as text or HTML, and pictures; and how work shows its progress."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sotdd.basics.errors import SotddError, require
from sotdd.basics.text import align_rows, show

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Table(NamedTuple):
    """Rows of cells, the header first, and which columns are flush right."""

    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()


# A line of text, or a table; empty lines are left out.
Part: TypeAlias = str | Table

# Called with what is done and how much there is; True draws a bar.
Report: TypeAlias = Callable[[int, int], None]
Progress: TypeAlias = bool | Report | None


def as_text(parts: Sequence[Part]) -> str:
    """Lines and tables one below the other."""
    lines = ([part] if isinstance(part, str) else align_rows(part.rows, part.numbers) for part in parts if part)
    return "\n".join(line for part in lines for line in part)


def as_html(parts: Sequence[Part]) -> str:
    """The same for a notebook; every word is escaped, since names come with the data.

    Examples
    --------
    >>> as_html(["a < b", Table([("name",), ("a",)])])
    '<div><div>a &lt; b</div><table><tr><th>name</th></tr><tr><td>a</td></tr></table></div>'
    """
    return f"<div>{''.join(_as_element(part) for part in parts if part)}</div>"


def _as_element(part: Part) -> str:
    if isinstance(part, str):
        return f"<div>{html.escape(show(part, len(part)))}</div>"
    rows = [
        "".join(f"<{tag}>{html.escape(show(cell))}</{tag}>" for cell in row)
        for tag, row in zip(["th", *["td"] * (len(part.rows) - 1)], part.rows, strict=True)
    ]
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def picture(name: str) -> Callable[..., Axes]:
    """The function of `sotdd.reports` that draws ``name``.

    Pictures know the results, so a plain import of them here would be circular: they are looked up when asked for.
    """
    require("matplotlib", "a picture", "'sotdd[report]'")
    draw: Callable[..., Axes] = getattr(import_module("sotdd.reports.plots"), f"draw_{name}")
    return draw


@contextmanager
def report_progress(progress: Progress, title: str) -> Iterator[Report]:
    """Yield a function of (done, total): the caller's own, one that draws a bar, or one that is silent."""
    if callable(progress):
        yield progress
    elif progress is None or progress is False:
        yield lambda done, total: None
    elif progress is True:
        with _bar(title) as report:
            yield report
    else:
        raise SotddError(f"is {progress!r}: expected True, None or a function of (done, total).", setting="progress")


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
