"""Datasets joined into groups, nearest first: for dendrograms and the order of heat maps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
    >>> from sotdd.pictures.tree import Tree
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
