"""WTE: the Wasserstein task embedding (Liu, Bai, Lu, Soltoggio and Kolouri, 2025)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.resources import Report, Workers
from sotdd.compute.matrix import DistanceMatrix
from sotdd.inputs import open_all
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.peers.label_distances import find_plan, measure_labels, place_labels
from sotdd.peers.points import Distances, Doubles, Measured, Pairs, PointSets, check_plan_fits, point_costs
from sotdd.projections.scaler import Scale

# How many coordinates a label gets, and how many points the reference has.
_LABEL_DIMENSIONS, _REFERENCE_POINTS = 10, 500


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
    groups = [group for points in loaded.points for group in points.groups]
    of_all = place_labels(np.sqrt(measure_labels(groups, groups, "gaussian")), _LABEL_DIMENSIONS)  # (ΣC, m)
    edges = np.cumsum([len(points.classes) for points in loaded.points])[:-1]
    clouds = [  # (n, d + m) of each dataset: features, then the coordinates of the label
        np.concatenate([points.features, coordinates[points.codes]], axis=1)
        for points, coordinates in zip(loaded.points, np.split(of_all, edges), strict=True)
    ]
    # The reference is of a Gaussian with the mean and the standard deviation of all clouds in every coordinate.
    pooled = np.concatenate(clouds)
    noise = np.random.default_rng(seed).standard_normal((_REFERENCE_POINTS, pooled.shape[1]))
    reference: Doubles = pooled.mean(axis=0) + pooled.std(axis=0) * noise
    check_plan_fits(len(reference), max(map(len, clouds)), "WTE")
    with Workers() as workers:
        vectors = np.stack(workers.each(lambda cloud: embed(cloud, reference), clouds))  # (N, M, D)
    distances = loaded.measure(
        list(combinations(range(len(opened)), 2)),
        lambda done, total: None,
        "WTE",
        lambda i, j: Measured(float(np.linalg.norm(vectors[i] - vectors[j]))),
    )
    matrix = DistanceMatrix(tuple(data.name for data in opened), distances)
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
