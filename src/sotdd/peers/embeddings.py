"""Distances that give labels coordinates: WTE (Liu et al., 2025) and CHSW (Bonet, Drumetz and Courty, 2024)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from sotdd.basics.errors import OutOfRange
from sotdd.basics.resources import Report, Workers
from sotdd.compute.matrix import DistanceMatrix
from sotdd.inputs import open_all
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.peers.features import slice_pairs
from sotdd.peers.optimal_transport import find_plan, measure_labels
from sotdd.peers.points import (
    Distances,
    Doubles,
    Measured,
    Pairs,
    PointSets,
    check_plan_fits,
    peer,
    point_costs,
    split_classes,
)
from sotdd.projections.directions import unit_rows
from sotdd.projections.maps import PointMap
from sotdd.projections.scaler import Scale
from sotdd.projections.settings import ProjectionSettings

# Of WTE, how many coordinates a label gets, and how many points the reference has.
_LABEL_DIMENSIONS, _REFERENCE_POINTS = 10, 500
# Of CHSW, the dimensions of the hyperbolic space that labels are placed in.
_HYPERBOLIC_DIMENSIONS = 5
# How many searches for them are begun, of which the best is taken.
_STARTS = 4
# SMACOF stops after so many steps, or when one lowers the stress by less than this fraction.
_MOST_SCALING_STEPS, _TOLERANCE = 3000, 1e-9


@dataclass(frozen=True, eq=False)
class TaskEmbeddings:
    """Datasets as vectors whose Euclidean distance is their WTE distance.

    Attributes
    ----------
    vectors
        (N, M × D) one row per dataset.
    reference
        (M, D) the points that every dataset was transported from: features, then label coordinates.
    matrix
        The distances between every two.
    """

    vectors: NDArray[np.float64]
    reference: NDArray[np.float64]
    matrix: DistanceMatrix


def wte(
    datasets: Sequence[Dataset] | Mapping[str, Dataset],
    *,
    scale: Scale = None,
    seed: int = 0,
    max_points: int | None = None,
) -> TaskEmbeddings:
    """WTE, the Wasserstein task embedding: datasets as vectors.

    Labels get ten coordinates by multidimensional scaling of the distances of Gaussians fitted to their classes, which
    are appended to the points. Each dataset is transported from one reference of 500 points, drawn from a Gaussian with
    the mean and the standard deviation of the data, and the displacement is its vector.

    Parameters
    ----------
    datasets
        Datasets by name, or a list of them. They are embedded together: the coordinates of labels come
        from the distances between all classes of all datasets.
    scale, seed, max_points
        As in `otdd`. The seed also draws the reference.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.random.default_rng(0).normal(size=(40, 2))
    >>> y = np.arange(40) % 2
    >>> embedded = sotdd.peers.wte({"here": (x, y), "there": (x + 5, y)})
    >>> embedded.vectors.shape
    (2, 6000)
    >>> apart = sotdd.distance((x, y), (x + 5, y), method="wte")
    >>> apart.value == embedded.matrix["here", "there"].value
    True
    """
    opened = open_all(datasets)
    loaded = PointSets.load(opened, scale=scale, seed=seed, max_points=max_points)
    distances, codes = _compare_classes(loaded.points)
    coordinates = place_labels(distances, _LABEL_DIMENSIONS)  # (ΣC, m)
    clouds = [  # (n, d + m) of each dataset: features, then the coordinates of the label
        np.concatenate([points.rows(slice(None)), coordinates[own]], axis=1)
        for points, own in zip(loaded.points, codes, strict=True)
    ]
    # The reference is of a Gaussian with the mean and the standard deviation of all clouds in every coordinate.
    pooled = np.concatenate(clouds)
    noise = np.random.default_rng(seed).standard_normal((_REFERENCE_POINTS, pooled.shape[1]))
    reference: Doubles = pooled.mean(axis=0) + pooled.std(axis=0) * noise
    check_plan_fits(len(reference), max(map(len, clouds)), "WTE")
    with Workers() as workers:
        vectors = np.stack(workers.each(lambda cloud: embed(cloud, reference), clouds))  # (N, M, D)
    measured = loaded.measure(
        list(combinations(range(len(opened)), 2)),
        lambda done, total: None,
        "WTE",
        lambda i, j: Measured(float(np.linalg.norm(vectors[i] - vectors[j]))),
    )
    matrix = DistanceMatrix(tuple(data.name for data in opened), measured)
    return TaskEmbeddings(vectors.reshape(len(opened), -1), reference, matrix)


@wraps(wte)
def wte_of_pairs(datasets: Sequence[LabelledData], pairs: Pairs, report: Report, **settings: Any) -> Distances:  # noqa: ANN401
    """The distances of some pairs alone, as by the other peers; the settings are those of `wte`."""
    distances = wte(list(datasets), **settings).matrix.distances
    report(len(pairs), len(pairs))
    return {pair: distances[pair] for pair in pairs}


def embed(points: Doubles, reference: Doubles) -> Doubles:
    """Embed a point cloud (n, D) by transport from a reference (M, D): its barycentric displacement.

    The Euclidean distance between two embeddings (M, D) stands for W_2 between the clouds.
    """
    size = len(reference)
    plan = find_plan(point_costs(reference, points, 2))
    displacement: Doubles = (size * plan @ points - reference) / np.sqrt(size)
    return displacement


# ------------------------------------------------------------------ CHSW


@peer
def chsw(
    datasets: Sequence[LabelledData],
    pairs: Pairs,
    report: Report,
    *,
    p: float = 2,
    n_projections: int = 1000,
    scale: Scale = None,
    seed: int = 0,
    max_points: int | None = None,
) -> Distances:
    """CHSW: sliced Wasserstein on features times labels, which are points of a hyperbolic space.

    Labels become points on the Lorentz model of five dimensions, by multidimensional scaling of the distances of
    Gaussians fitted to their classes, and are projected by horospheres. For several datasets, whose labels then share
    one hyperbolic space, use ``sotdd.pairwise(..., method="chsw")``.

    Parameters
    ----------
    a, b, p, n_projections
        As in `sotdd.distance`.
    scale, max_points
        As in `otdd`.
    seed
        The seed of the projections, of the sample and of the search for the labels' points.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.random.default_rng(0).normal(size=(60, 3))
    >>> y = np.arange(60) % 2
    >>> sotdd.peers.chsw((x, y), (x, y)).value
    0.0
    """
    loaded = PointSets.load(datasets, scale=scale, seed=seed, max_points=max_points)
    distances, codes = _compare_classes(loaded.points)
    coded = []  # a point is its features, and the number of its class among the classes of all datasets
    for points, own in zip(loaded.points, codes, strict=True):
        with np.errstate(over="ignore"):
            features = np.column_stack([points.rows(slice(None)), own]).astype(np.float32)
        if not np.isfinite(features).all():
            raise OutOfRange(f"features of dataset {points.name!r} are too large for float32", use={"scale": "pooled"})
        coded.append(LabelledData.of(features, points.name))
    horospheres = Horospheres(*embed_labels(distances, _HYPERBOLIC_DIMENSIONS, seed))
    drawing = ProjectionSettings(n_projections=n_projections, directions=horospheres, scale=None, seed=seed)
    return slice_pairs(datasets, coded, pairs, report, p, drawing, loaded.scaler, "CHSW")


def embed_labels(distances: Doubles, dimensions: int, seed: int) -> tuple[Doubles, float]:
    """Points (C, m + 1) of labels whose mean distance is one unit of curvature, and that unit."""
    chosen, stands_for = find_distinct(distances)
    apart = distances[np.ix_(chosen, chosen)]
    if len(chosen) == 1:
        return np.eye(1, dimensions + 1).repeat(len(distances), axis=0), 1.0
    unit = float(np.mean(apart[np.triu_indices(len(chosen), 1)]))
    return lorentz_scaling(apart / unit, dimensions, seed)[stands_for], unit


def busemann(label_points: Doubles, directions: Doubles) -> Doubles:
    """Horospherical coordinates (B, C) of points on the Lorentz model.

    label_points (C, m + 1) with −x₀² + Σ xᵢ² = −1, directions (B, m + 1) unit tangents at the
    origin: log −⟨x, origin + v⟩ with Lorentz's product.
    """
    ideal = directions.copy()
    ideal[:, 0] += 1
    product = ideal[:, 1:] @ label_points[:, 1:].T - np.outer(ideal[:, 0], label_points[:, 0])
    heights: Doubles = np.log(-product)
    return heights


def project(
    features: NDArray[np.floating],
    codes: NDArray[np.integer],
    theta: NDArray[np.floating],
    heights: NDArray[np.floating],
) -> NDArray[np.floating]:
    """Project points with labels: (⟨θ, x⟩ + horospherical coordinate) / √2, (B, n)."""
    rows: NDArray[np.floating] = 0.5**0.5 * (theta @ features.T) + 0.5**0.5 * heights[:, codes]
    return rows


def lorentz_scaling(distances: Doubles, dimensions: int, seed: int = 0) -> Doubles:
    """Points (C, dimensions + 1) on the Lorentz model whose hyperbolic distances are near the given ones.

    Points are (√(1 + |z|²), z) with z free, so the optimisation has no constraint; the best of
    several starts is taken.
    """
    from scipy.optimize import minimize

    starts = np.random.default_rng(seed).normal(0, 0.5, size=(_STARTS, len(distances) * dimensions))
    found = [minimize(_stress, start, args=(distances, dimensions), jac=True, method="L-BFGS-B") for start in starts]
    best = min(found, key=lambda one: one.fun).x.reshape(-1, dimensions)
    return np.column_stack([np.sqrt(1 + np.sum(best**2, axis=1)), best])


def _stress(flat: Doubles, distances: Doubles, dimensions: int) -> tuple[float, Doubles]:
    """Σ_{i<j} (arccosh(x₀x₀' − z·z') − d)² and its gradient."""
    z = flat.reshape(-1, dimensions)
    time = np.sqrt(1 + np.sum(z**2, axis=1))  # the first coordinate of each point
    cosh = np.maximum(np.outer(time, time) - z @ z.T, 1 + 1e-12)
    gap = np.arccosh(cosh) - distances
    np.fill_diagonal(gap, 0)
    slope = 2 * gap / np.sqrt(cosh**2 - 1)  # counts each pair from both of its ends
    gradient = (slope @ time)[:, None] * (z / time[:, None]) - slope @ z
    return 0.5 * float(np.sum(gap**2)), gradient.ravel()


@dataclass(frozen=True, eq=False)
class Horospheres:
    """A law of directions for points whose last number is the code of their label.

    The features are projected by a uniform direction, the label by a horosphere; ``unit`` is what a
    hyperbolic length of one measures in units of the features.
    """

    label_points: Doubles  # (C, m + 1)
    unit: float

    def describe(self) -> Mapping[str, object]:
        """Name the law and where the labels are."""
        digest = hashlib.sha256(np.round(self.label_points, 6).tobytes()).hexdigest()[:16]
        return {"law": "horospheres", "labels": digest, "unit": round(self.unit, 9)}

    def draw(self, rng: np.random.Generator, n_projections: int, n_features: int) -> PointMap:
        """Draw a direction for the features and one for the label."""
        theta = unit_rows(rng.standard_normal((n_projections, n_features - 1))).astype(np.float32)
        tangents = np.zeros((n_projections, self.label_points.shape[1]))
        tangents[:, 1:] = unit_rows(rng.standard_normal((n_projections, self.label_points.shape[1] - 1)))
        heights = (self.unit * busemann(self.label_points, tangents)).astype(np.float32)
        return lambda points: project(points[:, :-1], points[:, -1].astype(np.int64), theta, heights)


# ------------------------------------------------------------------ coordinates of labels


def _compare_classes(points: Sequence[LabelledData]) -> tuple[Doubles, list[NDArray[np.integer]]]:
    """How far apart Gaussians fitted to all classes of all datasets are (ΣC, ΣC), and which of them points are of."""
    groups = [group for part in points for group in split_classes(part)]
    starts = np.cumsum([0, *(len(part.classes) for part in points)])
    codes = [part.codes + start for part, start in zip(points, starts, strict=False)]
    return np.sqrt(measure_labels(groups, groups, "gaussian")), codes


def find_distinct(distances: Doubles) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Which labels to give coordinates, and for every label which of those stands for it.

    Labels whose distance is zero up to rounding count as one label, so that a dataset and its copy
    get the same coordinates to the bit.
    """
    same = distances <= 1e-6 * max(float(distances.max()), 1e-300)
    np.fill_diagonal(same, True)
    return np.unique(np.argmax(same, axis=1), return_inverse=True)


def place_labels(distances: Doubles, dimensions: int) -> Doubles:
    """Coordinates of labels in R^m whose Euclidean distances are near the given ones (metric scaling).

    SMACOF starts from the classical solution, so nothing is random.
    """
    chosen, stands_for = find_distinct(distances)
    apart = distances[np.ix_(chosen, chosen)]
    return smacof(apart, classical_scaling(apart, dimensions), _MOST_SCALING_STEPS)[stands_for]


def classical_scaling(distances: Doubles, dimensions: int) -> Doubles:
    """Leading eigenvectors (N, dimensions) of the doubly centred squared distances (N, N).

    Exact if such points exist. Coordinates beyond the N-th are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.peers.embeddings import classical_scaling
    >>> points = classical_scaling(np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]]), 1)
    >>> np.abs(np.diff(points[:, 0])).round(6)
    array([1., 2.])
    """
    count = len(distances)
    centring = np.eye(count) - 1 / count
    values, vectors = np.linalg.eigh(-0.5 * centring @ distances**2 @ centring)
    leading = np.argsort(values)[::-1][:dimensions]
    points = np.zeros((count, dimensions))
    points[:, : len(leading)] = vectors[:, leading] * np.sqrt(np.maximum(values[leading], 0))
    return points


def smacof(distances: Doubles, start: Doubles, max_steps: int = 1000) -> Doubles:
    """Move points (N, m) from ``start`` until their distances approximate ``distances`` (N, N).

    SMACOF: each step is the Guttman transform, which never raises `raw_stress`.
    """
    points, stress = start, raw_stress(distances, start)
    for _ in range(max_steps):
        apart = cdist(points, points)
        ratio = np.divide(distances, apart, out=np.zeros_like(apart), where=apart > 0)
        points = (np.diag(ratio.sum(axis=1)) - ratio) @ points / len(points)
        previous, stress = stress, raw_stress(distances, points)
        if previous - stress <= _TOLERANCE * previous:
            break
    return points


def raw_stress(distances: Doubles, points: Doubles) -> float:
    """Σ (distance − distance of the points)², with every pair counted twice."""
    return float(np.sum((distances - cdist(points, points)) ** 2))
