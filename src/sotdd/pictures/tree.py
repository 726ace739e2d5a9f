"""Datasets joined into groups, nearest first: the order of heat maps, and dendrograms."""

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
        (N,) the datasets such that neighbours are near each other.
    links
        (N - 1, 4) which two groups join, at what height, with how many datasets, as SciPy writes it.

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
        """Join groups by the average distance of their members; neighbours are ordered optimally."""
        if len(values) < 2:
            return cls(np.arange(len(values)), np.empty((0, 4)))
        from scipy.cluster.hierarchy import leaves_list, linkage
        from scipy.spatial.distance import squareform

        links = linkage(squareform(values, checks=False), "average", optimal_ordering=True)
        return cls(leaves_list(links).astype(np.int64), links)

    def branches(self) -> list[tuple[tuple[float, float, float, float], tuple[float, float, float, float]]]:
        """The lines of a dendrogram: along the leaves (0, 1, … in order) and in height, four corners each."""
        place = {int(leaf): float(position) for position, leaf in enumerate(self.order)}
        height = dict.fromkeys(place, 0.0)
        corners = []
        for number, (left, right, joined, _) in enumerate(self.links, len(self.order)):
            one, other = sorted((int(left), int(right)), key=lambda group: place[group])
            corners.append(
                ((place[one], place[one], place[other], place[other]),
                 (height[one], float(joined), float(joined), height[other]))
            )  # fmt: skip
            place[number] = (place[one] + place[other]) / 2
            height[number] = float(joined)
        return corners
