"""Laws of moment orders: which moments of a class a projection looks at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.projections.restorable import Settings, restored_law

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
    >>> sotdd.ZeroTruncatedPoisson((1.0, 5.0)).orders(np.array([[0.0, 0.5], [0.9, 0.99]])).tolist()
    [[1, 5], [3, 11]]
    >>> sotdd.ZeroTruncatedPoisson((1.0, 5.0), max_order=4).orders(np.array([[0.0, 0.5], [0.9, 0.99]])).tolist()
    [[1, 3], [3, 4]]
    """

    law: ClassVar[str] = "zero-truncated Poisson"
    rates: Sequence[float] | None = None
    max_order: int | None = None

    def __post_init__(self) -> None:
        """Check the rates and the highest order."""
        if self.max_order is not None:
            _check_max_order(self.max_order)
        if self.rates is None:
            return
        try:
            rates = tuple(float(rate) for rate in self.rates)
        except (TypeError, ValueError) as error:
            raise SotddError(f"rates is {described(self.rates)}: expected a sequence of positive numbers.") from error
        if not rates or not all(0 < rate <= _HIGHEST_RATE for rate in rates):
            raise SotddError(f"rates are {rates}: expected positive numbers up to {_HIGHEST_RATE:g}, one per moment.")
        object.__setattr__(self, "rates", rates)

    def describe(self, n_moments: int) -> Mapping[str, object]:
        """Name the law, its rates, and its highest order where there is one."""
        highest = {} if self.max_order is None else {"max_order": int(self.max_order)}
        return {"law": self.law, "rates": list(self._rates(n_moments)), **highest}

    @classmethod
    def restore(cls, settings: Settings) -> Self:
        """The law that describes itself so."""
        return cls(settings["rates"], settings.get("max_order"))

    def orders(self, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """Invert the cumulative probabilities, one rate per column."""
        highest = self.max_order or HIGHEST_ORDER
        columns = [
            np.searchsorted(cumulative_poisson(rate, self.max_order), uniforms[:, i], side="right") + 1
            for i, rate in enumerate(self._rates(uniforms.shape[1]))
        ]
        return np.minimum(np.stack(columns, axis=1), highest).astype(np.int64)

    def _rates(self, n_moments: int) -> Sequence[float]:
        if self.rates is None:
            if n_moments > _HIGHEST_RATE:
                raise SotddError(f"n_moments is {n_moments}: expected at most {_HIGHEST_RATE:g}, or give the rates.")
            return [float(rate) for rate in range(1, n_moments + 1)]
        if len(self.rates) != n_moments:
            raise SotddError(f"there are {len(self.rates)} rates for {n_moments} moments: give one rate per moment.")
        return self.rates


@cache
def cumulative_poisson(rate: float, max_order: int | None = None) -> NDArray[np.float64]:
    """P(order <= 1), P(order <= 2), … of the zero-truncated Poisson law of this rate, up to ``max_order``."""
    orders = np.arange(1, HIGHEST_ORDER + 1)
    logs = orders * math.log(rate) - np.array([math.lgamma(order + 1) for order in orders])
    whole = np.cumsum(np.exp(logs - math.log(math.expm1(rate))))
    return whole if max_order is None else whole[:max_order] / whole[max_order - 1]


def _check_max_order(max_order: object) -> None:
    whole = isinstance(max_order, (int, np.integer)) and not isinstance(max_order, bool)
    if not whole or not 1 <= cast("int", max_order) <= HIGHEST_ORDER:
        raise SotddError(f"max_order is {described(max_order)}: expected an integer from 1 to {HIGHEST_ORDER}.")


@dataclass(frozen=True)
class UniformOrders:
    """Orders uniform on 1, …, max_order: the paper's law when the set of moments is finite.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> sotdd.UniformOrders(4).orders(np.array([[0.0, 0.26, 0.99]])).tolist()
    [[1, 2, 4]]
    """

    law: ClassVar[str] = "uniform orders"
    max_order: int

    def __post_init__(self) -> None:
        """Check the highest order."""
        _check_max_order(self.max_order)

    def describe(self, n_moments: int) -> Mapping[str, object]:
        """Name the law, its highest order, and how many are drawn."""
        return {"law": self.law, "max_order": int(self.max_order), "n_moments": n_moments}

    @classmethod
    def restore(cls, settings: Settings) -> Self:
        """The law that describes itself so."""
        return cls(settings["max_order"])

    def orders(self, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """Cut the unit interval into equal parts."""
        return (uniforms * self.max_order).astype(np.int64) + 1


def restored_orders(settings: Settings) -> MomentLaw:
    """The law of orders that describes itself so."""
    law: MomentLaw = restored_law(settings, ZeroTruncatedPoisson, UniformOrders)
    return law
