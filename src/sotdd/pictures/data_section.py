"""The card that says what each dataset of a page is."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sotdd.pictures.dataset_facts import Facts
from sotdd.pictures.html_parts import plainly, scrolling, stacking, table
from sotdd.pictures.verdict_page import Section

_HEADER = ("dataset", "points", "features", "classes", "missing", "range of values")


def data_section(facts: Sequence[Facts], names: Sequence[str]) -> Section:
    """Points, features, classes, missing values and range of each dataset; and of its columns."""
    rows = [
        (name, f"{one.n_points:,}", f"{one.n_features:,}", f"{len(one.counts):,}", one.missing, one.range)
        for one, name in zip(facts, names, strict=True)
    ]
    body = stacking(table(_HEADER, rows, numbers=(1, 2, 3)), "The datasets")
    return Section("The data", body + _columns(facts, names) + _remarks(facts, names))


def _columns(facts: Sequence[Facts], names: Sequence[str]) -> str:
    """The range of every column, side by side, where columns have names."""
    known = [(one, name) for one, name in zip(facts, names, strict=True) if one.ranges]
    columns = list(dict.fromkeys(column for one, _ in known for column in one.ranges))
    if not columns:
        return ""
    rows = [(column, *(_range(one, column) for one, _ in known)) for column in columns]
    shown = scrolling(table(("column", *(name for _, name in known)), rows), "Ranges of columns")
    return f"<details open><summary>Range of every column</summary>{shown}</details>"


def _range(facts: Facts, column: str) -> str:
    ends = facts.ranges.get(column)
    return "–" if ends is None else f"{plainly(ends[0])} to {plainly(ends[1])}"


def _remarks(facts: Sequence[Facts], names: Sequence[str]) -> str:
    """What else is said of the datasets; once where it goes for all of them."""
    alike = [{_in_order(remark) for remark in one.remarks} for one in facts]
    shared = (
        [remark for remark in facts[0].remarks if all(_in_order(remark) in said for said in alike)] if facts else []
    )
    known = {_in_order(remark) for remark in shared}
    own = [
        f"{name}: {remark}"
        for one, name in zip(facts, names, strict=True)
        for remark in one.remarks
        if _in_order(remark) not in known
    ]
    return "".join(f'<p class="note">{escape(remark)}</p>' for remark in dict.fromkeys([*shared, *own]))


def _in_order(remark: str) -> str:
    """A remark by which lists of the same columns are the same, whatever their order."""
    start, colon, names = remark.partition(": ")
    return f"{start}{colon}{', '.join(sorted(names.split(', ')))}"
