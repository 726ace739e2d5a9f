"""Sampled label terms, which a class's projected points become, and the paper's label law, of moments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import OutOfRange, SotddError, check_count, check_limit, describe
from sotdd.basics.text import say_count
from sotdd.projections.directions import Law, unit_rows
from sotdd.projections.maps import BLOCK, check_made, check_numbers, show_rows

Rows = NDArray[np.float32]  # (B, n): one row per projection, points grouped by class
Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LabelTerms:
    """How labels enter, as a label law samples it: a point becomes ``weight * t + the term of its class``.

    For terms of your own, write a subclass with one of two methods. ``evaluate`` maps each projected value to a number
    whose mean over a class is its term: such terms are ``additive``. ``class_terms`` computes them in any other way.

    Attributes
    ----------
    weights
        (B,) what the feature projection t is multiplied by.
    coefficients
        (B, q) whatever else was sampled.
    additive
        Whether terms are means of ``evaluate``: their sums over classes add up over parts of a dataset, as streams,
        builders and private sketches need.
    differentiable
        Whether ``evaluate_tensor`` does the same with torch tensors, as the loss needs.
    polynomial
        Whether ``coefficients`` are those of polynomials in t, lowest order first: then means over label terms follow
        from class moments, as control variates need.
    binned
        Whether they are those of means over equal bins of a class's sorted values.
    """

    weights: Doubles
    coefficients: Doubles
    law: str = field(default="a label law", kw_only=True)  # whose they are, for errors

    additive: ClassVar[bool] = False
    differentiable: ClassVar[bool] = False
    polynomial: ClassVar[bool] = False
    binned: ClassVar[bool] = False

    @property
    def limit(self) -> float:
        """Where the values that polynomials are taken of are cut: infinite where they are not."""
        cut: float | None = getattr(self, "cut", None)
        return math.inf if cut is None else cut

    def evaluate(self, values: NDArray[np.floating]) -> NDArray[np.floating]:
        """Map projected values (B, m) to the numbers (B, m) whose mean over a class is its term."""
        raise NotImplementedError(f"{type(self).__name__} has neither evaluate nor class_terms: write one of the two.")

    def evaluate_tensor(self, values: Any) -> Any:  # noqa: ANN401  # torch is loaded late
        """The same with tensors, differentiable."""
        raise NotImplementedError(f"{type(self).__name__} says that it is differentiable: write evaluate_tensor.")

    def class_terms(self, rows: Rows, offsets: NDArray[np.int64]) -> NDArray[np.floating]:
        """The term (B, C) of each class, which offsets (C + 1,) bound; may reorder the values within a class."""
        return self.class_sums(rows, offsets) / np.diff(offsets)

    def class_sums(self, rows: Rows, offsets: NDArray[np.int64]) -> Doubles:
        """Sums (B, C) of ``evaluate`` over each class, which add up over parts of a dataset."""
        return np.add.reduceat(self.point_terms(rows), offsets[:-1], axis=1)

    def point_terms(self, rows: NDArray[np.floating]) -> Doubles:
        """What ``evaluate`` returns, in float64, once it is checked."""
        return self.check_result(self.evaluate(show_rows(rows)), rows.shape, rows, "evaluate")

    def describe_bad(self, name: str, largest: float, line: int, projection: int) -> SotddError:
        """Say why the term at this line is not finite or too large; ``largest`` is the size of the largest t."""
        return SotddError(
            f"{self.law} made a term of dataset {name!r} that is not finite in projection {projection:,}: check how it "
            "computes class terms."
        )

    def part(self, rows: slice) -> Self:
        """Some consecutive projections."""
        return replace(self, weights=self.weights[rows], coefficients=self.coefficients[rows])

    def check_result(self, result: object, shape: tuple[int, ...], rows: NDArray[np.floating], method: str) -> Doubles:
        """Hold what a method made of rows to finite numbers of this shape, and return them in float64."""
        # Polynomials that overflow are explained where terms are refused.
        found = check_made(result, shape, rows, f"{method} of {self.law}", finite=not self.polynomial)
        return found.astype(np.float64, copy=False)

    @classmethod
    def check(cls, terms: object, law: str, n_projections: int) -> Self:
        """Hold what a label law sampled, perhaps a user's own, to finite float64 of the right shapes."""
        if not isinstance(terms, cls) or np.shape(terms.weights)[:1] != (n_projections,):
            raise SotddError(
                f"the label law {law} must draw Polynomials, Quantiles, Summaries or other LabelTerms, one row for "
                f"each of the {n_projections} projections asked for: check its draw method."
            )
        name = f"the label law {law}"
        weights = check_numbers(terms.weights, f"weights of {name}", (n_projections,)).astype(np.float64)
        numbers = check_numbers(terms.coefficients, f"coefficients of {name}", (n_projections, None))
        return replace(terms, weights=weights, coefficients=numbers.astype(np.float64, order="C"), law=name)

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Those of consecutive blocks together, which must be of one kind; polynomials are padded with zeros."""
        first, widths = parts[0], {part.coefficients.shape[-1] for part in parts}
        if len(parts) == 1:
            return first
        shared = [each.name for each in fields(first) if each.name not in ("weights", "coefficients")]
        alike = all(
            type(part) is type(first) and all(getattr(part, name) == getattr(first, name) for name in shared)
            for part in parts
        )
        if not alike or (len(widths) > 1 and not first.polynomial):
            raise SotddError(
                "a label law must draw the same kind of terms, with the same cut or summary function, every time: put "
                "what is random into the coefficients."
            )
        weights, done = np.concatenate([part.weights for part in parts]), 0
        coefficients = np.zeros((*weights.shape, max(widths)))
        for part in parts:
            coefficients[done : done + len(part.weights), ..., : part.coefficients.shape[-1]] = part.coefficients
            done += len(part.weights)
        return replace(first, weights=weights, coefficients=coefficients)


def find_class_terms(rows: Rows, offsets: NDArray[np.int64], terms: LabelTerms) -> Doubles:
    """The label term (B, C) of every class in every projection; may reorder the values within a class."""
    return terms.check_result(terms.class_terms(rows, offsets), (len(rows), len(offsets) - 1), rows, "class_terms")


@dataclass(frozen=True, eq=False)
class Polynomials(LabelTerms):
    """A class's term is the mean of a polynomial over its projected points.

    A data point's projection is ``weight * t + term of its class``. The sums of the polynomial
    over each class add up over parts of a dataset, so this kind of term can be merged.

    Attributes
    ----------
    coefficients
        (B, D + 1) of the polynomials, lowest order first.
    cut
        The polynomial sees t cut to ±cut, so that no tail can make a class's term; None for t as it is.
        The feature itself is never cut.
    """

    cut: float | None = None

    additive: ClassVar[bool] = True
    differentiable: ClassVar[bool] = True
    polynomial: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the cut."""
        check_limit(self.cut, "cut")

    def evaluate(self, values: NDArray[np.floating]) -> Doubles:
        """By Horner's rule, in float64."""
        cut = np.clip(values, -self.limit, self.limit).astype(np.float64, copy=False)
        result = np.zeros(cut.shape)
        for column in self.coefficients.T[::-1]:
            result *= cut
            result += column[:, None]
        return result

    def evaluate_tensor(self, values: Any) -> Any:  # noqa: ANN401
        """By Horner's rule."""
        cut = values.clamp(-self.limit, self.limit)
        columns = values.new_tensor(self.coefficients).unsqueeze(2).unbind(1)  # from the lowest order, (B, 1) each
        result = columns[-1].expand_as(cut)
        for column in reversed(columns[:-1]):
            result = column.addcmul(result, cut)
        return result

    def point_terms(self, rows: NDArray[np.floating]) -> Doubles:
        """By a compiled loop, where values are as points are projected."""
        from sotdd.projections.kernels import evaluate_polynomials

        if rows.dtype != np.float32:
            return super().point_terms(rows)
        values = np.empty(rows.shape)
        evaluate_polynomials(rows, self.coefficients, self.limit, values)
        return values

    def describe_bad(self, name: str, largest: float, line: int, projection: int) -> SotddError:
        """Name the order that is too high for such values."""
        order = int(np.flatnonzero(self.coefficients[line])[-1])
        return OutOfRange(
            f"class moments of dataset {name!r} overflow: order {order} of projected values as large as {largest:.3g} "
            f"(projection {projection:,}); bring outliers in, or take lower orders, such as "
            "moments=sotdd.projections.UniformOrders(4)",
            use={"scale": "pooled"},
        )


# ------------------------------------------------------------------ the paper's law

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

    def cumulative(self, n_moments: int) -> Doubles:
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

    def cumulative(self, n_moments: int) -> Doubles:
        """P(order <= 1), P(order <= 2), … of each moment, (k, highest order)."""
        return np.tile(np.arange(1, self.max_order + 1) / self.max_order, (n_moments, 1))


OrderLaw: TypeAlias = ZeroTruncatedPoisson | UniformOrders

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
        return self.sample_blocks([rng], n_projections)

    def sample_blocks(self, rngs: Sequence[np.random.Generator], count: int) -> Polynomials:
        """Sample as many terms from each generator, all at once."""
        normals, uniforms = self._sample_numbers(rngs, count)
        return moment_terms(unit_rows(normals), self.orders.orders(uniforms), self.cut)

    def count_orders(self, rngs: Sequence[np.random.Generator], counted: Doubles) -> None:
        """Add what J samples of the terms weigh t and the moments by to zeros (B, 10, 1 + J), without polynomials.

        Sample j of projection b is number b J + j of those from all generators. The last order holds all above it.
        """
        from sotdd.projections.kernels import count_orders

        numbers = self._sample_numbers(rngs, BLOCK * (counted.shape[2] - 1))
        count_orders(*numbers, self.orders.cumulative(self.n_moments), counted)

    def _sample_numbers(self, rngs: Sequence[np.random.Generator], count: int) -> tuple[Doubles, Doubles]:
        """Normal (B, k + 1) and uniform numbers (B, k), as many from each generator, one after another."""
        normals, uniforms = (np.empty((len(rngs), count, self.n_moments + more)) for more in (1, 0))
        for rng, some, others in zip(rngs, normals, uniforms, strict=True):
            rng.standard_normal(out=some)
            rng.random(out=others)
        return normals.reshape(-1, self.n_moments + 1), uniforms.reshape(-1, self.n_moments)


@dataclass(frozen=True, eq=False)
class ExplicitMoments:
    """What stands in for a law where label terms are explicit arrays: weights ψ (L, k + 1) and orders (L, k)."""

    psi: NDArray[np.float64]
    orders: NDArray[np.int64]
    cut: float | None

    def describe(self) -> Mapping[str, object]:
        """Shape and cut; the numbers themselves are hashed."""
        return {"law": "given moments", "n_moments": self.orders.shape[1], "cut": self.cut}


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
