"""Label laws: how a class's projected points become one number per projection."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import as_array
from sotdd.basics.errors import SotddError
from sotdd.projections.moments import Polynomials, check_draws


@dataclass(frozen=True, eq=False)
class Quantiles:
    """A class's term is a linear functional of its quantile function, seen through K equal bins.

    With q_k the mean of the class's projected points over the k-th of K bins of equal probability, the
    term is Σ_k coefficient_k q_k; see `ClassQuantiles`. Quantile functions merge as those of whole
    datasets do.

    Attributes
    ----------
    weights
        (B,) what the feature projection t is multiplied by.
    coefficients
        (B, K) of the bins, lowest first.
    """

    weights: NDArray[np.float64]
    coefficients: NDArray[np.float64]

    def __post_init__(self) -> None:
        """Check the shapes and the numbers."""
        check_draws(self, "weights", "coefficients")

    @property
    def numbers(self) -> NDArray[np.float64]:
        """What was drawn beside the weights."""
        return self.coefficients

    @property
    def levels(self) -> int:
        """How many bins, K."""
        return int(self.coefficients.shape[1])

    def terms(self, bins: NDArray[np.floating]) -> NDArray[np.float64]:
        """The terms (B, C) of classes whose bin means (B, C, K) are given."""
        means = as_array(bins, "bins")
        rows, levels = self.coefficients.shape
        if means.ndim != 3 or means.shape[::2] != (rows, levels) or means.dtype.kind not in "iuf":
            raise SotddError(
                f"bins have shape {means.shape} and dtype {means.dtype}: expected numbers of shape ({rows}, classes, "
                f"{levels})."
            )
        terms: NDArray[np.float64] = np.einsum("bck,bk->bc", means.astype(np.float64), self.coefficients)
        return terms

    limit: ClassVar[float] = math.inf

    def part(self, rows: slice) -> Quantiles:
        """Some consecutive projections."""
        return Quantiles(self.weights[rows], self.coefficients[rows])


class ClassSummary(Protocol):
    """Summarises the projected points of one class, (B, m), into one number per projection, (B,)."""

    def __call__(self, values: NDArray[np.float32], parameters: NDArray[np.float64], /) -> NDArray[np.floating]:
        """Summarise; row l of ``parameters`` (B, q) belongs to row l of ``values``."""


@dataclass(frozen=True, eq=False)
class Summaries:
    """A class's term is any function of its projected points: the general case, called class by class.

    Attributes
    ----------
    weights
        (B,) what the feature projection t is multiplied by.
    parameters
        (B, q) what was drawn, one row per projection.
    summary
        The function, the same for every draw.
    """

    weights: NDArray[np.float64]
    parameters: NDArray[np.float64]
    summary: ClassSummary

    def __post_init__(self) -> None:
        """Check the shapes and the numbers."""
        check_draws(self, "weights", "parameters")
        if not callable(self.summary):
            raise SotddError(f"the summary of a label law is a {type(self.summary).__name__}: expected a function.")

    @property
    def numbers(self) -> NDArray[np.float64]:
        """What was drawn beside the weights."""
        return self.parameters

    limit: ClassVar[float] = math.inf

    def part(self, rows: slice) -> Summaries:
        """Some consecutive projections."""
        return Summaries(self.weights[rows], self.parameters[rows], self.summary)


LabelTerms: TypeAlias = Polynomials | Quantiles | Summaries


class LabelLaw(Protocol):
    """What a label law offers; write your own by having these two methods.

    Examples
    --------
    A law that stands a class by its median:

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
    ...     def summary(values, parameters):
    ...         return parameters[:, 0] * np.median(values, axis=1)
    >>> x = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> r = sotdd.distance((x, [0, 0, 1, 1]), (x, [0, 1, 0, 1]), label_law=Medians(), n_projections=64)
    >>> r.value > 0
    True
    """

    def describe(self) -> Mapping[str, object]:
        """Name the law and all its settings in JSON values: they become part of the fingerprint."""

    def draw(self, rng: np.random.Generator, n_projections: int) -> LabelTerms:
        """Draw the terms of that many projections, from ``rng`` alone."""


def join_terms(parts: Sequence[LabelTerms]) -> LabelTerms:
    """Put the terms of consecutive blocks together, which must be of one kind."""
    if len(parts) == 1:
        return parts[0]
    quantiles = [part for part in parts if isinstance(part, Quantiles)]
    summaries = [part for part in parts if isinstance(part, Summaries)]
    same_summary = len(summaries) == len(parts) and all(part.summary == summaries[0].summary for part in summaries)
    same_kind = same_summary or len(quantiles) == len(parts)
    if not same_kind or len({part.numbers.shape[1] for part in parts}) != 1:
        raise SotddError(
            "a label law must draw the same kind of terms, with the same cut or summary function, every time: put what "
            "is random into the parameters."
        )
    weights = np.concatenate([part.weights for part in parts])
    numbers = np.concatenate([part.numbers for part in parts])
    return Quantiles(weights, numbers) if quantiles else Summaries(weights, numbers, summaries[0].summary)
