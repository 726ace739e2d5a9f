"""Every method as one verb: distances of some pairs among several datasets."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_count, check_order
from sotdd.basics.errors import SotddError
from sotdd.basics.progress import Report
from sotdd.inputs.data import LabelledData
from sotdd.peers.chsw import Horospheres, hyperbolic_labels
from sotdd.peers.common import Found, Method, Pairs, load, plain, remarks_on, sliced
from sotdd.peers.features_only import frechet, mmd, sliced_wasserstein
from sotdd.peers.label_distances import Inner, label_distances
from sotdd.peers.otdd import transport_datasets
from sotdd.peers.points import Doubles
from sotdd.peers.wte import embed_tasks
from sotdd.projections.scaler import Scale
from sotdd.results.distance import Distance


def otdd(
    datasets: Sequence[LabelledData],
    pairs: Pairs,
    report: Report,
    *,
    inner: Inner = "exact",
    outer: Literal["exact", "sinkhorn"] = "exact",
    regularisation: float | None = None,
    p: float = 2,
    max_samples: int | None = None,
    scale: Scale = None,
    seed: int = 0,
) -> Found:
    """Transport of every pair on features and label distances together."""
    p = check_order(p)
    points, scaler = load(datasets, scale, max_samples, seed)
    method = f"OTDD, {inner} labels" + (", Sinkhorn" if outer == "sinkhorn" else "")
    found = {}
    for done, (i, j) in enumerate(pairs, 1):
        solved = transport_datasets(points[i], points[j], inner=inner, outer=outer, regularisation=regularisation, p=p)
        found[i, j] = Distance(
            value=solved.total ** (1 / p),
            stderr=math.nan,
            p=p,
            n_points=(len(points[i]), len(points[j])),
            classes=(points[i].classes, points[j].classes),
            method=method,
            scaler=scaler,
            label_distances=solved.labels,
            columns=datasets[i].columns or datasets[j].columns,
            remarks=(*remarks_on(datasets, points, scaler, i, j), *solved.remarks),
        )
        report(done, len(pairs))
    return found


def wte(
    datasets: Sequence[LabelledData],
    pairs: Pairs,
    report: Report,
    *,
    inner: Inner = "gaussian",
    label_dimensions: int = 10,
    n_reference: int = 500,
    reference: NDArray[np.floating] | None = None,
    max_samples: int | None = None,
    scale: Scale = None,
    seed: int = 0,
) -> Found:
    """Euclidean distance of task embeddings."""
    found, _, _ = embedded(
        datasets, pairs, inner=inner, label_dimensions=label_dimensions, n_reference=n_reference, reference=reference,
        max_samples=max_samples, scale=scale, seed=seed,
    )  # fmt: skip
    report(len(pairs), len(pairs))
    return found


def embedded(
    datasets: Sequence[LabelledData],
    pairs: Pairs,
    *,
    inner: Inner,
    label_dimensions: int,
    n_reference: int,
    reference: NDArray[np.floating] | None,
    max_samples: int | None,
    scale: Scale,
    seed: int,
) -> tuple[Found, Doubles, Doubles]:
    """Distances of task embeddings, the embeddings (N, M, D) and their reference (M, D)."""
    points, scaler = load(datasets, scale, max_samples, seed)
    vectors, used = embed_tasks(
        points,
        inner=inner,
        label_dimensions=check_count(label_dimensions, "label_dimensions"),
        n_reference=check_count(n_reference, "n_reference"),
        reference=None if reference is None else _reference(reference),
        seed=seed,
    )
    found = {
        (i, j): plain(datasets, points, (i, j), float(np.linalg.norm(vectors[i] - vectors[j])), "WTE", scaler)
        for i, j in pairs
    }
    return found, vectors, used


def chsw(
    datasets: Sequence[LabelledData],
    pairs: Pairs,
    report: Report,
    *,
    n_projections: int = 1000,
    inner: Inner = "gaussian",
    label_dimensions: int = 5,
    p: float = 2,
    max_samples: int | None = None,
    scale: Scale = None,
    seed: int = 0,
) -> Found:
    """Sliced Wasserstein of points with hyperbolic labels, through the engine of s-OTDD."""
    points, scaler = load(datasets, scale, max_samples, seed)
    groups = [group for data in points for group in data.groups()]
    distances = np.sqrt(label_distances(groups, groups, inner))
    places, unit = hyperbolic_labels(distances, check_count(label_dimensions, "label_dimensions"), seed)
    first = np.cumsum([0, *(len(data.classes) for data in points[:-1])])
    coded = [
        LabelledData.of(np.column_stack([data.features, data.codes + start]).astype(np.float32), data.name)
        for data, start in zip(points, first, strict=True)
    ]
    return sliced(
        datasets, points, coded, pairs, report, p, scaler, "CHSW",
        directions=Horospheres(places, unit), n_projections=n_projections, seed=seed,
    )  # fmt: skip


def _reference(given: object) -> Doubles:
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise SotddError("reference does not form an array: expected numbers, one row per point.") from error


METHODS: dict[str, Method] = {
    "otdd": otdd,
    "otdd-gaussian": partial(otdd, inner="gaussian"),
    "wte": wte,
    "chsw": chsw,
    "frechet": frechet,
    "sw": sliced_wasserstein,
    "mmd": mmd,
}


def settings_of(method: str) -> list[str]:
    """What a method can be told."""
    parameters = inspect.signature(METHODS[method]).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
