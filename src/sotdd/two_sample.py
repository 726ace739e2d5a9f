"""Whether two datasets may be samples of one source: what a test says, and by what it judges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.checks import as_number, described
from sotdd.errors import SotddError
from sotdd.noise import rooted_means
from sotdd.result import json_number

Statistic: TypeAlias = Literal["balanced", "distance"]

_QUANTILES = (0.05, 0.5, 0.95, 0.99)


@dataclass(frozen=True, eq=False)
class TwoSampleTest:
    """Whether two datasets may come from one source, judged against distances that chance gives.

    Attributes
    ----------
    distance
        The distance between the two, by the projections of the test: what `sotdd.distance` gives for
        them with ``estimator="plain"``, not with its default.
    null_distances
        Distances that chance gave: of shuffled data, or of batches of a reference.
    statistic
        What is judged. "balanced": the mean over projections of W_p^p divided by the root of what is
        usual under that projection, one on average over what chance gives; "distance": the distance
        itself.
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

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(100, 4)), rng.normal(0.5, 1, size=(80, 4))
    >>> found = sotdd.test(a, b, n_permutations=199)
    >>> found.p_value, found.rejects(0.05)
    (0.005, True)
    >>> bool(found.ratio > 1), bool(found.effect_size > 3)
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
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Freeze the numbers."""
        for name in ("null_distances", "null"):
            kept = np.array(getattr(self, name), np.float64)
            kept.flags.writeable = False
            object.__setattr__(self, name, kept)

    @property
    def p_value(self) -> float:
        """How often chance goes as far, the data themselves counted as one of its outcomes."""
        return (1 + int(np.count_nonzero(self.null >= self.statistic))) / (1 + len(self.null))

    @property
    def effect_size(self) -> float:
        """How many standard deviations of chance the statistic lies above its mean; NaN where chance has none."""
        spread = float(np.std(self.null, ddof=1)) if len(self.null) > 1 else 0.0
        return (self.statistic - float(np.mean(self.null))) / spread if spread > 0 else math.nan

    @property
    def ratio(self) -> float:
        """The distance in units of the noise floor, the root of the mean W_p^p of chance; NaN if that is 0."""
        floor = float(rooted_means(self.null_distances[:, None] ** self.p, self.p)[0])
        return self.distance / floor if floor > 0 else math.nan

    def quantiles(self, levels: Sequence[float] = _QUANTILES) -> dict[float, float]:
        """Quantiles of the distances that chance gave."""
        shares = [as_number(level) for level in levels]
        if any(share is None or not 0 <= share <= 1 for share in shares):
            raise SotddError(f"levels are {described(levels)}: expected numbers from 0 to 1.")
        return {float(level): float(np.quantile(self.null_distances, level)) for level in levels}

    def rejects(self, level: float = 0.05) -> bool:
        """Whether one source is ruled out at this level."""
        share = as_number(level)
        if share is None or not 0 < share < 1:
            raise SotddError(f"level is {described(level)}: expected a number between 0 and 1, such as 0.05.")
        return self.p_value <= share

    def __repr__(self) -> str:
        """The p-value, the distance beside what chance gives, and how it was found."""
        low, high = self.quantiles((0.05, 0.95)).values()
        return (
            f"p = {self.p_value:.3g}: distance {self.distance:.3g}, by chance {low:.3g} to {high:.3g} "
            f"({len(self.null):,} draws, {self.n_projections:,} projections)"
        ) + "".join(f"; {said}" for said in self.remarks)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values; of what chance gave, the quantiles."""
        result: dict[str, Any] = {
            "p_value": self.p_value,
            "distance": self.distance,
            "statistic": self.statistic,
            "judged_by": self.judged_by,
            "effect_size": json_number(self.effect_size),
            "ratio": json_number(self.ratio),
            "null_quantiles": {f"{level:g}": value for level, value in self.quantiles().items()},
            "null_mean": float(np.mean(self.null_distances)),
            "n_null": len(self.null),
            "p": self.p,
            "n_points": list(self.n_points),
            "n_projections": self.n_projections,
            "fingerprint": self.fingerprint,
        }
        if self.remarks:
            result["remarks"] = list(self.remarks)
        return result


def check_statistic(statistic: object) -> Statistic:
    """Return the name of a statistic, or refuse."""
    if statistic == "balanced":
        return "balanced"
    if statistic == "distance":
        return "distance"
    raise SotddError(f"statistic is {described(statistic)}: expected 'balanced' or 'distance'.")


def statistics(costs: NDArray[np.float64], p: float, statistic: Statistic) -> NDArray[np.float64]:
    """The statistic (S,) of W_p^p (L, S), where the data themselves are one of the S splits like the others.

    Few projections of high order have costs many times those of the others. Divided by the root of
    their mean over all splits, they count more than the others still, but leave them a say.
    """
    if statistic == "distance":
        return rooted_means(costs, p)
    usual = np.sqrt(np.mean(costs, axis=1))  # (L,)
    told = usual > 0  # under the others all points lie together
    if not told.any():
        return np.zeros(costs.shape[1])
    return np.asarray(np.mean(costs[told] / usual[told, None], axis=0) / np.mean(usual[told]))
