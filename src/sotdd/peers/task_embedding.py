"""WTE: the Wasserstein task embedding (Liu, Bai, Lu, Soltoggio and Kolouri, 2025)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_count
from sotdd.basics.display import Report
from sotdd.basics.threads import Workers
from sotdd.compute.matrix import DistanceMatrix
from sotdd.inputs import open_all
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.peers.label_distances import Inner, find_plan, measure_labels, place_labels
from sotdd.peers.points import Distances, Doubles, Measured, Pairs, Points, PointSets, check_plan_fits, point_costs
from sotdd.projections.scaler import Scale


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
    inner: Inner = "gaussian",
    label_dimensions: int = 10,
    n_reference: int = 500,
    max_points: int | None = None,
) -> TaskEmbeddings:
    """WTE, the Wasserstein task embedding: datasets as vectors.

    Labels get coordinates in R^m by multidimensional scaling of their distances, which are appended to
    the points; each dataset is transported from one reference, and the displacement is its vector.

    Parameters
    ----------
    datasets
        Datasets by name, or a list of them. They are embedded together: the coordinates of labels come
        from the distances between all classes of all datasets.
    scale, seed, max_points
        As in `otdd`. The seed also draws the reference.
    inner
        How far apart two classes are, as in `otdd`.
    label_dimensions
        How many coordinates a label gets.
    n_reference
        How many points the reference has, which is drawn from a Gaussian with the mean and the standard
        deviation of the data.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.random.default_rng(0).normal(size=(40, 2))
    >>> y = np.arange(40) % 2
    >>> embedded = sotdd.peers.wte({"here": (x, y), "there": (x + 5, y)}, n_reference=20)
    >>> embedded.vectors.shape
    (2, 240)
    >>> apart = sotdd.distance((x, y), (x + 5, y), method="wte", n_reference=20)
    >>> apart.value == embedded.matrix["here", "there"].value
    True
    """
    opened = open_all(datasets)
    loaded = PointSets.load(opened, scale=scale, seed=seed, max_points=max_points)
    check_count(label_dimensions, "label_dimensions")
    check_count(n_reference, "n_reference")
    clouds = join_label_coordinates(loaded.points, inner, label_dimensions)
    reference = draw_reference(clouds, n_reference, seed)
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


def join_label_coordinates(datasets: Sequence[Points], inner: Inner, dimensions: int) -> list[Doubles]:
    """Points (n, d + m) of each dataset: their features, then the coordinates of their label."""
    groups = [group for points in datasets for group in points.groups]
    of_all = place_labels(np.sqrt(measure_labels(groups, groups, inner)), dimensions)  # (ΣC, m)
    edges = np.cumsum([len(points.classes) for points in datasets])[:-1]
    return [
        np.concatenate([points.features, coordinates[points.codes]], axis=1)
        for points, coordinates in zip(datasets, np.split(of_all, edges), strict=True)
    ]


def draw_reference(clouds: Sequence[Doubles], size: int, seed: int) -> Doubles:
    """Points from a Gaussian with the mean and the standard deviation of all clouds in every coordinate."""
    pooled = np.concatenate(clouds)
    noise = np.random.default_rng(seed).standard_normal((size, pooled.shape[1]))
    reference: Doubles = pooled.mean(axis=0) + pooled.std(axis=0) * noise
    return reference
