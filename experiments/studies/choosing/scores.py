"""Scores of a source's network on a target: LEEP, LogME and the H-score; and the separation of a set's own classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = NDArray[np.integer]


def leep(probabilities: Floats, y: Labels) -> float:
    """Mean log-likelihood of the target's labels through the source's classes (Nguyen et al., 2020).

    ``probabilities`` (n, source classes) are the source network's on the target.
    """
    joint = np.stack([probabilities[y == label].sum(axis=0) for label in range(int(y.max()) + 1)]) / len(y)
    given = joint / np.maximum(joint.sum(axis=0), 1e-30)  # target label given source label
    likely = np.sum(probabilities * given[y], axis=1)
    return float(np.mean(np.log(np.maximum(likely, 1e-30))))


def h_score(features: Floats, y: Labels) -> float:
    """How much of the features' covariance lies between classes, in the features' own units (Bao et al., 2019).

    The covariance is shrunk a little, since few examples leave it singular.
    """
    centred = features - features.mean(axis=0)
    means = np.stack([centred[y == label].mean(axis=0) for label in range(int(y.max()) + 1)])[y]
    covariance = centred.T @ centred / len(y)
    covariance = 0.9 * covariance + 0.1 * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    covariance += 1e-9 * np.eye(len(covariance))
    return float(np.trace(np.linalg.solve(covariance, means.T @ means / len(y))))


def logme(features: Floats, y: Labels, rounds: int = 11) -> float:
    """Log evidence per point of linear models on the features, one per class (You et al., 2021).

    Weights have precision alpha and noise has precision beta, both raised to the largest evidence by fixed-point steps.
    """
    n, d = features.shape
    u, s, _ = np.linalg.svd(features, full_matrices=False)
    squares = s[:, None] ** 2
    truth = (y[:, None] == np.unique(y)).astype(np.float64)  # (n, classes)
    inside = (u.T @ truth) ** 2
    outside = np.maximum(truth.sum(axis=0) - inside.sum(axis=0), 0)
    alpha = beta = np.ones(truth.shape[1])

    def parts() -> tuple[Floats, Floats, Floats]:
        shrunk = alpha + beta * squares
        size = np.sum(beta**2 * squares * inside / shrunk**2, axis=0)
        return shrunk, size, np.sum(inside * (alpha / shrunk) ** 2, axis=0) + outside

    for _ in range(rounds):
        shrunk, size, left = parts()
        gamma = np.sum(beta * squares / shrunk, axis=0)
        alpha = np.clip(gamma / np.maximum(size, 1e-12), 1e-9, 1e9)
        beta = np.clip((n - gamma) / np.maximum(left, 1e-12), 1e-9, 1e9)
    shrunk, size, left = parts()
    determinant = np.sum(np.log(shrunk), axis=0) + (d - len(s)) * np.log(alpha)
    evidence = n * np.log(beta / (2 * np.pi)) + d * np.log(alpha) - beta * left - alpha * size - determinant
    return float(np.mean(evidence) / (2 * n))


def separation(x: NDArray[np.floating], y: Labels) -> float:
    """The share of variance between classes, less what chance gives so many classes (omega squared)."""
    total = float(np.sum((x - x.mean(axis=0)) ** 2))
    within = sum(float(np.sum((x[y == label] - x[y == label].mean(axis=0)) ** 2)) for label in np.unique(y))
    classes = len(np.unique(y))
    noise = within / max(len(y) - classes, 1)
    return (total - within - (classes - 1) * noise) / (total + noise)
