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
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.memory import kept_property
from sotdd.compute.engine import Engine, Sorted
from sotdd.compute.estimators import FEWEST_FITTED, Controls
from sotdd.compute.run import Collector
from sotdd.projections.directions import Hadamard, Sphere, Tilted
from sotdd.projections.draws import Laws
from sotdd.projections.moments import Polynomials
from sotdd.projections.recipe import Projections

Doubles = NDArray[np.float64]

# Draws of the label law per direction, for the mean of the Gaussian cost.
DRAWS = 32

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
    def of(cls, means: Doubles, dimensions: int) -> Lengths:
        """The means over directions that follow from means over points, as `Sorted` has them."""
        even = [
            power * _mean_power(k // 2, dimensions) / math.factorial(k)
            for k, power in zip(_EVEN, means[:3].tolist(), strict=True)
        ]
        return cls(np.array(even), float(means[3]) / dimensions, means[4:], dimensions)

    @kept_property
    def light(self) -> NDArray[np.bool_]:
        """Which of the even orders have tails light enough to control by."""
        orders = np.array(_EVEN)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            moments = self.even * [math.factorial(k) for k in _EVEN]
            relative: Doubles = moments / moments[0] ** (orders / 2) / _NORMAL
        light: NDArray[np.bool_] = (orders == 2) | (relative < _LIGHT_TAILS)
        return light

    def columns(self, values: Doubles, weights: Doubles) -> Doubles:
        """Even moments and variance between classes, less their means over directions, (L, 4); zeros for heavy tails.

        From the values (L, 5) that the engine gave.
        """
        found = np.zeros((len(values), 4))
        for column, light in enumerate(self.light.tolist()):
            if light:
                found[:, column] = _centre(weights * values[:, 2 + column], self.even[column])
        found[:, 3] = _centre(weights * values[:, 1], self.between)
        return found


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
        if values is None or lengths is None:
            return ControlValues(places, None, None)
        if not all(np.isfinite(part).all() for part in (values, lengths.even, lengths.between, lengths.mean)):
            return ControlValues(places, None, None)
        return ControlValues(places, values, replace(lengths, mean=lengths.mean.astype(np.float32).astype(np.float64)))


@dataclass(frozen=True, eq=False)
class ControlSides:
    """The sides of comparisons: what the controls of each are made of, and what each projection counts by (L,)."""

    made_of: Sequence[ControlValues]
    weights: Doubles

    # Of each side its mean (S, d) over √d, what it expects (S, 4), its projected mean (S, L) and what it adds, before
    # threads share that; None where directions are not controlled.
    _by_direction: tuple[Doubles, Doubles, Doubles, Doubles] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Find what pairs have in common."""
        known = [(side.lengths, side.values) for side in self.made_of if side.lengths and side.values is not None]
        if len(known) < len(self.made_of):
            return
        with np.errstate(over="ignore", invalid="ignore"):  # the engine finds, and explains, what is not finite
            means = np.stack([lengths.mean / math.sqrt(lengths.dimensions) for lengths, _ in known])
            even = np.array([(*lengths.even, lengths.between) for lengths, _ in known])
            columns = np.stack([lengths.columns(values, self.weights) for lengths, values in known])
            found = means, even, np.stack([values[:, 0] for _, values in known]), columns
        object.__setattr__(self, "_by_direction", found)

    def control(self, pairs: Sequence[tuple[int, int]], p: float) -> list[Controls | None]:
        """The controls that both sides of each pair allow; None where they allow nothing."""
        columns = np.zeros((len(pairs), len(self.weights), 3 + 2 + 2 * 4))
        directions = self._by_direction is not None
        with np.errstate(over="ignore", invalid="ignore"):
            labelled = self._write_labels(pairs, p, columns[:, :, :3])
            self._write_directions(pairs, columns[:, :, 3:])
        fits = directions and len(self.weights) >= FEWEST_FITTED  # few projections cannot tell coefficients
        return [
            Controls(found, label, directions) if label or fits else None
            for found, label in zip(columns, labelled, strict=True)
        ]

    def _write_labels(self, pairs: Sequence[tuple[int, int]], p: float, out: Doubles) -> list[bool]:
        """Write label controls (P, L, 3) of some pairs; returns which have any."""
        labels = np.zeros(out.shape)
        places = [(self.made_of[i].places, self.made_of[j].places) for i, j in pairs]
        written = [_control_labels(a, b, p, found) for (a, b), found in zip(places, labels, strict=True)]
        # The gap between means is left out where it is rounding beside the variances, as of the same points under other
        # labels: what is left of it would be fitted to the costs, last bits and all.
        gaps, variances = (np.abs(labels[:, :, column]).max(axis=1) for column in (1, 2))
        labels[~(gaps > _ROUNDING**2 * variances), :, 1] = 0.0
        np.multiply(labels, self.weights[:, None], out=out)
        return written

    def _write_directions(self, pairs: Sequence[tuple[int, int]], out: Doubles) -> None:
        """Write direction controls (P, L, 10) of some pairs: the weights, the gap of means, and what each side adds."""
        if self._by_direction is None:
            return
        means, even, values, columns = self._by_direction
        i, j = np.array([sorted(pair, key=lambda side: tuple(even[side])) for pair in pairs]).T  # whichever comes first
        apart = means[i] - means[j]
        expected = np.einsum("pd,pd->p", apart, apart)[:, None]
        gaps = _centre(self.weights * (values[i] - values[j]) ** 2, expected)
        gaps[np.abs(gaps).max(axis=1) <= _ROUNDING**2 * np.maximum(even[i, 0], even[j, 0])] = 0.0
        out[:, :, 0], out[:, :, 1] = _centre(self.weights, 1.0), gaps
        out[:, :, 2:6], out[:, :, 6:] = columns[i], columns[j]


def _control_labels(a: NDArray[np.floating] | None, b: NDArray[np.floating] | None, p: float, out: Doubles) -> bool:
    """Write label controls (L, 3) of two sides; returns False where they have none, or float32 leaves too little.

    Under wild draws of the label law places are large, and the gap between two that are nearly the same is rounding.
    """
    from sotdd.compute.kernels.moments import gaussian_gaps

    if a is None or b is None or a.shape != b.shape:
        return False
    wide_a, wide_b = a.astype(np.float64, copy=False), b.astype(np.float64, copy=False)
    if a.dtype == np.float32:
        gaps, rounding = np.abs(wide_a - wide_b), _HALF_UNIT * np.maximum(np.abs(wide_a), np.abs(wide_b))
        if float(np.mean((gaps + rounding) ** 2)) > (1 + _TOLERATED) * float(np.mean(gaps**2)):
            return False
    gaussian_gaps(wide_a, wide_b, p, out)
    return True


def _centre(values: Doubles, mean: float | Doubles) -> Doubles:
    """A control less its mean over directions; zero where the two differ by rounding alone.

    In few dimensions a control may not vary at all: what rounding leaves of it would be fitted to the costs.
    """
    gap = values - mean
    gap[np.abs(gap) <= _ROUNDING * np.abs(mean)] = 0.0
    return gap


def _mean_power(half: int, dimensions: int) -> float:
    """Mean of θ_1^(2·half) for θ uniform on the sphere: (1 · 3 ⋯) / (d (d + 2) ⋯)."""
    return math.prod((2 * i + 1) / (dimensions + 2 * i) for i in range(half))


# ------------------------------------------------------------------ collecting them


def find_controls(projections: Projections) -> tuple[bool, bool, int | None]:
    """What the laws of projections allow to control: moments, label and dimensions, as `CollectControls` has them."""
    laws = projections.source
    if not isinstance(laws, Laws):
        return False, False, None
    # Terms along directions of their own do not follow from moments of features.
    label = laws.shared_directions and isinstance(projections.draw(0, 1).terms, Polynomials)
    uniform = isinstance(laws.directions, (Sphere, Hadamard, Tilted))
    dimensions = projections.n_features if uniform else None
    return label or uniform, label, dimensions


class CollectControls(Collector):
    """Collects what the controls of datasets are made of, as far as the laws of the projections allow.

    Attributes
    ----------
    moments
        Whether moments of classes are needed: not where nothing is controlled.
    label
        Whether the label law can be drawn again, and its terms follow from class moments.
    dimensions
        Of the space that directions are in, where these are uniform, if by their weights, so that controls of theirs
        have known means; else None.
    """

    def __init__(self, projections: Projections, engine: Engine) -> None:
        self._engine = engine
        self.label: bool
        self.dimensions: int | None
        self.moments, self.label, self.dimensions = find_controls(projections)
        self.draws = DRAWS if self.label else 0
        self._means: Sequence[Any] = ()  # over points
        self._places: list[Sequence[Any]] = []  # of each chunk, those of each dataset
        self._values: list[Sequence[Any]] = []

    def after_sorting(self, chunk: Sorted) -> None:
        """Take what one chunk says of each dataset."""
        self.add(chunk.places, chunk.values, chunk.means)

    def add(self, places: Sequence[Any], values: Sequence[Any], means: Sequence[Any]) -> None:
        """Take what controls of labels and of directions are made of under one chunk, of each dataset."""
        self._places.append(places if self.label else ())
        self._values.append(values if self.dimensions is not None else ())
        self._means = means

    def collect(self) -> list[ControlValues]:
        """Of each dataset, what its controls are made of; nothing where nothing can be controlled."""
        places, values = (
            [self._engine.collect(parts) for parts in zip(*found, strict=True)]
            for found in (self._places, self._values)
        )
        lengths = [Lengths.of(self._engine.collect([means]), self.dimensions or 1) for means in self._means]
        together = zip_longest(places, values, lengths if values else ())
        return [ControlValues(*made_of) for made_of in together]
