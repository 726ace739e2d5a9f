"""What a label law offers, and those beside the paper's: class quantiles, and any function of a class's points."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, as_number, check_count, describe
from sotdd.projections.directions import Law, unit_rows
from sotdd.projections.labels import Doubles, LabelTerms, Rows
from sotdd.projections.maps import describe_overflow, show_rows


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


@dataclass(frozen=True, eq=False)
class Quantiles(LabelTerms):
    """A class's term is a linear functional of its quantile function, by means over K equal bins.

    With q_k the mean of the class's projected points over the k-th of K bins of equal probability, the
    term is Σ_k coefficient_k q_k; see `ClassQuantiles`.

    Attributes
    ----------
    coefficients
        (B, K) of the bins, lowest first.
    """

    binned: ClassVar[bool] = True

    def class_terms(self, rows: Rows, offsets: NDArray[np.int64]) -> Doubles:
        """Sort each class, and take means over its bins."""
        from sotdd.projections.kernels import quantile_terms, sort_classes

        terms = np.empty((len(rows), len(offsets) - 1))
        sort_classes(rows, offsets)
        quantile_terms(rows, offsets, self.coefficients, terms)
        return terms

    def describe_bad(self, name: str, largest: float, line: int, projection: int) -> SotddError:
        """They are means of projected values: these are at fault."""
        return describe_overflow(name, projection)


class ClassSummary(Protocol):
    """Summarises the projected points of one class, (B, m), into one number per projection, (B,)."""

    def __call__(self, values: Rows, coefficients: Doubles, /) -> NDArray[np.floating]:
        """Summarise; row l of ``coefficients`` (B, q) belongs to row l of ``values``."""


@dataclass(frozen=True, eq=False)
class Summaries(LabelTerms):
    """A class's term is any function of its projected points: the general case, called class by class.

    Attributes
    ----------
    summary
        The function of the points and the coefficients, the same for every draw.
    """

    summary: ClassSummary

    def __post_init__(self) -> None:
        """Check the function."""
        if not callable(self.summary):
            raise SotddError(f"the summary of a label law is a {type(self.summary).__name__}: expected a function.")

    def class_terms(self, rows: Rows, offsets: NDArray[np.int64]) -> Doubles:
        """Call the function on the points of each class, which it sees read-only."""
        classes = [show_rows(rows[:, first:last]) for first, last in pairwise(offsets)]
        found = [self.summary(values, self.coefficients) for values in classes]
        return np.stack([self.check_result(one, (len(rows),), rows, "the summary function") for one in found], axis=1)
