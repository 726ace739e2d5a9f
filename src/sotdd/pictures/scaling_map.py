"""Datasets as points in the plane whose distances approximate the measured ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.multidimensional_scaling import classical_scaling, raw_stress, smacof


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
        """Start from classical scaling, then lower the stress by SMACOF; nothing is random."""
        if not values.any():
            return cls(np.zeros((len(values), 2)), 0.0)
        points = smacof(values, classical_scaling(values, 2))
        return cls(_rotated(points), float(np.sqrt(raw_stress(values, points) / np.sum(values**2))))


def _rotated(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Centre, rotate to principal axes and fix the signs, so that the map is always the same."""
    centred = points - points.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    rotated: NDArray[np.float64] = centred @ axes.T
    rotated = np.pad(rotated, ((0, 0), (0, 2 - rotated.shape[1])))
    for column in (0, 1):
        largest = rotated[np.argmax(np.abs(rotated[:, column]) > 1e-9 * np.abs(rotated).max()), column]
        rotated[:, column] *= 1.0 if largest >= 0 else -1.0
    return rotated
