"""Label laws: how a class's projected points become one number per projection."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_count, check_law, check_positive
from sotdd.basics.errors import SotddError
from sotdd.projections.directions import unit_rows
from sotdd.projections.moments import HIGHEST_ORDER, MomentLaw, ZeroTruncatedPoisson, restored_orders
from sotdd.projections.restorable import Settings

# Where moments of scaled projections are cut, in spreads. The authors cut convolution projections here too.
CUT = 5.0


@dataclass(frozen=True, eq=False)
class Polynomials:
    """A class's term is the mean of a polynomial over its projected points.

    A data point's projection is ``weight * t + term of its class``. The sums of the polynomial
    over each class add up over parts of a dataset, so this kind of term can be merged.

    Attributes
    ----------
    weights
        (B,) what the feature projection t is multiplied by.
    coefficients
        (B, D + 1) of the polynomials, lowest order first.
    cut
        The polynomial sees t cut to ±cut, so that no tail can make a class's term; None for t as it is.
        The feature itself is never cut.
    """

    weights: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    cut: float | None = None

    def __post_init__(self) -> None:
        """Check the shapes and the numbers."""
        _check_draws(self, "weights", "coefficients")
        if self.cut is not None:
            object.__setattr__(self, "cut", check_positive(self.cut, "cut", "a positive number or None"))

    @property
    def numbers(self) -> NDArray[np.float64]:
        """What was drawn beside the weights."""
        return self.coefficients

    @property
    def limit(self) -> float:
        """The cut as a number: infinite where there is none."""
        return math.inf if self.cut is None else self.cut

    def part(self, rows: slice) -> Polynomials:
        """Some consecutive ones."""
        return Polynomials(self.weights[rows], self.coefficients[rows], self.cut)


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
        _check_draws(self, "weights", "coefficients")

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
        found: NDArray[np.float64] = np.einsum("bck,bk->bc", np.asarray(bins, np.float64), self.coefficients)
        return found

    def part(self, rows: slice) -> Quantiles:
        """Some consecutive ones."""
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
        _check_draws(self, "weights", "parameters")
        if not callable(self.summary):
            raise SotddError(f"the summary of a label law is a {type(self.summary).__name__}: expected a function.")

    @property
    def numbers(self) -> NDArray[np.float64]:
        """What was drawn beside the weights."""
        return self.parameters

    def part(self, rows: slice) -> Summaries:
        """Some consecutive ones."""
        return Summaries(self.weights[rows], self.parameters[rows], self.summary)


LabelTerms: TypeAlias = Polynomials | Quantiles | Summaries


def cut_of(terms: LabelTerms) -> float:
    """Where label terms cut the values that they see; infinite for those that do not."""
    return terms.limit if isinstance(terms, Polynomials) else math.inf


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


@dataclass(frozen=True)
class Moments:
    """The paper's label projection: k scaled moments of a class, weighted together with the feature.

    With ψ uniform on the sphere of R^(k+1) and orders λ_1, …, λ_k, a point of class y projects to
    ψ_1 t + Σ_i ψ_(i+1) mean over the class of t^λ_i / λ_i!. The sum is one polynomial in t that is
    known before any data are seen; a class's term is its mean over the class.

    Orders of ten and more make a term of the largest value in a class, whatever the others are. So the
    moments are those of t cut to ±5, five spreads of scaled data, as the authors cut their convolution
    projections. Data without heavy tails hardly notice: see docs/label-terms.md.

    Parameters
    ----------
    n_moments
        How many moments, k.
    orders
        The law that the orders are drawn from.
    cut
        Moments are taken of t cut to ±cut; None for the paper's definition, without a cut.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> terms = sotdd.Moments(n_moments=3).draw(np.random.default_rng(0), 2)
    >>> terms.weights.shape
    (2,)
    """

    law: ClassVar[str] = "moments"
    n_moments: int = 5
    orders: MomentLaw = field(default_factory=ZeroTruncatedPoisson)
    cut: float | None = CUT

    def __post_init__(self) -> None:
        """Check the number of moments and that the law can serve it."""
        check_count(self.n_moments, "n_moments")
        if self.cut is not None:
            object.__setattr__(self, "cut", check_positive(self.cut, "cut", "a positive number or None"))
        check_law(
            self.orders,
            {"describe": 1, "orders": 1},
            "moments must be ZeroTruncatedPoisson(...), UniformOrders(...), rates, or an object with their methods",
        )
        self.orders.describe(self.n_moments)

    def describe(self) -> Mapping[str, object]:
        """Name the law, and the law of its orders."""
        return {
            "law": self.law,
            "n_moments": int(self.n_moments),
            "orders": dict(self.orders.describe(self.n_moments)),
            "cut": self.cut,
        }

    @classmethod
    def restore(cls, settings: Settings) -> Self:
        """The law that describes itself so."""
        return cls(settings["n_moments"], restored_orders(settings["orders"]), settings.get("cut"))

    def draw(self, rng: np.random.Generator, n_projections: int) -> Polynomials:
        """Draw ψ uniform on the sphere and the orders λ."""
        psi = unit_rows(rng.standard_normal((n_projections, self.n_moments + 1)))
        orders = np.asarray(self.orders.orders(rng.random((n_projections, self.n_moments))))
        if orders.shape != (n_projections, self.n_moments):
            raise SotddError(
                f"the law of orders {type(self.orders).__name__} gave shape {orders.shape}: expected one order per "
                "uniform number."
            )
        return moment_terms(psi, check_orders(orders), self.cut)


def check_orders(orders: NDArray[Any]) -> NDArray[np.int64]:
    """Return moment orders as integers, or refuse those that are not from 1 to 170."""
    if orders.dtype.kind not in "iuf" or not ((orders >= 1) & (orders <= HIGHEST_ORDER) & (orders % 1 == 0)).all():
        raise SotddError(f"orders must be whole numbers from 1 to {HIGHEST_ORDER}, whose factorials fit float64.")
    return orders.astype(np.int64)


def moment_terms(psi: NDArray[np.float64], orders: NDArray[np.int64], cut: float | None = None) -> Polynomials:
    """Collect ψ (B, k+1) and orders (B, k) into polynomials: coefficient of t^λ is Σ ψ_i / λ!."""
    degree = int(orders.max())
    inverse_factorial = np.array([math.exp(-math.lgamma(order + 1)) for order in range(degree + 1)])
    coefficients = np.zeros((len(psi), degree + 1))
    rows = np.broadcast_to(np.arange(len(psi))[:, None], orders.shape)
    np.add.at(coefficients, (rows, orders), psi[:, 1:] * inverse_factorial[orders])
    return Polynomials(psi[:, 0].copy(), coefficients, cut)


def join_terms(parts: Sequence[LabelTerms]) -> LabelTerms:
    """Put the terms of consecutive blocks together; shorter polynomials are padded with zeros."""
    if len(parts) == 1:
        return parts[0]
    weights = np.concatenate([part.weights for part in parts])
    polynomials = [part for part in parts if isinstance(part, Polynomials)]
    if len(polynomials) == len(parts) and len({part.cut for part in polynomials}) == 1:
        columns = max(part.coefficients.shape[1] for part in polynomials)
        padded = [
            np.pad(part.coefficients, ((0, 0), (0, columns - part.coefficients.shape[1]))) for part in polynomials
        ]
        return Polynomials(weights, np.concatenate(padded), polynomials[0].cut)
    quantiles = [part for part in parts if isinstance(part, Quantiles)]
    summaries = [part for part in parts if isinstance(part, Summaries)]
    same_summary = len(summaries) == len(parts) and all(part.summary == summaries[0].summary for part in summaries)
    same_kind = same_summary or len(quantiles) == len(parts)
    if not same_kind or len({part.numbers.shape[1] for part in parts}) != 1:
        raise SotddError(
            "a label law must draw the same kind of terms, with the same cut or summary function, every time: put what "
            "is random into the parameters."
        )
    numbers = np.concatenate([part.numbers for part in parts])
    return Quantiles(weights, numbers) if quantiles else Summaries(weights, numbers, summaries[0].summary)


def _check_draws(terms: LabelTerms, *names: str) -> None:
    """Hold drawn arrays to finite float64: weights (B,), the other (B, q) with q of at least one."""
    arrays = [np.asarray(getattr(terms, name)) for name in names]
    weights, drawn = arrays
    shapes = weights.ndim == 1 and drawn.ndim == 2 and len(weights) == len(drawn) and drawn.shape[1] > 0
    if not shapes or any(array.dtype.kind not in "iuf" or not np.isfinite(array).all() for array in arrays):
        raise SotddError(
            f"a label law drew {names[0]} of shape {weights.shape} and {names[1]} of shape {drawn.shape}: expected "
            "finite numbers, one weight and one row per projection."
        )
    for name, array in zip(names, arrays, strict=True):
        object.__setattr__(terms, name, np.ascontiguousarray(array, np.float64))
