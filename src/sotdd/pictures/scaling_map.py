"""Datasets as points in the plane whose distances are near the measured ones."""

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
        """Begin with classical scaling, then majorise the stress (SMACOF); no randomness."""
        if not values.any():
            return cls(np.zeros((len(values), 2)), 0.0)
        points = smacof(values, classical_scaling(values, 2))
        return cls(_turned(points), float(np.sqrt(raw_stress(values, points) / np.sum(values**2))))


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
