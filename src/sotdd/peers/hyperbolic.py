"""CHSW: sliced Wasserstein on features × hyperbolic labels (Bonet, Drumetz and Courty, 2024)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import OutOfRange
from sotdd.basics.resources import Report
from sotdd.inputs.data import LabelledData
from sotdd.peers.features import slice_pairs
from sotdd.peers.label_distances import find_distinct, measure_labels
from sotdd.peers.points import Distances, Doubles, Pairs, PointSets, peer
from sotdd.projections.directions import unit_rows
from sotdd.projections.drawing import Drawing
from sotdd.projections.maps import PointMap
from sotdd.projections.scaler import Scale

# Of the hyperbolic space that labels are placed in.
_LABEL_DIMENSIONS = 5


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
    groups = [group for points in loaded.points for group in points.groups]
    distances = np.sqrt(measure_labels(groups, groups, "gaussian"))
    label_points, unit = embed_labels(distances, _LABEL_DIMENSIONS, seed)
    first = np.cumsum([0, *(len(points.classes) for points in loaded.points[:-1])])
    coded = [  # a point is its features, and the number of its class among the classes of all datasets
        LabelledData.of(_to_float32(np.column_stack([points.features, points.codes + start]), points.name), points.name)
        for points, start in zip(loaded.points, first, strict=True)
    ]
    horospheres = Horospheres(label_points, unit)
    drawing = Drawing(n_projections=n_projections, directions=horospheres, scale=None, seed=seed)
    return slice_pairs(datasets, coded, pairs, report, p, drawing, loaded.scaler, "CHSW")


def _to_float32(values: Doubles, name: str) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        result = values.astype(np.float32)
    if not np.isfinite(result).all():
        raise OutOfRange(f"features of dataset {name!r} are too large for float32", use={"scale": "pooled"})
    return result


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
    weights: tuple[float, float] = (0.5**0.5, 0.5**0.5),
) -> NDArray[np.floating]:
    """Project points with labels: weight ⟨θ, x⟩ + weight × horospherical coordinate, (B, n)."""
    return weights[0] * (theta @ features.T) + weights[1] * heights[:, codes]


def lorentz_scaling(distances: Doubles, dimensions: int, seed: int = 0, starts: int = 4) -> Doubles:
    """Points (C, dimensions + 1) on the Lorentz model whose hyperbolic distances are near the given ones.

    Points are (√(1 + |z|²), z) with z free, so the optimisation has no constraint; the best of
    several starts is taken.
    """
    from scipy.optimize import minimize

    count = len(distances)
    rng = np.random.default_rng(seed)
    best, least = np.zeros((count, dimensions)), np.inf
    for _ in range(starts):
        start = rng.normal(0, 0.5, size=count * dimensions)
        solution = minimize(_stress, start, args=(distances, dimensions), jac=True, method="L-BFGS-B")
        if solution.fun < least:
            best, least = solution.x.reshape(count, dimensions), solution.fun
    return np.concatenate([_time(best)[:, None], best], axis=1)


def _time(z: Doubles) -> Doubles:
    """The first coordinate of a point on the hyperboloid."""
    time: Doubles = np.sqrt(1 + np.sum(z**2, axis=1))
    return time


def _stress(flat: Doubles, distances: Doubles, dimensions: int) -> tuple[float, Doubles]:
    """Σ_{i<j} (arccosh(x₀x₀' − z·z') − d)² and its gradient."""
    z = flat.reshape(-1, dimensions)
    time = _time(z)
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
