"""WTE: the Wasserstein task embedding (Liu, Bai, Lu, Soltoggio and Kolouri, 2025)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sotdd.basics.errors import SotddError, require
from sotdd.engines.cpu.workers import Workers
from sotdd.peers.label_distances import Inner, cost_unit, label_coordinates, label_distances
from sotdd.peers.points import Doubles, Points, costs, refuse_large_plans


def embed(points: Doubles, reference: Doubles) -> Doubles:
    """Embed a point cloud (n, D) by transport from a reference (M, D): its barycentric displacement.

    The Euclidean distance between two embeddings (M, D) stands for W_2 between the clouds.
    """
    transport = require("ot", "exact transport", "'sotdd[peers]'")
    size = len(reference)
    cost = costs(reference, points, 2)
    plan, log = transport.emd([], [], cost / cost_unit(cost), numItermax=50_000_000, log=True)
    if log["warning"] is not None:
        raise SotddError(f"exact transport did not finish: {log['warning']}; pass max_samples.")
    displacement: Doubles = (size * plan @ points - reference) / np.sqrt(size)
    return displacement


def embed_tasks(
    datasets: Sequence[Points],
    *,
    inner: Inner = "gaussian",
    label_dimensions: int = 10,
    n_reference: int = 500,
    reference: Doubles | None = None,
    seed: int = 0,
) -> tuple[Doubles, Doubles]:
    """Embed datasets: label distances, labels into R^m, points with label coordinates, transport.

    Returns the embeddings (N, M, d + m) and the reference (M, d + m).
    """
    with_labels = join_label_coordinates(datasets, inner, label_dimensions)
    if reference is None:
        reference = gaussian_reference(with_labels, n_reference, seed)
    wanted = with_labels[0].shape[1]
    if reference.ndim != 2 or not len(reference) or reference.shape[1] != wanted or not np.isfinite(reference).all():
        raise SotddError(
            f"reference has shape {reference.shape}: expected finite numbers of shape (M, {wanted}), features and then "
            "label coordinates."
        )
    refuse_large_plans(len(reference), max(map(len, datasets)), copies=6, what="WTE")
    fixed = reference
    with Workers() as workers:  # the transport of each dataset, once
        embedded = workers.each(lambda cloud: embed(cloud, fixed), with_labels)
    return np.stack(embedded), reference


def join_label_coordinates(datasets: Sequence[Points], inner: Inner, dimensions: int) -> list[Doubles]:
    """Append to every point coordinates of its label, which lie as the labels' distributions do."""
    groups = [group for data in datasets for group in data.groups()]
    places = label_coordinates(np.sqrt(label_distances(groups, groups, inner)), dimensions)
    edges = np.cumsum([len(data.classes) for data in datasets])[:-1]
    return [
        np.concatenate([data.features, place[data.codes]], axis=1)
        for data, place in zip(datasets, np.split(places, edges), strict=True)
    ]


def gaussian_reference(clouds: Sequence[Doubles], size: int, seed: int) -> Doubles:
    """Points from a Gaussian with the mean and the spread of all clouds in every coordinate."""
    pooled = np.concatenate(clouds)
    noise = np.random.default_rng(seed).standard_normal((size, pooled.shape[1]))
    reference: Doubles = pooled.mean(axis=0) + pooled.std(axis=0) * noise
    return reference
