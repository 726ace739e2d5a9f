"""Control variates: quantities of known mean that move as the cost of a projection does.

Two kinds, both from the class moments of the projected points, which cost less than their sort.

*Labels.* Given a direction, the cost is close to that between two Gaussians with the mean and variance of
the projected points. Means and variances under any draw of the label law follow from the class moments
without touching a point, so the mean of the Gaussian cost over the label law is found from many draws.

*Directions.* For θ uniform on the sphere, the mean of (θ·x)^(2k) is known from |x|, and that of the squared
projection of a mean from its length. So the even moments of the projected points, the squared gap between
projected means and the variance between projected classes have exact means over θ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sotdd.engines.protocol import ClassMoments, Engine, PointSums, View
from sotdd.inputs.data import LabelledData
from sotdd.kernels import moments as kernels
from sotdd.projections.directions import Tilted
from sotdd.projections.draws import BLOCK, Later, Laws
from sotdd.projections.moments import Polynomials
from sotdd.projections.recipe import Projections

Doubles = NDArray[np.float64]

# Draws of the label law per direction, for the mean of the Gaussian cost.
DRAWS = 32

# Class moments are taken up to the highest order that is drawn, within these bounds; orders beyond are
# left out of the control on both sides, which keeps its mean what it is.
_LOWEST_DEGREE, _HIGHEST_DEGREE = 8, 24

# Even orders whose means over directions may be used, and what these means are for a normal law of variance one.
_EVEN = (2, 4, 6)
_NORMAL = (1.0, 3.0, 15.0)

# The fourth and sixth moments control directions as long as they are at most this many times those of a normal
# law. Beyond that a few points make them, and directions that happen to meet those points make the fit.
# Pictures have 1.0 to 2.0; Student's law with three degrees of freedom has 3 and 50, log-normal tables 8 and 180.
_LIGHT_TAILS = 4.0

# What is left of a control within float32's rounding of its mean is nothing.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class _Lengths:
    """What the means over directions of a dataset's controls follow from."""

    even: Doubles  # mean over θ and points of t^k / k!, one per order in _EVEN
    between: float  # mean over θ of the mean square of projected class means
    mean: Doubles  # (d,) of all points

    @property
    def light(self) -> NDArray[np.bool_]:
        """Which of the even orders have tails light enough to control by."""
        orders = np.array(_EVEN)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            moments = self.even * [math.factorial(k) for k in _EVEN]
            relative: Doubles = moments / moments[0] ** (orders / 2) / _NORMAL
        light: NDArray[np.bool_] = (orders == 2) | (relative < _LIGHT_TAILS)
        return light


@dataclass(frozen=True, eq=False)
class Controls:
    """The controls that a recipe and some datasets allow.

    Attributes
    ----------
    projections
        The recipe.
    degree
        Orders of class moments that the engine is asked for; 0 where nothing is controlled.
    label
        Whether the label law can be drawn again, and its terms follow from class moments.
    lengths
        Of each dataset, where directions have known means; else None.
    """

    projections: Projections
    degree: int
    label: bool
    lengths: list[_Lengths] | None

    @classmethod
    def of(cls, projections: Projections, datasets: Sequence[LabelledData], engine: Engine) -> Controls:
        """Find what can be controlled, judged by what the laws draw, not by their names."""
        source = projections.source
        laws = source.source if isinstance(source, Later) else source
        if not isinstance(laws, Laws) or not laws.shared_directions:
            return cls(projections, 0, False, None)
        terms = laws.more_terms(0, DRAWS * BLOCK)
        label = isinstance(terms, Polynomials)
        degree = _LOWEST_DEGREE
        if isinstance(terms, Polynomials):
            degree = min(_HIGHEST_DEGREE, max(_LOWEST_DEGREE, terms.coefficients.shape[1] - 1))
        lengths = None
        if isinstance(laws.directions, Tilted):
            dimensions = laws.directions.ambient or projections.n_features
            sums = engine.point_sums(datasets, projections.scaler)
            lengths = [_lengths(data, of_data, dimensions) for data, of_data in zip(datasets, sums, strict=True)]
        wanted = -(-degree // 4) * 4 if label or lengths is not None else 0
        return cls(projections, wanted, label, lengths)

    def through(self, projections: Projections) -> Controls:
        """The same for other projections of the same laws, such as those that are drawn next."""
        return replace(self, projections=projections)

    @property
    def name(self) -> str:
        """The estimator, and what it controls."""
        parts = ["labels"] if self.label else []
        parts += ["tilted directions"] if self.lengths is not None else []
        return f"controlled ({' and '.join(parts)})"

    def columns(self, view: View, pairs: Sequence[tuple[int, int]], p: float, engine: Engine) -> list[Doubles]:
        """Of each pair, controls (B, q) under the projections of one view, each of mean zero."""
        with np.errstate(over="ignore", invalid="ignore"):  # the engine finds, and explains, what is not finite
            return self._columns(view, pairs, p, engine)

    def _columns(self, view: View, pairs: Sequence[tuple[int, int]], p: float, engine: Engine) -> list[Doubles]:
        weights = view.block.importance
        by_pair: list[list[Doubles]] = [[] for _ in pairs]
        if self.label:
            for columns, by_label in zip(by_pair, self._label_columns(view, pairs, p, engine), strict=True):
                columns.extend((weights[:, None] * by_label).T)
        if self.lengths is not None:
            for columns, pair in zip(by_pair, pairs, strict=True):
                columns.extend(self._direction_columns(view, pair))
        return [np.stack(columns, axis=1) for columns in by_pair]

    def _label_columns(self, view: View, pairs: Sequence[tuple[int, int]], p: float, engine: Engine) -> list[Doubles]:
        """Of each pair, the Gaussian cost and its parts less their means over the label law, (B, 3)."""
        drawn = view.block.terms
        assert isinstance(drawn, Polynomials)
        source = self.projections.source
        assert isinstance(source, (Laws, Later))

        def work(index: int) -> list[Doubles]:
            first, last = max(index * BLOCK, view.part.start), min((index + 1) * BLOCK, view.part.stop)
            here = slice(first - view.part.start, last - view.part.start)
            terms = source.more_terms(index, DRAWS * BLOCK)
            assert isinstance(terms, Polynomials)
            rows = slice(DRAWS * (first - index * BLOCK), DRAWS * (last - index * BLOCK))
            with np.errstate(over="ignore", invalid="ignore"):  # every thread has its own
                return [
                    _costs(view.moments[i], view.moments[j], here, drawn.part(here), 1, p)
                    - _costs(view.moments[i], view.moments[j], here, terms.part(rows), DRAWS, p)
                    for i, j in pairs
                ]

        blocks = range(view.part.start // BLOCK, -(-view.part.stop // BLOCK))
        parts = engine.each(work, blocks)
        return [np.concatenate(columns) for columns in zip(*parts, strict=True)]

    def _direction_columns(self, view: View, pair: tuple[int, int]) -> list[Doubles]:
        """The weights, the gap between means, and of each dataset even moments and variance between classes."""
        assert self.lengths is not None
        weights = view.block.importance
        lengths = self.lengths
        i, j = sorted(pair, key=lambda side: (*lengths[side].even, lengths[side].between))  # whichever comes first
        (first, a), (second, b) = (view.moments[i], lengths[i]), (view.moments[j], lengths[j])
        tilt = self._directions()
        gap = float(np.sum((a.mean - b.mean) ** 2)) / (tilt.ambient or self.projections.n_features)
        values = [np.ones_like(weights), (first.mean[:, 0] - second.mean[:, 0]) ** 2]
        means = [1.0, gap]
        for moments, known in ((first, a), (second, b)):
            values += [*moments.even.T[known.light], moments.covariance[:, 0, 0] + moments.mean[:, 0] ** 2]
            means += [*known.even[known.light], known.between]
        return [_apart(weights * value, mean) for value, mean in zip(values, means, strict=True)]

    def _directions(self) -> Tilted:
        source = self.projections.source
        laws = source.source if isinstance(source, Later) else source
        assert isinstance(laws, Laws)
        assert isinstance(laws.directions, Tilted)
        return laws.directions


def _costs(a: ClassMoments, b: ClassMoments, rows: slice, terms: Polynomials, draws: int, p: float) -> Doubles:
    """Means over ``draws`` draws of label terms of the Gaussian cost and its parts, (B, 3)."""
    count = rows.stop - rows.start
    out = np.empty((count, 3))
    kernels.gaussian_costs(
        a.mean[rows],
        a.covariance[rows],
        a.even[rows],
        b.mean[rows],
        b.covariance[rows],
        b.even[rows],
        terms.weights.reshape(count, draws),
        terms.coefficients.reshape(count, draws, -1),
        p,
        out,
    )
    return out


def _lengths(data: LabelledData, sums: PointSums, dimensions: int) -> _Lengths:
    """The means over directions that follow from the sums over a dataset's points."""
    even = [
        power / data.n_points * _mean_power(k // 2, dimensions) / math.factorial(k)
        for k, power in zip(_EVEN, sums.lengths, strict=True)
    ]
    return _Lengths(np.array(even), sums.between / data.n_points / dimensions, sums.total / data.n_points)


def _apart(values: Doubles, mean: float) -> Doubles:
    """A control less its mean over directions; zero where the two differ by rounding alone.

    In few dimensions a control may not vary at all: what rounding leaves of it would be fitted to the costs.
    """
    gap = values - mean
    gap[np.abs(gap) <= _ROUNDING * abs(mean)] = 0.0
    return gap


def _mean_power(half: int, dimensions: int) -> float:
    """Mean of θ_1^(2·half) for θ uniform on the sphere: (1 · 3 ⋯) / (d (d + 2) ⋯)."""
    return math.prod((2 * i + 1) / (dimensions + 2 * i) for i in range(half))
