"""What a page says of each dataset: how many points and classes, what is missing, and where its values lie."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sotdd.basics.text import json_label
from sotdd.inputs.data import LabelledData
from sotdd.measure.drift import DriftReference
from sotdd.pictures.html_parts import plainly
from sotdd.sketches.sketch import Sketch

# Ranges are shown of at most this many columns.
_MOST_COLUMNS = 60
_MISSING = "missing values"


@dataclass(frozen=True, eq=False)
class Facts:
    """A dataset in numbers.

    Attributes
    ----------
    name
        What it is called.
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

    name: str
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
        return "not kept" if math.isnan(self.low) else f"{plainly(self.low)} to {plainly(self.high)}"


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
        features = int(source.recipe["n_features"])
        return Facts(source.name, source.n_points, features, counts, "not kept", remarks=source.remarks)
    if isinstance(source, DriftReference):
        counts = _by_class(source.classes, np.bincount(source.points.codes, minlength=len(source.classes)).tolist())
        said, missing = _about_missing(source.remarks)
        features = source.projections.n_features
        return Facts(source.name, source.n_points, features, counts, missing, remarks=said)
    lows, highs = _ends(source)
    columns = source.columns or ()
    said, missing = _about_missing(source.remarks)
    ranges = dict(zip(columns[:_MOST_COLUMNS], zip(lows.tolist(), highs.tolist(), strict=True), strict=False))
    return Facts(
        source.name,
        source.n_points,
        source.n_features,
        _by_class(source.classes, source.counts.tolist()),
        missing,
        float(lows.min()),
        float(highs.max()),
        ranges,
        said,
    )


def _by_class(classes: tuple[object, ...], counts: list[int]) -> dict[str, int]:
    return {str(json_label(label)): count for label, count in zip(classes, counts, strict=True)}


def _about_missing(remarks: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """The remarks on anything else, and what is said of missing values."""
    about = [remark for remark in remarks if _MISSING in remark]
    return tuple(remark for remark in remarks if remark not in about), "; ".join(about) or "none"


def _ends(data: LabelledData) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest value of every feature (d,), read block by block."""
    lows, highs = np.full(data.n_features, np.inf), np.full(data.n_features, -np.inf)
    for block in data.blocks():
        rows = data.rows(block)
        lows, highs = np.minimum(lows, rows.min(axis=0)), np.maximum(highs, rows.max(axis=0))
    return lows, highs
