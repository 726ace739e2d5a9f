"""Multidimensional scaling: points whose Euclidean distances approximate the distances of a matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

Doubles = NDArray[np.float64]

# SMACOF stops when a step lowers the stress by less than this fraction.
_TOLERANCE = 1e-9


def classical_scaling(distances: Doubles, dimensions: int) -> Doubles:
    """Leading eigenvectors (N, dimensions) of the doubly centred squared distances (N, N).

    Exact if such points exist. Coordinates beyond the N-th are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.basics.multidimensional_scaling import classical_scaling
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
