"""Datasets as points in the plane whose distances are near the measured ones: metric scaling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_MOST_STEPS = 1000
_ENOUGH = 1e-9  # relative decrease of the stress at which majorisation has arrived


@dataclass(frozen=True, eq=False)
class ScalingMap:
    """A map of datasets.

    Attributes
    ----------
    points
        (N, 2), centred, along their principal axes.
    stress
        Kruskal's stress-1: the root of Σ (measured - drawn)² / Σ measured²; 0 for a faithful map.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.pictures.scaling_map import ScalingMap
    >>> square = np.array([[0, 1, 1, 2**0.5], [1, 0, 2**0.5, 1], [1, 2**0.5, 0, 1], [2**0.5, 1, 1, 0]])
    >>> ScalingMap.of(square).stress < 1e-6
    True
    """

    points: NDArray[np.float64]
    stress: float

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> ScalingMap:
        """Begin with classical scaling, then majorise the stress (SMACOF); no randomness."""
        if not values.any():
            return cls(np.zeros((len(values), 2)), 0.0)
        points = _classical(values)
        stress = _squared_stress(values, points)
        for _ in range(_MOST_STEPS):
            drawn = _distances(points)
            ratio = np.divide(values, drawn, out=np.zeros_like(values), where=drawn > 0)
            points = (np.diag(ratio.sum(axis=1)) - ratio) @ points / len(values)  # Guttman's transform
            before, stress = stress, _squared_stress(values, points)
            if before - stress <= _ENOUGH * before:
                break
        return cls(_turned(points), float(np.sqrt(stress)))


def _distances(points: NDArray[np.float64]) -> NDArray[np.float64]:
    gaps: NDArray[np.float64] = np.sqrt(np.sum((points[:, None] - points[None]) ** 2, axis=2))
    return gaps


def _squared_stress(values: NDArray[np.float64], points: NDArray[np.float64]) -> float:
    return float(np.sum((values - _distances(points)) ** 2) / np.sum(values**2))


def _classical(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The two leading coordinates of the doubly centred squared distances."""
    centring = np.eye(len(values)) - 1 / len(values)
    spread, axes = np.linalg.eigh(-0.5 * centring @ values**2 @ centring)
    points = np.zeros((len(values), 2))
    for column in range(min(2, len(values))):
        points[:, column] = axes[:, -1 - column] * np.sqrt(max(float(spread[-1 - column]), 0.0))
    return points


def _turned(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Centre, turn to principal axes, and choose signs by the first dataset, so that the map is always the same."""
    centred = points - points.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    turned: NDArray[np.float64] = centred @ axes.T
    turned = np.pad(turned, ((0, 0), (0, 2 - turned.shape[1])))
    for column in (0, 1):
        largest = turned[np.argmax(np.abs(turned[:, column]) > 1e-9 * np.abs(turned).max()), column]
        turned[:, column] *= 1.0 if largest >= 0 else -1.0
    return turned
