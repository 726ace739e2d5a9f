"""What differential privacy costs: how much noise a stated ε and δ ask for, and where the noise comes from.

**What is promised.** Two datasets are neighbours where one has a row more than the other. What is released by one
builder is (ε, δ)-differentially private: of neighbours, no set of results is more than exp(ε) times as likely with one
as with the other, but for δ. With δ = 0 the noise is Laplace's, otherwise it is normal.

**How the noise is shared out.** Three things are released: how many points each class has, sums of the label
polynomial over each class, and counts of projected values in bins. A row reaches one class alone, and each thing by no
more than a known length (`Lengths`). Normal noise of standard deviation length / (μ √share) on each, with shares that
sum to one, is together as private as one number of sensitivity 1 under noise of standard deviation 1 / μ, also where a
later thing depends on the noisy earlier ones (Gaussian differential privacy composes so: Dong, Roth and Su, 2022).
The largest μ that ε and δ allow is found from the exact curve of the normal mechanism (Balle and Wang, 2018), not from
a bound. Under Laplace's noise lengths are sums of sizes, and shares are of ε itself.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import as_number, check_positive, described
from sotdd.basics.errors import SotddError

Doubles = NDArray[np.float64]

# How much of the budget each of the three gets. Sizes of classes are single numbers, and need the least.
SHARES = {"sizes": 0.04, "sums": 0.48, "bins": 0.48}

# A larger ε promises nothing; at a smaller δ the curve is below what float64 tells apart.
_LARGEST_EPSILON = 1e6
_SMALLEST_DELTA = 1e-12
_HALVINGS = 200


@dataclass(frozen=True)
class Budget:
    """An ε and a δ, once checked.

    Examples
    --------
    >>> from sotdd.sketches.privacy import Budget
    >>> round(1 / Budget(1.0, 1e-6).most, 3)  # the standard deviation for one number of sensitivity 1
    4.225
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        """Refuse what promises nothing, or cannot be computed."""
        epsilon = check_positive(self.epsilon, "epsilon", "a positive number, such as 1")
        if epsilon > _LARGEST_EPSILON:
            raise SotddError(f"epsilon is {described(self.epsilon)}: expected at most {_LARGEST_EPSILON:,.0f}.")
        delta = as_number(self.delta)
        if delta is None or not (delta == 0 or _SMALLEST_DELTA <= delta <= 0.1):
            raise SotddError(
                f"delta is {described(self.delta)}: expected 0 for Laplace's noise, or from {_SMALLEST_DELTA:g} to 0.1 "
                "and far below one in as many points as there are, such as 1e-6."
            )
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)

    @property
    def most(self) -> float:
        """The largest μ of a normal mechanism that keeps to this budget: sensitivity over standard deviation."""
        low, high = 0.0, 2.0
        while delta_of(high, self.epsilon) <= self.delta:
            low, high = high, 2 * high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if delta_of(middle, self.epsilon) <= self.delta else (low, middle)
        return low

    def scale(self, lengths: Lengths, share: float) -> float:
        """The scale of the noise on something that a row reaches by these lengths, for a share of the budget."""
        if self.delta:
            return lengths.root_of_squares / (self.most * math.sqrt(share))
        return lengths.sum_of_sizes / (self.epsilon * share)

    def variance(self, scale: float) -> float:
        """The variance of noise of this scale."""
        return scale**2 if self.delta else 2 * scale**2


@dataclass(frozen=True)
class Lengths:
    """By how much one row can change what is released: in the root of squares, and in the sum of sizes."""

    root_of_squares: float
    sum_of_sizes: float


def delta_of(mu: float, epsilon: float) -> float:
    """The δ that goes with an ε under normal noise of standard deviation sensitivity / μ: the exact curve."""
    from scipy.special import log_ndtr

    if mu == 0:
        return 0.0
    above, below = log_ndtr(mu / 2 - epsilon / mu), log_ndtr(-mu / 2 - epsilon / mu)
    return float(math.exp(above) * -math.expm1(min(epsilon + below - above, 0.0)))


class Noise:
    """Noise of a budget, from the random numbers of the operating system; a seed makes it the same again, for tests."""

    def __init__(self, budget: Budget, seed: int | None = None) -> None:
        self.budget = budget
        self.bytes: Callable[[int], bytes] = os.urandom if seed is None else np.random.default_rng(seed).bytes

    def on_counts(self, counts: NDArray[np.integer], scale: float) -> NDArray[np.int64]:
        """Noisy whole numbers: to round takes away the last bits, which noise of floats does not hide."""
        return np.rint(counts + self._drawn(counts.shape, scale)).astype(np.int64)

    def on_sums(self, sums: Doubles, scale: float) -> Doubles:
        """Noisy numbers, rounded to a thousandth of the noise for the same reason."""
        step = 2.0 ** math.floor(math.log2(scale) - 10)
        rounded: Doubles = step * np.rint((sums + self._drawn(sums.shape, scale)) / step)
        return rounded

    def name(self) -> str:
        """A name that no other release has."""
        return self.bytes(16).hex()

    def _drawn(self, shape: tuple[int, ...], scale: float) -> Doubles:
        """Noise from uniform numbers of 52 bits, none of them 0 or 1, by the quantile function of its law."""
        from scipy.special import ndtri

        size = math.prod(shape)
        uniform = ((np.frombuffer(self.bytes(8 * size), np.uint64) >> np.uint64(12)) + 0.5) * 2.0**-52
        if self.budget.delta:
            drawn = ndtri(uniform)
        else:
            tail = np.minimum(uniform, 1 - uniform)
            drawn = np.sign(uniform - 0.5) * -np.log(2 * tail)
        noise: Doubles = scale * drawn.reshape(shape)
        return noise
