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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.kept import kept_property
from sotdd.engines.protocol import Engine, PointSums, View
from sotdd.inputs.data import LabelledData
from sotdd.projections.directions import Tilted
from sotdd.projections.draws import BLOCK, Later, Laws
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
class _Lengths:
    """What the means over directions of a dataset's controls follow from."""

    even: Doubles  # mean over θ and points of t^k / k!, one per order in _EVEN
    between: float  # mean over θ of the mean square of projected class means
    mean: Doubles  # (d,) of all points

    @kept_property
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
    coming
        Further draws of the label law that were begun, by block.
    """

    projections: Projections
    degree: int
    label: bool
    lengths: list[_Lengths] | None
    coming: dict[int, Future[LabelTerms]] = field(default_factory=dict, repr=False)

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
        return replace(self, projections=projections, coming={})

    @property
    def name(self) -> str:
        """The estimator, and what it controls."""
        parts = ["labels"] if self.label else []
        parts += ["tilted directions"] if self.lengths is not None else []
        return f"controlled ({' and '.join(parts)})"

    def seen(self, view: View, pairs: Sequence[tuple[int, int]], p: float, engine: Engine) -> tuple[Any, list[Any]]:
        """What one view says: the label controls of all pairs, and of each dataset what direction controls are made of.

        Both in a form of the engine's own, to be collected; None and nothing where they are not controlled.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # the engine finds, and explains, what is not finite
            label = self._label_controls(view, pairs, p, engine) if self.label else None
            values = [] if self.lengths is None else [engine.direction_values(moments) for moments in view.moments]
        return label, values

    def _label_controls(self, view: View, pairs: Sequence[tuple[int, int]], p: float, engine: Engine) -> Any:  # noqa: ANN401
        """Of each pair, the Gaussian cost and its parts less their means over the label law, (B, P, 3)."""
        drawn, source = view.block.terms, self.projections.source
        assert isinstance(drawn, Polynomials)
        assert isinstance(source, (Laws, Later))

        def more(index: int) -> LabelTerms:
            return source.more_terms(index, DRAWS * BLOCK)

        first, last = view.part.start // BLOCK, -(-view.part.stop // BLOCK)
        # Those of the next view are drawn beside the work on this one.
        for index in range(first, min(2 * last - first, -(-self.projections.n_projections // BLOCK))):
            if index not in self.coming:
                self.coming[index] = engine.begin(more, index)
        further = [self._further(index, view.part) for index in range(first, last)]
        return engine.label_controls(view.moments, drawn, further, pairs, p)

    def _further(self, index: int, part: slice) -> Polynomials:
        """The further draws for those projections of a block that are in a view."""
        first, last = max(index * BLOCK, part.start), min((index + 1) * BLOCK, part.stop)
        whole = last == min((index + 1) * BLOCK, self.projections.n_projections)
        terms = (self.coming.pop(index) if whole else self.coming[index]).result()
        assert isinstance(terms, Polynomials)
        return terms.part(slice(DRAWS * (first - index * BLOCK), DRAWS * (last - index * BLOCK)))

    def of_datasets(self, values: Sequence[Doubles], weights: Doubles) -> list[Doubles]:
        """Of each dataset, its even moments and its variance between classes, less their means over directions.

        (k, L) each, from the values (L, 5) that the engine gave.
        """
        if self.lengths is None:
            return []
        with np.errstate(over="ignore", invalid="ignore"):  # the engine finds, and explains, what is not finite
            return [
                np.stack(
                    [
                        *(
                            _apart(weights * even, mean)
                            for even, mean, light in zip(found[:, 2:].T, known.even, known.light, strict=True)
                            if light
                        ),
                        _apart(weights * found[:, 1], known.between),
                    ]
                )
                for found, known in zip(values, self.lengths, strict=True)
            ]

    def columns(
        self,
        pair: tuple[int, int],
        label: Doubles | None,
        values: Sequence[Doubles],
        of_datasets: Sequence[Doubles],
        weights: Doubles,
    ) -> Doubles:
        """Controls (L, q) of a pair, each of mean zero, from its label controls (3, L) and what its datasets have.

        Those of directions are the weights, the gap between means, and what `of_datasets` gives of each.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # the engine finds, and explains, what is not finite
            rows = [] if label is None else [weights * label]
            if self.lengths is not None:
                lengths = self.lengths
                # Whichever comes first.
                i, j = sorted(pair, key=lambda side: (*lengths[side].even, lengths[side].between))
                apart = lengths[i].mean - lengths[j].mean
                gap = float(apart @ apart) / (self._directions().ambient or self.projections.n_features)
                gaps = _apart(weights * (values[i][:, 0] - values[j][:, 0]) ** 2, gap)
                rows += [_apart(weights, 1.0)[None], gaps[None], of_datasets[i], of_datasets[j]]
            return np.concatenate(rows).T

    def _directions(self) -> Tilted:
        source = self.projections.source
        laws = source.source if isinstance(source, Later) else source
        assert isinstance(laws, Laws)
        assert isinstance(laws.directions, Tilted)
        return laws.directions


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
