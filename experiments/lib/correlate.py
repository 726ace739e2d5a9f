"""Correlations with their uncertainty, and what a ranking by distance is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from scipy.stats import t as student

_RESAMPLES = 2000


@dataclass(frozen=True)
class Correlation:
    """A correlation coefficient, with a 95 % interval where it was asked for."""

    value: float
    low: float = np.nan
    high: float = np.nan

    def __str__(self) -> str:
        """As the page shows it."""
        if np.isnan(self.low):
            return f"{self.value:.2f}"
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def pearson(x: ArrayLike, y: ArrayLike, seed: int = 0) -> Correlation:
    """Pearson's r, and a percentile interval by bootstrap over the pairs."""
    return _bootstrap(np.asarray(x, float), np.asarray(y, float), ranks=False, seed=seed)


def spearman(x: ArrayLike, y: ArrayLike, seed: int = 0) -> Correlation:
    """Spearman's ρ, and a percentile interval by bootstrap over the pairs."""
    return _bootstrap(np.asarray(x, float), np.asarray(y, float), ranks=True, seed=seed)


def partial_spearman(x: ArrayLike, y: ArrayLike, given: ArrayLike) -> float:
    """What is left of Spearman's ρ of x and y when a third quantity is held fixed.

    Examples
    --------
    >>> z = np.arange(50.0)
    >>> wave = 3 * np.sin(z)
    >>> partial_spearman(z + wave, z - wave, z) < -0.9
    True
    """
    xy, xz, yz = (spearman(*both).value for both in ((x, y), (x, given), (y, given)))
    return float((xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2)))


def leave_out(x: ArrayLike, y: ArrayLike, names: Sequence[Sequence[str]], *, ranks: bool = True) -> Correlation:
    """Spearman's ρ or Pearson's r, with an interval by leaving one dataset out at a time.

    ``names`` are the datasets of every point, all of whose points go with it: pairs that share a dataset are not
    independent. Student's t with one degree of freedom fewer than datasets.
    """
    first, second = np.asarray(x, float), np.asarray(y, float)
    every = sorted({name for point in names for name in point})
    kept = [np.array([name not in point for point in names]) for name in every]
    found = [float(_coefficients(first[None, rows], second[None, rows], ranks)[0]) for rows in kept if rows.sum() > 2]
    return jackknife(float(_coefficients(first[None], second[None], ranks)[0]), found)


def jackknife(value: float, without: Sequence[float]) -> Correlation:
    """A coefficient, or a difference of two, with its interval from what it is without each of the datasets."""
    if len(without) < 3:
        return Correlation(value)
    count = len(without)
    reach = student.ppf(0.975, count - 1) * (count - 1) / np.sqrt(count) * np.std(without, ddof=1)
    return Correlation(value, max(-1.0, value - reach), min(1.0, value + reach))


def _bootstrap(x: NDArray[np.float64], y: NDArray[np.float64], *, ranks: bool, seed: int) -> Correlation:
    if len(x) != len(y) or len(x) < 3:
        raise ValueError(f"{len(x)} and {len(y)} values: expected as many of one as of the other, and at least three.")
    drawn = np.random.default_rng(seed).integers(len(x), size=(_RESAMPLES, len(x)))
    samples = _coefficients(x[drawn], y[drawn], ranks)
    low, high = np.nanpercentile(samples, [2.5, 97.5]) if np.isfinite(samples).any() else (np.nan, np.nan)
    return Correlation(float(_coefficients(x[None], y[None], ranks)[0]), float(low), float(high))


def _coefficients(x: NDArray[np.float64], y: NDArray[np.float64], ranks: bool) -> NDArray[np.float64]:
    """Correlation of every row of x (B, n) with that of y; NaN where a row is constant."""
    if ranks:
        x, y = rankdata(x, axis=1), rankdata(y, axis=1)
    x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: NDArray[np.float64] = np.sum(x * y, axis=1) / np.sqrt(np.sum(x**2, axis=1) * np.sum(y**2, axis=1))
    return found


@dataclass(frozen=True)
class Choice:
    """What choosing the nearest source came to, averaged over targets.

    Attributes
    ----------
    rho
        Mean over targets of Spearman's ρ between distance and gap among the sources.
    best
        How often the nearest source was the best one, or one of those; sources that are equally near share.
    regret
        By how much its gap was larger than the best source's.
    blind
        The regret of a source taken at random, for comparison.
    """

    rho: float
    best: float
    regret: float
    blind: float


def choice(distances: Mapping[tuple[str, str], float], gaps: Mapping[tuple[str, str], float]) -> Choice:
    """For each target rank the sources by distance; both mappings go from (source, target)."""
    targets = sorted({target for _, target in gaps})
    rhos, best, regret, blind = [], [], [], []
    for target in targets:
        sources = [source for source, other in gaps if other == target]
        far = np.array([distances[source, target] for source in sources])
        gap = np.array([gaps[source, target] for source in sources])
        rhos.append(float(_coefficients(far[None], gap[None], ranks=True)[0]))
        nearest = far == far.min()  # sources that tie share the choice, and any of the best counts as the best
        best.append(float(np.mean(gap[nearest] == gap.min())))
        regret.append(float(gap[nearest].mean() - gap.min()))
        blind.append(float(gap.mean() - gap.min()))
    known = [rho for rho in rhos if not np.isnan(rho)]  # gaps that are all the same have no order
    rhos = known or [np.nan]
    return Choice(*(float(np.mean(part)) for part in (rhos, best, regret, blind)))


def mean_by(rows: Sequence[Mapping[str, str]], keys: Sequence[str], value: str) -> dict[tuple[str, ...], float]:
    """Average a column over the rows that agree in the given ones."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(float(row[value]))
    return {key: float(np.mean(values)) for key, values in groups.items()}
