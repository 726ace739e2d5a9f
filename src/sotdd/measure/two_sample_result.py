"""What a test of two datasets returns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import Received, check_level
from sotdd.basics.display import picture
from sotdd.basics.remarks import Remarks
from sotdd.basics.text import json_number, say_count
from sotdd.basics.verdict import Verdict
from sotdd.compute.resampling import find_distances
from sotdd.measure.changes import Changes
from sotdd.measure.statistics import Aspect, Statistic, reaches

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The level that decides, and at which columns are named, unless another is asked for.
LEVEL = 0.05

_QUANTILES = (0.05, 0.5, 0.95, 0.99)


@dataclass(frozen=True, eq=False)
class TwoSampleTest(Received):
    """Whether two datasets may come from one source, judged against distances that chance gives.

    Attributes
    ----------
    distance
        The distance between the two, by the projections of the test: what `sotdd.distance` gives for
        them with ``estimator="plain"``, not with its default.
    null_distances
        Distances that chance gave: of permuted data, or of batches of a reference.
    statistic
        What is judged. "combined": of several aspects and both orders, the one that stands out most, in its
        own standard deviations; "distance": the distance itself.
    null
        The statistic of what chance gave.
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
        """How often chance goes as far, the data themselves counted as one of its outcomes."""
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
        """How many standard deviations of chance the statistic lies above its mean; NaN where chance has none."""
        deviation = float(np.std(self.null, ddof=1)) if len(self.null) > 1 else 0.0
        return (self.statistic - float(np.mean(self.null))) / deviation if deviation > 0 else math.nan

    @property
    def ratio(self) -> float:
        """The distance in units of the noise floor, the root of the mean W_p^p of chance; NaN if that is 0."""
        floor = float(find_distances(self.null_distances[:, None] ** self.p, self.p)[0])
        return self.distance / floor if floor > 0 else math.nan

    def quantiles(self, levels: Iterable[float] = _QUANTILES) -> dict[float, float]:
        """Quantiles of the distances that chance gave, at levels from 0 to 1."""
        return {level: float(np.quantile(self.null_distances, level)) for level in levels}

    def rejects(self, level: float = 0.05) -> bool:
        """Whether one source is ruled out at this level."""
        return self.p_value <= check_level(level, such_as=0.05)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw what chance gives and where the data lie in it; returns matplotlib's axes."""
        return picture("test")(self, ax)

    def __repr__(self) -> str:
        """The p-value, the distance beside what chance gives, and how many draws it rests on."""
        low, high = self.quantiles((0.05, 0.95)).values()
        why = f", {self.say_why()}" if self.verdict is Verdict.DRIFT else ""
        return (
            f"p = {self.p_value:.3g}{why}; distance {self.distance:.3g}, by chance {low:.3g} to {high:.3g} "
            f"({say_count(len(self.null), 'permutation')}, {say_count(self.n_projections, 'projection')})"
        ) + "".join(f"; {remark}" for remark in self.remarks)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values; distances by chance as quantiles."""
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
