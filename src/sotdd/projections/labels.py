"""Label laws: how a class's projected points become one number per projection."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sotdd.basics.errors import SotddError, as_number, check_count, describe
from sotdd.projections.directions import Law, unit_rows
from sotdd.projections.terms import LabelTerms, Quantiles


class LabelLaw(Protocol):
    """What a label law offers; write your own by having these two methods.

    Examples
    --------
    A law that represents a class by its median:

    >>> import numpy as np, sotdd
    >>> class Medians:
    ...     def describe(self):
    ...         return {"law": "medians"}
    ...
    ...     def draw(self, rng, n_projections):
    ...         angle = rng.uniform(0, 2 * np.pi, n_projections)
    ...         return sotdd.projections.Summaries(np.cos(angle), np.sin(angle)[:, None], self.summary)
    ...
    ...     @staticmethod
    ...     def summary(values, coefficients):
    ...         return coefficients[:, 0] * np.median(values, axis=1)
    >>> x = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> r = sotdd.distance((x, [0, 0, 1, 1]), (x, [0, 1, 0, 1]), label_law=Medians(), n_projections=64)
    >>> r.value > 0
    True
    """

    def describe(self) -> Mapping[str, object]:
        """Name the law and all its settings in JSON values: they become part of the fingerprint."""

    def draw(self, rng: np.random.Generator, n_projections: int) -> LabelTerms:
        """Draw the terms of that many projections, from ``rng`` alone."""


@dataclass(frozen=True)
class ClassQuantiles(Law, name="class quantiles"):
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
    >>> sotdd.distance(
    ...     a, b, label_law=sotdd.projections.ClassQuantiles(weight=0.0), n_projections=500
    ... ).value  # features alone
    0.0
    """

    levels: int = 16
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Check the settings."""
        weight = as_number(self.weight)
        if weight is None or not 0 <= weight < math.inf:
            raise SotddError(f"is {describe(self.weight)}: expected a number of at least 0.", setting="weight")
        object.__setattr__(self, "levels", check_count(self.levels, "levels"))
        object.__setattr__(self, "weight", weight)

    def draw(self, rng: np.random.Generator, n_projections: int) -> Quantiles:
        """Draw c uniform on the sphere; the feature has weight one."""
        functionals = unit_rows(rng.standard_normal((n_projections, self.levels)))
        return Quantiles(np.ones(n_projections), self.weight * functionals)
