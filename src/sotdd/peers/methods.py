"""Every method as one verb: distances of some pairs among several datasets."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.checks import check_count, check_order, check_seed
from sotdd.comparison import compare
from sotdd.data import LabelledData, same_features
from sotdd.engines.workers import Workers
from sotdd.errors import SotddError
from sotdd.peers.chsw import FeaturesOnly, Horospheres, hyperbolic_labels
from sotdd.peers.label_distances import Gaussian, Inner, label_distances
from sotdd.peers.otdd import transport_datasets
from sotdd.peers.points import Doubles, Points, costs, refuse_beyond_memory
from sotdd.peers.wte import embed_tasks
from sotdd.progress import Report
from sotdd.projections.recipe import Projections, scaler_for
from sotdd.result import Distance
from sotdd.scaling import Scaler

Pairs: TypeAlias = Sequence[tuple[int, int]]
Found: TypeAlias = dict[tuple[int, int], Distance]
Scale: TypeAlias = Literal["pooled"] | Scaler | None

# Takes datasets, pairs of their places, a function to report (done, total) to, and settings by keyword.
Method: TypeAlias = Callable[..., Found]


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
    points, scaler = _load(datasets, scale, max_samples, seed)
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
            remarks=(*_sampling(datasets, points, i, j), *solved.remarks),
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
    points, scaler = _load(datasets, scale, max_samples, seed)
    vectors, used = embed_tasks(
        points,
        inner=inner,
        label_dimensions=check_count(label_dimensions, "label_dimensions"),
        n_reference=check_count(n_reference, "n_reference"),
        reference=None if reference is None else np.asarray(reference, np.float64),
        seed=seed,
    )
    found = {
        (i, j): _plain(datasets, points, (i, j), float(np.linalg.norm(vectors[i] - vectors[j])), "WTE", scaler)
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
    points, scaler = _load(datasets, scale, max_samples, seed)
    groups = [group for data in points for group in data.groups()]
    distances = np.sqrt(label_distances(groups, groups, inner))
    places, unit = hyperbolic_labels(distances, check_count(label_dimensions, "label_dimensions"), seed)
    first = np.cumsum([0, *(len(data.classes) for data in points[:-1])])
    coded = [
        LabelledData.of(np.column_stack([data.features, data.codes + start]).astype(np.float32), data.name)
        for data, start in zip(points, first, strict=True)
    ]
    return _sliced(
        datasets, points, coded, pairs, report, p, scaler, "CHSW",
        directions=Horospheres(places, unit), n_projections=n_projections, seed=seed,
    )  # fmt: skip


def sliced_wasserstein(
    datasets: Sequence[LabelledData],
    pairs: Pairs,
    report: Report,
    *,
    n_projections: int = 1000,
    p: float = 2,
    scale: Scale = None,
    seed: int = 0,
) -> Found:
    """Sliced Wasserstein on the features alone."""
    return _sliced(
        datasets, datasets, datasets, pairs, report, p, scaler_for(scale, list(datasets)), "sliced Wasserstein",
        n_projections=n_projections, seed=seed, scale=scale,
    )  # fmt: skip


def frechet(
    datasets: Sequence[LabelledData],
    pairs: Pairs,
    report: Report,
    *,
    max_samples: int | None = None,
    scale: Scale = None,
    seed: int = 0,
) -> Found:
    """Fréchet distance of Gaussians fitted to the features alone."""
    points, scaler = _load(datasets, scale, max_samples, seed)
    fitted = [Gaussian.fit(data.features) for data in points]
    found = {}
    for done, (i, j) in enumerate(pairs, 1):
        value = math.sqrt(fitted[i].squared_distance(fitted[j]))
        found[i, j] = _plain(datasets, points, (i, j), value, "Fréchet", scaler)
        report(done, len(pairs))
    return found


def mmd(
    datasets: Sequence[LabelledData],
    pairs: Pairs,
    report: Report,
    *,
    bandwidth: float | None = None,
    max_samples: int | None = None,
    scale: Scale = None,
    seed: int = 0,
) -> Found:
    """Maximum mean discrepancy of the features alone, with a Gaussian kernel."""
    points, scaler = _load(datasets, scale, max_samples, seed)
    width = _median_distance(points, seed) if bandwidth is None else bandwidth
    if not (isinstance(width, (int, float)) and math.isfinite(width) and width > 0):
        raise SotddError(f"bandwidth is {bandwidth!r}: expected a positive number, in units of the features.")
    own = [_mean_kernel(data.features, data.features, width) for data in points]
    found = {}
    for done, (i, j) in enumerate(pairs, 1):
        square = own[i] + own[j] - 2 * _mean_kernel(points[i].features, points[j].features, width)
        value = math.sqrt(max(0.0, square))
        found[i, j] = _plain(datasets, points, (i, j), value, f"MMD, bandwidth {width:.4g}", scaler)
        report(done, len(pairs))
    return found


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


# ------------------------------------------------------------------ shared parts


def _load(
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
    return [Points.of(data, max_samples, key).scaled(scaler) for data in datasets], scaler


def _sampling(datasets: Sequence[LabelledData], points: Sequence[Points | LabelledData], i: int, j: int) -> list[str]:
    """Say which of two datasets were sampled."""
    return [
        f"{len(points[k].codes):,} of the {datasets[k].n_points:,} points of {datasets[k].name!r} were sampled"
        for k in (i, j)
        if len(points[k].codes) < datasets[k].n_points
    ]


def _plain(
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
        remarks=tuple(_sampling(datasets, points, i, j)),
    )


def _sliced(
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
    projections = Projections.fit(list(projected), label=FeaturesOnly(), **drawing)  # type: ignore[arg-type]
    found = compare(projected, pairs, projections, p, report, method=method)
    return {
        (i, j): replace(
            measured,
            classes=(datasets[i].classes, datasets[j].classes),
            scaler=scaler,
            remarks=(*_sampling(datasets, points, i, j), *measured.remarks),
        )
        for (i, j), measured in found.items()
    }


def _median_distance(points: Sequence[Points], seed: int, most: int = 1000) -> float:
    """The usual bandwidth: the median distance among a sample of all points."""
    pooled = np.concatenate([data.features for data in points])
    rows = np.random.default_rng(seed).permutation(len(pooled))[:most]
    distances = np.sqrt(costs(pooled[rows], pooled[rows], 2))
    upper = distances[np.triu_indices(len(rows), 1)]
    return float(np.median(upper)) if upper.size and np.median(upper) > 0 else 1.0


def _mean_kernel(a: Doubles, b: Doubles, bandwidth: float, rows: int = 512) -> float:
    """Mean of exp(−|x − x'|² / 2h²) over all pairs, a block of rows at a time."""
    blocks = [a[start : start + rows] for start in range(0, len(a), rows)]
    with Workers() as workers:
        sums = workers.each(lambda part: float(np.sum(np.exp(costs(part, b, 2) / (-2 * bandwidth**2)))), blocks)
    return math.fsum(sums) / (len(a) * len(b))
