"""Printing: for people at a terminal, and for programs that read a pipe."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from sotdd.basics.remarks import Naming, Remark
from sotdd.basics.text import one_line, say_count, write_out

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

# The width of a pipe, where lines are never broken.
_ENDLESS = 1_000_000

# Remarks that come first: what was not looked at, and why a number may be wrong.
_MATTER = (
    "no labels", "many classes", "columns left out", "columns not in reference", "new values", "unknown classes",
    "rows dropped", "labels missing", "rows repeat", "neighbours alike", "few groups", "values filled", "far from zero",
    "rounding", "uncontrolled", "rough errors", "coarse sketch", "not converged",
    "labels in sketches", "errors at most", "too alike", "no holdout", "few rows",
)  # fmt: skip


def wants_bar(quiet: bool) -> bool:
    """Whether to draw progress bars: only for a person at a terminal."""
    return not quiet and sys.stderr.isatty()


def console() -> Console:
    """Standard output; rich leaves out colours in a pipe or if NO_COLOR is set."""
    from rich.console import Console

    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else _ENDLESS)


def print_csv(rows: Sequence[Mapping[str, object]]) -> None:
    """Print rows with their header; control codes in names are written out, so that no name makes a row of its own."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: write_out(cell) if isinstance(cell, str) else cell for key, cell in row.items()})
    typer.echo(text.getvalue(), nl=False)


def complain(text: str) -> None:
    """Print one line to standard error."""
    typer.echo(f"sotdd: {one_line(text)}", err=True)


def say(text: str, style: str | None = None) -> None:
    """Print text as it is, even if a name in it looks like markup; control codes are written out."""
    console().print(write_out(text, keep="\n"), style=style, soft_wrap=True)


def say_note(text: str, quiet: bool = False) -> None:
    """Print a line that helps to read a result."""
    if not quiet:
        console().print(write_out(text, keep="\n"), style="dim")


def print_remarks(remarks: Iterable[Remark], naming: Naming, quiet: bool, most: int | None = None) -> None:
    """Print what a reader should know beside a result, each thing once; of many, the ``most`` that matter."""
    chosen = sorted(remarks, key=lambda one: one.kind not in _MATTER)
    lines = list(dict.fromkeys(one.say(naming) for one in chosen))
    for line in lines[:most]:
        say_note(line, quiet)
    if most is not None and len(lines) > most:
        say_note(f"{say_count(len(lines) - most, 'more remark')}: add -v to see all", quiet)


def make_table(
    rows: Sequence[Sequence[str | Text]], *, left: Sequence[int] = (0,), styles: Sequence[str] | None = None
) -> Table:
    """A table without rules: a header, then rows with styles; columns that are not ``left`` are aligned right."""
    from rich.table import Table
    from rich.text import Text

    header, *body = [[Text(one_line(cell)) if isinstance(cell, str) else cell for cell in row] for row in rows]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column, name in enumerate(header):
        words = column in left
        table.add_column(name, justify="left" if words else "right", overflow="fold", no_wrap=not words)
    for row, style in zip(body, styles or [""] * len(body), strict=True):
        table.add_row(*row, style=style)
    return table


def print_table(*layouts: Table) -> None:
    """Print the first layout that fits the terminal, or the last one in lines that are too long; nothing is cut."""
    from rich.measure import Measurement

    output = console()
    endless = output.options.update(width=_ENDLESS)
    for table in layouts:
        needed = Measurement.get(output, endless, table).maximum
        if needed <= output.width:
            break
    output.width = max(needed, output.width)
    with output.capture() as captured:
        output.print(table)
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())


@contextmanager
def show_work(text: str, quiet: bool) -> Iterator[None]:
    """Show at a terminal what is being done."""
    if not wants_bar(quiet):
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True, highlight=False, markup=False).status(Text(one_line(text))):
        yield
