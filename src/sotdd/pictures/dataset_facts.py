"""What a page says of each dataset: points and classes, what is missing, and where its values lie."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np

from sotdd.basics.text import json_label, shown
from sotdd.inputs.data import LabelledData
from sotdd.measure.drift import DriftReference
from sotdd.pictures.parts import Section, scrolling, stacking, table
from sotdd.sketches.sketch import Sketch

# Ranges are shown of at most this many columns, and sizes of this many classes.
_MOST_COLUMNS, _MOST_CLASSES = 60, 40
_MISSING = "missing values"
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
    missing
        What is said about missing values.
    low, high
        The lowest and the highest value of all features; NaN where points are not kept.
    ranges
        The same of every column that has a name.
    remarks
        What else a reader should know, such as which columns were left out.
    """

    n_points: int
    n_features: int
    counts: Mapping[str, int]
    missing: str = "none"
    low: float = math.nan
    high: float = math.nan
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def range(self) -> str:
        """The range in words."""
        return "not kept" if math.isnan(self.low) else f"{_plainly(self.low)} to {_plainly(self.high)}"


def facts_of(source: LabelledData | Sketch | DriftReference) -> Facts:
    """The numbers of a dataset, a sketch or a reference.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> facts = facts_of(sotdd.LabelledData.of((np.arange(6.0).reshape(3, 2), ["a", "b", "a"]), "mine"))
    >>> facts.n_points, dict(facts.counts), facts.range
    (3, {'a': 2, 'b': 1}, '0 to 5')
    """
    if isinstance(source, Sketch):
        counts = _by_class(source.classes, source.counts.tolist())
        return Facts(source.n_points, int(source.recipe["n_features"]), counts, "not kept", remarks=source.remarks)
    about = [remark for remark in source.remarks if _MISSING in remark]
    said, missing = tuple(remark for remark in source.remarks if remark not in about), "; ".join(about) or "none"
    if isinstance(source, DriftReference):
        counts = _by_class(source.classes, np.bincount(source.points.codes, minlength=len(source.classes)).tolist())
        return Facts(source.n_points, source.projections.n_features, counts, missing, remarks=said)
    lows, highs = np.full(source.n_features, np.inf), np.full(source.n_features, -np.inf)
    for block in source.blocks():
        rows = source.rows(block)
        lows, highs = np.minimum(lows, rows.min(axis=0)), np.maximum(highs, rows.max(axis=0))
    columns = (source.columns or ())[:_MOST_COLUMNS]
    return Facts(
        source.n_points,
        source.n_features,
        _by_class(source.classes, source.counts.tolist()),
        missing,
        float(lows.min()),
        float(highs.max()),
        dict(zip(columns, zip(lows.tolist(), highs.tolist(), strict=True), strict=False)),
        said,
    )


def data_section(facts: Sequence[Facts], names: Sequence[str]) -> Section:
    """The card with points, features, classes, missing values and range of each dataset; and of its columns."""
    rows = [
        (name, f"{one.n_points:,}", f"{one.n_features:,}", f"{len(one.counts):,}", one.missing, one.range)
        for one, name in zip(facts, names, strict=True)
    ]
    body = stacking(table(_HEADER, rows, numbers=(1, 2, 3)), "The datasets") + _columns(facts, names)
    for remark in dict.fromkeys(remark for one in facts for remark in one.remarks):
        whose = [name for one, name in zip(facts, names, strict=True) if remark in one.remarks]
        about = "" if len(whose) == len(facts) else f"{', '.join(whose)}: "
        body += f'<p class="note">{escape(about + remark)}</p>'
    return Section("The data", body)


def class_sizes(names: Sequence[str], facts: Sequence[Facts]) -> list[Section]:
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
            shown(label, 60),
            *(f"{side.get(label, 0):,}" for side in counts),
            *(f"{100 * of[label]:.3g} %" for of in share),
        )
        for label in labels[:_MOST_CLASSES]
    ]
    header = ("class", *(f"points of {name}" for name in names), *(f"share of {name}" for name in names))
    body = scrolling(table(header, rows, numbers=(1, 2, 3, 4)), "Sizes of classes")
    rest = len(labels) - len(rows)
    note = "Those whose share differs most come first." + (f" {rest:,} more are not shown." if rest > 0 else "")
    return [Section("How large the classes are", body, note)]


def _by_class(classes: tuple[object, ...], counts: list[int]) -> dict[str, int]:
    return {str(json_label(label)): count for label, count in zip(classes, counts, strict=True)}


def _columns(facts: Sequence[Facts], names: Sequence[str]) -> str:
    """The range of every column, side by side, where columns have names."""
    known = [(one.ranges, name) for one, name in zip(facts, names, strict=True) if one.ranges]
    columns = list(dict.fromkeys(column for ranges, _ in known for column in ranges))
    if not columns:
        return ""
    rows = [
        (column, *(" to ".join(map(_plainly, ranges[column])) if column in ranges else "–" for ranges, _ in known))
        for column in columns
    ]
    ranges_table = scrolling(table(("column", *(name for _, name in known)), rows), "Ranges of columns")
    return f"<details open><summary>Range of every column</summary>{ranges_table}</details>"


def _plainly(value: float) -> str:
    """A number as people read it: 91,734 or 0.25 or 3e+09."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"
