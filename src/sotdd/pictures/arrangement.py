"""How plots and pages arrange datasets: joined into groups, and as points of a map; and the unit of distances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.multidimensional_scaling import classical_scaling, raw_stress, smacof
from sotdd.results.distance import Distance

_UNITS = {
    "none": "in the units of the features",
    "pooled": "in units of the pooled spread",
    "features": "in units of each feature's spread",
}


def unit_of(distance: Distance) -> str:
    """What a distance is measured in."""
    return _UNITS[distance.scale]


@dataclass(frozen=True, eq=False)
class Tree:
    """Average-linkage clustering of a matrix of distances.

    Attributes
    ----------
    order
        (N,) the datasets in an order in which neighbours are near each other.
    links
        (N - 1, 4) which two groups join, at what height, and how many datasets they hold, in SciPy's format.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.pictures.arrangement import Tree
    >>> tree = Tree.of(np.array([[0.0, 5.0, 1.0], [5.0, 0.0, 4.0], [1.0, 4.0, 0.0]]))
    >>> tree.order.tolist(), tree.links[:, 2].tolist()
    ([1, 2, 0], [1.0, 4.5])
    """

    order: NDArray[np.int64]
    links: NDArray[np.float64]

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Tree:
        """Join groups by the average distance between their members; the order of the leaves is optimal."""
        if len(values) < 2:
            return cls(np.arange(len(values)), np.empty((0, 4)))
        from scipy.cluster.hierarchy import leaves_list, linkage
        from scipy.spatial.distance import squareform

        links = linkage(squareform(values, checks=False), "average", optimal_ordering=True)
        return cls(leaves_list(links).astype(np.int64), links)

    def branches(self) -> list[tuple[tuple[float, float, float, float], tuple[float, float, float, float]]]:
        """The lines of a dendrogram, four corners each: positions along the leaves (0, 1, …), and heights."""
        position = {int(leaf): float(index) for index, leaf in enumerate(self.order)}
        height = dict.fromkeys(position, 0.0)
        corners = []
        for number, (left, right, joined, _) in enumerate(self.links, len(self.order)):
            one, other = sorted((int(left), int(right)), key=lambda group: position[group])
            corners.append(
                ((position[one], position[one], position[other], position[other]),
                 (height[one], float(joined), float(joined), height[other]))
            )  # fmt: skip
            position[number] = (position[one] + position[other]) / 2
            height[number] = float(joined)
        return corners


@dataclass(frozen=True, eq=False)
class ScalingMap:
    """Datasets as points in the plane whose distances approximate the measured ones.

    Attributes
    ----------
    points
        (N, 2), centred, along their principal axes.
    stress
        Kruskal's stress-1: the root of Σ (measured - drawn)² / Σ measured²; 0 for a faithful map.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.pictures.arrangement import ScalingMap
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

    @property
    def faithfulness(self) -> str:
        """How well the map shows the distances, in Kruskal's words."""
        for limit, word in ((0.025, "excellent"), (0.05, "good"), (0.1, "fair")):
            if self.stress <= limit:
                return word
        return "poor, so trust the matrix rather than the map"


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
