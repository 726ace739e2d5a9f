"""The paper's label term: moments of a class, laws of their orders, and the polynomials that they make."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, check_count, check_limit, describe
from sotdd.basics.resources import Stream
from sotdd.basics.text import say_count
from sotdd.projections.blocks import BLOCK, Keys
from sotdd.projections.directions import Law, unit_rows
from sotdd.projections.terms import Polynomials

# Orders beyond this have probability below 1e-17 at any rate allowed here, and factorials
# beyond float64.
HIGHEST_ORDER = 170

_HIGHEST_RATE = 64.0


@dataclass(frozen=True)
class ZeroTruncatedPoisson(Law, name="zero-truncated Poisson"):
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
            object.__setattr__(self, "max_order", check_count(self.max_order, "max_order", HIGHEST_ORDER))
        if self.rates is None:
            return
        try:
            rates = tuple(float(rate) for rate in self.rates)
        except (TypeError, ValueError, OverflowError) as error:
            raise SotddError(
                f"is {describe(self.rates)}: expected a sequence of positive numbers.", setting="rates"
            ) from error
        if not rates or not all(0 < rate <= _HIGHEST_RATE for rate in rates):
            raise SotddError(f"rates are {rates}: expected positive numbers up to {_HIGHEST_RATE:g}, one per moment.")
        object.__setattr__(self, "rates", rates)

    def describe(self, n_moments: int) -> Mapping[str, object]:  # type: ignore[override]  # rates follow from k
        """Name the law, its rates, and its highest order where there is one."""
        said = {**super().describe(), "rates": list(self._rates(check_count(n_moments, "n_moments")))}
        return {name: value for name, value in said.items() if value is not None}

    def orders(self, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """Invert the cumulative probabilities, one rate per column."""
        known = self.cumulative(uniforms.shape[1])
        found = [np.searchsorted(own, column, "right") for own, column in zip(known, uniforms.T, strict=True)]
        orders: NDArray[np.int64] = np.minimum(np.stack(found, axis=1) + 1, known.shape[1])
        return orders

    def cumulative(self, n_moments: int) -> NDArray[np.float64]:
        """P(order <= 1), P(order <= 2), … of each moment, (k, highest order)."""
        return np.stack([cumulative_poisson(rate, self.max_order) for rate in self._rates(n_moments)])

    def _rates(self, n_moments: int) -> Sequence[float]:
        if self.rates is None:
            if n_moments > _HIGHEST_RATE:
                raise SotddError(
                    f"is {n_moments}: expected at most {_HIGHEST_RATE:g}, or give rates.", setting="n_moments"
                )
            return [float(rate) for rate in range(1, n_moments + 1)]
        if len(self.rates) != n_moments:
            rates = say_count(len(self.rates), "rate")
            raise SotddError(f"{rates} for {say_count(n_moments, 'moment')}: give one rate per moment.")
        return self.rates


@cache
def cumulative_poisson(rate: float, max_order: int | None = None) -> NDArray[np.float64]:
    """P(order <= 1), P(order <= 2), … of the zero-truncated Poisson law of this rate, up to ``max_order``."""
    orders = np.arange(1, HIGHEST_ORDER + 1)
    logs = orders * math.log(rate) - np.array([math.lgamma(order + 1) for order in orders])
    whole = np.cumsum(np.exp(logs - math.log(math.expm1(rate))))
    return whole if max_order is None else whole[:max_order] / whole[max_order - 1]


@dataclass(frozen=True)
class UniformOrders(Law, name="uniform orders"):
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
        object.__setattr__(self, "max_order", check_count(self.max_order, "max_order", HIGHEST_ORDER))

    def describe(self, n_moments: int) -> Mapping[str, object]:  # type: ignore[override]  # as above
        """Name the law, its highest order, and how many are drawn."""
        return {**super().describe(), "n_moments": check_count(n_moments, "n_moments")}

    def orders(self, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """Cut the unit interval into equal parts."""
        return (uniforms * self.max_order).astype(np.int64) + 1

    def cumulative(self, n_moments: int) -> NDArray[np.float64]:
        """P(order <= 1), P(order <= 2), … of each moment, (k, highest order)."""
        return np.tile(np.arange(1, self.max_order + 1) / self.max_order, (n_moments, 1))


OrderLaw: TypeAlias = ZeroTruncatedPoisson | UniformOrders


# ------------------------------------------------------------------ what they make

# Where moments of scaled projections are cut, in spreads. The authors cut convolution projections here too.
CUT = 5.0
# Where every column has a scale of its own, as in tables, whose tails are heavier: see docs/label-terms.md.
TABLE_CUT = 2.5


@dataclass(frozen=True)
class Moments(Law, name="moments"):
    """The paper's label projection: k scaled moments of a class, weighted together with the feature.

    With ψ uniform on the sphere of R^(k+1) and orders λ_1, …, λ_k, a point of class y projects to
    ψ_1 t + Σ_i ψ_(i+1) mean over the class of t^λ_i / λ_i!. The sum is one polynomial in t that is
    known before any data are seen; a class's term is its mean over the class.

    Orders of ten and more make a term of the largest value in a class, whatever the others are. So the
    moments are those of t cut to ±5, five spreads of scaled data, as the authors cut their convolution
    projections. Data without heavy tails hardly notice. By the name "moments", tables are cut at ±2.5, which
    orders changes of tables better: see docs/label-terms.md.

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
    orders: OrderLaw = field(default_factory=ZeroTruncatedPoisson)
    cut: float | None = CUT

    def __post_init__(self) -> None:
        """Check the number of moments and that the law can serve it."""
        object.__setattr__(self, "n_moments", check_count(self.n_moments, "n_moments"))
        object.__setattr__(self, "cut", check_limit(self.cut, "cut"))
        if not isinstance(self.orders, (ZeroTruncatedPoisson, UniformOrders)):
            raise SotddError("moments must be ZeroTruncatedPoisson(...), UniformOrders(...) or rates.")
        self.orders.describe(self.n_moments)

    def describe(self) -> Mapping[str, object]:
        """Name the law, and the law of its orders."""
        return {**super().describe(), "orders": dict(self.orders.describe(self.n_moments))}

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """The law of the orders is a law too."""
        return super().of({**settings, "orders": Law.restore(settings["orders"])})

    def draw(self, rng: np.random.Generator, n_projections: int) -> Polynomials:
        """Draw ψ uniform on the sphere and the orders λ."""
        return self._make_terms(*self._draw_numbers([rng], n_projections))

    def draw_blocks(self, keys: Keys, stream: Stream, count: int) -> Polynomials:
        """The same of many blocks at once."""
        return self._make_terms(*self._draw_numbers(keys.generators(stream), count))

    def count_blocks(self, keys: Keys, counted: NDArray[np.float64]) -> None:
        """The same as weights of orders, without polynomials; see `sample_further`."""
        from sotdd.projections.kernels import count_draws

        n_projections, _, columns = counted.shape
        rngs, rows = keys.generators(Stream.MORE_LABEL_TERMS), (columns - 1) * n_projections
        normals, uniforms = self._draw_numbers(rngs, (columns - 1) * BLOCK)
        count_draws(normals[:rows], uniforms[:rows], self.orders.cumulative(self.n_moments), counted)

    def _draw_numbers(
        self, rngs: Sequence[np.random.Generator], count: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Normal (B, k + 1) and uniform (B, k) numbers, as many from each generator, one after another."""
        normals, uniforms = (
            np.empty((len(rngs), count, self.n_moments + 1)),
            np.empty((len(rngs), count, self.n_moments)),
        )
        for rng, some, others in zip(rngs, normals, uniforms, strict=True):
            rng.standard_normal(out=some)
            rng.random(out=others)
        return normals.reshape(-1, self.n_moments + 1), uniforms.reshape(-1, self.n_moments)

    def _make_terms(self, normals: NDArray[np.float64], uniforms: NDArray[np.float64]) -> Polynomials:
        return moment_terms(unit_rows(normals), self.orders.orders(uniforms), self.cut)


@dataclass(frozen=True, eq=False)
class ExplicitMoments:
    """What stands in for a law where label terms are explicit arrays: weights ψ (L, k + 1) and orders (L, k)."""

    psi: NDArray[np.float64]
    orders: NDArray[np.int64]
    cut: float | None

    def describe(self) -> Mapping[str, object]:
        """Shape and cut; the numbers themselves are hashed."""
        return {"law": "given moments", "n_moments": self.orders.shape[1], "cut": self.cut}

    def draw(self, rng: np.random.Generator, n_projections: int) -> Polynomials:
        """Refuse to sample."""
        raise SotddError("projections given as arrays cannot be continued: fit them instead.")

    def draw_blocks(self, keys: Keys, stream: Stream, count: int) -> Polynomials:
        """The rows of some blocks, of which the last may be shorter."""
        return moment_terms(self.psi[keys.rows], self.orders[keys.rows], self.cut)


def check_orders(orders: NDArray[Any]) -> NDArray[np.int64]:
    """Return moment orders as integers, or refuse those that are not from 1 to 170."""
    if orders.dtype.kind not in "iuf" or not ((orders >= 1) & (orders <= HIGHEST_ORDER) & (orders % 1 == 0)).all():
        raise SotddError(f"orders must be whole numbers from 1 to {HIGHEST_ORDER}, whose factorials fit float64.")
    return orders.astype(np.int64)


@cache
def _inverse_factorials() -> NDArray[np.float64]:
    return np.array([math.exp(-math.lgamma(order + 1)) for order in range(HIGHEST_ORDER + 1)])


def moment_terms(psi: NDArray[np.float64], orders: NDArray[np.int64], cut: float | None = None) -> Polynomials:
    """Collect ψ (B, k+1) and orders (B, k) into polynomials: coefficient of t^λ is Σ ψ_i / λ!."""
    shape = len(psi), int(orders.max()) + 1
    places = orders + shape[1] * np.arange(shape[0])[:, None]
    values = psi[:, 1:] * _inverse_factorials()[orders]
    coefficients = np.bincount(places.ravel(), values.ravel(), shape[0] * shape[1]).astype(np.float64, copy=False)
    return Polynomials(psi[:, 0].copy(), coefficients.reshape(shape), cut)
