"""Pieces of HTML that pages share; every text in them is escaped."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files


def part(name: str) -> str:
    """A file of the page: its HTML, its style or a script."""
    return files("sotdd.pictures").joinpath("page_parts", name).read_text(encoding="utf-8")


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Collection[int] = (), marks: Sequence[str] = ()
) -> str:
    """A table whose first column names its rows; ``numbers`` are columns aligned right, ``marks`` classes of rows."""
    side = [' class="number"' if column in numbers else "" for column in range(len(header))]
    named = [f' data-name="{escape(cell)}"' for cell in header]  # which a phone writes before the cell
    head = "".join(f'<th scope="col"{side[place]}>{escape(cell)}</th>' for place, cell in enumerate(header))
    body = []
    for number, row in enumerate(rows):
        mark = f' class="{escape(marks[number])}"' if number < len(marks) and marks[number] else ""
        cells = "".join(f"<td{side[place]}{named[place]}>{escape(cell)}</td>" for place, cell in enumerate(row[1:], 1))
        body.append(f'<tr{mark}><th scope="row">{escape(row[0])}</th>{cells}</tr>')
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def stacking(content: str, label: str) -> str:
    """A table whose rows become cards of their own on a phone, so that nothing is out of sight."""
    return f'<div class="stack">{scrolling(content, label)}</div>'


def plainly(value: float) -> str:
    """A number as people read it.

    Examples
    --------
    >>> plainly(91734.2), plainly(0.25), plainly(3e9)
    ('91,734', '0.25', '3e+09')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"


def scrolling(content: str, label: str) -> str:
    """What may be wider or longer than its place, which takes the focus so that keys can move it."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">{content}</div>'


def settings_list(settings: Mapping[str, str]) -> str:
    """Names and values, side by side where there is room."""
    return "\n".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in settings.items())


def as_script(data: object) -> str:
    """JSON that is safe inside a script element: nothing in it ends the element or begins another."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text
