"""Noisy class statistics of private builders, and what they say of each class.

They add up over parties, as what is not private does. All that is made of them costs no further privacy.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted
from sotdd.projections.draws import BLOCK
from sotdd.projections.recipe import Projections
from sotdd.sketches.comparing import refuse_other_recipes
from sotdd.sketches.privacy import Budget, Doubles
from sotdd.sketches.private_counting import Bounds, polynomials


@dataclass(frozen=True)
class Party:
    """One release: a random name of its own, and the budget that it keeps to."""

    name: str
    budget: Budget


@dataclass(frozen=True, eq=False)
class PrivateStatistics:
    """Noisy numbers of points and noisy label sums of each class, of one party or of several together.

    Made by `PrivateBuilder.statistics`.

    Attributes
    ----------
    projections, classes, bounds
        What all parties agreed on.
    parties
        Whose rows are in it, each with its budget.
    sizes
        (C,) noisy numbers of points.
    sums
        (C, L) noisy sums of the label polynomials.
    size_variance, sum_variances
        The variance of the noise on them: one number, and (L,).

    Examples
    --------
    Two parties hold parts of one dataset, and add up what they release:

    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> projections = sotdd.Projections.fit([rng.normal(size=(500, 3))], n_projections=32)
    >>> budget = {"classes": [0, 1], "epsilon": 1, "delta": 1e-6}
    >>> here, there = (sotdd.PrivateBuilder(projections, **budget, seed=seed) for seed in range(2))
    >>> for party in (here, there):
    ...     _ = party.add(rng.normal(1, 1, size=(9000, 3)), rng.integers(2, size=9000))
    >>> together = here.statistics().merge(there.statistics())
    >>> together
    PrivateStatistics(about 17,930 points, ε = 1, δ = 1e-06 each)
    >>> here.release(together).merge(there.release(together)).finish("all").classes
    (0, 1)
    """

    projections: Projections
    classes: tuple[Hashable, ...]
    bounds: Bounds
    parties: tuple[Party, ...]
    sizes: NDArray[np.int64]
    sums: Doubles
    size_variance: float
    sum_variances: Doubles

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for array in (self.sizes, self.sums, self.sum_variances):
            array.flags.writeable = False

    def __repr__(self) -> str:
        """Sizes and budgets, for people."""
        return f"PrivateStatistics(about {counted(self.n_points, 'point')}, {said(self.parties)})"

    @property
    def n_points(self) -> int:
        """About how many points there are, at least one."""
        return max(1, int(np.maximum(self.sizes, 0).sum()))

    @property
    def shares(self) -> Doubles:
        """(C,) the share of points that each class has, about."""
        sizes = np.maximum(self.sizes, 0).astype(np.float64)
        return sizes / sizes.sum() if sizes.any() else np.full(len(sizes), 1 / len(sizes))

    def merge(self, other: PrivateStatistics) -> PrivateStatistics:
        """The statistics of both, which must be of different rows, through the same projections and bounds."""
        refuse_unlike(self, other)
        return PrivateStatistics(
            self.projections,
            self.classes,
            self.bounds,
            together(self.parties, other.parties),
            self.sizes + other.sizes,
            self.sums + other.sums,
            self.size_variance + other.size_variance,
            self.sum_variances + other.sum_variances,
        )

    def terms(self) -> Doubles:
        """The label term of each class, (L, C), drawn towards that of all points as far as it may be noise."""
        return self._estimated()[0]

    def term_variances(self) -> Doubles:
        """(L, C) how far these terms are off, in the mean square."""
        return self._estimated()[1]

    def _estimated(self) -> tuple[Doubles, Doubles]:
        """Terms and their mean square errors, by empirical Bayes: classes vary, and noise does by a known amount."""
        sizes = np.maximum(self.sizes, 1.0)
        raw, noise = (self.sums / sizes[:, None]).T, self.sum_variances[:, None] / sizes**2  # (L, C)
        low, high = self._ranges()
        centre = np.clip(self.sums.sum(axis=0) / self.n_points, low, high)[:, None]
        noise = noise + centre**2 * self.size_variance / sizes**2
        between = np.maximum(((raw - centre) ** 2 - noise) @ self.shares, 0.0)[:, None]
        drawn = np.divide(between, between + noise, out=np.zeros(noise.shape), where=between + noise > 0)
        return np.clip(centre + drawn * (raw - centre), low[:, None], high[:, None]), drawn * noise

    def _ranges(self) -> tuple[Doubles, Doubles]:
        """(L,) the lowest and the highest mean that a label polynomial can have."""
        ends = []
        for start in range(0, self.projections.n_projections, BLOCK):
            terms = polynomials(self.projections, start)
            limit = min(terms.limit, self.bounds.reach)
            values = np.polynomial.polynomial.polyval(np.linspace(-limit, limit, 257), terms.coefficients.T)
            ends.append((values.min(axis=1), values.max(axis=1)))
        low, high = zip(*ends, strict=True)
        return np.concatenate(low), np.concatenate(high)

    def edges(self, n_bins: int) -> Doubles:
        """(L, H + 1) bins that cover all that points can be projected to, once the label terms are added."""
        terms = self.terms()
        starts = range(0, self.projections.n_projections, BLOCK)
        weights = np.concatenate([polynomials(self.projections, start).weights for start in starts])
        reach = np.abs(weights) * self.bounds.reach
        low, high = terms.min(axis=1) - reach, terms.max(axis=1) + reach
        edges: Doubles = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, n_bins + 1)
        return edges

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file for others to merge; all in it is noisy."""
        from sotdd.sketches.private_file import write_private_statistics

        write_private_statistics(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], projections: Projections | None = None) -> PrivateStatistics:
        """Read a file that `save` wrote; pass projections only if they use laws of your own."""
        from sotdd.sketches.private_file import read_private_statistics

        return read_private_statistics(path, projections)


def refuse_unlike(one: PrivateStatistics, other: Any) -> None:  # noqa: ANN401  # anything else is refused
    """Refuse what was not counted in the same way."""
    if not isinstance(other, PrivateStatistics):
        raise SotddError(f"{described(other)} cannot be used here: expected PrivateStatistics.")
    mine, theirs = one.projections, other.projections
    refuse_other_recipes(mine.recipe(), mine.fingerprint, theirs.recipe(), theirs.fingerprint, "the parts to merge")
    if one.classes != other.classes:
        raise SotddError("the parts to merge have other classes: pass every party the same classes=, in one order.")
    if one.bounds != other.bounds:
        raise SotddError(f"the parts to merge hold rows to {one.bounds} and {other.bounds}: use the same for all.")


def together(mine: tuple[Party, ...], theirs: tuple[Party, ...]) -> tuple[Party, ...]:
    """The parties of both, or an error where one is in both."""
    if {party.name for party in mine} & {party.name for party in theirs}:
        raise SotddError("the parts to merge have a release in common: merge each party's only once.")
    return mine + theirs


def said(parties: tuple[Party, ...]) -> str:
    """Budgets in words."""
    budgets = list(dict.fromkeys(f"ε = {p.budget.epsilon:g}, δ = {p.budget.delta:g}" for p in parties))
    each = " each" if len(budgets) == 1 and len(parties) > 1 else ""
    return f"{' or '.join(budgets[:3])}{' or others' if len(budgets) > 3 else each}"
