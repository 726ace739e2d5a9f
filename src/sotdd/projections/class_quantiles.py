"""The quantile label law: a class enters by a random functional of its quantile function."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import as_array, as_number, check_count, check_draw, described
from sotdd.basics.errors import SotddError
from sotdd.projections.directions import unit_rows
from sotdd.projections.labels import Quantiles
from sotdd.projections.restorable import Settings


@dataclass(frozen=True)
class ClassQuantiles:
    """A class enters by its quantile function, so that labels count as optimal transport has them.

    A point of class y projects to t + w Σ_k c_k q_k(y). Here q_k(y) is the mean of the class's projected
    points over the k-th of K bins of equal probability, and c is uniform on the unit sphere of R^K. So
    E c_i c_k is 1/K or 0, and two points (t, y) and (t', y') are apart by

        E_c (difference)² = (t − t')² + w² (1/K) Σ_k (q_k(y) − q_k(y'))²,

    whose last part is W_2² between the two classes seen through K levels: OTDD's cost between labelled
    points, on a line. It is never more than W_2² and tends to it as K grows; where both class sizes
    divide K it is W_2². All terms scale as the features do, and none is a power that could overflow.

    Parameters
    ----------
    levels
        How many bins, K. A class may have fewer points: a point then lies in several bins.
    weight
        How much labels weigh beside features, w.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.random.default_rng(0).normal(size=(200, 4))
    >>> a, b = (x, x[:, 0] > 0), (x, x[:, 1] > 0)
    >>> sotdd.distance(a, b, label_law="quantiles", n_projections=500).value > 0
    True
    >>> sotdd.distance(a, b, label_law=sotdd.ClassQuantiles(weight=0.0), n_projections=500).value  # features alone
    0.0
    """

    law: ClassVar[str] = "class quantiles"
    levels: int = 16
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Check the settings."""
        check_count(self.levels, "levels")
        weight = as_number(self.weight)
        if weight is None or not 0 <= weight < math.inf:
            raise SotddError(f"weight is {described(self.weight)}: expected a number of at least 0.")

    def describe(self) -> Mapping[str, object]:
        """Name the law and its settings."""
        return {"law": self.law, "levels": int(self.levels), "weight": float(self.weight)}

    @classmethod
    def restore(cls, settings: Settings) -> Self:
        """Make the law again from its description."""
        return cls(settings["levels"], settings["weight"])

    def draw(self, rng: np.random.Generator, n_projections: int) -> Quantiles:
        """Draw c uniform on the sphere; the feature has weight one."""
        check_draw(rng, n_projections)
        functionals = unit_rows(rng.standard_normal((n_projections, self.levels)))
        return Quantiles(np.ones(n_projections), self.weight * functionals)


def bin_means(
    values: NDArray[np.floating], levels: int, masses: NDArray[np.floating] | None = None
) -> NDArray[np.float64]:
    """Mean of a quantile function over each of ``levels`` bins of equal probability, in float64.

    Where a bin ends within a point, the point counts in both by its share, so that the mean of the
    bins is the mean of the points whatever their number.

    Parameters
    ----------
    values
        (..., m) ascending: the sorted points of a class, or the steps of its quantile function.
    levels
        How many bins, K.
    masses
        (m,) how much each value weighs, in any unit; by default all the same.

    Returns
    -------
    NDArray
        (..., K). A class's label term is this times the coefficients of `Quantiles`.

    Examples
    --------
    >>> bin_means(np.array([0.0, 3.0, 6.0]), 2)  # half of the second value is in each bin
    array([1., 5.])
    >>> bin_means(np.array([0.0, 3.0, 6.0]), 2, masses=np.array([2.0, 1.0, 1.0]))
    array([0. , 4.5])
    """
    wide = as_array(values, "values")
    if wide.ndim == 0 or wide.size == 0 or not _are_numbers(wide) or (np.diff(wide) < 0).any():
        raise SotddError(
            f"values have shape {wide.shape} and dtype {wide.dtype}: expected finite numbers (..., m) in ascending "
            "order, at least one."
        )
    count = wide.shape[-1]
    weights = np.ones(count) if masses is None else as_array(masses, "masses")
    if weights.shape != (count,) or not _are_numbers(weights) or (weights < 0).any() or not weights.any():
        raise SotddError(
            f"masses have shape {weights.shape} and dtype {weights.dtype}: expected {count:,} finite numbers of at "
            "least 0, one per value, not all of them 0."
        )
    weights = weights.astype(np.float64)
    shares = bin_shares(weights / weights.max(), check_count(levels, "levels"))
    means: NDArray[np.float64] = wide.astype(np.float64) @ shares.T
    return means


def _are_numbers(array: NDArray[Any]) -> bool:
    return array.dtype.kind in "biuf" and bool(np.isfinite(array).all())


def bin_shares(masses: NDArray[np.float64], levels: int) -> NDArray[np.float64]:
    """Of each of K bins of equal probability, what share belongs to each value: (K, m), rows sum to one.

    masses (m,) of the values in ascending order, in any unit.
    """
    ends = np.cumsum(masses) * (levels / masses.sum())
    starts = np.concatenate([[0.0], ends[:-1]])
    first = np.arange(levels)[:, None]
    shares: NDArray[np.float64] = np.clip(np.minimum(ends, first + 1) - np.maximum(starts, first), 0, None)
    return shares
