"""The result of a two-sample test: its verdict, and the statistic behind it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_level
from sotdd.basics.text import counted, json_number, one_line
from sotdd.results.display import as_html
from sotdd.results.noise import rooted_means

Statistic: TypeAlias = Literal["combined", "balanced", "distance"]

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
        What is judged. "combined": of several aspects and both orders, the one that stands out most, in its
        own standard deviations; "balanced": the mean over projections of W_p^p divided by the root of what
        is usual under that projection, one on average over what chance gives; "distance": the distance itself.
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
        The p-value of each aspect by itself, such as "features, order 1"; not corrected for there being several.

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
    remarks: tuple[str, ...] = ()
    aspects: Mapping[str, float] = field(default_factory=dict)

    @property
    def p_value(self) -> float:
        """How often chance goes as far, the data themselves counted as one of its outcomes."""
        return (1 + int(np.count_nonzero(self.null >= self.statistic))) / (1 + len(self.null))

    @property
    def strongest(self) -> str | None:
        """The aspect that speaks most against one source; None where a single one was judged."""
        return min(self.aspects, key=lambda name: self.aspects[name]) if len(self.aspects) > 1 else None

    @property
    def most_by(self) -> str:
        """Words that name the strongest aspect; none where others speak as loudly, so that no wrong cause is named."""
        name = self.strongest
        alone = name is not None and list(self.aspects.values()).count(self.aspects[name]) == 1
        return f", most by {name}" if alone else ""

    @property
    def effect_size(self) -> float:
        """How many standard deviations of chance the statistic lies above its mean; NaN where chance has none."""
        deviation = float(np.std(self.null, ddof=1)) if len(self.null) > 1 else 0.0
        return (self.statistic - float(np.mean(self.null))) / deviation if deviation > 0 else math.nan

    @property
    def ratio(self) -> float:
        """The distance in units of the noise floor, the root of the mean W_p^p of chance; NaN if that is 0."""
        floor = float(rooted_means(self.null_distances[:, None] ** self.p, self.p)[0])
        return self.distance / floor if floor > 0 else math.nan

    def quantiles(self, levels: Iterable[float] = _QUANTILES) -> dict[float, float]:
        """Quantiles of the distances that chance gave, at levels from 0 to 1."""
        return {level: float(np.quantile(self.null_distances, level)) for level in levels}

    def rejects(self, level: float = 0.05) -> bool:
        """Whether one source is ruled out at this level."""
        return self.p_value <= check_level(level, such_as=0.05)

    def __repr__(self) -> str:
        """The p-value, the distance beside what chance gives, and how many draws it rests on."""
        low, high = self.quantiles((0.05, 0.95)).values()
        most = self.most_by if self.rejects(0.05) else ""
        return (
            f"p = {self.p_value:.3g}{most}: distance {self.distance:.3g}, by chance {low:.3g} to {high:.3g} "
            f"({counted(len(self.null), 'draw')}, {counted(self.n_projections, 'projection')})"
        ) + "".join(f"; {one_line(said)}" for said in self.remarks)

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return as_html([repr(self)])

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values; distances by chance as quantiles."""
        result: dict[str, Any] = {
            "p_value": self.p_value,
            "distance": self.distance,
            "statistic": self.statistic,
            "judged_by": self.judged_by,
            "aspects": dict(self.aspects),
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
