"""Scores that know which set is the target: what the source's labels say of the target's."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Points = NDArray[np.floating]
Labels = NDArray[np.integer]

_DIRECTIONS, _LEVELS = 200, 256


def nearest_entropy(source: Points, source_y: Labels, target: Points, target_y: Labels) -> float:
    """Entropy of the target's labels given the label of the nearest source point, in nats."""
    squares = np.sum(source**2, axis=1) - 2 * target @ source.T
    return conditional_entropy(_joint(source_y[squares.argmin(axis=1)], target_y))


def sliced_entropy(source: Points, source_y: Labels, target: Points, target_y: Labels) -> float:
    """The same with labels coupled by the optimal plans on lines, averaged over random lines."""
    lines = np.random.default_rng(0).normal(size=(_DIRECTIONS, source.shape[1])).astype(np.float32)
    middle = (np.arange(_LEVELS) + 0.5) / _LEVELS
    coupled = []
    for x, y in ((source, source_y), (target, target_y)):
        ordered = y[np.argsort(x @ lines.T, axis=0)]  # (n, directions)
        coupled.append(ordered[(middle * len(y)).astype(int)])
    entropies = [conditional_entropy(_joint(a, b)) for a, b in zip(coupled[0].T, coupled[1].T, strict=True)]
    return float(np.mean(entropies))


def conditional_entropy(joint: Floats) -> float:
    """Of the column given the row of a table of probabilities."""
    given = joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
    return float(-np.sum(joint * np.log(np.where(given > 0, given, 1))))


def _joint(rows: Labels, columns: Labels) -> Floats:
    table = np.zeros((int(rows.max()) + 1, int(columns.max()) + 1))
    np.add.at(table, (rows, columns), 1 / len(rows))
    return table


def separation(x: Points, y: Labels) -> float:
    """The share of variance between classes, less what chance gives so many classes (omega squared)."""
    total = float(np.sum((x - x.mean(axis=0)) ** 2))
    within = sum(float(np.sum((x[y == label] - x[y == label].mean(axis=0)) ** 2)) for label in np.unique(y))
    classes = len(np.unique(y))
    noise = within / max(len(y) - classes, 1)
    return (total - within - (classes - 1) * noise) / (total + noise)
