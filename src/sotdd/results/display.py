"""How results show themselves: lines and tables as text or HTML, and pictures by matplotlib."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sotdd.basics.errors import require
from sotdd.basics.text import aligned, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Table(NamedTuple):
    """Rows of cells, the header first, and which columns are flush right."""

    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()


# A line of text, or a table; empty lines are left out.
Part: TypeAlias = str | Table


def as_text(parts: Sequence[Part]) -> str:
    """Lines and tables one below the other."""
    lines = ([part] if isinstance(part, str) else aligned(part.rows, part.numbers) for part in parts if part)
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
        return f"<div>{html.escape(shown(part, len(part)))}</div>"
    rows = [
        "".join(f"<{tag}>{html.escape(shown(cell))}</{tag}>" for cell in row)
        for tag, row in zip(["th", *["td"] * (len(part.rows) - 1)], part.rows, strict=True)
    ]
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def picture(name: str) -> Callable[..., Axes]:
    """The function of `sotdd.pictures` that draws ``name``.

    Pictures know the results, so a plain import of them here would be circular: they are looked up when asked for.
    """
    require("matplotlib", "a picture", "'sotdd[report]'")
    draw: Callable[..., Axes] = getattr(import_module("sotdd.pictures.plots"), f"draw_{name}")
    return draw
