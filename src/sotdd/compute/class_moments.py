"""Class moments, and the control variates made of them: quantities of known mean that move as costs do.

Two kinds, both from the class moments of the projected points, which cost less than their sort.

*Labels.* Given a direction, the cost is close to that between two Gaussians with the mean and variance of
the projected points. Means and variances under any sample of the label law follow from the class moments
without touching a point, so the mean of the Gaussian cost over the label law is found from many samples.

*Directions.* For θ uniform on the sphere, the mean of (θ·x)^(2k) is known from |x|, and that of the squared
projection of a mean from its length. So the even moments of the projected points, the squared gap between
projected means and the variance between projected classes have exact means over θ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.resources import kept_property
from sotdd.compute.estimators import FEWEST_FITTED, ControlVariates
from sotdd.projections.maps import ORDERS
from sotdd.projections.projections import Projections

if TYPE_CHECKING:
    from sotdd.compute.engine import Values
    from sotdd.compute.slices import Slices

Doubles = NDArray[np.float64]

# Further samples of the label law per direction, for the mean of the Gaussian cost.
LABEL_SAMPLES = 32

# Even orders whose means over directions may be used, and what these means are for a normal law of variance one.
EVEN = (2, 4, 6)
_FACTORIALS = np.array([2.0, 24.0, 720.0])
_NORMAL = (1.0, 3.0, 15.0)

# The fourth and sixth moments control directions as long as they are at most this many times those of a normal
# law. Beyond that a few points make them, and directions that happen to meet those points make the fit.
# Pictures have 1.0 to 2.0; Student's law with three degrees of freedom has 3 and 50, log-normal tables 8 and 180.
_LIGHT_TAILS = 4.0

# What is left of a control within float32's rounding of its mean is nothing.
_ROUNDING = 1e-6

# Half a unit in the last place of float32; and what rounding may add to the squared gaps between Gaussians.
_HALF_UNIT = 2.0**-24
_TOLERATED = 0.01


@dataclass(frozen=True, eq=False)
class PointMoments:
    """Moments of a dataset's points, which the means of its direction moments over θ follow from.

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
    def of(cls, norms: Doubles, dimensions: int) -> PointMoments:
        """From the point norms (4 + d,) of `Slices`."""
        even = [
            power * _mean_power(k // 2, dimensions) / math.factorial(k)
            for k, power in zip(EVEN, norms[:3].tolist(), strict=True)
        ]
        return cls(np.array(even), float(norms[3]) / dimensions, norms[4:], dimensions)

    @kept_property
    def light(self) -> NDArray[np.bool_]:
        """Which of the even orders have tails light enough to control by."""
        orders = np.array(EVEN)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            moments = self.even * _FACTORIALS
            relative: Doubles = moments / moments[0] ** (orders / 2) / _NORMAL
        light: NDArray[np.bool_] = (orders == 2) | (relative < _LIGHT_TAILS)
        return light

    def centre(self, direction_moments: Doubles, weights: Doubles) -> Doubles:
        """Even moments and the variance between classes less their means over θ, (L, 4); zeros for heavy tails."""
        found = np.zeros((len(direction_moments), 4))
        for column, light in enumerate(self.light.tolist()):
            if light:
                found[:, column] = _centre(weights * direction_moments[:, 2 + column], self.even[column])
        found[:, 3] = _centre(weights * direction_moments[:, 1], self.between)
        return found


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """What the control variates of one dataset are made of.

    Attributes
    ----------
    gaussian_moments
        (L, 1 + J, 2) as `Slices` has them; None where the label law is not controlled.
    direction_moments
        (L, 5) as `Slices` has them; None where directions are not controlled.
    point_moments
        What the means of the latter over directions follow from; None with them.
    """

    gaussian_moments: NDArray[np.floating] | None
    direction_moments: Doubles | None
    point_moments: PointMoments | None

    @classmethod
    def of(cls, projections: Projections, gaussian: Doubles, directions: Doubles, norms: Doubles) -> ClassMoments:
        """What these projections have use for, from moments and point norms as `Slices` has them."""
        labels, uniform = find_controlled(projections)
        points = PointMoments.of(norms, projections.n_features) if uniform else None
        return cls(gaussian if labels else None, directions if uniform else None, points)

    def narrow(self) -> ClassMoments:
        """The same as a file keeps it, in half the digits; what is not finite controls nothing, and is left out."""
        gaussian, directions, points = self.gaussian_moments, self.direction_moments, self.point_moments
        with np.errstate(over="ignore"):
            gaussian = None if gaussian is None else gaussian.astype(np.float32)
        if gaussian is not None and not np.isfinite(gaussian).all():
            gaussian = None
        if directions is None or points is None:
            return ClassMoments(gaussian, None, None)
        if not all(np.isfinite(part).all() for part in (directions, points.even, points.between, points.mean)):
            return ClassMoments(gaussian, None, None)
        mean = points.mean.astype(np.float32).astype(np.float64)
        return ClassMoments(gaussian, directions, replace(points, mean=mean))


def find_controlled(projections: Projections) -> tuple[bool, bool]:
    """What can be controlled of distances along these projections: the label law, and directions.

    The label law where it can be sampled again, and its terms follow from class moments; directions where they are
    uniform, if by their weights, so that moments have known means over them.
    """
    if projections.seed is None:
        return False, False
    # Terms along directions of their own do not follow from moments of features.
    return projections.n_directions == 1 and projections.draw(0, 1).terms.polynomial, projections.uniform


class MomentAccumulator:
    """Gathers the class moments of datasets, as far as the laws of the projections have use for them."""

    def __init__(self, projections: Projections) -> None:
        self._projections = projections
        self._slices: list[tuple[Sequence[Values], Sequence[Values]]] = []
        self._norms: Sequence[Values] = ()

    def add(self, slices: Slices) -> None:
        """Take those of one chunk."""
        self._collect = slices.engine.collect
        self._slices.append((slices.gaussian_moments, slices.direction_moments))
        self._norms = slices.point_norms

    def result(self) -> list[ClassMoments]:
        """The class moments of each dataset; none where nothing can be controlled."""
        found = []
        for number, norms in enumerate(self._norms):
            gaussian, directions = (self._collect([chunk[which][number] for chunk in self._slices]) for which in (0, 1))
            found.append(ClassMoments.of(self._projections, gaussian, directions, self._collect([norms])))
        return found


@np.errstate(over="ignore", invalid="ignore")  # what is not finite is found, and explained, where rows are checked
def combine_classes(
    sums: Doubles, even: Doubles, sizes: NDArray[np.int64], label_orders: Doubles
) -> tuple[Doubles, Doubles]:
    """The Gaussian moments (B, J, 2) and direction moments (B, 5) of a dataset, from sums over its classes.

    Parameters
    ----------
    sums
        (B, C, 9) of each class the sum of t, and of t^k / k! for k = 1, …, 8, t cut as label terms cut it.
    even
        (B, 3) the sums of t², t⁴ and t⁶ over all points.
    sizes
        (C,) of the classes.
    label_orders
        (B, 10, J) the weights of t and of moments of orders 1, …, 8 and beyond in samples of the label law.
    """
    shares, terms = sizes / sizes.sum(), label_orders[:, : ORDERS + 1]  # orders beyond are left out
    known, even = sums / sizes[:, None], even / (_FACTORIALS * sizes.sum())
    mean = shares @ known
    apart = known - mean[:, None]
    covariances = (apart.transpose(0, 2, 1) * shares) @ apart  # of what is known, between classes
    within = np.maximum(0.0, 2 * even[:, 0] - mean[:, 0] ** 2 - covariances[:, 0, 0])
    variances = (terms * (covariances @ terms)).sum(axis=1) + terms[:, 0] ** 2 * within[:, None]
    gaussian = np.stack([(mean[:, None] @ terms)[:, 0], np.sqrt(np.maximum(0.0, variances))], axis=2)
    return gaussian, np.column_stack([mean[:, 0], covariances[:, 0, 0] + mean[:, 0] ** 2, even])


# ------------------------------------------------------------------ control variates of pairs


def control_pairs(
    moments: Sequence[ClassMoments], weights: Doubles, pairs: Sequence[tuple[int, int]], p: float
) -> list[ControlVariates | None]:
    """The control variates that both sides of each pair allow; None where they allow nothing.

    Each projection has its weight (L,) in a mean.
    """
    columns = np.zeros((len(pairs), len(weights), 3 + 2 + 2 * 4))
    with np.errstate(over="ignore", invalid="ignore"):  # the engine finds, and explains, what is not finite
        labelled = _write_labels(moments, weights, pairs, p, columns[:, :, :3])
        directions = _write_directions(moments, weights, pairs, columns[:, :, 3:])
    fits = directions and len(weights) >= FEWEST_FITTED  # few projections cannot tell coefficients
    return [
        ControlVariates(found, labels, directions) if labels or fits else None
        for found, labels in zip(columns, labelled, strict=True)
    ]


def _write_labels(
    moments: Sequence[ClassMoments], weights: Doubles, pairs: Sequence[tuple[int, int]], p: float, out: Doubles
) -> list[bool]:
    """Write label controls (P, L, 3) of some pairs; returns which have any."""
    labels = np.zeros(out.shape)
    sides = [(moments[i].gaussian_moments, moments[j].gaussian_moments) for i, j in pairs]
    written = [_compare_gaussians(a, b, p, found) for (a, b), found in zip(sides, labels, strict=True)]
    # The gap between means is left out where it is rounding beside the variances, as of the same points under other
    # labels: what is left of it would be fitted to the costs, last bits and all.
    gaps, variances = (np.abs(labels[:, :, column]).max(axis=1) for column in (1, 2))
    labels[~(gaps > _ROUNDING**2 * variances), :, 1] = 0.0
    np.multiply(labels, weights[:, None], out=out)
    return written


def _write_directions(
    moments: Sequence[ClassMoments], weights: Doubles, pairs: Sequence[tuple[int, int]], out: Doubles
) -> bool:
    """Write direction controls (P, L, 10) of some pairs: the weights, the gap of means, and what each side adds.

    Returns whether there are any.
    """
    places = {side: place for place, side in enumerate(dict.fromkeys(side for pair in pairs for side in pair))}
    known = [(moments[side].point_moments, moments[side].direction_moments) for side in places]
    sides = [(points, along) for points, along in known if points is not None and along is not None]
    if len(sides) < len(places):
        return False
    means = np.stack([points.mean / math.sqrt(points.dimensions) for points, _ in sides])
    even = np.array([(*points.even, points.between) for points, _ in sides])
    values = np.stack([along[:, 0] for _, along in sides])
    columns = np.stack([points.centre(along, weights) for points, along in sides])
    # Whichever comes first, in the same order.
    i, j = np.array([sorted((places[a], places[b]), key=lambda side: tuple(even[side])) for a, b in pairs]).T
    apart = means[i] - means[j]
    expected = np.einsum("pd,pd->p", apart, apart)[:, None]
    gaps = _centre(weights * (values[i] - values[j]) ** 2, expected)
    gaps[np.abs(gaps).max(axis=1) <= _ROUNDING**2 * np.maximum(even[i, 0], even[j, 0])] = 0.0
    out[:, :, 0], out[:, :, 1] = _centre(weights, 1.0), gaps
    out[:, :, 2:6], out[:, :, 6:] = columns[i], columns[j]
    return True


def _compare_gaussians(a: NDArray[np.floating] | None, b: NDArray[np.floating] | None, p: float, out: Doubles) -> bool:
    """Write label controls (L, 3) of two sides; returns False where they have none, or float32 leaves too little.

    Under wild samples of the label law means are large, and the gap between two that are nearly the same is rounding.
    """
    from sotdd.compute.kernels.rows import gaussian_gaps

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
