"""What every command of the command line prints with."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


def bar_wanted(quiet: bool) -> bool:
    """A bar is drawn for a person at a terminal only."""
    return not quiet and sys.stderr.isatty()


def console() -> Console:
    """Where results are printed; lines are not broken in a file."""
    from rich.console import Console

    return Console(soft_wrap=not sys.stdout.isatty())


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def say(text: str, style: str | None = None) -> None:
    """Print text as it is: names may hold what looks like markup."""
    console().print(text, style=style, highlight=False, markup=False, soft_wrap=True)
