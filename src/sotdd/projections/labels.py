"""Label laws: how a class's projected points become one number per projection."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sotdd.errors import SotddError
from sotdd.projections.directions import unit_rows
from sotdd.projections.moments import MomentLaw, ZeroTruncatedPoisson


class ClassSummary(Protocol):
    """Summarises the projected points of one class, (B, m), into one number per projection, (B,)."""

    def __call__(self, values: NDArray[np.float32], parameters: NDArray[np.float64], /) -> NDArray[np.floating]:
        """Summarise; row l of ``parameters`` (B, q) belongs to row l of ``values``."""


@dataclass(frozen=True, eq=False)
class LabelTerms:
    """What a label law drew: a data point's projection is ``weight * t + term of its class``.

    Attributes
    ----------
    weights
        (B,) what the feature projection t is multiplied by.
    parameters
        (B, q) one row per projection.
    summary
        How a class's projected points and a row of parameters become its term. None stands for
        the fast path: the mean of the polynomial whose coefficients are the parameters, lowest
        order first.
    """

    weights: NDArray[np.float64]
    parameters: NDArray[np.float64]
    summary: ClassSummary | None = None

    def head(self, count: int) -> LabelTerms:
        """The first ``count`` of them."""
        return LabelTerms(self.weights[:count], self.parameters[:count], self.summary)


@runtime_checkable
class LabelLaw(Protocol):
    """What a label law offers; write your own by having these two methods.

    Examples
    --------
    A law that stands a class by its median:

    >>> import numpy as np, sotdd
    >>> from sotdd.projections import LabelTerms
    >>> class Medians:
    ...     def describe(self):
    ...         return {"law": "medians"}
    ...
    ...     def draw(self, rng, n_projections):
    ...         angle = rng.uniform(0, 2 * np.pi, n_projections)
    ...         return LabelTerms(np.cos(angle), np.sin(angle)[:, None], self.summary)
    ...
    ...     @staticmethod
    ...     def summary(values, parameters):
    ...         return parameters[:, 0] * np.median(values, axis=1)
    >>> x = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> r = sotdd.distance((x, [0, 0, 1, 1]), (x, [0, 1, 0, 1]), label=Medians(), n_projections=64)
    >>> r.value > 0
    True
    """

    def describe(self) -> Mapping[str, object]:
        """Name the law and all its settings in JSON values: they become part of the fingerprint."""

    def draw(self, rng: np.random.Generator, n_projections: int) -> LabelTerms:
        """Draw the weights and parameters of that many projections, from ``rng`` alone."""


@dataclass(frozen=True)
class Moments:
    """The paper's label projection: k scaled moments of a class, weighted together with the feature.

    With ψ uniform on the sphere of R^(k+1) and orders λ_1, …, λ_k, a point of class y projects to
    ψ_1 t + Σ_i ψ_(i+1) mean over the class of t^λ_i / λ_i!. The sum is one polynomial in t that is
    known before any data are seen; a class's term is its mean over the class.

    Parameters
    ----------
    n_moments
        How many moments, k.
    orders
        The law that the orders are drawn from.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> terms = sotdd.Moments(n_moments=3).draw(np.random.default_rng(0), 2)
    >>> terms.weights.shape
    (2,)
    """

    n_moments: int = 5
    orders: MomentLaw = field(default_factory=ZeroTruncatedPoisson)

    def __post_init__(self) -> None:
        """Check the number of moments and that the law can serve it."""
        check_count(self.n_moments, "n_moments")
        if not isinstance(self.orders, MomentLaw):
            raise SotddError(
                f"moments is a {type(self.orders).__name__}: expected ZeroTruncatedPoisson, UniformOrders, or "
                "an object with their methods."
            )
        self.orders.describe(self.n_moments)

    def describe(self) -> Mapping[str, object]:
        """Name the law, and the law of its orders."""
        return {
            "law": "moments",
            "n_moments": int(self.n_moments),
            "orders": dict(self.orders.describe(self.n_moments)),
        }

    def draw(self, rng: np.random.Generator, n_projections: int) -> LabelTerms:
        """Draw ψ uniform on the sphere and the orders λ."""
        psi = unit_rows(rng.standard_normal((n_projections, self.n_moments + 1)))
        orders = self.orders.orders(rng.random((n_projections, self.n_moments)))
        return moment_terms(psi, orders)


def moment_terms(psi: NDArray[np.float64], orders: NDArray[np.integer]) -> LabelTerms:
    """Collect ψ (B, k+1) and orders (B, k) into polynomials: coefficient of t^λ is Σ ψ_i / λ!."""
    degree = int(orders.max())
    # Beyond 170 the factorial leaves float64; its inverse is then zero to any precision.
    inverse_factorial = np.array([math.exp(-math.lgamma(order + 1)) for order in range(degree + 1)])
    coefficients = np.zeros((len(psi), degree + 1))
    rows = np.broadcast_to(np.arange(len(psi))[:, None], orders.shape)
    np.add.at(coefficients, (rows, orders), psi[:, 1:] * inverse_factorial[orders])
    return LabelTerms(psi[:, 0].copy(), coefficients)


def join_terms(parts: Sequence[LabelTerms]) -> LabelTerms:
    """Put the terms of consecutive blocks together; shorter polynomials are padded with zeros."""
    if len(parts) == 1:
        return parts[0]
    columns = max(part.parameters.shape[1] for part in parts)
    padded = [np.pad(part.parameters, ((0, 0), (0, columns - part.parameters.shape[1]))) for part in parts]
    weights = np.concatenate([part.weights for part in parts])
    return LabelTerms(weights, np.concatenate(padded), parts[0].summary)


def check_count(value: object, name: str) -> int:
    """Return a whole number of at least one, or refuse."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise SotddError(f"{name} is {value!r}: expected an integer of at least 1.")
    return int(value)
