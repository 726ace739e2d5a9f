"""From costs per projection to one distance with its error: plain means, and means with control variates."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.checks import described
from sotdd.errors import SotddError

Doubles = NDArray[np.float64]

ESTIMATORS = ("controlled", "plain")

# Coefficients are fitted on all folds but one and used on that one, so that they owe nothing to the costs
# that they correct and the mean stays unbiased.
_FOLDS = 8

# Below so many projections coefficients are not fitted.
FEWEST_FITTED = 256

# Added to the diagonal, by share of the trace: controls that nearly follow from others would turn the last
# bits of a sum into digits of the result.
_RIDGE = 1e-9

# Cochran's rule: a mean of n values of skewness g is near enough normal for 95 % intervals if n > 25 g².
_COCHRAN = 25.0


@dataclass(frozen=True)
class Estimate:
    """The mean of W_p^p over projections, its standard error, and whether that can be relied on.

    Both numbers are in terms of ``unit``, so that their powers and squares stay within float64.
    """

    unit: float
    mean: float
    stderr: float
    unreliable: str | None
    contributions: Doubles  # (L,) of which ``mean`` is the mean

    def rooted(self, p: float) -> tuple[float, float]:
        """The distance and its standard error, by the delta method.

        A mean that controls bring below zero is a distance of zero; the root has no slope there, and the
        error is that of the mean, rooted.
        """
        value = self.unit ** (1 / p) * max(0.0, self.mean) ** (1 / p)
        if value > 0:
            return value, self.stderr * value / (p * self.mean)
        return 0.0, self.unit ** (1 / p) * self.stderr ** (1 / p)


def check_estimator(name: object) -> str:
    """Return the name of an estimator, or refuse another."""
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise SotddError(f"estimator is {described(name)}: expected {' or '.join(map(repr, ESTIMATORS))}.")
    return name


def estimate(costs: Doubles, columns: Doubles | None = None, *, fitted: bool = False) -> Estimate:
    """The mean of costs (L,), less controls (L, q) of mean zero.

    Parameters
    ----------
    costs
        W_p^p per projection, times its importance.
    columns
        Controls; None for a plain mean.
    fitted
        Whether to fit the coefficients of the controls; otherwise the first is subtracted as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.estimators import estimate
    >>> rng = np.random.default_rng(0)
    >>> known = rng.normal(size=1000)
    >>> costs = 1 + 3 * known + 0.01 * rng.normal(size=1000)
    >>> estimate(costs).stderr > 100 * estimate(costs, known[:, None], fitted=True).stderr
    True
    """
    unit = float(np.abs(costs).max()) or 1.0  # squares are taken of numbers up to one
    left = costs / unit
    if columns is not None and costs.any():  # nothing is taken from the zero of a dataset and itself
        usable = columns[:, np.isfinite(columns).all(axis=0)] / unit
        if fitted and len(costs) >= FEWEST_FITTED and usable.shape[1]:
            left = _residuals(left, usable)
        elif usable.shape[1] == columns.shape[1]:
            left = left - usable[:, 0]
    count = len(left)
    if count < 2:
        return Estimate(unit, float(left.mean()), math.nan, "a single projection cannot tell its error", left)
    deviation = float(np.std(left, ddof=1))
    return Estimate(unit, float(np.mean(left)), deviation / math.sqrt(count), _tail(left), left)


def _residuals(costs: Doubles, columns: Doubles) -> Doubles:
    """Costs less the controls by least squares, each fold with the coefficients of all others."""
    scale = np.sqrt(np.mean(columns**2, axis=0))
    kept = scale > 0
    design = np.column_stack([np.ones(len(costs)), columns[:, kept] / scale[kept]])
    folds = np.arange(len(costs)) % _FOLDS
    parts = [design[folds == fold] for fold in range(_FOLDS)]
    grams = [part.T @ part for part in parts]
    against = [part.T @ costs[folds == fold] for fold, part in enumerate(parts)]
    left = costs.copy()
    for fold, part in enumerate(parts):
        gram = np.sum([other for k, other in enumerate(grams) if k != fold], axis=0)
        gram[np.diag_indices_from(gram)] += _RIDGE * np.trace(gram)
        target = np.sum([other for k, other in enumerate(against) if k != fold], axis=0)
        coefficients = np.linalg.solve(gram, target)
        left[folds == fold] -= part[:, 1:] @ coefficients[1:]
    return left


def _tail(values: Doubles) -> str | None:
    """Why an interval for the mean of these may not hold, or None.

    The skewness of a sample of L values cannot exceed √L, which it comes near when one of them carries
    all the variance; then the rule below asks for 25 L.
    """
    centred = values - values.mean()
    variance = float(np.mean(centred**2))
    if variance == 0:
        return None
    skewness = float(np.mean(centred**3)) / variance**1.5
    needed = _COCHRAN * skewness**2
    if needed <= len(values):
        return None
    return (
        f"the costs of projections have a heavy tail (skewness {skewness:.1f}): a 95 % interval would need about "
        f"{math.ceil(needed / 100) * 100:,} projections to hold, there are {len(values):,}"
    )
