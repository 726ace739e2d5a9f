"""Weights of a mixture of samples that is most like another sample, with errors, and what no mixture explains.

With F the distribution functions along L projections at thresholds t that all samples share, the weights w minimise
(1/L) Σ_l Σ_t dt (F_T − Σ w_i F_i)² over the simplex, less what noise adds: Σ_t dt F (1 − F) / (n − 1) for each sample
of n points. Errors are those of a linear step, by how parts of each sample differ from the whole: the infinitesimal
jackknife. Where there are no parts, only the noise along each projection is known, and its sum is a bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.compute.kernels.counts import count_below
from sotdd.compute.kernels.quantiles import invert_functions
from sotdd.compute.resampling import Each

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]

# Thresholds along each projection, and values of each sample from which they are chosen.
_THRESHOLDS, _EACH = 64, 33
# Added to thresholds, as a share of the largest: values that are equal may differ by rounding.
_ROUNDING = 2e-6

# The level at which something is left over, and sources are told apart.
LEVEL = 0.05
# A sum of squares of Gaussian noise exceeds so many times its mean in at most 5 % of cases, whatever the correlations.
_WORST = 3.841
# Less than this share of the noise is rounding.
_NOTHING = 1e-9

# Curvatures of the quadratic form below this share of the noise cannot be told from none.
_LEAST_CURVATURE = 0.1
# Sources that would be so many standard errors below zero, were they free, might as well be above it.
_NEAR = 1.0
# Bounds are from about this many projections.
_BOUNDING = 128
# No weight between 0 and 1 has a larger standard deviation.
_LARGEST_ERROR = 0.5


@dataclass(frozen=True, eq=False)
class Values:
    """Values (B, n) of a sample, or of a part of it, along some projections.

    Attributes
    ----------
    rows
        The values in any order; or, with ``edges`` (n + 1,), means over parts of probability, ascending.
    parts
        (n,) which part each value is in, as numbers from zero.
    """

    rows: Floats
    parts: NDArray[np.integer]
    edges: Doubles | None = None

    def choose(self) -> Floats:
        """Values (B, _EACH) at even distances from the least to the largest."""
        places = np.rint(np.linspace(0, self.rows.shape[1] - 1, _EACH)).astype(np.int64)
        return (self.rows if self.edges is not None else np.sort(self.rows, axis=1))[:, places]

    def count(self, grid: Doubles, sizes: Doubles) -> Doubles:
        """Shares (P, B, T) of the values of each part, of these sizes, that are at most each threshold."""
        below = np.empty((len(sizes), *grid.shape))
        if self.edges is not None:
            invert_functions(self.rows, self.edges, grid, below[0])
            return below
        count_below(self.rows, self.parts, grid, below)
        return below / sizes[:, None, None]


class Distributions:
    """Distribution functions of several samples, the target first, at thresholds that they share.

    Parameters
    ----------
    sizes
        Of each sample, how many points its parts have.
    n_projections
        How many projections there are.
    grouped
        Whether rows of a sample belong together, so that its noise must be estimated from its parts.

    Attributes
    ----------
    below
        (D, L, T) the share of points that are at most each threshold.
    roots
        (L, T) the roots of what thresholds count by.
    deviations
        Of each sample, how parts differ from the whole (P, L, T), times the roots: their squares add up to the noise.
        None where there is but one part.
    noise
        (D,) the expected squared error of each sample, once all projections were added.
    """

    def __init__(self, sizes: Sequence[NDArray[np.integer]], n_projections: int, grouped: Sequence[bool]) -> None:
        shape = n_projections, _THRESHOLDS + 1
        self.sizes, self.grouped = [one.astype(np.float64) for one in sizes], grouped
        self.below, self.roots = np.empty((len(sizes), *shape)), np.empty(shape)
        self.deviations: list[NDArray[np.float32] | None] = [
            np.empty((len(one), *shape), np.float32) if len(one) > 1 else None for one in sizes
        ]
        self.noise: Doubles = np.zeros(len(sizes))

    @staticmethod
    def count_bytes(n_parts: int, n_samples: int, n_projections: int) -> int:
        """How much memory they take."""
        return (4 * n_parts + 24 * n_samples) * n_projections * (_THRESHOLDS + 1)

    def add(self, part: slice, weights: Doubles, samples: Sequence[Sequence[Values]], each: Each = map) -> None:
        """Take the values of all samples along some projections; those of a sample may come in its parts."""
        grid, gaps = _choose_thresholds(list(each(_pool, samples)))
        self.roots[part] = roots = np.sqrt(gaps * weights[:, None] / len(self.roots))

        def count(number: int) -> None:
            pieces, sizes = samples[number], self.sizes[number]
            split = sizes[:, None] if len(pieces) > 1 else [sizes]
            shares = np.concatenate([one.count(grid, n) for one, n in zip(pieces, split, strict=True)])
            whole = np.tensordot(sizes / sizes.sum(), shares, 1)
            self.below[number, part] = whole
            noise = np.sum(whole * (1 - whole) * roots**2) / (sizes.sum() - 1)
            deviations = self.deviations[number]
            if deviations is not None:
                scale = sizes / sizes.sum() * math.sqrt(len(sizes) / (len(sizes) - 1))
                deviations[:, part] = scale[:, None, None] * (shares - whole) * roots
                if self.grouped[number]:
                    noise = np.sum(deviations[:, part].astype(np.float64) ** 2)
            self.noise[number] += noise

        list(each(count, range(len(samples))))

    def calibrate(self) -> None:
        """Bring deviations of independent rows to their noise, which is known more exactly than from a few parts."""
        for deviations, noise, grouped in zip(self.deviations, self.noise, self.grouped, strict=True):
            if deviations is not None and not grouped and (found := float(np.vdot(deviations, deviations))) > 0:
                np.multiply(deviations, np.float32(math.sqrt(noise / found)), out=deviations)


def _pool(pieces: Sequence[Values]) -> Floats:
    """Values (B, _EACH) of a sample in parts."""
    chosen = np.concatenate([one.choose() for one in pieces], axis=1)
    return chosen if len(pieces) == 1 else Values(chosen, np.zeros(0, np.int64)).choose()


def _choose_thresholds(chosen: Sequence[Floats]) -> tuple[Doubles, Doubles]:
    """Thresholds (B, T) at quantiles of all samples, which count equally, and the gaps (B, T) after each.

    The first and the last gap end at the least and the largest value, or as far out as the quantiles reach inwards.
    """
    pooled = np.sort(np.concatenate(chosen, axis=1), axis=1).astype(np.float64)
    places = np.rint(np.linspace(0, pooled.shape[1] - 1, _THRESHOLDS + 2)[1:-1]).astype(np.int64)
    inner = pooled[:, places]
    reach = inner[:, -1] - inner[:, 0]
    reach[reach == 0] = np.inf
    low, high = np.maximum(pooled[:, 0], inner[:, 0] - reach), np.minimum(pooled[:, -1], inner[:, -1] + reach)
    grid = np.column_stack([low, inner])
    gaps = np.diff(grid, axis=1, append=high[:, None])
    return grid + _ROUNDING * np.abs(grid).max(axis=1, keepdims=True), gaps


# ------------------------------------------------------------------ the fit


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """Weights (S,), their errors; groups of sources that are not told apart, with sum and error; and what is left."""

    weights: Doubles
    stderr: Doubles
    groups: list[tuple[list[int], float, float]]
    share: float
    p_value: float


def fit_mixture(found: Distributions) -> MixtureFit:
    """Fit weights to distributions of which the first is the target."""
    gaps = ((found.below[1:] - found.below[0]) * found.roots).reshape(len(found.below) - 1, -1)  # (S, L T)
    gram, noise = gaps @ gaps.T, found.noise[1:]
    form = _lift(gram - np.diag(noise), _LEAST_CURVATURE * float(np.median(noise)))
    weights = solve_simplex(form)
    share, p_value = _judge_rest(found, weights, gaps, gram)
    groups = _group_sources(found, gram)
    members, free = [*([place] for place in range(len(gaps))), *groups], weights > 0
    for _ in range(2):  # then with those free that are held at zero and might as well be above it
        steps = np.stack([_find_step(form, free, one) for one in members])
        errors = np.minimum(_find_errors(found, weights, gaps, steps), _LARGEST_ERROR)
        below_zero = steps[: len(gaps)] @ form @ weights
        free = free | (below_zero < _NEAR * errors[: len(gaps)])
    for one in groups:  # within which any division of the sum is as good
        errors[one] = np.maximum(errors[one], weights[one].sum() / 2)
    sums = [(one, float(weights[one].sum()), float(errors[len(gaps) + place])) for place, one in enumerate(groups)]
    return MixtureFit(weights, errors[: len(gaps)], sums, share, p_value)


def solve_simplex(form: Doubles) -> Doubles:
    """Weights (S,), at least 0 and together 1, at which a positive quadratic form (S, S) is smallest.

    That is the point nearest to zero of a convex hull, which non-negative least squares finds: v minimises
    |C v|² + (Σ v − 1)² with CᵀC the form, and v / Σ v are the weights.
    """
    from scipy.optimize import nnls

    values, vectors = np.linalg.eigh(form / (np.trace(form) or 1.0))
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    found, _ = nnls(np.vstack([root, np.ones(len(form))]), np.append(np.zeros(len(form)), 1.0), maxiter=100 * len(form))
    weights: Doubles = found / found.sum()
    return weights


def _lift(form: Doubles, least: float) -> Doubles:
    """A quadratic form with curvatures of at least ``least``: noise was subtracted, so that some may be negative."""
    values, vectors = np.linalg.eigh(form)
    least = max(least, 1e-12 * float(values[-1])) or 1.0  # where all samples are one point, any weights will do
    lifted: Doubles = (vectors * np.maximum(values, least)) @ vectors.T
    return lifted


def _find_step(form: Doubles, active: NDArray[np.bool_], members: Sequence[int]) -> Doubles:
    """By how much the sum of some weights changes for a change of the gradient (S,), those at zero held there.

    The members themselves are free: a weight at zero could be above it.
    """
    free = active.copy()
    free[members] = True
    places = np.flatnonzero(free)
    inverse = np.linalg.inv(form[np.ix_(places, places)])
    total = inverse.sum(axis=1)
    inverse -= np.outer(total, total) / total.sum()
    step = np.zeros(len(form))
    step[places] = inverse[np.isin(places, members)].sum(axis=0)
    return step


def _find_errors(found: Distributions, weights: Doubles, gaps: Doubles, steps: Doubles) -> Doubles:
    """The standard errors (C,) of sums of weights that change by these steps (C, S) with the gradient."""
    left, effects = -weights @ gaps, steps @ gaps  # effects of the target; of sources they count by their weights
    factors, own = np.append(-1.0, weights), np.column_stack([np.zeros(len(steps)), steps])
    variances, whole = np.zeros(len(steps)), list[int]()
    for number, (factor, deviations) in enumerate(zip(factors, found.deviations, strict=True)):
        if deviations is None:
            whole.append(number)
            continue
        flat = deviations.reshape(len(deviations), -1)
        moved = factor * (flat @ effects.T.astype(np.float32)) - np.outer(
            flat @ left.astype(np.float32), own[:, number]
        )
        variances += np.sum(moved**2, axis=0)
    if whole:
        variances += _bound_variances(found, np.array(whole), factors, own, effects, left)
    errors: Doubles = np.sqrt(variances)
    return errors


def _bound_variances(
    found: Distributions, numbers: NDArray[np.integer], factors: Doubles, own: Doubles, effects: Doubles, left: Doubles
) -> Doubles:
    """What samples without parts add to variances (C,), at most: as if errors along all projections were the same.

    A value has the effect of all thresholds from it on.
    """
    step = -(-len(found.roots) // _BOUNDING)
    roots = found.roots[::step]

    def reach(rows: Doubles) -> Doubles:
        total = rows.reshape(-1, *found.roots.shape)[:, ::step] * roots
        total = np.pad(total[:, :, ::-1].cumsum(axis=2)[:, :, ::-1], ((0, 0), (0, 0), (0, 1)))
        return total.transpose(1, 0, 2)  # (L, C, T + 1)

    def average(rows: Doubles, some: NDArray[np.integer]) -> Doubles:
        shares = np.diff(found.below[some, ::step], axis=2, prepend=0.0, append=1.0)
        means: Doubles = rows @ shares.transpose(1, 2, 0)  # (L, C, D)
        return means

    rest, moved = reach(left[None]), reach(effects)
    variances = own[:, numbers] ** 2 * (average(rest**2, numbers) - average(rest, numbers) ** 2)  # (L, C, D)
    mixed = np.flatnonzero(factors[numbers])
    some = numbers[mixed]
    means = average(moved, some)
    variances[:, :, mixed] += factors[some] ** 2 * (average(moved**2, some) - means**2)
    crossed = average(moved * rest, some) - means * average(rest, some)
    variances[:, :, mixed] -= 2 * factors[some] * own[:, some] * crossed
    errors = len(found.roots) * np.sqrt(np.maximum(variances, 0.0)).mean(axis=0)
    sizes = np.array([found.sizes[number].sum() for number in numbers])
    bounds: Doubles = np.sum(errors**2 / (sizes - 1), axis=1)
    return bounds


def _judge_rest(found: Distributions, weights: Doubles, gaps: Doubles, gram: Doubles) -> tuple[float, float]:
    """About which share of the target is like no source, and how often noise alone leaves as much.

    What is left is judged without what a change of the weights would take away.
    """
    active = np.flatnonzero(weights > 0)
    mixed = gram @ weights
    whole, expected = float(weights @ mixed), float(found.noise[0] + weights**2 @ found.noise[1:])
    crossed, free = mixed[active] - whole, gram[np.ix_(active, active)] - mixed[active, None] - mixed[active] + whole
    inside = np.linalg.pinv(free, rcond=1e-9, hermitian=True)
    rest = float(whole - crossed @ inside @ crossed)
    if rest < _NOTHING * expected:
        return 0.0, 1.0
    parts = [found.deviations[number] for number in (0, *(active + 1))]
    known = [one.reshape(len(one), -1) for one in parts if one is not None]
    if len(known) < len(parts):
        p_value = tail_of_squares(rest, np.array([[expected]]))
    else:
        factors = (1.0, *weights[active].astype(np.float32))
        noise = np.concatenate([factor * one for factor, one in zip(factors, known, strict=True)])
        taken = (noise @ (gaps[active] - weights @ gaps).T.astype(np.float32)).astype(np.float64)
        covariance = (noise @ noise.T).astype(np.float64) - taken @ inside @ taken.T
        expected, p_value = float(np.trace(covariance)), tail_of_squares(rest, covariance)
    bias = found.noise[1:] * (1 - 2 * weights) + weights**2 @ found.noise[1:]
    unit = float(np.mean(np.maximum(np.diag(gram) - 2 * mixed + whole - bias, 0.0)))
    return min(1.0, math.sqrt(max(rest - expected, 0.0) / unit)) if unit > 0 else 0.0, p_value


def _group_sources(found: Distributions, gram: Doubles) -> list[list[int]]:
    """Sources that are within noise of each other, directly or through others."""
    from scipy.sparse.csgraph import connected_components

    apart = np.diag(gram)[:, None] + np.diag(gram) - 2 * gram
    near = np.triu(apart <= _WORST * (found.noise[1:, None] + found.noise[1:]), 1)
    for i, j in zip(*np.nonzero(near), strict=True):
        pair = [one for one in (found.deviations[i + 1], found.deviations[j + 1]) if one is not None]
        if len(pair) == 2:
            noise = np.concatenate([one.reshape(len(one), -1) for one in pair])
            near[i, j] = tail_of_squares(apart[i, j], (noise @ noise.T).astype(np.float64)) >= LEVEL
    count, labels = connected_components(near, directed=False)
    groups = [np.flatnonzero(labels == label).tolist() for label in range(count)]
    return [one for one in groups if len(one) > 1]


def tail_of_squares(value: float, covariance: Doubles) -> float:
    """How often a sum of squares of Gaussian noise with this covariance is as large.

    That is Σ λ χ² with the eigenvalues λ, whose first three moments a scaled χ² is given (Hall, Buckley, Eagleson). A
    single eigenvalue, the trace, bounds small tails of all that have that trace (Székely and Bakirov 2003).
    """
    from scipy.stats import chi2

    sizes = np.maximum(np.linalg.eigvalsh(covariance), 0.0)
    mean, variance, third = sizes.sum(), 2 * np.sum(sizes**2), 8 * np.sum(sizes**3)
    if not third > 0:
        return float(value <= 0)
    freedom = 8 * variance**3 / third**2
    return float(chi2.sf(freedom + (value - mean) * math.sqrt(2 * freedom / variance), freedom))
