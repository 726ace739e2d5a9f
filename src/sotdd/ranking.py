"""Distances in order, with ties where the choice of projections does not tell them apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sotdd.result import Distance

# Differences of fewer standard errors than this are noise: a two-sided test at 5 %.
_CLEAR = 1.96


@dataclass(frozen=True, eq=False)
class Ranked:
    """One of several distances in order.

    Attributes
    ----------
    name
        Of what.
    distance
        How far it is.
    rank
        From 1 for the nearest; the same for those that are tied.
    tied
        Whether others have the same rank.
    """

    name: str
    distance: Distance
    rank: int
    tied: bool


def ranked(distances: Mapping[str, Distance]) -> list[Ranked]:
    """Bring distances into order; each is tied with the first of its rank that it is not clearly farther than.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.random.default_rng(0).normal(size=(200, 4))
    >>> moved = {"north": x + [1, 0, 0, 0], "east": x + [0, 1, 0, 0], "far": x + [4, 0, 0, 0]}
    >>> matrix = sotdd.pairwise({"here": x, **moved}, n_projections=500)
    >>> [(line.rank, line.tied) for line in matrix.ranking("here")]
    [(1, True), (1, True), (3, False)]
    """
    order = sorted(distances.items(), key=lambda item: item[1].value)
    ranks: list[int] = []
    first = 0
    for place, (_, found) in enumerate(order):
        if place and clearly_farther(found, order[first][1]):
            first = place
        ranks.append(first + 1)
    return [Ranked(name, found, rank, ranks.count(rank) > 1) for (name, found), rank in zip(order, ranks, strict=True)]


def clearly_farther(one: Distance, other: Distance) -> bool:
    """Whether one distance is larger than another beyond the noise of the projections.

    Through the same projections the differences of what each of them contributes count, in which noise
    that both share cancels; otherwise both standard errors. Distances without errors are what they are.
    """
    a, b = one.contributions, other.contributions
    if a is not None and b is not None and one.fingerprint == other.fingerprint and len(a) == len(b) > 1:
        unit = max(float(np.abs(a).max()), float(np.abs(b).max())) or 1.0
        gaps = (a - b) / unit
        return float(gaps.mean()) > _CLEAR * float(np.std(gaps, ddof=1)) / math.sqrt(len(gaps))
    errors = [error for error in (one.stderr, other.stderr) if math.isfinite(error)]
    return one.value - other.value > _CLEAR * math.hypot(*errors)
