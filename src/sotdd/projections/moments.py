"""The paper's label term: moments of a class, laws of their orders, and the polynomials that they make."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import as_array, check_count, check_draw, check_law, check_positive, described
from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted
from sotdd.projections.directions import unit_rows

# Orders beyond this have probability below 1e-17 at any rate allowed here, and factorials
# beyond float64.
HIGHEST_ORDER = 170
_HIGHEST_RATE = 64.0


class MomentLaw(Protocol):
    """What a law of moment orders offers: a quantile function and a description.

    Orders come from uniform numbers rather than from a generator, so that evenly spread
    uniforms can be used in place of random ones.
    """

    def describe(self, n_moments: int) -> Mapping[str, object]:
        """Name the law and its settings in JSON values."""

    def orders(self, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """Turn uniforms (B, k) in [0, 1) into orders (B, k) of 1 and more."""


@dataclass(frozen=True)
class ZeroTruncatedPoisson:
    """Poisson orders that are at least 1, one rate per moment: the paper's law.

    Parameters
    ----------
    rates
        One positive rate per moment; by default 1, 2, …, k.
    max_order
        The highest order, λ_max; higher ones are left out and the probabilities of the others made
        to sum to one. None for no limit.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> sotdd.projections.ZeroTruncatedPoisson((1.0, 5.0)).orders(np.array([[0.0, 0.5], [0.9, 0.99]])).tolist()
    [[1, 5], [3, 11]]
    >>> sotdd.projections.ZeroTruncatedPoisson((1.0, 5.0), max_order=4).orders(
    ...     np.array([[0.0, 0.5], [0.9, 0.99]])
    ... ).tolist()
    [[1, 3], [3, 4]]
    """

    rates: Sequence[float] | None = None
    max_order: int | None = None

    def __post_init__(self) -> None:
        """Check the rates and the highest order."""
        if self.max_order is not None:
            check_count(self.max_order, "max_order", HIGHEST_ORDER)
        if self.rates is None:
            return
        try:
            rates = tuple(float(rate) for rate in self.rates)
        except (TypeError, ValueError, OverflowError) as error:
            raise SotddError(f"rates is {described(self.rates)}: expected a sequence of positive numbers.") from error
        if not rates or not all(0 < rate <= _HIGHEST_RATE for rate in rates):
            raise SotddError(f"rates are {rates}: expected positive numbers up to {_HIGHEST_RATE:g}, one per moment.")
        object.__setattr__(self, "rates", rates)

    def describe(self, n_moments: int) -> Mapping[str, object]:
        """Name the law, its rates, and its highest order where there is one."""
        check_count(n_moments, "n_moments")
        highest = {} if self.max_order is None else {"max_order": int(self.max_order)}
        return {"law": "zero-truncated Poisson", "rates": list(self._rates(n_moments)), **highest}

    def orders(self, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """Invert the cumulative probabilities, one rate per column."""
        numbers = _checked_uniforms(uniforms)
        rates = self._rates(numbers.shape[1])
        cumulative = [cumulative_poisson(rate, self.max_order) for rate in rates]
        reached = [np.searchsorted(known, column, "right") for known, column in zip(cumulative, numbers.T, strict=True)]
        orders: NDArray[np.int64] = np.stack(reached, axis=1) + 1
        return np.minimum(orders, self.max_order or HIGHEST_ORDER)

    def _rates(self, n_moments: int) -> Sequence[float]:
        if self.rates is None:
            if n_moments > _HIGHEST_RATE:
                raise SotddError(f"n_moments is {n_moments}: expected at most {_HIGHEST_RATE:g}, or give the rates.")
            return [float(rate) for rate in range(1, n_moments + 1)]
        if len(self.rates) != n_moments:
            rates = counted(len(self.rates), "rate")
            raise SotddError(f"{rates} for {counted(n_moments, 'moment')}: give one rate per moment.")
        return self.rates


@cache
def cumulative_poisson(rate: float, max_order: int | None = None) -> NDArray[np.float64]:
    """P(order <= 1), P(order <= 2), … of the zero-truncated Poisson law of this rate, up to ``max_order``."""
    orders = np.arange(1, HIGHEST_ORDER + 1)
    logs = orders * math.log(rate) - np.array([math.lgamma(order + 1) for order in orders])
    whole = np.cumsum(np.exp(logs - math.log(math.expm1(rate))))
    return whole if max_order is None else whole[:max_order] / whole[max_order - 1]


@dataclass(frozen=True)
class UniformOrders:
    """Orders uniform on 1, …, max_order: the paper's law when the set of moments is finite.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> sotdd.projections.UniformOrders(4).orders(np.array([[0.0, 0.26, 0.99]])).tolist()
    [[1, 2, 4]]
    """

    max_order: int

    def __post_init__(self) -> None:
        """Check the highest order."""
        check_count(self.max_order, "max_order", HIGHEST_ORDER)

    def describe(self, n_moments: int) -> Mapping[str, object]:
        """Name the law, its highest order, and how many are drawn."""
        count = check_count(n_moments, "n_moments")
        return {"law": "uniform orders", "max_order": int(self.max_order), "n_moments": count}

    def orders(self, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """Cut the unit interval into equal parts."""
        return (_checked_uniforms(uniforms) * int(self.max_order)).astype(np.int64) + 1


def _checked_uniforms(uniforms: object) -> NDArray[np.float64]:
    numbers = as_array(uniforms, "uniforms")
    matrix = numbers.ndim == 2 and numbers.size > 0 and numbers.dtype.kind in "iuf"
    if not matrix or not ((numbers >= 0) & (numbers < 1)).all():
        raise SotddError(
            f"uniforms have shape {numbers.shape} and dtype {numbers.dtype}: expected a matrix of numbers from 0 to "
            "below 1, one column per moment."
        )
    return numbers.astype(np.float64)


# ------------------------------------------------------------------ what they make

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
        check_draws(self, "weights", "coefficients")
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

    @property
    def degrees(self) -> NDArray[np.int64]:
        """(B,) the degree of each polynomial: where its last non-zero coefficient is."""
        used = self.coefficients != 0
        last = used.shape[1] - 1 - np.argmax(used[:, ::-1], axis=1)
        return np.where(used.any(axis=1), last, 0)

    def part(self, rows: slice) -> Polynomials:
        """Some consecutive projections."""
        if rows.indices(len(self.weights)) == (0, len(self.weights), 1):
            return self
        return _checked_before(self.weights[rows], self.coefficients[rows], self.cut)

    @staticmethod
    def joined(parts: Sequence[Polynomials]) -> Polynomials:
        """Those of consecutive blocks together; shorter polynomials are padded with zeros."""
        columns = max(part.coefficients.shape[1] for part in parts)
        coefficients, done = np.zeros((sum(len(part.weights) for part in parts), columns)), 0
        for part in parts:
            coefficients[done : done + len(part.weights), : part.coefficients.shape[1]] = part.coefficients
            done += len(part.weights)
        return _checked_before(np.concatenate([part.weights for part in parts]), coefficients, parts[0].cut)


def _checked_before(weights: NDArray[np.float64], coefficients: NDArray[np.float64], cut: float | None) -> Polynomials:
    """Polynomials of numbers that were checked already: looking at all of them again would take longer than the cut."""
    polynomials = object.__new__(Polynomials)
    for name, value in (("weights", weights), ("coefficients", coefficients), ("cut", cut)):
        object.__setattr__(polynomials, name, value)
    return polynomials


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
    >>> terms = sotdd.projections.Moments(n_moments=3).draw(np.random.default_rng(0), 2)
    >>> terms.weights.shape
    (2,)
    """

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
            "law": "moments",
            "n_moments": int(self.n_moments),
            "orders": dict(self.orders.describe(self.n_moments)),
            "cut": self.cut,
        }

    def draw(self, rng: np.random.Generator, n_projections: int) -> Polynomials:
        """Draw ψ uniform on the sphere and the orders λ."""
        check_draw(rng, n_projections)
        return drawn_from_each(self, [rng], n_projections)


def drawn_from_each(law: Moments, generators: Sequence[np.random.Generator], n_projections: int) -> Polynomials:
    """As many from each generator, one after another: what `Moments.draw` gives, without many small steps."""
    rows = len(generators) * n_projections
    psi, uniforms = np.empty((rows, law.n_moments + 1)), np.empty((rows, law.n_moments))
    for number, rng in enumerate(generators):
        mine = slice(number * n_projections, (number + 1) * n_projections)
        rng.standard_normal(out=psi[mine])
        rng.random(out=uniforms[mine])
    orders = np.asarray(law.orders.orders(uniforms))
    if orders.shape != uniforms.shape:
        raise SotddError(
            f"the law of orders {type(law.orders).__name__} gave shape {orders.shape}: expected one order per "
            "uniform number."
        )
    return moment_terms(unit_rows(psi), check_orders(orders), law.cut)


def check_orders(orders: NDArray[Any]) -> NDArray[np.int64]:
    """Return moment orders as integers, or refuse those that are not from 1 to 170."""
    if orders.dtype == np.int64 and orders.min() >= 1 and orders.max() <= HIGHEST_ORDER:
        return orders
    if orders.dtype.kind not in "iuf" or not ((orders >= 1) & (orders <= HIGHEST_ORDER) & (orders % 1 == 0)).all():
        raise SotddError(f"orders must be whole numbers from 1 to {HIGHEST_ORDER}, whose factorials fit float64.")
    return orders.astype(np.int64)


@cache
def _inverse_factorials() -> NDArray[np.float64]:
    return np.array([math.exp(-math.lgamma(order + 1)) for order in range(HIGHEST_ORDER + 1)])


def moment_terms(psi: NDArray[np.float64], orders: NDArray[np.int64], cut: float | None = None) -> Polynomials:
    """Collect ψ (B, k+1) and orders (B, k) into polynomials: coefficient of t^λ is Σ ψ_i / λ!."""
    from sotdd.kernels.moments import add_moments

    degree = int(orders.max())
    inverse_factorial = _inverse_factorials()
    coefficients = np.zeros((len(psi), degree + 1))
    add_moments(psi, orders, inverse_factorial, coefficients)
    return Polynomials(psi[:, 0].copy(), coefficients, cut)


def check_draws(terms: object, *names: str) -> None:
    """Hold drawn arrays to finite float64: weights (B,), the other (B, q) with q of at least one."""
    arrays = [as_array(getattr(terms, name), name) for name in names]
    weights, drawn = arrays
    shapes = weights.ndim == 1 and drawn.ndim == 2 and len(weights) == len(drawn) and drawn.shape[1] > 0
    if not shapes or any(array.dtype.kind not in "iuf" or not np.isfinite(array).all() for array in arrays):
        raise SotddError(
            f"a label law drew {names[0]} of shape {weights.shape} and {names[1]} of shape {drawn.shape}: expected "
            "finite numbers, one weight and one row per projection."
        )
    for name, array in zip(names, arrays, strict=True):
        object.__setattr__(terms, name, np.ascontiguousarray(array, np.float64))
