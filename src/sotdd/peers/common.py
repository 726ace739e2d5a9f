"""What the methods share: datasets loaded, samples told, results wrapped up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from sotdd.basics.checks import check_count, check_seed
from sotdd.basics.errors import SotddError
from sotdd.basics.progress import Report
from sotdd.engines.comparison import compare
from sotdd.inputs.column_names import by_position
from sotdd.inputs.data import LabelledData, same_features
from sotdd.peers.chsw import FeaturesOnly
from sotdd.peers.points import Points, refuse_beyond_memory
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scale, Scaler, scaler_for
from sotdd.results.distance import Distance

Pairs: TypeAlias = Sequence[tuple[int, int]]
Found: TypeAlias = dict[tuple[int, int], Distance]

# Takes datasets, pairs of their places, a function to report (done, total) to, and settings by keyword.
Method: TypeAlias = Callable[..., Found]

# Features must lie between this and its inverse, so that their squares and sums stay in float64.
_SMALLEST = 1e-120


def load(
    datasets: Sequence[LabelledData], scale: Scale, max_samples: int | None, seed: int
) -> tuple[list[Points], Scaler | None]:
    """Datasets in memory, sampled and scaled as asked."""
    same_features(datasets)
    if max_samples is not None:
        check_count(max_samples, "max_samples")
    key = check_seed(seed)
    total = sum(min(data.n_points, max_samples or data.n_points) * data.n_features for data in datasets)
    refuse_beyond_memory(8 * total, "holding the datasets in float64", None)
    scaler = scaler_for(scale, list(datasets))
    points = [Points.of(data, max_samples, key).scaled(scaler) for data in datasets]
    largest = max(float(np.max(np.abs(data.features))) for data in points)
    if not (largest == 0 or _SMALLEST < largest < 1 / _SMALLEST):
        raise SotddError(f"features as large as {largest:.3g} cannot be squared in float64: use scale='pooled'.")
    return points, scaler


def remarks_on(
    datasets: Sequence[LabelledData], points: Sequence[Points | LabelledData], scaler: Scaler | None, i: int, j: int
) -> tuple[str, ...]:
    """Say which of two datasets were sampled, and what there is to say of their scale and their columns."""
    sampled = [
        f"{len(points[k].codes):,} of the {datasets[k].n_points:,} points of {datasets[k].name!r} were sampled"
        for k in (i, j)
        if len(points[k].codes) < datasets[k].n_points
    ]
    scaled = () if scaler is None else scaler.remarks
    return (*sampled, *scaled, *by_position([datasets[i], datasets[j]], None))


def plain(
    datasets: Sequence[LabelledData],
    points: Sequence[Points],
    pair: tuple[int, int],
    value: float,
    method: str,
    scaler: Scaler | None,
) -> Distance:
    """A distance without projections, in units of the features."""
    i, j = pair
    return Distance(
        value=value,
        stderr=math.nan,
        p=2.0,
        n_points=(len(points[i]), len(points[j])),
        classes=(points[i].classes, points[j].classes),
        method=method,
        scaler=scaler,
        columns=datasets[i].columns or datasets[j].columns,
        remarks=remarks_on(datasets, points, scaler, i, j),
    )


def sliced(
    datasets: Sequence[LabelledData],
    points: Sequence[Points | LabelledData],
    projected: Sequence[LabelledData],
    pairs: Pairs,
    report: Report,
    p: float,
    scaler: Scaler | None,
    method: str,
    **drawing: object,
) -> Found:
    """Distances through projections of what is given as the features."""
    drawing = {"scale": None, **drawing}
    projections = Projections.fit(list(projected), label_law=FeaturesOnly(), **drawing)  # type: ignore[arg-type]
    found = compare(projected, pairs, projections, p, report, method=method)
    return {
        (i, j): replace(
            measured,
            classes=(datasets[i].classes, datasets[j].classes),
            scaler=scaler,
            columns=datasets[i].columns or datasets[j].columns,
            remarks=tuple(dict.fromkeys([*remarks_on(datasets, points, scaler, i, j), *measured.remarks])),
        )
        for (i, j), measured in found.items()
    }
