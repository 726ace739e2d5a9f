"""The report page: one HTML file with everything in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from html import escape
from string import Template
from typing import Any

from sotdd.basics.errors import require
from sotdd.basics.text import counted, listed, shown
from sotdd.pictures.data_section import data_section
from sotdd.pictures.dataset_facts import Facts
from sotdd.pictures.html_parts import as_script, part, scrolling, settings_list, table
from sotdd.pictures.page_data import page_data, settings
from sotdd.pictures.reproduction import reproduction
from sotdd.pictures.short_names import short_names
from sotdd.pictures.verdict_page import Section, dated
from sotdd.results.explanation import Explanation
from sotdd.results.matrix import DistanceMatrix


def page(
    matrix: DistanceMatrix,
    explanations: Mapping[tuple[int, int], Explanation],
    title: str,
    version: str,
    left_out: Sequence[tuple[int, int]] = (),
    facts: Sequence[Facts] = (),
    now: datetime | None = None,
) -> str:
    """The HTML of a report. Names and labels are escaped everywhere, so nothing in them is read as HTML.

    Pairs that were ``left_out`` have too many classes to compare each with each; the page says so. Datasets go by
    short names; of files, by those of the files.
    """
    require("plotly", "a report", "'sotdd[report]'")
    from plotly.offline import get_plotlyjs

    code = reproduction(matrix)
    names_shown = tuple(short_names(matrix.names))
    matrix = replace(matrix, names=names_shown)
    explanations = {
        (i, j): replace(why, names=(names_shown[i], names_shown[j])) for (i, j), why in explanations.items()
    }
    data = page_data(matrix, explanations, title)
    data["summary"] += _without_classes(matrix, left_out)
    names = [f'<option value="{index}">{escape(name)}</option>' for index, name in enumerate(matrix.names)]
    return Template(part("page.html")).substitute(
        title=escape(title),
        subtitle=escape(_subtitle(matrix, data["method"])),
        summary="\n".join(f"<li>{escape(sentence)}</li>" for sentence in data["summary"]),
        options="".join(names),
        pairs_table=table(("rank", "pair", "distance", "95 % interval", "remarks"), _pair_rows(matrix, data)),
        matrix_table=_matrix_table(matrix),
        settings=settings_list(settings(matrix, version)),
        reproduction=escape(code),
        date="" if now is None else f" · {dated(now)}",
        about=data_section(facts, names_shown).html(0) if len(facts) == len(matrix) else _sizes(matrix).html(0),
        style=part("page.css"),
        data=as_script(data),
        plotly=get_plotlyjs(),
        charts=part("charts.js"),
        script=part("page.js"),
    )


def _without_classes(matrix: DistanceMatrix, left_out: Sequence[tuple[int, int]]) -> list[str]:
    """A sentence on the pairs that are not compared class by class."""
    if not left_out:
        return []
    pairs = listed([f"{shown(matrix.names[i])} and {shown(matrix.names[j])}" for i, j in left_out], most=3)
    return [f"Too many classes to compare each with each, so left out of the comparison class by class: {pairs}."]


def _subtitle(matrix: DistanceMatrix, method: str) -> str:
    counts = f"{counted(len(matrix), 'dataset')}, {counted(len(matrix.distances), 'distance')}"
    return f"{counts}, {method}" if method else counts


def _sizes(matrix: DistanceMatrix) -> Section:
    """What distances know of their datasets, where the data themselves are not at hand."""
    known = {place: (one.n_points[side], len(one.classes[side])) for pair, one in matrix.distances.items()
             for side, place in enumerate(pair)}  # fmt: skip
    rows = [
        (name, *(f"{number:,}" for number in known[place])) for place, name in enumerate(matrix.names) if place in known
    ]
    return Section("The data", scrolling(table(("dataset", "points", "classes"), rows, numbers=(1, 2)), "The datasets"))


def _pair_rows(matrix: DistanceMatrix, data: Mapping[str, Any]) -> Iterable[Sequence[str]]:
    for line in data["ranking"]:
        i, j = map(int, line["pair"].split(","))
        interval = "–" if line["low"] is None else f"{line['low']:.4g} to {line['high']:.4g}"
        rank = f"{line['rank']}" + (" (tied)" if line["tied"] else "")
        yield rank, f"{matrix.names[i]} – {matrix.names[j]}", line["text"], interval, "; ".join(line["remarks"])


def _matrix_table(matrix: DistanceMatrix) -> str:
    size = range(len(matrix))
    rows = [(matrix.names[i], *("0" if i == j else f"{matrix.values[i, j]:.4g}" for j in size)) for i in size]
    return table(("", *matrix.names), rows)
