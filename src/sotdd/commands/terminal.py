"""What every command prints with: for people at a terminal, and for programs that read a pipe."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# Lines in a pipe are never broken; rich wants a number.
_ENDLESS = 1_000_000


def bar_wanted(quiet: bool) -> bool:
    """A bar is drawn for a person at a terminal only."""
    return not quiet and sys.stderr.isatty()


def console() -> Console:
    """Where results are printed; rich leaves colours out in a pipe and where NO_COLOR is set."""
    from rich.console import Console

    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else _ENDLESS)


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def say(text: str, style: str | None = None) -> None:
    """Print text as it is: names may hold what looks like markup."""
    console().print(text, style=style, soft_wrap=True)


def say_note(text: str, quiet: bool = False) -> None:
    """Print what helps to read a result."""
    if not quiet:
        console().print(text, style="dim")


def table_of(
    rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,), styles: Sequence[str] | None = None
) -> Table:
    """A table without lines: a header, then rows with styles; columns of numbers are set to the right."""
    from rich.table import Table
    from rich.text import Text

    header, *body = rows
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for place, name in enumerate(header):
        words = place in left
        table.add_column(Text(name), justify="left" if words else "right", overflow="fold", no_wrap=not words)
    for row, style in zip(body, styles or [""] * len(body), strict=True):
        table.add_row(*(Text(cell) for cell in row), style=style)
    return table


def print_table(*layouts: Table) -> int:
    """Print the first layout that fits the terminal, or else the last in lines that are too long.

    Returns which it was. Nothing is cut short.
    """
    from rich.measure import Measurement

    place = console()
    endless = place.options.update(width=_ENDLESS)
    for chosen, table in enumerate(layouts):  # noqa: B007  # the last stays
        needed = Measurement.get(place, endless, table).maximum
        if needed <= place.width:
            break
    place.width = max(needed, place.width)
    with place.capture() as captured:
        place.print(table)
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())
    return chosen


@contextmanager
def working_on(text: str, quiet: bool) -> Iterator[Console]:
    """Show on standard error what is being done, at a terminal; yields where notes go meanwhile."""
    from rich.console import Console

    place = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    if not bar_wanted(quiet):
        yield place
        return
    from rich.text import Text

    with place.status(Text(text)):
        yield place
