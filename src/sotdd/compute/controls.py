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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.memory import kept_property
from sotdd.compute.engine import Engine, PointSums, Sorted
from sotdd.compute.estimators import FEWEST_FITTED, Controls
from sotdd.compute.run import Collector
from sotdd.inputs.data import LabelledData
from sotdd.projections.directions import Hadamard, Sphere, Tilted
from sotdd.projections.draws import Laws
from sotdd.projections.moments import Moments, Polynomials
from sotdd.projections.recipe import Projections

Doubles = NDArray[np.float64]

# Draws of the label law per direction, for the mean of the Gaussian cost.
DRAWS = 32

# Class moments are taken up to this order, a multiple of four. Higher ones are left out of the control on both sides,
# which keeps its mean what it is. On 25 sources of data they made no error smaller by 1 %, and with hundreds of classes
# their covariances took longer than all sorting.
_DEGREE = 8

# Even orders whose means over directions may be used, and what these means are for a normal law of variance one.
_EVEN = (2, 4, 6)
_NORMAL = (1.0, 3.0, 15.0)

# The fourth and sixth moments control directions as long as they are at most this many times those of a normal
# law. Beyond that a few points make them, and directions that happen to meet those points make the fit.
# Pictures have 1.0 to 2.0; Student's law with three degrees of freedom has 3 and 50, log-normal tables 8 and 180.
_LIGHT_TAILS = 4.0

# What is left of a control within float32's rounding of its mean is nothing.
_ROUNDING = 1e-6

# Half a unit in the last place of float32; and what rounding may add to the squared gaps between places.
_HALF_UNIT = 2.0**-24
_TOLERATED = 0.01


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
                _centre(weights * moments, mean)
                for moments, mean, light in zip(values[:, 2:].T, self.even, self.light, strict=True)
                if light
            ]
            return np.stack([*even, _centre(weights * values[:, 1], self.between)])


@dataclass(frozen=True, eq=False)
class ControlValues:
    """What the controls of one dataset are made of, and all that they need to know of it.

    Attributes
    ----------
    places
        (L, 1 + J, 2) mean and standard deviation of the projected points under the label terms drawn, and under J
        further draws; None where the label law is not controlled.
    values
        (L, 5) the mean of the projected features, the mean square of their class means, and three even moments; None
        where directions are not controlled.
    lengths
        What the means of the values over directions follow from; None with them.
    """

    places: NDArray[np.floating] | None
    values: Doubles | None
    lengths: Lengths | None

    def narrow(self) -> ControlValues:
        """The same as a file keeps it, in half the digits; what is not finite controls nothing, and is left out."""
        places, values, lengths = self.places, self.values, self.lengths
        with np.errstate(over="ignore"):
            places = None if places is None else places.astype(np.float32)
        if places is not None and not np.isfinite(places).all():
            places = None
        if values is None or lengths is None or not (np.isfinite(values).all() and lengths.is_finite):
            return ControlValues(places, None, None)
        return ControlValues(places, values, replace(lengths, mean=lengths.mean.astype(np.float32).astype(np.float64)))


@dataclass(frozen=True, eq=False)
class ControlSide:
    """One side of a comparison: its values, and what each projection counts by (L,)."""

    made_of: ControlValues
    weights: Doubles

    @kept_property
    def columns(self) -> Doubles:
        """(k, L) what it adds to the controls of directions."""
        assert self.made_of.lengths is not None
        assert self.made_of.values is not None
        return self.made_of.lengths.columns(self.made_of.values, self.weights)


def control_pair(a: ControlSide, b: ControlSide, p: float) -> Controls | None:
    """The controls that both sides allow; None where they allow nothing."""
    one, other = a.made_of, b.made_of
    label = None
    if one.places is not None and other.places is not None and one.places.shape == other.places.shape:
        label = _control_labels(one.places, other.places, p)
    directions = one.lengths is not None and other.lengths is not None
    if label is None and not (directions and len(a.weights) >= FEWEST_FITTED):
        return None  # directions are controlled by coefficients, which few projections cannot tell
    with np.errstate(over="ignore", invalid="ignore"):  # the engine finds, and explains, what is not finite
        rows = [] if label is None else [a.weights * _leave_out_rounding(label)]
        rows += _control_directions(a, b) if directions else []
        return Controls(np.concatenate(rows).T, label is not None, directions)


def _control_labels(a: NDArray[np.floating], b: NDArray[np.floating], p: float) -> Doubles | None:
    """Label controls (3, L) of two sides; None where float32 leaves too little of them.

    Under wild draws of the label law places are large, and the gap between two that are nearly the same is rounding.
    """
    from sotdd.compute.kernels.moments import gaussian_gaps

    wide_a, wide_b = a.astype(np.float64, copy=False), b.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        if a.dtype == np.float32:
            gaps, rounding = np.abs(wide_a - wide_b), _HALF_UNIT * np.maximum(np.abs(wide_a), np.abs(wide_b))
            if float(np.mean((gaps + rounding) ** 2)) > (1 + _TOLERATED) * float(np.mean(gaps**2)):
                return None
        columns = np.empty((len(a), 3))
        gaussian_gaps(wide_a, wide_b, p, columns)
    return np.ascontiguousarray(columns.T)


def _control_directions(a: ControlSide, b: ControlSide) -> list[Doubles]:
    """Direction controls of two sides: the weights, the gap between means, and what each side adds."""
    known = [(side.made_of.lengths, side.made_of.values, side.columns) for side in (a, b)]
    # Whichever comes first.
    first, second = sorted(known, key=lambda one: (*one[0].even, one[0].between))  # type: ignore[union-attr]
    (lengths, values, columns), (others, other_values, other_columns) = first, second
    assert lengths is not None
    assert others is not None
    assert values is not None
    assert other_values is not None
    apart = lengths.mean - others.mean
    gap = float(apart @ apart) / lengths.dimensions
    gaps = _centre(a.weights * (values[:, 0] - other_values[:, 0]) ** 2, gap)
    if np.abs(gaps).max() <= _ROUNDING**2 * max(lengths.even[0], others.even[0]):
        gaps[:] = 0.0
    return [_centre(a.weights, 1.0)[None], gaps[None], columns, other_columns]


def _leave_out_rounding(label: Doubles) -> Doubles:
    """Label controls (3, L), the gap between means left out where it is rounding beside the variances.

    As of the same points under other labels: what is left of it would be fitted to the costs, last bits and all.
    """
    if np.abs(label[1]).max() > _ROUNDING**2 * np.abs(label[2]).max():
        return label
    return np.stack([label[0], np.zeros_like(label[1]), label[2]])


def _centre(values: Doubles, mean: float) -> Doubles:
    """A control less its mean over directions; zero where the two differ by rounding alone.

    In few dimensions a control may not vary at all: what rounding leaves of it would be fitted to the costs.
    """
    gap = values - mean
    gap[np.abs(gap) <= _ROUNDING * abs(mean)] = 0.0
    return gap


def _mean_power(half: int, dimensions: int) -> float:
    """Mean of θ_1^(2·half) for θ uniform on the sphere: (1 · 3 ⋯) / (d (d + 2) ⋯)."""
    return math.prod((2 * i + 1) / (dimensions + 2 * i) for i in range(half))


# ------------------------------------------------------------------ collecting them


def find_controls(projections: Projections) -> tuple[int, bool, int | None]:
    """What the laws of projections allow to control: degree, label and dimensions, as `CollectControls` has them."""
    laws = projections.source
    if not isinstance(laws, Laws):
        return 0, False, None
    label = type(laws.label) is Moments or isinstance(projections.draw(0, 1).terms, Polynomials)
    uniform = isinstance(laws.directions, (Sphere, Hadamard, Tilted))
    dimensions = projections.n_features if uniform else None
    return _DEGREE if label or uniform else 0, label, dimensions


class CollectControls(Collector):
    """Collects what the controls of datasets are made of, as far as the laws of the projections allow.

    Attributes
    ----------
    degree
        Orders of class moments that are needed, a multiple of four; 0 where nothing is controlled.
    label
        Whether the label law can be drawn again, and its terms follow from class moments.
    dimensions
        Of the space that directions are in, where these are uniform, if by their weights, so that controls of theirs
        have known means; else None.
    lengths
        Of each dataset, what the means over directions follow from; empty without them.
    """

    def __init__(self, projections: Projections, engine: Engine) -> None:
        self._projections, self._engine = projections, engine
        self.degree: int
        self.label: bool
        self.dimensions: int | None
        self.degree, self.label, self.dimensions = find_controls(projections)
        self.draws = DRAWS if self.label else 0
        self.lengths: list[Lengths] = []
        self._places: list[list[Any]] = []
        self._values: list[list[Any]] = []

    def sum_points(self, datasets: Sequence[LabelledData]) -> CollectControls:
        """Find what is needed of the points themselves; the first projections are drawn meanwhile."""
        self._engine.expect(self._projections, self.draws)
        if self.dimensions is not None:
            sums = self._engine.point_sums(datasets, self._projections.scaler)
            together = zip(datasets, sums, strict=True)
            self.lengths = [Lengths.of(part, data.n_points, self.dimensions) for data, part in together]
        return self

    def after_sorting(self, chunk: Sorted) -> None:
        """Take what one chunk says of each dataset."""
        self.add(chunk.places, chunk.values)

    def add(self, places: Sequence[Any], values: Sequence[Any]) -> None:
        """Take what controls of labels and of directions are made of under one chunk, of each dataset."""
        if self.label:
            _append(self._places, places)
        if self.lengths:
            _append(self._values, values)

    def collect(self) -> list[ControlValues]:
        """Of each dataset, what its controls are made of; nothing where nothing can be controlled."""
        places, values = ([self._engine.collect(parts) for parts in found] for found in (self._places, self._values))
        return [
            ControlValues(
                places[number] if places else None,
                values[number] if values else None,
                self.lengths[number] if self.lengths else None,
            )
            for number in range(max(len(places), len(values)))
        ]


def _append(kept: list[list[Any]], found: Sequence[Any]) -> None:
    """Add one part to the list of each dataset, which begin empty."""
    kept.extend([] for _ in range(len(found) - len(kept)))
    for parts, part in zip(kept, found, strict=True):
        parts.append(part)
