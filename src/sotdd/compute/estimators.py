"""From costs per projection to one distance with its error: plain means, and means with control variates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.remarks import Remark, Remarks
from sotdd.compute.distance import Distance

Doubles = NDArray[np.float64]

Estimator: TypeAlias = Literal["controlled", "plain"]

# Coefficients are fitted on all folds but one and used on that one, so that they owe nothing to the costs
# that they correct and the mean stays unbiased.
_FOLDS = 8

# With fewer projections than this, coefficients are not fitted.
FEWEST_FITTED = 256

# A control that varies by less than this share of its size does not vary: it cannot be told from the intercept.
_CONSTANT = 1e-6

# Where squares of controls are beyond this size, or its inverse, the controls are brought to size one.
_LARGE = 1e200

# Added to the diagonal, by share of the trace: controls that nearly follow from others would turn the last
# bits of a sum into digits of the result.
_RIDGE = 1e-9

# ControlVariates are not believed if they move the mean by more than this many standard errors of what they take away.
_IMPLAUSIBLE = 6.0

# Cochran's rule: a mean of n values of skewness g is near enough normal for 95 % intervals if n > 25 g².
_COCHRAN = 25.0

# The skewness that goes with an index of the tail, 17 / index²: the middle of what 25 pairs of datasets had, from
# 1.3 at index 4.6 over 4 at 2 to 12 at 1.1 (docs/estimators.md).
_SKEWNESS_BY_INDEX = 17.0
_FEWEST_IN_TAIL = 10
FEWEST_JUDGED = 32

# Below this index of the costs themselves, what controls leave of them is not to be relied on.
_WILDEST_COSTS = 1.0


@dataclass(frozen=True, eq=False)
class ControlVariates:
    """ControlVariates of a pair.

    Attributes
    ----------
    columns
        (L, q) of mean zero over projections.
    labels, directions
        What they control. For directions, coefficients are fitted; without, the first column is taken off as it is.
    """

    columns: Doubles
    labels: bool
    directions: bool

    @property
    def name(self) -> str:
        """The estimator, and what it controls."""
        parts = [*(["labels"] if self.labels else []), *(["directions"] if self.directions else [])]
        return f"controlled ({' and '.join(parts)})"


@dataclass(frozen=True)
class Estimate:
    """The mean of W_p^p over projections, its standard error, and whether that can be relied on.

    Both numbers are in terms of ``unit``, so that their powers and squares stay within float64.
    """

    estimator: str
    unit: float
    mean: float
    stderr: float
    unreliable: Remark | None
    contributions: Doubles  # (L,) of which ``mean`` is the mean
    uncontrolled: Remark | None  # why the controls were left out after all

    def take_root(self, p: float) -> tuple[float, float]:
        """The distance and its standard error, by the delta method.

        A mean that controls bring below zero is a distance of zero; the root has no slope there, and the
        error is that of the mean, rooted.
        """
        value = self.unit ** (1 / p) * max(0.0, self.mean) ** (1 / p)
        if value > 0:
            return value, self.stderr * value / (p * self.mean)
        return 0.0, self.unit ** (1 / p) * self.stderr ** (1 / p)


def estimate_distance(
    per_projection: Doubles,
    p: float,
    *,
    weights: Doubles | None = None,
    controls: ControlVariates | None = None,
    known: Estimate | None = None,
    remarks: Remarks = (),
    method: str = "s-OTDD",
    **facts: Any,  # noqa: ANN401  # what else a distance says of the two sides
) -> Distance:
    """The root of the mean of W_p^p, and its standard error by the delta method.

    Projections count as independent, which for orthogonal directions is usually cautious. The mean is weighted and
    controlled, as `estimates` says, unless it is ``known``.
    """
    kept = np.array(per_projection, np.float64)
    kept.flags.writeable = False
    mean = known or estimates((kept if weights is None else kept * weights)[None], [controls])[0]
    value, stderr = mean.take_root(p)
    return Distance(
        value=value,
        stderr=stderr,
        p=float(p),
        method=method,
        per_projection=kept,
        remarks=remarks if mean.uncontrolled is None else (*remarks, mean.uncontrolled),
        estimator=mean.estimator,
        weights=weights,
        contributions=mean.contributions * mean.unit,
        unreliable=mean.unreliable,
        **facts,
    )


def estimates(costs: Doubles, controls: Sequence[ControlVariates | None]) -> list[Estimate]:
    """The mean of each row of costs (P, L), less its controls: one pass instead of many small ones.

    Parameters
    ----------
    costs
        W_p^p per projection, times its importance.
    controls
        Of each row; None for a plain mean.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.compute.estimators import ControlVariates, estimates
    >>> rng = np.random.default_rng(0)
    >>> known = rng.normal(size=1000)
    >>> costs = 1 + 3 * known + 0.01 * rng.normal(size=1000)
    >>> controls = ControlVariates(known[:, None], labels=False, directions=True)
    >>> plain, controlled = estimates(np.stack([costs, costs]), [None, controls])
    >>> plain.stderr > 100 * controlled.stderr
    True
    """
    count = costs.shape[1]
    largest = np.abs(costs).max(axis=1)
    units = np.where(largest == 0, 1.0, largest)  # squares are taken of numbers up to one
    plain = costs / units[:, None]
    left = plain.copy()
    fitted: dict[int, Doubles] = {}
    for row, (of_pair, unit) in enumerate(zip(controls, units.tolist(), strict=True)):
        if of_pair is None or not largest[row]:  # nothing is taken from the zero of a dataset and itself
            continue
        if of_pair.directions and count >= FEWEST_FITTED:
            fitted[row] = of_pair.columns
        elif np.isfinite(of_pair.columns).all():
            left[row] -= of_pair.columns[:, 0] / unit
    if fitted:
        left[list(fitted)] = _find_residuals(plain[list(fitted)], list(fitted.values()))
    reasons = _find_implausible(plain, left)
    for row, why in enumerate(reasons):
        if why is not None:
            left[row] = plain[row]
    names = [
        "plain" if one is None or why is not None else one.name for one, why in zip(controls, reasons, strict=True)
    ]
    means, errors = left.mean(axis=1).tolist(), [math.nan] * len(costs)
    unreliable: Sequence[Remark | None] = [Remark("one projection")] * len(costs)
    if count > 1:
        errors = (left.std(axis=1, ddof=1) / math.sqrt(count)).tolist()
        unreliable = _judge_tails(left, plain)
    together = zip(names, units.tolist(), means, errors, unreliable, left, reasons, strict=True)
    return [Estimate(*found) for found in together]


def _find_implausible(plain: Doubles, left: Doubles) -> list[Remark | None]:
    """Of each row, why controls cannot be believed, or None: the plain mean is there to compare.

    What controls take away has mean zero. Where its mean over these projections is many standard errors
    away from that, or leaves no cost at all between datasets that differ, something is wrong with them.
    """
    taken = plain - left
    means, errors = taken.mean(axis=1), taken.std(axis=1) / math.sqrt(taken.shape[1])
    believed = (left.mean(axis=1) > 0) & (np.abs(means) <= _IMPLAUSIBLE * errors)
    believed |= (taken == 0).all(axis=1)  # nothing was taken
    return [
        None if fine else Remark("uncontrolled", share=mean / of_costs)
        for fine, mean, of_costs in zip(believed.tolist(), means.tolist(), plain.mean(axis=1).tolist(), strict=True)
    ]


def _find_residuals(costs: Doubles, columns: Sequence[Doubles]) -> Doubles:
    """Costs (P, L) less what columns (L, q) of each row say of it by least squares, with an intercept that stays.

    Each of the folds goes by the coefficients of all others. Columns that do not vary, or are not finite, are left out.
    """
    count, width = costs.shape[1], max(part.shape[1] for part in columns) + 2
    padded = np.zeros((len(costs), -(-count // _FOLDS) * _FOLDS, width))  # rows of zeros add nothing to any product
    padded[:, :count, 0], padded[:, :count, -1] = 1.0, costs
    for row, part in enumerate(columns):
        padded[row, :count, 1 : 1 + part.shape[1]] = part
    design = padded.reshape(len(costs), -1, _FOLDS, width).transpose(0, 2, 1, 3)  # (P, folds, rows, q + 2)
    with np.errstate(over="ignore", invalid="ignore"):
        products = design.transpose(0, 1, 3, 2) @ design
    whole = products.sum(axis=1)
    squares = np.diagonal(whole, axis1=1, axis2=2)
    odd = ~((squares > 1 / _LARGE) & (squares < _LARGE)).all(axis=0)
    if padded[:, :, odd].any():  # not zeros alone
        _bring_to_size(padded[:, :, 1:-1])
        products = design.transpose(0, 1, 3, 2) @ design
        whole = products.sum(axis=1)
        squares = np.diagonal(whole, axis1=1, axis2=2)
    varies = squares - whole[:, 0] ** 2 / count > _CONSTANT**2 * squares
    varies[:, 0], varies[:, -1] = True, False
    scale = np.where(varies, np.sqrt(count / np.where(varies, squares, 1.0)), 0.0)[:, None, :]
    others = whole[:, None] - products
    grams = others * (scale[..., None] * scale[:, :, None])
    ridge = _RIDGE * np.trace(grams, axis1=2, axis2=3)[..., None]
    grams += np.where(varies[:, None], ridge, 1.0)[..., None] * np.eye(width)
    coefficients = np.linalg.solve(grams, (others[..., -1] * scale)[..., None]) * scale[..., None]
    coefficients[:, :, 0] = 0.0
    explained = (design @ coefficients)[..., 0].transpose(0, 2, 1).reshape(len(costs), -1)
    residuals: Doubles = costs - explained[:, :count]
    return residuals


def _bring_to_size(columns: Doubles) -> None:
    """Bring columns (P, L, q) near size one, in place, so that their squares stay in float64; zeros if not finite."""
    sizes = np.abs(columns).max(axis=1, keepdims=True)
    np.copyto(columns, 0.0, where=~np.isfinite(sizes))
    np.ldexp(columns, -np.frexp(np.where(np.isfinite(sizes), sizes, 0.0))[1], out=columns)


def _judge_tails(values: Doubles, costs: Doubles) -> list[Remark | None]:
    """Of each row (P, L), why an interval for its mean may not hold, or None.

    Judged by the body of the tail rather than by the largest values: a sample that happened to miss the far
    end of a heavy tail has a small skewness and a small error, and would be believed when it is most wrong.
    What is left after controls is judged, and the costs that the controls were fitted to.
    """
    count, varies = values.shape[1], np.ptp(values, axis=1) > 0
    if count < FEWEST_JUDGED:
        few = Remark("few projections", count=count, needed=FEWEST_JUDGED)
        return [few if differs else None for differs in varies.tolist()]
    indices = tail_indices(values), tail_indices(costs)
    together = zip(varies.tolist(), *(found.tolist() for found in indices), strict=True)
    return [_judge_tail(index, of_costs, count) if differs else None for differs, index, of_costs in together]


def _judge_tail(index: float, of_costs: float, count: int) -> Remark | None:
    """Why the mean of this many values with tails like these may be off, or None."""
    skewness = _SKEWNESS_BY_INDEX / max(index, 0.1) ** 2
    needed = _COCHRAN * skewness**2
    if needed > count:
        return Remark("heavy tail", index=index, needed=math.ceil(needed / 100) * 100, count=count)
    if of_costs < _WILDEST_COSTS:
        return Remark("wild tail", index=of_costs)
    return None


def tail_indices(values: Doubles) -> Doubles:
    """Hill's index of the tail of each row (P, L): the twentieth part of its values that is farthest from their median.

    About 5 for normal values, 2.4 for log-normal ones of parameter one; a law with a tail x^(−a) has a.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> bool(tail_indices(rng.normal(size=(1, 2000)))[0] > 4)
    True
    """
    size = values.shape[1]
    count = max(_FEWEST_IN_TAIL, size // 20)
    ordered = np.sort(values, axis=1)
    middle = (ordered[:, (size - 1) // 2] + ordered[:, size // 2]) / 2
    apart = np.partition(np.abs(values - middle[:, None]), size - count - 1, axis=1)[:, -count - 1 :]
    start, tail = apart[:, 0], apart[:, 1:]
    with np.errstate(divide="ignore", invalid="ignore"):  # of rows that are the same but for a few values
        excess = np.log(tail / start[:, None]).mean(axis=1)
        found = np.where(excess > 0, 1 / excess, math.inf)
    return np.where(start == 0, np.where(tail.max(axis=1) > 0, 0.0, math.inf), found)
