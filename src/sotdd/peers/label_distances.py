"""Distances between classes: each is a sample of features, or a Gaussian fitted to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, require
from sotdd.engines.cpu.workers import Workers
from sotdd.peers.points import Doubles, costs, refuse_large_plans

Inner: TypeAlias = Literal["exact", "gaussian"]


def exact_transport(cost: Doubles) -> float:
    """The least total cost of carrying one uniform sample to another, by network simplex."""
    transport = require("ot", "exact transport", "'sotdd[peers]'")
    unit = cost_unit(cost)
    total, log = transport.emd2([], [], cost / unit, numItermax=50_000_000, log=True)
    if log["warning"] is not None:
        raise SotddError(f"exact transport did not finish: {log['warning']}; pass max_samples.")
    return max(0.0, float(total)) * unit


def cost_unit(cost: Doubles) -> float:
    """The largest cost: the solver's tolerances are absolute, so costs are given to it in this unit."""
    largest = float(cost.max())
    if not np.isfinite(largest):
        raise SotddError("transport costs overflow: use a smaller p, or scale='pooled'.")
    return largest or 1.0


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A mean and a covariance F Fᵀ, kept as its factor: singular covariances are no special case."""

    mean: Doubles  # (d,)
    factor: Doubles  # (r, d) with r = min(n, d) rows: covariance is factorᵀ factor

    @classmethod
    def fit(cls, features: Doubles) -> Gaussian:
        """Mean and covariance of a sample, each point counting 1/n."""
        mean = features.mean(axis=0)
        centred = (features - mean) / np.sqrt(len(features))
        if centred.shape[0] > centred.shape[1]:
            centred = np.linalg.qr(centred, mode="r")
        return cls(mean, centred)

    def squared_distance(self, other: Gaussian) -> float:
        """Bures–Wasserstein: |m − m'|² + tr C + tr C' − 2 tr (C^½ C' C^½)^½.

        The last trace is the sum of the singular values of F F'ᵀ, so no matrix root is taken.
        """
        gap = self.mean - other.mean
        spread = float(np.sum(self.factor**2) + np.sum(other.factor**2))
        shared = float(np.sum(np.linalg.svd(self.factor @ other.factor.T, compute_uv=False)))
        return max(0.0, float(gap @ gap) + spread - 2 * shared)


def label_distances(a: Sequence[Doubles], b: Sequence[Doubles], inner: Inner, p: float = 2) -> Doubles:
    """W_p^p between every class of a and every class of b, (len(a), len(b)); each is computed once.

    ``inner="gaussian"`` gives W_2 of fitted Gaussians to the power p. Where ``a is b`` only one
    half is computed.
    """
    between = _between(a, b, inner, p)
    places = list(combinations_with_replacement(range(len(a)), 2) if a is b else product(range(len(a)), range(len(b))))
    places.sort(key=lambda place: -len(a[place[0]]) * len(b[place[1]]))  # the longest work first
    with Workers() as workers:
        found = workers.each(lambda place: 0.0 if a is b and place[0] == place[1] else between(*place), places)
    result = np.zeros((len(a), len(b)))
    for (i, j), distance in zip(places, found, strict=True):
        result[i, j] = distance
        if a is b:
            result[j, i] = distance
    return result


def _between(a: Sequence[Doubles], b: Sequence[Doubles], inner: Inner, p: float) -> Callable[[int, int], float]:
    """The function of two classes that ``inner`` names."""
    if inner == "exact":
        refuse_large_plans(max(map(len, a)), max(map(len, b)), copies=6, what="exact label distance")
        return lambda i, j: exact_transport(costs(a[i], b[j], p))
    if inner == "gaussian":
        with Workers() as workers:
            fitted_a = workers.each(Gaussian.fit, a)
            fitted_b = fitted_a if a is b else workers.each(Gaussian.fit, b)
        return lambda i, j: fitted_a[i].squared_distance(fitted_b[j]) ** (p / 2)
    raise SotddError(f"inner is {inner!r}: expected 'exact' or 'gaussian'.")


def distinct_labels(distances: Doubles) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Which labels to place, and for every label which of them it is.

    Labels at no distance beyond rounding are one label, so that a dataset and its copy are placed
    alike to the bit.
    """
    same = distances <= 1e-6 * max(float(distances.max()), 1e-300)
    np.fill_diagonal(same, True)
    return np.unique(np.argmax(same, axis=1), return_inverse=True)


def label_coordinates(distances: Doubles, dimensions: int) -> Doubles:
    """Place labels in R^m so that their Euclidean distances are near the given ones (metric MDS).

    SMACOF from the classical solution, so that nothing is random.
    """
    manifold = require("sklearn.manifold", "multidimensional scaling", "'sotdd[peers]'")
    chosen, which = distinct_labels(distances)
    apart = distances[np.ix_(chosen, chosen)]
    placed: Doubles = _classical_scaling(apart, dimensions)
    if len(chosen) > 1:
        placed = manifold.smacof(
            apart, n_components=dimensions, init=placed, n_init=1, max_iter=3000, eps=1e-9, normalized_stress=False
        )[0]
    return placed[which]


def _classical_scaling(distances: Doubles, dimensions: int) -> Doubles:
    """Leading eigenvectors of the doubly centred squared distances."""
    count = len(distances)
    centring = np.eye(count) - 1 / count
    values, vectors = np.linalg.eigh(-0.5 * centring @ distances**2 @ centring)
    leading = np.argsort(values)[::-1][:dimensions]
    placed = np.zeros((count, dimensions))
    placed[:, : len(leading)] = vectors[:, leading] * np.sqrt(np.maximum(values[leading], 0))
    return placed
