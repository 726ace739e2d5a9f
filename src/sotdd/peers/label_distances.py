"""Distances between classes, each a sample of features or a Gaussian fitted to it; and points that are as far apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement, product
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from sotdd.basics.errors import SotddError, check_choice, require
from sotdd.basics.resources import Workers
from sotdd.peers.features import Gaussian
from sotdd.peers.points import Doubles, check_plan_fits, point_costs

Inner: TypeAlias = Literal["exact", "gaussian"]

_MOST_SCALING_STEPS = 3000

# SMACOF stops when a step lowers the stress by less than this fraction.
_TOLERANCE = 1e-9


def find_plan(cost: Doubles) -> Doubles:
    """How much of one uniform sample to carry to which point of another at the least cost, by network simplex."""
    transport = require("ot", "exact transport", "'sotdd[peers]'")
    largest = float(cost.max())
    if not np.isfinite(largest):
        raise SotddError("transport costs overflow: use a smaller p, or scale='pooled'.")
    # The solver's tolerances are absolute, so it gets costs in units of the largest.
    plan, log = transport.emd([], [], cost / (largest or 1.0), numItermax=50_000_000, log=True)
    if log["warning"] is not None:
        raise SotddError(f"exact transport did not finish: {log['warning']}; pass max_points.")
    found: Doubles = plan
    return found


def exact_transport(cost: Doubles) -> float:
    """The least total cost of carrying one uniform sample to another."""
    return float(np.sum(find_plan(cost) * cost))


def measure_labels(a: Sequence[Doubles], b: Sequence[Doubles], inner: Inner, p: float = 2) -> Doubles:
    """W_p^p between every class of a and every class of b, (len(a), len(b)); each is computed once.

    ``inner="gaussian"`` gives W_2 of fitted Gaussians to the power p. Where ``a is b`` only one
    half is computed.
    """
    between = _choose_distance(a, b, inner, p)
    pairs = list(combinations_with_replacement(range(len(a)), 2) if a is b else product(range(len(a)), range(len(b))))
    pairs.sort(key=lambda pair: -len(a[pair[0]]) * len(b[pair[1]]))  # the longest work first
    with Workers() as workers:
        values = workers.each(lambda pair: 0.0 if a is b and pair[0] == pair[1] else between(*pair), pairs)
    distances = np.zeros((len(a), len(b)))
    for (i, j), value in zip(pairs, values, strict=True):
        distances[i, j] = value
        if a is b:
            distances[j, i] = value
    return distances


def _choose_distance(a: Sequence[Doubles], b: Sequence[Doubles], inner: Inner, p: float) -> Callable[[int, int], float]:
    """The distance of two classes by index, as ``inner`` says."""
    if check_choice(inner, "inner", ("exact", "gaussian")) == "exact":
        check_plan_fits(max(map(len, a)), max(map(len, b)), "exact label distance")
        return lambda i, j: exact_transport(point_costs(a[i], b[j], p))
    with Workers() as workers:
        fitted_a = workers.each(Gaussian.fit, a)
        fitted_b = fitted_a if a is b else workers.each(Gaussian.fit, b)
    return lambda i, j: fitted_a[i].squared_distance(fitted_b[j]) ** (p / 2)


def find_distinct(distances: Doubles) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Which labels to give coordinates, and for every label which of those stands for it.

    Labels whose distance is zero up to rounding count as one label, so that a dataset and its copy
    get the same coordinates to the bit.
    """
    same = distances <= 1e-6 * max(float(distances.max()), 1e-300)
    np.fill_diagonal(same, True)
    return np.unique(np.argmax(same, axis=1), return_inverse=True)


def place_labels(distances: Doubles, dimensions: int) -> Doubles:
    """Coordinates of labels in R^m whose Euclidean distances are near the given ones (metric scaling).

    SMACOF starts from the classical solution, so nothing is random.
    """
    chosen, stands_for = find_distinct(distances)
    apart = distances[np.ix_(chosen, chosen)]
    return smacof(apart, classical_scaling(apart, dimensions), _MOST_SCALING_STEPS)[stands_for]


def classical_scaling(distances: Doubles, dimensions: int) -> Doubles:
    """Leading eigenvectors (N, dimensions) of the doubly centred squared distances (N, N).

    Exact if such points exist. Coordinates beyond the N-th are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.peers.label_distances import classical_scaling
    >>> points = classical_scaling(np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]]), 1)
    >>> np.abs(np.diff(points[:, 0])).round(6)
    array([1., 2.])
    """
    count = len(distances)
    centring = np.eye(count) - 1 / count
    values, vectors = np.linalg.eigh(-0.5 * centring @ distances**2 @ centring)
    leading = np.argsort(values)[::-1][:dimensions]
    points = np.zeros((count, dimensions))
    points[:, : len(leading)] = vectors[:, leading] * np.sqrt(np.maximum(values[leading], 0))
    return points


def smacof(distances: Doubles, start: Doubles, max_steps: int = 1000) -> Doubles:
    """Move points (N, m) from ``start`` until their distances approximate ``distances`` (N, N).

    SMACOF: each step is the Guttman transform, which never raises `raw_stress`.
    """
    points, stress = start, raw_stress(distances, start)
    for _ in range(max_steps):
        apart = cdist(points, points)
        ratio = np.divide(distances, apart, out=np.zeros_like(apart), where=apart > 0)
        points = (np.diag(ratio.sum(axis=1)) - ratio) @ points / len(points)
        previous, stress = stress, raw_stress(distances, points)
        if previous - stress <= _TOLERANCE * previous:
            break
    return points


def raw_stress(distances: Doubles, points: Doubles) -> float:
    """Σ (distance − distance of the points)², with every pair counted twice."""
    return float(np.sum((distances - cdist(points, points)) ** 2))
