"""Transferability scores that need the source's network: LEEP, LogME, the H-score and the nearest class mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def leep(probabilities: Floats, y: NDArray[np.integer]) -> float:
    """Mean log-likelihood of the target's labels through the source's classes (Nguyen et al., 2020).

    ``probabilities`` (n, source classes) are the source network's on the target.
    """
    joint = np.stack([probabilities[y == label].sum(axis=0) for label in range(int(y.max()) + 1)]) / len(y)
    given = joint / np.maximum(joint.sum(axis=0), 1e-30)  # target label given source label
    likely = np.sum(probabilities * given[y], axis=1)
    return float(np.mean(np.log(np.maximum(likely, 1e-30))))


def h_score(features: Floats, y: NDArray[np.integer]) -> float:
    """How much of the features' covariance lies between classes, in the features' own units (Bao et al., 2019).

    The covariance is shrunk a little, since few examples leave it singular.
    """
    centred = features - features.mean(axis=0)
    means = _class_means(centred, y)[y]
    covariance = centred.T @ centred / len(y)
    covariance = 0.9 * covariance + 0.1 * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    covariance += 1e-9 * np.eye(len(covariance))
    return float(np.trace(np.linalg.solve(covariance, means.T @ means / len(y))))


def logme(features: Floats, y: NDArray[np.integer], rounds: int = 11) -> float:
    """Log evidence per point of linear models on the features, one per class (You et al., 2021).

    Weights have precision alpha and noise has precision beta, both raised to the largest evidence by fixed-point steps.
    """
    n, d = features.shape
    u, s, _ = np.linalg.svd(features, full_matrices=False)
    squares = s**2
    total = 0.0
    classes = int(y.max()) + 1
    for label in range(classes):
        truth = (y == label).astype(np.float64)
        inside = (u.T @ truth) ** 2
        outside = max(float(truth @ truth - inside.sum()), 0.0)
        alpha = beta = 1.0
        for _ in range(rounds):
            shrunk = alpha + beta * squares
            gamma = float(np.sum(beta * squares / shrunk))
            size = float(np.sum(beta**2 * squares * inside / shrunk**2))
            left = float(np.sum(inside * (alpha / shrunk) ** 2)) + outside
            alpha = gamma / max(size, 1e-12)
            beta = (n - gamma) / max(left, 1e-12)
            alpha, beta = min(max(alpha, 1e-9), 1e9), min(max(beta, 1e-9), 1e9)
        shrunk = alpha + beta * squares
        size = float(np.sum(beta**2 * squares * inside / shrunk**2))
        left = float(np.sum(inside * (alpha / shrunk) ** 2)) + outside
        determinant = float(np.sum(np.log(shrunk))) + (d - len(s)) * np.log(alpha)
        evidence = (
            n * np.log(beta) + d * np.log(alpha) - n * np.log(2 * np.pi) - beta * left - alpha * size - determinant
        )
        total += evidence / 2 / n
    return total / classes


def nearest_mean(features: Floats, y: NDArray[np.integer]) -> float:
    """How often the mean of a point's own class, without the point, is the nearest of all classes' means."""
    count = np.bincount(y).astype(np.float64)
    means = _class_means(features, y)
    squares = np.sum((features[:, None] - means) ** 2, axis=2)
    rows = np.arange(len(y))
    others = np.maximum(count[y] - 1, 1)
    # Without the point its mean is farther from it by the factor n / (n − 1).
    squares[rows, y] *= (count[y] / others) ** 2
    return float(np.mean(squares.argmin(axis=1) == y))


def _class_means(x: Floats, y: NDArray[np.integer]) -> Floats:
    return np.stack([x[y == label].mean(axis=0) for label in range(int(y.max()) + 1)])
