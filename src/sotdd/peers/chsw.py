"""CHSW: sliced Wasserstein on features × hyperbolic labels (Bonet, Drumetz and Courty, 2024)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.peers.label_distances import distinct_labels
from sotdd.peers.points import Doubles
from sotdd.projections.directions import PointMap, unit_rows
from sotdd.projections.moments import Polynomials


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
    """Place labels on the Lorentz model so that hyperbolic distances are near the given ones.

    Points are (√(1 + |z|²), z) with z free, so the optimisation has no constraint; the best of
    several starts is taken. Returns (C, dimensions + 1).
    """
    from scipy.optimize import minimize

    count = len(distances)
    rng = np.random.default_rng(seed)
    best, least = np.zeros((count, dimensions)), np.inf
    for _ in range(starts):
        start = rng.normal(0, 0.5, size=count * dimensions)
        found = minimize(_stress, start, args=(distances, dimensions), jac=True, method="L-BFGS-B")
        if found.fun < least:
            best, least = found.x.reshape(count, dimensions), found.fun
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

    The features are projected by a uniform direction, the label by a horosphere; ``unit`` is the
    length that one stands for in the hyperbolic space.
    """

    label_points: Doubles  # (C, m + 1)
    unit: float

    def describe(self) -> Mapping[str, object]:
        """Name the law and where the labels are."""
        places = hashlib.sha256(np.round(self.label_points, 6).tobytes()).hexdigest()[:16]
        return {"law": "horospheres", "labels": places, "unit": round(self.unit, 9)}

    def draw(self, rng: np.random.Generator, n_projections: int, n_features: int) -> PointMap:
        """Draw a direction for the features and one for the label."""
        theta = unit_rows(rng.standard_normal((n_projections, n_features - 1))).astype(np.float32)
        tangents = np.zeros((n_projections, self.label_points.shape[1]))
        tangents[:, 1:] = unit_rows(rng.standard_normal((n_projections, self.label_points.shape[1] - 1)))
        heights = (self.unit * busemann(self.label_points, tangents)).astype(np.float32)
        return lambda points: project(points[:, :-1], points[:, -1].astype(np.int64), theta, heights)


class FeaturesOnly:
    """A label law without labels: sliced Wasserstein on what is projected."""

    def describe(self) -> Mapping[str, object]:
        """Name the law."""
        return {"law": "features only"}

    def draw(self, rng: np.random.Generator, n_projections: int) -> Polynomials:  # nothing is random
        """Weight one for the feature, the zero polynomial for the label."""
        return Polynomials(np.ones(n_projections), np.zeros((n_projections, 1)))


def hyperbolic_labels(distances: Doubles, dimensions: int, seed: int) -> tuple[Doubles, float]:
    """Place labels so that their mean distance is one unit of curvature; return them and the unit."""
    chosen, which = distinct_labels(distances)
    apart = distances[np.ix_(chosen, chosen)]
    if len(chosen) == 1:
        return np.eye(1, dimensions + 1).repeat(len(distances), axis=0), 1.0
    unit = float(np.mean(apart[np.triu_indices(len(chosen), 1)]))
    return lorentz_scaling(apart / unit, dimensions, seed)[which], unit
