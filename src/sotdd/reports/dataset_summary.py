"""What a page says of each dataset: points, classes, and where its values lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from sotdd.basics.text import json_label
from sotdd.drift.reference import DriftReference
from sotdd.inputs.data import LabelledData
from sotdd.sketches.sketch import Sketch


@dataclass(frozen=True, eq=False)
class DatasetSummary:
    """A dataset in numbers.

    Attributes
    ----------
    n_points, n_features
        Its sizes.
    counts
        How many points each class has; the label as text.
    range, columns
        Between which values all features lie, and each column that has a name; None and none where points are not kept.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> data = sotdd.LabelledData.of((np.arange(6.0).reshape(3, 2), ["a", "b", "a"]), "mine")
    >>> found = DatasetSummary.of(data)
    >>> found.n_points, dict(found.counts), found.range
    (3, {'a': 2, 'b': 1}, (0.0, 5.0))
    """

    n_points: int
    n_features: int
    counts: Mapping[str, int]
    range: tuple[float, float] | None = None
    columns: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, source: LabelledData | Sketch | DriftReference) -> DatasetSummary:
        """Of a dataset, by one walk over its values; of a sketch or a reference what they keep."""
        labels = [str(json_label(label)) for label in source.classes]
        source = source.data if isinstance(source, DriftReference) else source
        counts = dict(zip(labels, source.counts.tolist(), strict=True))
        if isinstance(source, Sketch):
            return cls(source.n_points, int(source.recipe["n_features"]), counts)
        lows, highs = np.full(source.n_features, np.inf), np.full(source.n_features, -np.inf)
        for block in source.blocks():
            rows = source.rows(block)
            lows, highs = np.minimum(lows, rows.min(axis=0)), np.maximum(highs, rows.max(axis=0))
        ends = zip(lows.tolist(), highs.tolist(), strict=True)
        columns = dict(zip(source.columns or (), ends, strict=False))
        whole = float(lows.min()), float(highs.max())
        return cls(source.n_points, source.n_features, counts, whole, columns)


def compare_shares(one: DatasetSummary, other: DatasetSummary) -> list[tuple[str, float, float]]:
    """Every class with its share of either dataset, those whose share differs most first."""
    totals = [max(1, sum(side.counts.values())) for side in (one, other)]
    shares = [
        (label, one.counts.get(label, 0) / totals[0], other.counts.get(label, 0) / totals[1])
        for label in {**one.counts, **other.counts}
    ]
    return sorted(shares, key=lambda line: -abs(line[1] - line[2]))
