"""What a test of two datasets looks at: classes as they lie, features, means, names; and one verdict from all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_choice
from sotdd.engines.splits import Splits
from sotdd.measure.contrasts import gap_of_class_means, gap_of_means, gap_of_shares
from sotdd.results.noise import rooted_means
from sotdd.results.two_sample import Statistic

Doubles = NDArray[np.float64]
LabelNames: TypeAlias = Literal["ignore", "match"]
Aspect: TypeAlias = Literal["labels", "features"]

# Statistics that vary by less than this share of themselves differ by rounding.
_ALIKE = 1e-9

# Both orders are judged: p = 1 sees small shifts of everything, p = 2 what few points or classes do.
ORDERS = (1.0, 2.0)

# Points farther from the median than this many deviations are brought that near: few far points would drown out all
# others.
FARTHEST = 3.0


@dataclass(frozen=True, eq=False)
class Scope:
    """What a test looks at.

    Attributes
    ----------
    aspects
        "labels": through the label law, which never sees a name. "features": labels forgotten.
    names
        Whether classes of the same name are compared too, and their shares.
    """

    aspects: tuple[Aspect, ...]
    names: bool

    @classmethod
    def of(cls, n_classes: int, label_names: LabelNames) -> Scope:
        """All aspects of data with this many classes."""
        if n_classes == 1:
            return cls(("features",), names=False)
        return cls(("labels", "features"), names=label_names == "match")

    def pools(self, pool: Any, n_classes: int) -> dict[Aspect, Any]:  # noqa: ANN401  # an engine's own
        """The pool in every aspect; far points are brought near already."""
        shown: dict[Aspect, Any] = {"labels": pool, "features": pool.shifted(np.zeros((len(pool.rows), n_classes)))}
        return {aspect: shown[aspect] for aspect in self.aspects}

    def means(self, rows: NDArray[np.float32], splits: Splits) -> dict[str, Doubles]:
        """Statistics (S,) of how means differ, from the projections (L, N) of all points."""
        statistics = {"means": gap_of_means(rows, splits)}
        if self.names:
            statistics |= {"classes by name": gap_of_class_means(rows, splits), "class shares": gap_of_shares(splits)}
        return statistics


def check_label_names(label_names: object) -> LabelNames:
    """Return whether names count, or refuse."""
    names: LabelNames = check_choice(label_names, "label_names", get_args(LabelNames))
    return names


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
        f"{aspect}, order {order:g}": balanced(of_aspect[:, :, column])
        for aspect, of_aspect in costs.items()
        for column, order in enumerate(ORDERS)
    }


def combined(statistics: Mapping[str, Doubles]) -> Doubles:
    """One statistic (S,) of several: the one that stands out most, in its own standard deviations.

    The data are one of the S splits like the others, and every split is judged by whatever stands out most in
    it, so the level of the test is that of any permutation test. Cube roots bring all to about the same shape.
    """
    if len(statistics) == 1:
        return next(iter(statistics.values()))
    scores = [score for score in map(_standardised, statistics.values()) if score is not None]
    if not scores:
        return np.zeros(len(next(iter(statistics.values()))))
    return np.asarray(np.max(scores, axis=0))


def _standardised(statistic: Doubles) -> Doubles | None:
    """Cube roots less their mean over their deviation; None where all splits are alike."""
    roots = np.cbrt(statistic)
    deviation = float(np.std(roots))
    return None if deviation <= _ALIKE * float(np.mean(roots)) else np.asarray((roots - roots.mean()) / deviation)
