"""Sliced Wasserstein distance of the features, through the engine of s-OTDD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sotdd.basics.progress import Report
from sotdd.engines.comparison import compare
from sotdd.inputs.data import LabelledData, same_features
from sotdd.peers.call import Distances, Pairs, peer
from sotdd.peers.features_only import FeaturesOnly
from sotdd.peers.loading import remarks_on
from sotdd.projections.drawing import Drawing
from sotdd.projections.scaler import Scale, Scaler, scaler_for


@peer
def sliced_wasserstein(
    datasets: Sequence[LabelledData],
    pairs: Pairs,
    report: Report,
    *,
    p: float = 2,
    n_projections: int = 1000,
    scale: Scale = None,
    seed: int = 0,
) -> Distances:
    """Sliced Wasserstein distance of the features; labels are ignored.

    Parameters
    ----------
    a, b, p, n_projections, seed
        As in `sotdd.distance`.
    scale
        As in `otdd`: None for features as they are.

    Examples
    --------
    >>> import sotdd
    >>> sotdd.peers.sliced_wasserstein([[0.0], [2.0]], [[3.0], [5.0]]).value
    3.0
    """
    same_features(datasets)
    scaler = scaler_for(scale, list(datasets))
    drawing = Drawing(n_projections=n_projections, scale=scaler, seed=seed)
    return sliced(datasets, datasets, pairs, report, p, drawing, scaler, "sliced Wasserstein")


def sliced(
    datasets: Sequence[LabelledData],
    projected: Sequence[LabelledData],
    pairs: Pairs,
    report: Report,
    p: float,
    drawing: Drawing,
    scaler: Scaler | None,
    method: str,
) -> Distances:
    """Distances through projections of what ``projected`` holds for each dataset, labels left out."""
    projections = replace(drawing, label_law=FeaturesOnly()).fit(projected)
    by_engine = compare(projected, pairs, projections, p, report, method=method)
    distances = {}
    for (i, j), distance in by_engine.items():
        pair = datasets[i], datasets[j]
        remarks = remarks_on(pair, (projected[i].n_points, projected[j].n_points), scaler)
        distances[i, j] = replace(
            distance,
            classes=(pair[0].classes, pair[1].classes),
            scaler=scaler,
            columns=pair[0].columns or pair[1].columns,
            remarks=tuple(dict.fromkeys([*remarks, *distance.remarks])),
        )
    return distances
