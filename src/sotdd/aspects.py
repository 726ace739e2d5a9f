"""What a test of two datasets looks at: classes as they lie, features alone, names; and one verdict from all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sotdd.checks import described
from sotdd.errors import SotddError
from sotdd.noise import rooted_means

Doubles = NDArray[np.float64]
Statistic: TypeAlias = Literal["combined", "balanced", "distance"]
LabelNames: TypeAlias = Literal["ignore", "match"]
Aspect: TypeAlias = Literal["labels", "features", "names"]

# Both orders are judged: p = 1 sees small shifts of everything, p = 2 what few points or classes do.
ORDERS = (1.0, 2.0)

# Points farther from the middle than so many spreads count as so far.
_FARTHEST = 3.0

# How far apart names stand, in spreads of the projected features.
_NAME_SPREAD = 1.0

# The stream of a seed that names are drawn from; splits and samples use 3 and 4.
_STREAM = 5


@dataclass(frozen=True, eq=False)
class Looked:
    """How a test looks at a pool of points.

    Attributes
    ----------
    aspects
        "labels": through the label law, which never sees a name. "features": labels forgotten. "names": every
        point at t + a random number of its label, the same on both sides; so points count as alike only if their
        labels are equal.
    names
        (L, C) those numbers; None where names do not count.
    """

    aspects: tuple[Aspect, ...]
    names: Doubles | None

    @classmethod
    def at(cls, n_classes: int, n_projections: int, label_names: LabelNames, seed: int, unit: float) -> Looked:
        """All aspects that there are; ``unit`` is the spread of the projected features."""
        if n_classes == 1:
            return cls(("features",), None)
        if label_names == "ignore":
            return cls(("labels", "features"), None)
        key = np.random.SeedSequence(seed, spawn_key=(_STREAM,))
        drawn = np.random.Generator(np.random.Philox(key)).standard_normal((n_projections, n_classes))
        return cls(("labels", "features", "names"), unit * _NAME_SPREAD * drawn)

    def pools(self, pool: Any, n_classes: int, first: int) -> dict[Aspect, Any]:  # noqa: ANN401  # an engine's own
        """The pool in every aspect; its first projection is number ``first`` of all.

        Few far points would drown what all others say, so they are brought within three spreads of the middle,
        which is the same for all shuffles.
        """
        near, count = pool.within(_FARTHEST), len(pool.rows)
        shown: dict[Aspect, Any] = {"labels": near, "features": near.shifted(np.zeros((count, n_classes)))}
        if self.names is not None:
            shown["names"] = near.shifted(self.names[first : first + count])
        return {aspect: shown[aspect] for aspect in self.aspects}


def check_statistic(statistic: object) -> Statistic:
    """Return the name of a statistic, or refuse."""
    known: Statistic
    for known in ("combined", "balanced", "distance"):
        if isinstance(statistic, str) and statistic == known:
            return known
    raise SotddError(f"statistic is {described(statistic)}: expected 'combined', 'balanced' or 'distance'.")


def check_label_names(label_names: object) -> LabelNames:
    """Return whether names count, or refuse."""
    known: LabelNames
    for known in ("ignore", "match"):
        if isinstance(label_names, str) and label_names == known:
            return known
    raise SotddError(f"label_names is {described(label_names)}: expected 'ignore' or 'match'.")


def balanced(costs: Doubles) -> Doubles:
    """The mean (S,) over projections of W_p^p (L, S), each divided by the root of what is usual under it.

    Few projections of high order have costs many times those of the others. Divided by the root of
    their mean over all splits, they count more than the others still, but leave them a say.
    """
    usual = np.sqrt(np.mean(costs, axis=1))  # (L,)
    told = usual > 0  # under the others all points lie together
    if not told.any():
        return np.zeros(costs.shape[1])
    return np.asarray(np.mean(costs[told] / usual[told, None], axis=0) / np.mean(usual[told]))


def judged(distances: Doubles, costs: Mapping[Aspect, Doubles], p: float, by: Statistic) -> dict[str, Doubles]:
    """The statistics (S,) that are judged, by name.

    ``distances`` are W_p^p (L, S) as the distance is defined, ``costs`` (L, S, orders) of every aspect.
    """
    if by == "distance":
        return {"distance": rooted_means(distances, p)}
    if by == "balanced":
        return {"balanced": balanced(distances)}
    return {
        f"{aspect}, order {order:g}": balanced(of_aspect[:, :, place])
        for aspect, of_aspect in costs.items()
        for place, order in enumerate(ORDERS)
    }


def combined(statistics: Mapping[str, Doubles]) -> Doubles:
    """One statistic (S,) of several: the one that stands out most, in its own standard deviations.

    The data are one of the S splits like the others, and every split is judged by whatever stands out most in
    it, so the level of the test is that of any permutation test. Logarithms bring all to about the same shape.
    """
    if len(statistics) == 1:
        return next(iter(statistics.values()))
    scores = [score for score in map(_standardised, statistics.values()) if score is not None]
    if not scores:
        return np.zeros(len(next(iter(statistics.values()))))
    return np.asarray(np.max(scores, axis=0))


def _standardised(statistic: Doubles) -> Doubles | None:
    """Logarithms less their mean over their deviation; None where all splits are alike."""
    positive = statistic[statistic > 0]
    if not len(positive):
        return None
    logs = np.log(np.maximum(statistic, positive.min()))
    deviation = float(np.std(logs))
    return None if deviation == 0 else np.asarray((logs - logs.mean()) / deviation)
