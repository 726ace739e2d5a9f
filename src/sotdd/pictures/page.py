"""The report page: one HTML file with everything in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from sotdd.basics.errors import require
from sotdd.basics.text import counted, listed, shown
from sotdd.pictures.page_data import page_data, settings
from sotdd.pictures.reproduction import reproduction
from sotdd.results.explanation import Explanation
from sotdd.results.matrix import DistanceMatrix


def page(
    matrix: DistanceMatrix,
    explanations: Mapping[tuple[int, int], Explanation],
    title: str,
    version: str,
    left_out: Sequence[tuple[int, int]] = (),
) -> str:
    """The HTML of a report. Names and labels are escaped everywhere, so nothing in them is read as HTML.

    Pairs that were ``left_out`` have too many classes to compare each with each; the page says so.
    """
    require("plotly", "a report", "'sotdd[report]'")
    from plotly.offline import get_plotlyjs

    data = page_data(matrix, explanations, title)
    data["summary"] += _without_classes(matrix, left_out)
    names = [f'<option value="{index}">{escape(name)}</option>' for index, name in enumerate(matrix.names)]
    return Template(_part("page.html")).substitute(
        title=escape(title),
        subtitle=escape(_subtitle(matrix, data["method"])),
        summary="\n".join(f"<li>{escape(sentence)}</li>" for sentence in data["summary"]),
        options="".join(names),
        pairs_table=_table(("rank", "pair", "distance", "95 % interval"), _pair_rows(matrix, data)),
        matrix_table=_matrix_table(matrix),
        settings="\n".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
            for name, value in settings(matrix, version).items()
        ),
        reproduction=escape(reproduction(matrix)),
        style=_part("page.css"),
        data=as_script(data),
        plotly=get_plotlyjs(),
        charts=_part("charts.js"),
        script=_part("page.js"),
    )


def as_script(data: object) -> str:
    """JSON that is safe inside a script element: nothing in it ends the element or begins another."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _part(name: str) -> str:
    return files("sotdd.pictures").joinpath("page_parts", name).read_text(encoding="utf-8")


def _without_classes(matrix: DistanceMatrix, left_out: Sequence[tuple[int, int]]) -> list[str]:
    """A sentence on the pairs that are not compared class by class."""
    if not left_out:
        return []
    pairs = listed([f"{shown(matrix.names[i])} and {shown(matrix.names[j])}" for i, j in left_out], most=3)
    return [f"Too many classes to compare each with each, so left out of the comparison class by class: {pairs}."]


def _subtitle(matrix: DistanceMatrix, method: str) -> str:
    counts = f"{counted(len(matrix), 'dataset')}, {counted(len(matrix.distances), 'distance')}"
    return f"{counts}, {method}" if method else counts


def _pair_rows(matrix: DistanceMatrix, data: Mapping[str, Any]) -> Iterable[Sequence[str]]:
    for line in data["ranking"]:
        i, j = map(int, line["pair"].split(","))
        interval = "–" if line["low"] is None else f"{line['low']:.4g} to {line['high']:.4g}"
        rank = f"{line['rank']}" + (" (tied)" if line["tied"] else "")
        yield rank, f"{matrix.names[i]} – {matrix.names[j]}", line["text"], interval


def _matrix_table(matrix: DistanceMatrix) -> str:
    size = range(len(matrix))
    rows = [(matrix.names[i], *("0" if i == j else f"{matrix.values[i, j]:.4g}" for j in size)) for i in size]
    return _table(("", *matrix.names), rows)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
