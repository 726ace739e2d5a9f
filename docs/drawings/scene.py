"""What all drawings show: two small labelled datasets, and one projection of them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

COLOURS = np.array(["#1f5f99", "#c05a12", "#2f8f6b", "#a0457a", "#8a7a1f"])  # two of A, three of B
INK, QUIET, RULE = "#1d2733", "#5c6975", "#d5dbe1"

# One projection: a direction, the weights of the feature and of two moments, and the orders of the moments.
THETA = np.array([math.cos(math.radians(24)), math.sin(math.radians(24))])
PSI = np.array([0.62, 0.66, 0.42])
ORDERS = (1, 2)


def dataset(seed: int, centres: list[tuple[float, float]], size: int) -> tuple[Numbers, NDArray[np.int64]]:
    """Round classes in the plane."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(centres)), size)
    return rng.normal(np.array(centres)[labels], 0.42), labels


A = dataset(3, [(-1.2, 0.5), (1.0, -0.1)], 9)
B = dataset(5, [(-0.5, -1.0), (0.4, 1.1), (1.7, 0.5)], 5)


def projected(points: Numbers) -> Numbers:
    """T = θ·x."""
    return points @ THETA


def terms(t: Numbers, labels: NDArray[np.int64]) -> Numbers:
    """The term of each class: the mean of its polynomial."""
    polynomial = sum(PSI[i + 1] * t**order / math.factorial(order) for i, order in enumerate(ORDERS))
    return np.array([polynomial[labels == kind].mean() for kind in np.unique(labels)])


def placed(points: Numbers, labels: NDArray[np.int64]) -> Numbers:
    """ψ₁ t plus the term of the point's class: where a labelled point stands on the line."""
    t = projected(points)
    return PSI[0] * t + terms(t, labels)[labels]
