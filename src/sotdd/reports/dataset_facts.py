"""What a page says of each dataset: points and classes, what is missing, and where its values lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np

from sotdd.basics.remarks import Remark
from sotdd.basics.text import json_label, show
from sotdd.drift.reference import DriftReference
from sotdd.inputs.data import LabelledData
from sotdd.reports.page import Section, make_table, scroll
from sotdd.sketches.sketch import Sketch

# Ranges are shown of at most this many columns, and sizes of this many classes.
_MOST_COLUMNS, _MOST_CLASSES = 60, 40
# Remarks that the table has a column for.
_MISSING = ("rows dropped", "values filled")
_HEADER = ("dataset", "points", "features", "classes", "missing", "range of values")


@dataclass(frozen=True, eq=False)
class Facts:
    """A dataset in numbers.

    Attributes
    ----------
    n_points, n_features
        Its sizes.
    counts
        How many points each class has; the label as text.
    missing, range
        What is said about missing values, and between which values all features lie.
    columns
        Between which values each column lies that has a name.
    remarks
        What else a reader should know, such as which columns were left out.
    """

    n_points: int
    n_features: int
    counts: Mapping[str, int]
    missing: str = "not kept"
    range: str = "not kept"
    columns: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[object, ...] = ()


def collect_facts(source: LabelledData | Sketch | DriftReference) -> Facts:
    """The numbers of a dataset, a sketch or a reference.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> facts = collect_facts(sotdd.LabelledData.of((np.arange(6.0).reshape(3, 2), ["a", "b", "a"]), "mine"))
    >>> facts.n_points, dict(facts.counts), facts.range
    (3, {'a': 2, 'b': 1}, '0 to 5')
    """
    sizes = (
        np.bincount(source.points.codes, minlength=len(source.classes))
        if isinstance(source, DriftReference)
        else source.counts
    )
    counts = {str(json_label(label)): count for label, count in zip(source.classes, sizes.tolist(), strict=True)}
    if isinstance(source, Sketch):
        return Facts(source.n_points, int(source.recipe["n_features"]), counts, remarks=source.remarks)
    remarks: list[object] = list(source.remarks)
    about = [remark for remark in remarks if isinstance(remark, Remark) and remark.kind in _MISSING]
    said = tuple(remark for remark in remarks if remark not in about)
    missing = "; ".join(dict.fromkeys(map(str, about))) or "none"
    if isinstance(source, DriftReference):
        return Facts(source.n_points, source.projections.n_features, counts, missing, remarks=said)
    lows, highs = np.full(source.n_features, np.inf), np.full(source.n_features, -np.inf)
    for block in source.blocks():
        rows = source.rows(block)
        lows, highs = np.minimum(lows, rows.min(axis=0)), np.maximum(highs, rows.max(axis=0))
    names = (source.columns or ())[:_MOST_COLUMNS]
    columns = {name: _say_range(*ends) for name, *ends in zip(names, lows.tolist(), highs.tolist(), strict=False)}
    whole = _say_range(float(lows.min()), float(highs.max()))
    return Facts(source.n_points, source.n_features, counts, missing, whole, columns, said)


def make_data_section(facts: Sequence[Facts], names: Sequence[str]) -> Section:
    """The card with points, features, classes, missing values and range of each dataset; and of its columns."""
    rows = [
        (name, f"{one.n_points:,}", f"{one.n_features:,}", f"{len(one.counts):,}", one.missing, one.range)
        for one, name in zip(facts, names, strict=True)
    ]
    body = scroll(make_table(_HEADER, rows, numbers=(1, 2, 3)), "The datasets", stacks=True) + _make_columns(
        facts, names
    )
    for remark in dict.fromkeys(remark for one in facts for remark in one.remarks):
        whose = [name for one, name in zip(facts, names, strict=True) if remark in one.remarks]
        about = "" if len(whose) == len(facts) else f"{', '.join(whose)}: "
        body += f'<p class="note">{escape(about + str(remark))}</p>'
    return Section("The data", body)


def make_class_sizes(names: Sequence[str], facts: Sequence[Facts]) -> list[Section]:
    """The card that says how often each class occurs on both sides; nothing where there is one class only."""
    counts = [one.counts for one in facts]
    labels = list(dict.fromkeys(label for side in counts for label in side))
    if len(labels) < 2:
        return []
    totals = [max(1, sum(side.values())) for side in counts]
    share = [
        {label: side.get(label, 0) / total for label in labels} for side, total in zip(counts, totals, strict=True)
    ]
    labels.sort(key=lambda label: -abs(share[0][label] - share[1][label]))
    rows = [
        (
            show(label, 60),
            *(f"{side.get(label, 0):,}" for side in counts),
            *(f"{100 * of[label]:.3g} %" for of in share),
        )
        for label in labels[:_MOST_CLASSES]
    ]
    header = ("class", *(f"points of {name}" for name in names), *(f"share of {name}" for name in names))
    body = scroll(make_table(header, rows, numbers=(1, 2, 3, 4)), "Sizes of classes")
    rest = len(labels) - len(rows)
    note = "Those whose share differs most come first." + (f" {rest:,} more are not shown." if rest > 0 else "")
    return [Section("How large the classes are", body, note)]


def _make_columns(facts: Sequence[Facts], names: Sequence[str]) -> str:
    """The range of every column, side by side, where columns have names."""
    known = [(one.columns, name) for one, name in zip(facts, names, strict=True) if one.columns]
    columns = dict.fromkeys(column for ranges, _ in known for column in ranges)
    if not columns:
        return ""
    rows = [(column, *(ranges.get(column, "–") for ranges, _ in known)) for column in columns]
    ranges_table = scroll(make_table(("column", *(name for _, name in known)), rows), "Ranges of columns")
    return f"<details open><summary>Range of every column</summary>{ranges_table}</details>"


def _say_range(low: float, high: float) -> str:
    """Two numbers as people read them: 91,734 or 0.25 or 3e+09."""
    return " to ".join(f"{end:,.0f}" if 1000 <= abs(end) < 1e7 else f"{end:.4g}" for end in (low, high))
