"""What a test of two datasets looks at: classes as they lie, features, means, names; and one statistic from all.

A single projection sees a shift only in units of its own spread. Where features go together, a shift across them is
small in every single direction and large beside the spread of the right one. So differences of means are measured in
units of the spread of the projected points in every direction, as Hotelling's test does; under permutations that costs
one product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.compute.resampling import Plan, find_distances

Doubles = NDArray[np.float64]
LabelNames: TypeAlias = Literal["ignore", "match"]
Aspect: TypeAlias = Literal["labels", "features"]
Statistic: TypeAlias = Literal["combined", "balanced", "distance"]

# Statistics that vary by less than this share of themselves differ by rounding.
_ALIKE = 1e-9

# Both orders are judged: p = 1 sees small shifts of everything, p = 2 what few points or classes do.
ORDERS = (1.0, 2.0)

# Points farther from the median than this many deviations are brought that near: few far points would drown out all
# others.
FARTHEST = 3.0

# Added to every variance, by share of the mean one: directions in which points hardly vary count less. Few points to a
# class ask for more of it.
_RIDGE = 0.01
_CLASS_RIDGE = 0.1

# Directions with less than this share of the largest variance are rounding.
_ROUNDING = 1e-8

# Splits that are looked at together.
_BATCH = 64


def balance_costs(costs: Doubles) -> Doubles:
    """The mean (S,) over projections of W_p^p (L, S), each divided by the root of what is usual under it.

    Few projections of high order have costs many times those of the others. Divided by the root of
    their mean over all splits, they count more than the others still, but leave them a say.
    """
    usual = np.sqrt(np.mean(costs, axis=1))  # (L,)
    told = usual > 0  # under the others all points lie together
    if not told.any():
        return np.zeros(costs.shape[1])
    return np.asarray(np.mean(costs[told] / usual[told, None], axis=0) / np.mean(usual[told]))


def find_statistics(distances: Doubles, costs: Mapping[Aspect, Doubles], p: float, by: Statistic) -> dict[str, Doubles]:
    """The statistics (S,) that are judged, by name.

    ``distances`` are W_p^p (L, S) as the distance is defined, ``costs`` (L, S, orders) of every aspect.
    """
    if by == "distance":
        return {"distance": find_distances(distances, p)}
    if by == "balanced":
        return {"balanced": balance_costs(distances)}
    return {
        f"{aspect}, order {order:g}": balance_costs(of_aspect[:, :, column])
        for aspect, of_aspect in costs.items()
        for column, order in enumerate(ORDERS)
    }


def combine_statistics(statistics: Mapping[str, Doubles]) -> Doubles:
    """One statistic (S,) of several: the one that stands out most, in its own standard deviations.

    The data are one of the S splits like the others, and every split is judged by whatever stands out most in
    it, so the level of the test is that of any permutation test. Cube roots bring all to about the same shape.
    """
    if len(statistics) == 1:
        return next(iter(statistics.values()))
    scores = [score for score in map(_standardise, statistics.values()) if score is not None]
    if not scores:
        return np.zeros(len(next(iter(statistics.values()))))
    return np.asarray(np.max(scores, axis=0))


def _standardise(statistic: Doubles) -> Doubles | None:
    """Cube roots less their mean over their deviation; None where all splits are alike."""
    roots = np.cbrt(statistic)
    deviation = float(np.std(roots))
    return None if deviation <= _ALIKE * float(np.mean(roots)) else np.asarray((roots - roots.mean()) / deviation)


def measure_gaps(rows: NDArray[np.float32], plan: Plan, *, names: bool) -> dict[str, Doubles]:
    """Statistics (S,) of how means differ, from the projections (L, N) of all points.

    With ``names``, classes of the same name are compared too, and their shares.
    """
    statistics = {"means": measure_means(rows, plan)}
    if names:
        statistics |= {"classes by name": measure_class_means(rows, plan), "class shares": measure_shares(plan)}
    return statistics


def measure_means(rows: NDArray[np.float32], plan: Plan) -> Doubles:
    """The squared gap (S,) between the means of the two sides of every split, in units of the spread of all points.

    rows (L, N) are the projections of the pooled points, in their own order.
    """
    centred = _centre_rows(rows, None)
    points = _whiten(centred, centred, _RIDGE)
    n, m = plan.sizes
    return _go_over(plan, lambda left: np.sum(((left / n - (1 - left) / m) @ points.T) ** 2, axis=1))


def measure_class_means(rows: NDArray[np.float32], plan: Plan) -> Doubles:
    """The same (S,) class by class, averaged over the classes that both sides have, in units of their own errors.

    Classes are matched by name; the unit is the spread of points within their classes. An average, since datasets
    that were made to have every class would have more classes on both sides than their permutations do.
    """
    codes = plan.codes
    points = _whiten(_centre_rows(rows, None), _centre_rows(rows, codes), _CLASS_RIDGE)

    def gaps(left: Doubles) -> Doubles:
        total, compared = np.zeros(len(left)), np.zeros(len(left))
        for label in range(plan.n_classes):
            members = np.flatnonzero(codes == label)
            here = left[:, members]
            n = here.sum(axis=1)
            m = len(members) - n
            both = (n > 0) & (m > 0)
            contrast = here / np.maximum(n, 1)[:, None] - (1 - here) / np.maximum(m, 1)[:, None]
            total += np.where(both, n * m / len(members), 0.0) * np.sum((contrast @ points[:, members].T) ** 2, axis=1)
            compared += both
        return total / np.maximum(compared, 1.0)

    return _go_over(plan, gaps)


def measure_shares(plan: Plan) -> Doubles:
    """How far the shares of the classes, by name, are apart between the two sides of every split (S,): χ²."""
    n, m = plan.sizes
    member = np.eye(plan.n_classes)[plan.codes]  # (N, C)
    shares = member.mean(axis=0)
    return _go_over(plan, lambda left: np.sum((left @ member / n - (1 - left) @ member / m) ** 2 / shares, axis=1))


def _go_over(plan: Plan, statistic: Callable[[Doubles], Doubles]) -> Doubles:
    """A statistic of who is on the left (B, N), of all splits."""
    statistics = []
    for start in range(0, plan.count, _BATCH):
        batch = range(start, min(start + _BATCH, plan.count))
        left = np.zeros((len(batch), len(plan.codes)))
        for at, number in enumerate(batch):
            left[at, plan.draw(number)[0].index] = 1.0
        statistics.append(statistic(left))
    return np.concatenate(statistics)


def _centre_rows(rows: NDArray[np.float32], codes: NDArray[np.int64] | None) -> Doubles:
    """Rows (L, N) less their means, of all points or of each class."""
    wide = rows.astype(np.float64)
    if codes is None:
        wide -= wide.mean(axis=1, keepdims=True)
        return wide
    for label in range(int(codes.max()) + 1):
        members = codes == label
        wide[:, members] -= wide[:, members].mean(axis=1, keepdims=True)
    return wide


def _whiten(points: Doubles, reference: Doubles, ridge: float) -> Doubles:
    """Points (L, N) in coordinates (r, N) in which the reference (L, N) has about the same variance everywhere."""
    variances, turn = np.linalg.eigh(reference @ reference.T / reference.shape[1])
    variances = np.maximum(variances, 0.0)
    kept = variances > _ROUNDING * variances.max()
    added = ridge * variances.sum() / min(points.shape)
    coordinates: Doubles = (turn[:, kept] / np.sqrt(variances[kept] + added)).T @ points
    return coordinates
