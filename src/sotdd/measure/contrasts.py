"""How the means of two sides differ, in all projections at once: what single projections are too blunt to see.

A projection sees a shift only in units of its own spread. Where features go together, a shift across them is small in
every single direction and large beside the spread of the right one. So differences of means are measured in units of
the spread of the projected points in every direction, as Hotelling's test does; under shuffles that costs one product.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sotdd.engines.splits import Splits

Doubles = NDArray[np.float64]

# Added to every variance, by share of the mean one: directions in which points hardly vary count less. Few points to a
# class ask for more of it.
_RIDGE = 0.01
_CLASS_RIDGE = 0.1

# Directions with less than this share of the largest variance are rounding.
_ROUNDING = 1e-8

# Splits that are dealt out at a time.
_BATCH = 64


def gap_of_means(rows: NDArray[np.float32], splits: Splits) -> Doubles:
    """The squared gap (S,) between the means of the two sides of every split, in units of the spread of all points.

    rows (L, N) are the projections of the pooled points, in their own order.
    """
    centred = _centred(rows, None)
    points = _whitened(centred, centred, _RIDGE)
    n, m = splits.sizes
    return _over_splits(splits, lambda left: np.sum(((left / n - (1 - left) / m) @ points.T) ** 2, axis=1))


def gap_of_class_means(rows: NDArray[np.float32], splits: Splits) -> Doubles:
    """The same (S,) class by class, averaged over the classes that both sides have, in units of their own errors.

    Classes are matched by name; the unit is the spread of points within their classes. An average, since datasets
    that were made to have every class would have more classes on both sides than their shuffles do.
    """
    codes = splits.codes
    points = _whitened(_centred(rows, None), _centred(rows, codes), _CLASS_RIDGE)

    def gaps(left: Doubles) -> Doubles:
        total, compared = np.zeros(len(left)), np.zeros(len(left))
        for label in range(splits.n_classes):
            members = np.flatnonzero(codes == label)
            here = left[:, members]
            n = here.sum(axis=1)
            m = len(members) - n
            both = (n > 0) & (m > 0)
            contrast = here / np.maximum(n, 1)[:, None] - (1 - here) / np.maximum(m, 1)[:, None]
            total += np.where(both, n * m / len(members), 0.0) * np.sum((contrast @ points[:, members].T) ** 2, axis=1)
            compared += both
        return total / np.maximum(compared, 1.0)

    return _over_splits(splits, gaps)


def gap_of_shares(splits: Splits) -> Doubles:
    """How far the shares of the classes, by name, are apart between the two sides of every split (S,): χ²."""
    n, m = splits.sizes
    member = np.eye(splits.n_classes)[splits.codes]  # (N, C)
    shares = member.mean(axis=0)
    return _over_splits(
        splits, lambda left: np.sum((left @ member / n - (1 - left) @ member / m) ** 2 / shares, axis=1)
    )


def _over_splits(splits: Splits, statistic: Callable[[Doubles], Doubles]) -> Doubles:
    """A statistic of who is on the left (B, N), of all splits."""
    statistics = []
    for start in range(0, len(splits), _BATCH):
        batch = splits.part(start, start + _BATCH)
        left = np.zeros((len(batch), sum(splits.sizes)))
        for number in range(len(batch)):
            left[number, batch.draw(number)[0].index] = 1.0
        statistics.append(statistic(left))
    return np.concatenate(statistics)


def _centred(rows: NDArray[np.float32], codes: NDArray[np.int64] | None) -> Doubles:
    """Rows (L, N) less their means, of all points or of each class."""
    wide = rows.astype(np.float64)
    if codes is None:
        wide -= wide.mean(axis=1, keepdims=True)
        return wide
    for label in range(int(codes.max()) + 1):
        members = codes == label
        wide[:, members] -= wide[:, members].mean(axis=1, keepdims=True)
    return wide


def _whitened(points: Doubles, reference: Doubles, ridge: float) -> Doubles:
    """Points (L, N) in coordinates (r, N) in which the reference (L, N) has about the same variance everywhere."""
    variances, turn = np.linalg.eigh(reference @ reference.T / reference.shape[1])
    variances = np.maximum(variances, 0.0)
    kept = variances > _ROUNDING * variances.max()
    added = ridge * variances.sum() / min(points.shape)
    coordinates: Doubles = (turn[:, kept] / np.sqrt(variances[kept] + added)).T @ points
    return coordinates
