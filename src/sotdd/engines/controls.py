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
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.kept import kept_property
from sotdd.engines.protocol import Engine, PointSums, View
from sotdd.inputs.data import LabelledData
from sotdd.projections.draws import BLOCK, Laws
from sotdd.projections.labels import LabelTerms
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
class Lengths:
    """What the means over directions of a dataset's controls follow from.

    Attributes
    ----------
    even
        (3,) mean over θ and points of t^k / k! for k = 2, 4, 6.
    between
        Mean over θ of the mean square of projected class means.
    mean
        (d,) of all points.
    dimensions
        Of the space that θ is in.
    """

    even: Doubles
    between: float
    mean: Doubles
    dimensions: int

    @classmethod
    def of(cls, sums: PointSums, n_points: int, dimensions: int) -> Lengths:
        """The means over directions that follow from sums over points."""
        even = [
            power / n_points * _mean_power(k // 2, dimensions) / math.factorial(k)
            for k, power in zip(_EVEN, sums.lengths, strict=True)
        ]
        return cls(np.array(even), sums.between / n_points / dimensions, sums.total / n_points, dimensions)

    @kept_property
    def light(self) -> NDArray[np.bool_]:
        """Which of the even orders have tails light enough to control by."""
        orders = np.array(_EVEN)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            moments = self.even * [math.factorial(k) for k in _EVEN]
            relative: Doubles = moments / moments[0] ** (orders / 2) / _NORMAL
        light: NDArray[np.bool_] = (orders == 2) | (relative < _LIGHT_TAILS)
        return light

    @property
    def is_finite(self) -> bool:
        """Whether all of it is."""
        return bool(np.isfinite(self.even).all() and np.isfinite(self.between) and np.isfinite(self.mean).all())

    def columns(self, values: Doubles, weights: Doubles) -> Doubles:
        """Even moments and variance between classes, less their means over directions, (k, L).

        From the values (L, 5) that the engine gave.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # the engine finds, and explains, what is not finite
            even = [
                _apart(weights * moments, mean)
                for moments, mean, light in zip(values[:, 2:].T, self.even, self.light, strict=True)
                if light
            ]
            return np.stack([*even, _apart(weights * values[:, 1], self.between)])


@dataclass(frozen=True)
class Plan:
    """What the laws of projections allow to control, judged by what they draw, not by their names.

    Attributes
    ----------
    degree
        Orders of class moments that are needed, a multiple of four; 0 where nothing is controlled.
    label
        Whether the label law can be drawn again, and its terms follow from class moments.
    dimensions
        Of the space that directions are in, where controls of theirs have known means; else None.
    """

    degree: int
    label: bool
    dimensions: int | None

    @classmethod
    def of(cls, projections: Projections) -> Plan:
        """Draw from the laws, and see."""
        laws = projections.source
        if not isinstance(laws, Laws) or not laws.shared_directions:
            return cls(0, False, None)
        terms = laws.more_terms(0, 1, DRAWS * BLOCK)
        degree = _LOWEST_DEGREE
        if isinstance(terms, Polynomials):
            degree = min(_HIGHEST_DEGREE, max(_LOWEST_DEGREE, terms.coefficients.shape[1] - 1))
        label, tilt = isinstance(terms, Polynomials), projections.tilt
        dimensions = None if tilt is None else projections.n_features
        return cls(-(-degree // 4) * 4 if label or tilt is not None else 0, label, dimensions)


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
    coming
        Further draws of the label law that were begun, by portion.
    """

    projections: Projections
    degree: int
    label: bool
    lengths: list[Lengths] | None
    coming: dict[int, Future[LabelTerms]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, projections: Projections, datasets: Sequence[LabelledData], engine: Engine) -> Controls:
        """Find what can be controlled of datasets."""
        plan, lengths = Plan.of(projections), None
        controls = cls(projections, plan.degree, plan.label, None)
        # Draws go on beside what is found of the points: of projections first, which are needed first.
        engine.expect(projections)
        if plan.label:
            controls._begin(0, 2, engine)
        if plan.dimensions is not None:
            sums = engine.point_sums(datasets, projections.scaler)
            lengths = [
                Lengths.of(part, data.n_points, plan.dimensions) for data, part in zip(datasets, sums, strict=True)
            ]
        return replace(controls, lengths=lengths)

    def through(self, projections: Projections) -> Controls:
        """The same for other projections of the same laws, such as those that are drawn next."""
        return replace(self, projections=projections, coming={})

    @property
    def name(self) -> str:
        """The estimator, and what it controls."""
        return controlled_by(self.label, self.lengths is not None)

    def seen(self, view: View, pairs: Sequence[tuple[int, int]], p: float, engine: Engine) -> tuple[Any, list[Any]]:
        """What one view says: the label controls of all pairs, and of each dataset what direction controls are made of.

        Both in a form of the engine's own, to be collected; None and nothing where they are not controlled.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # the engine finds, and explains, what is not finite
            label = None
            if self.label:
                label = engine.label_controls(view.moments, *self._draws(view, engine), pairs, p)
            values = [] if self.lengths is None else [engine.direction_values(moments) for moments in view.moments]
        return label, values

    def seen_alone(self, view: View, engine: Engine) -> tuple[list[Any], list[Any]]:
        """What one view says of each dataset by itself: its places under draws of the label law, and its values.

        Both in a form of the engine's own, to be collected; nothing where they are not controlled.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            values = [] if self.lengths is None else [engine.direction_values(moments) for moments in view.moments]
            if not self.label:
                return [], values
            return engine.label_places(view.moments, *self._draws(view, engine)), values

    def _draws(self, view: View, engine: Engine) -> tuple[Polynomials, list[Polynomials]]:
        """The label terms of a view, and further draws for each of its projections."""
        drawn = view.block.terms
        assert isinstance(drawn, Polynomials)
        size = BLOCK * engine.drawn_together
        first, last = view.part.start // size, -(-view.part.stop // size)
        # Those of the next view are drawn beside the work on this one.
        self._begin(first, 2 * last - first, engine)
        return drawn, [self._further(portion, size, view.part) for portion in range(first, last)]

    def _begin(self, first: int, last: int, engine: Engine) -> None:
        """Begin to draw these portions, of as many blocks as the engine takes together, where they are wanted."""
        source, together = self.projections.source, engine.drawn_together
        assert isinstance(source, Laws)
        blocks = -(-self.projections.n_projections // BLOCK)

        def more(portion: int) -> LabelTerms:
            return source.more_terms(portion * together, min((portion + 1) * together, blocks), DRAWS * BLOCK)

        for portion in range(first, min(last, -(-blocks // together))):
            if portion not in self.coming:
                self.coming[portion] = engine.begin(more, portion)

    def _further(self, portion: int, size: int, part: slice) -> Polynomials:
        """The further draws for those projections of a portion that are in a view."""
        begin = portion * size
        first, last = max(begin, part.start), min(begin + size, part.stop)
        whole = last == min(begin + size, self.projections.n_projections)
        terms = (self.coming.pop(portion) if whole else self.coming[portion]).result()
        assert isinstance(terms, Polynomials)
        return terms.part(slice(DRAWS * (first - begin), DRAWS * (last - begin)))

    def of_datasets(self, values: Sequence[Doubles], weights: Doubles) -> list[Doubles]:
        """Of each dataset, what it adds to the controls of its pairs: (k, L), from the values that the engine gave."""
        if self.lengths is None:
            return []
        return [known.columns(found, weights) for known, found in zip(self.lengths, values, strict=True)]

    def columns(
        self,
        pair: tuple[int, int],
        label: Doubles | None,
        values: Sequence[Doubles],
        of_datasets: Sequence[Doubles],
        weights: Doubles,
    ) -> Doubles:
        """Controls (L, q) of a pair, each of mean zero, from its label controls (3, L) and what its datasets have."""
        if self.lengths is None:
            return pair_columns(label, None, weights)
        sides = [(self.lengths[side], values[side], of_datasets[side]) for side in pair]
        return pair_columns(label, sides, weights)


def controlled_by(labels: bool, directions: bool) -> str:
    """The name of the estimator that controls these."""
    parts = [*(["labels"] if labels else []), *(["tilted directions"] if directions else [])]
    return f"controlled ({' and '.join(parts)})"


Side: TypeAlias = tuple[Lengths, Doubles, Doubles]  # of a dataset, its values (L, 5) and its columns (k, L)


def pair_columns(label: Doubles | None, sides: Sequence[Side] | None, weights: Doubles) -> Doubles:
    """Controls (L, q) of a pair, each of mean zero.

    Those of labels (3, L) where there are any; those of directions are the weights, the gap between means, and what
    each side adds.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # the engine finds, and explains, what is not finite
        rows = [] if label is None else [weights * _beyond_rounding(label)]
        if sides is not None:
            # Whichever comes first.
            first, second = sorted(sides, key=lambda side: (*side[0].even, side[0].between))
            apart = first[0].mean - second[0].mean
            gap = float(apart @ apart) / first[0].dimensions
            gaps = _apart(weights * (first[1][:, 0] - second[1][:, 0]) ** 2, gap)
            if np.abs(gaps).max() <= _ROUNDING**2 * max(first[0].even[0], second[0].even[0]):
                gaps[:] = 0.0
            rows += [_apart(weights, 1.0)[None], gaps[None], first[2], second[2]]
        return np.concatenate(rows).T


def _beyond_rounding(label: Doubles) -> Doubles:
    """Label controls (3, L), the gap between means left out where it is rounding beside the variances.

    As of the same points under other labels: what is left of it would be fitted to the costs, last bits and all.
    """
    if np.abs(label[1]).max() > _ROUNDING**2 * np.abs(label[2]).max():
        return label
    return np.stack([label[0], np.zeros_like(label[1]), label[2]])


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
