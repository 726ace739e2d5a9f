"""What a test of two datasets looks at: classes as they lie, features, means, columns, names; and what it returns.

A single projection sees a shift only in units of its own spread. Where features go together, a shift across them is
small in every single direction and large beside the spread of the right one. So differences of means are measured in
units of the spread of the projected points in every direction, as Hotelling's test does; under permutations that costs
one product.

What changes in one column of many, in how two of them go together, within one class, or along one axis alone, is small
in all projections. Of these the largest difference counts (`sotdd.measure.scores`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import check_level, picture
from sotdd.basics.remarks import Remarks, Verdict
from sotdd.basics.resources import serial_blas
from sotdd.basics.text import json_number, say_count
from sotdd.compute.resampling import find_distances
from sotdd.measure.changes import Changes
from sotdd.measure.columns import COLUMNS, RARE, score_numbers
from sotdd.measure.relations import PAIRS, WITHIN
from sotdd.measure.scores import Doubles, Score, normalise_largest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A statistic (B,) of who is on the right, which is true in (B, N).
Measure: TypeAlias = Callable[[NDArray[Any]], Doubles]
LabelNames: TypeAlias = Literal["ignore", "match"]
Statistic: TypeAlias = Literal["combined", "distance"]

# The default level, which decides and at which columns are named.
LEVEL = 0.05

_QUANTILES = (0.05, 0.5, 0.95, 0.99)

# Statistics that vary by less than this share of themselves differ by rounding.
_ALIKE = 1e-9

# The statistics of the shares of classes by name, and of principal axes.
SHARES, AXES = "class shares", "principal axes"

# Families of scores that count; the others only get names.
_COUNTED = (COLUMNS, RARE, PAIRS, WITHIN, AXES)

# Leading principal axes along which rows are compared as in columns, and iterations that find them.
_AXES, _ITERATIONS = 8, 6
# Of deviations along an axis, or of the longest axis: less is rounding.
_STEP = 1e-4
# Less than this many deviations of chance is rounding.
_ROUNDED = 1e-6

# Both orders are judged: p = 1 sees small shifts of everything, p = 2 what few points or classes do.
ORDERS = (1.0, 2.0)

# Points farther from the median than this many deviations are brought that near: few far points would drown out all
# others.
FARTHEST = 3.0

# Added to every variance, by share of the mean one: directions in which points hardly vary count less. Few points to a
# class ask for more of it.
_RIDGE = 0.01
_CLASS_RIDGE = 0.1

# Directions with less than this share of the largest variance are rounding.
_ROUNDING = 1e-8

# Who asks for names of classes asks for their shares, which count by this many deviations more. The largest of many
# differences is either clear or chance: it counts by this many less, so that little else is lost by looking for it.
_ASKED_FOR = 0.75
_OF_MANY = 0.25


def balance_costs(costs: Doubles) -> Doubles:
    """The mean (S,) over projections of W_p^p (L, S), each divided by the root of what is usual under it.

    Few projections of high order have costs many times those of the others. Divided by the root of
    their mean over all splits, they count more than the others still, but leave them a say.
    """
    usual = np.sqrt(np.mean(costs, axis=1))  # (L,)
    varies = usual > 0  # under the others all points lie together
    if not varies.any():
        return np.zeros(costs.shape[1])
    return np.asarray(np.mean(costs[varies] / usual[varies, None], axis=0) / np.mean(usual[varies]))


@dataclass(frozen=True)
class Aspect:
    """One statistic of a test.

    Attributes
    ----------
    deviations
        How far the data are from what permutations give on average, in their standard deviations.
    limit
        What 95 % of permutations stay below, in the same unit.
    p_value
        How many permutations go as far, the data counted as one; not corrected for there being several statistics.
    """

    deviations: float
    limit: float
    p_value: float


def standardise_statistics(table: Mapping[str, Doubles], largest: Mapping[str, Doubles]) -> dict[str, Doubles]:
    """Statistics (S,) of all splits by name, each in its own standard deviations; those that do not vary are left out.

    The data are one of the S splits like the others, and every split is judged by whatever stands out most in
    it, so the level of the test is that of any permutation test. Costs (L, S) are balanced; cube roots bring sums of
    squares to about the normal shape; what is the ``largest`` of many deviations has another.
    """
    shaped = {name: np.cbrt(balance_costs(found) if found.ndim > 1 else found) for name, found in table.items()}
    shaped |= {name: normalise_largest(found, found) for name, found in largest.items() if name in _COUNTED}
    return {
        name: (values - values.mean()) / values.std() + _ASKED_FOR * (name == SHARES) - _OF_MANY * (name in largest)
        for name, values in shaped.items()
        if values.std() > _ALIKE * abs(values.mean())
    }


def describe_aspect(scores: Doubles) -> Aspect:
    """One statistic (S,) of the data, which come first, beside that of permutations alone."""
    null, spread = scores[1:], float(np.std(scores[1:])) or 1.0
    apart, limit = (float(value - np.mean(null)) / spread for value in (scores[0], np.quantile(null, 0.95)))
    return Aspect(apart, limit, float(np.mean(reaches(scores, scores[0]))))


def reaches(values: Doubles, least: float) -> NDArray[np.bool_]:
    """Which values are as large, but for rounding: splits that are alike must not differ by the order of sums."""
    return values >= least - _ROUNDED * float(np.std(values))


@serial_blas.hold()
def find_axes(table: NDArray[Any]) -> Doubles:
    """(N, k) rows of centred columns (N, d) along their leading principal axes, by iterations of a few vectors.

    In steps that are coarser than rounding, so that equal rows are equal wherever they are in memory.
    """
    if not table.any():
        return np.zeros((len(table), 0))
    wide = table.astype(np.float64)
    vectors = np.random.default_rng(0).normal(size=(wide.shape[1], min(2 * _AXES, *wide.shape)))
    for _ in range(_ITERATIONS):
        vectors = np.linalg.qr(wide.T @ (wide @ vectors))[0]
    left, sizes, _ = np.linalg.svd(wide @ vectors, full_matrices=False)
    kept = left[:, :_AXES][:, sizes[:_AXES] > _STEP * sizes[0]]
    axes: Doubles = np.rint(np.sqrt(len(wide)) * kept / _STEP)
    return axes


def score_axes(axes: Doubles) -> list[Score]:
    """The scores of the points (N, k) along axes."""
    known = np.ones(len(axes), bool)
    found = [score for axis in axes.T for score in score_numbers(axis, known).values()]
    return [Score(place, (AXES,), score) for place, score in enumerate(found)]


def measure_means(rows: NDArray[np.float32], codes: NDArray[np.int64] | None = None) -> Measure:
    """The squared gap between the means of the two sides of every split, in units of its own errors.

    rows (L, N) are the projections of the pooled points, in their own order. With codes, class by class, averaged over
    the classes that both sides have: they are matched by name, and the unit is the spread of points within them. An
    average, since datasets that were made to have every class would have more classes on both sides than their
    permutations do.
    """
    ridge = _RIDGE if codes is None else _CLASS_RIDGE
    points = _whiten(centre_rows(rows, None), centre_rows(rows, codes), ridge).T  # (N, r)
    classes = [(own, points[own]) for own in _list_classes(codes)]

    def measure(right: NDArray[Any]) -> Doubles:
        total, compared = np.zeros(len(right)), np.zeros(len(right))
        for own, of_class in classes:
            here = right[:, own]
            m = here.sum(axis=1)
            n = len(of_class) - m
            both = (n > 0) & (m > 0)
            contrast = (1 - here) / np.maximum(n, 1)[:, None] - here / np.maximum(m, 1)[:, None]
            total += np.where(both, n * m / len(of_class), 0.0) * np.sum((contrast @ of_class) ** 2, axis=1)
            compared += both
        return total / np.maximum(compared, 1.0)

    return measure


def measure_shares(codes: NDArray[np.int64]) -> Measure:
    """How far the shares of the classes, by name, are apart between the two sides of every split: χ²."""
    marks = np.eye(int(codes.max()) + 1)[codes]  # (N, C)
    shares = marks.mean(axis=0)

    def measure(right: NDArray[Any]) -> Doubles:
        m = int(right[0].sum())
        n = right.shape[1] - m
        return np.asarray(np.sum(((1 - right) @ marks / n - right @ marks / m) ** 2 / shares, axis=1))

    return measure


def centre_rows(rows: NDArray[np.float32], codes: NDArray[np.integer] | None) -> Doubles:
    """Rows (L, N) less their means, of all points or of each class."""
    wide = rows.astype(np.float64)
    for own in _list_classes(codes):
        wide[:, own] -= wide[:, own].mean(axis=1, keepdims=True)
    return wide


def _list_classes(codes: NDArray[np.integer] | None) -> list[Any]:
    return [slice(None)] if codes is None else [np.flatnonzero(codes == label) for label in range(codes.max() + 1)]


def _whiten(points: Doubles, reference: Doubles, ridge: float) -> Doubles:
    """Points (L, N) in coordinates (r, N) in which the reference (L, N) has about the same variance everywhere."""
    variances, turn = np.linalg.eigh(reference @ reference.T / reference.shape[1])
    variances = np.maximum(variances, 0.0)
    kept = variances > _ROUNDING * variances.max()
    added = ridge * variances.sum() / min(points.shape)
    coordinates: Doubles = (turn[:, kept] / np.sqrt(variances[kept] + added)).T @ points
    return coordinates


# ------------------------------------------------------------------ the result


@dataclass(frozen=True, eq=False)
class TwoSampleTest:
    """Whether two datasets may come from one source, judged by permutations.

    Attributes
    ----------
    distance
        The distance between the two, by the projections of the test: what `sotdd.distance` gives for
        them with ``estimator="plain"``, not with its default.
    null_distances
        Distances of permuted data: the null distribution.
    statistic
        What is judged. "combined": of several aspects and both orders, the one that stands out most, in its
        own standard deviations; "distance": the distance itself.
    null
        The statistic of every permutation.
    judged_by
        Which statistic it is.
    p
        The order of transport.
    n_points
        The sizes of the two datasets.
    n_projections
        How many projections were used.
    fingerprint
        Which they were.
    remarks
        What a reader should know, such as that points were sampled.
    aspects
        Each statistic by itself, such as "means" or "columns"; see `sotdd.results.Aspect`.
    changes
        Which columns, pairs of columns and classes changed, by the same permutations; and what comes nearest to it.
    strongest
        The statistic that stands out most, and so decides.
    far
        The value that is too large for any distance to be measured, with its column; empty where there is none. That
        is a difference, whatever permutations say of a single row.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(100, 4)), rng.normal(0.5, 1, size=(80, 4))
    >>> result = sotdd.test(a, b, n_permutations=199)
    >>> result.p_value, result.rejects(0.05)
    (0.005, True)
    >>> bool(result.ratio > 1), bool(result.effect_size > 3)
    (True, True)
    """

    distance: float
    null_distances: NDArray[np.float64]
    statistic: float
    null: NDArray[np.float64]
    judged_by: Statistic
    p: float
    n_points: tuple[int, int]
    n_projections: int
    fingerprint: str
    remarks: Remarks = ()
    aspects: Mapping[str, Aspect] = field(default_factory=dict)
    changes: Changes = field(default_factory=Changes)
    strongest: str = "distance"
    far: str = ""

    @property
    def p_value(self) -> float:
        """The share of permutations that go as far, the data themselves counted as one of them."""
        reached = int(np.count_nonzero(reaches(self.null, self.statistic)))
        return (1 + reached) / (1 + len(self.null))

    @property
    def verdict(self) -> Verdict:
        """Whether the datasets differ, at the level of ``changes``."""
        return Verdict.DRIFT if self.far or self.rejects(self.changes.level) else Verdict.PASSED

    def say_why(self) -> str:
        """What decided, with its own numbers, and where the difference lies."""
        if not self.rejects(self.changes.level):
            return f"too far to measure: {self.far}" if self.far else ""
        most, numbers = self.aspects.get(self.strongest), ""
        if most is not None and self.judged_by != "distance":
            numbers = f" ({most.deviations:.1f} deviations, by chance up to {most.limit:.1f})"
        return "; ".join(filter(None, (f"most by {self.strongest}{numbers}", self.changes.say_where(), self.far)))

    @property
    def effect_size(self) -> float:
        """How many standard deviations the statistic lies above the mean of the null; NaN where that does not vary."""
        deviation = float(np.std(self.null, ddof=1)) if len(self.null) > 1 else 0.0
        return (self.statistic - float(np.mean(self.null))) / deviation if deviation > 0 else math.nan

    @property
    def ratio(self) -> float:
        """The distance in units of the noise floor, the root of the mean W_p^p under the null; NaN if that is 0."""
        floor = float(find_distances(self.null_distances[:, None] ** self.p, self.p)[0])
        return self.distance / floor if floor > 0 else math.nan

    def quantiles(self, levels: Iterable[float] = _QUANTILES) -> dict[float, float]:
        """Quantiles of the null distances, at levels from 0 to 1."""
        return {level: float(np.quantile(self.null_distances, level)) for level in levels}

    def rejects(self, level: float = 0.05) -> bool:
        """Whether one source is ruled out at this level."""
        return self.p_value <= check_level(level, such_as=0.05)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the null distribution and where the data lie in it; returns matplotlib's axes."""
        return picture("test")(self, ax)

    def __repr__(self) -> str:
        """The p-value, the distance beside its null distribution, and how many permutations there were."""
        low, high = self.quantiles((0.05, 0.95)).values()
        why = f", {self.say_why()}" if self.verdict is Verdict.DRIFT else ""
        return (
            f"p = {self.p_value:.3g}{why}; distance {self.distance:.3g}, by chance {low:.3g} to {high:.3g} "
            f"({say_count(len(self.null), 'permutation')}, {say_count(self.n_projections, 'projection')})"
        ) + "".join(f"; {remark}" for remark in self.remarks)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values; null distances as quantiles."""
        names = ("p_value", "distance", "statistic", "judged_by", "p", "n_projections", "fingerprint")
        result: dict[str, Any] = {name: getattr(self, name) for name in names} | {
            "verdict": self.verdict.value,
            "decided_by": self.strongest,
            "aspects": {name: asdict(aspect) for name, aspect in self.aspects.items()},
            "changes": self.changes.to_dict(),
            "effect_size": json_number(self.effect_size),
            "ratio": json_number(self.ratio),
            "null_quantiles": {f"{level:g}": value for level, value in self.quantiles().items()},
            "null_mean": float(np.mean(self.null_distances)),
            "n_null": len(self.null),
            "n_points": list(self.n_points),
        }
        return result | ({"remarks": [remark.to_dict() for remark in self.remarks]} if self.remarks else {})
