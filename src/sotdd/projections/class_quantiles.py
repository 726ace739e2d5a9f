"""The quantile label law: a class enters by a random functional of its quantile function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_count, check_positive
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
        if self.weight != 0:
            check_positive(self.weight, "weight", "a number of at least 0")

    def describe(self) -> Mapping[str, object]:
        """Name the law and its settings."""
        return {"law": self.law, "levels": int(self.levels), "weight": float(self.weight)}

    @classmethod
    def restore(cls, settings: Settings) -> Self:
        """Make the law again from its description."""
        return cls(settings["levels"], settings["weight"])

    def draw(self, rng: np.random.Generator, n_projections: int) -> Quantiles:
        """Draw c uniform on the sphere; the feature has weight one."""
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
    wide = np.asarray(values, np.float64)
    shares = bin_shares(np.ones(wide.shape[-1]) if masses is None else np.asarray(masses, np.float64), levels)
    means: NDArray[np.float64] = wide @ shares.T
    return means


def bin_shares(masses: NDArray[np.float64], levels: int) -> NDArray[np.float64]:
    """Of each of K bins of equal probability, what share belongs to each value: (K, m), rows sum to one.

    masses (m,) of the values in ascending order, in any unit.
    """
    ends = np.cumsum(masses) * (levels / masses.sum())
    starts = np.concatenate([[0.0], ends[:-1]])
    first = np.arange(levels)[:, None]
    shares: NDArray[np.float64] = np.clip(np.minimum(ends, first + 1) - np.maximum(starts, first), 0, None)
    return shares
