"""What a reader should know of a scale: that one feature, one point or one dataset makes it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from sotdd.projections.feature_moments import Doubles, FeatureMoments
from sotdd.projections.row_samples import RowSample, winsorised
from sotdd.projections.scale_statistics import ScaleStatistics

# More than this share of the squared spread is most of it.
_MOST = 0.5
# A point stands out if it has more than this share, and so many times its fair one: among normal points one in a
# thousand million has.
_MUCH, _TIMES = 0.03, 40
# A dataset makes the scale if others would lie this many times as far apart without it.
_FARTHER = 2.0


def remarks_on(
    parts: Sequence[ScaleStatistics], whole: FeatureMoments, scale: Doubles, by_feature: bool
) -> tuple[str, ...]:
    """What there is to say of a scale (d,) that was made of these statistics."""
    alone = () if by_feature else (*_one_feature(whole, parts[0].columns), *_one_point(whole))
    return (*alone, *_one_dataset(parts, whole, scale, by_feature))


def _one_feature(whole: FeatureMoments, columns: tuple[str, ...] | None) -> Iterator[str]:
    shares = whole.shares
    place = int(np.argmax(shares))
    if len(shares) < 3 or shares[place] <= _MOST:
        return
    which = f"feature {place:,}" if columns is None else f"column {columns[place]!r}"
    yield f"{which} carries {_percent(shares[place])} of the spread: scale='features' weighs all alike"


def _one_point(whole: FeatureMoments) -> Iterator[str]:
    share = whole.share_of(whole.farthest)
    if share <= max(_MUCH, _TIMES / whole.n_points):
        return
    what = "makes the scale" if share > _MOST else "stands out"
    yield f"one point {what}: {whole.name_of_farthest} carries {_percent(share)} of the spread"


def _one_dataset(
    parts: Sequence[ScaleStatistics], whole: FeatureMoments, scale: Doubles, by_feature: bool
) -> Iterator[str]:
    """With two datasets there are no others that could lie farther apart."""
    if len(parts) < 3:
        return
    shares = [_share(part.moments, whole, scale) for part in parts if part.moments is not None]
    place = int(np.argmax(shares))
    if shares[place] <= _MOST * sum(shares):  # the scale would not halve without it
        return
    others = [part for number, part in enumerate(parts) if number != place]
    without = _scale_of(others, by_feature)
    # How much shorter differences become that are as large as the spread of each feature.
    shrunk = math.sqrt(float(np.mean((without / scale) ** 2)))
    if 0 < shrunk < 1 / _FARTHER:
        farther = 1 / shrunk
        name, times = parts[place].name, f"about {farther:,.2g} ×" if farther < 100 else f"about {farther:,.0f} ×"
        yield f"dataset {name!r} makes the scale: without it the others would be {times} farther apart"


def _share(part: FeatureMoments, whole: FeatureMoments, scale: Doubles) -> float:
    """What a dataset contributes to the squared spread, features in units of their scale."""
    with np.errstate(over="ignore"):
        gap = (part.pivot - whole.pivot) + (part.mean * part.reach - whole.mean * whole.reach)
        return float(part.n_points * np.sum((part.deviations / scale) ** 2 + (gap / scale) ** 2))


def _scale_of(parts: Sequence[ScaleStatistics], by_feature: bool) -> Doubles:
    """The scale (d,) of some of the datasets; 0 for constant features."""
    whole = FeatureMoments.pooled([part.moments for part in parts if part.moments is not None])
    if not by_feature:
        return np.full(whole.mean.size, whole.spread)
    return spreads(whole, [part.sample for part in parts if part.sample is not None])[1]


def spreads(whole: FeatureMoments, samples: Sequence[RowSample]) -> tuple[Doubles, Doubles]:
    """Centre and robust spread (d,) of every feature; 0 for constant ones.

    Features that are nearly always the same, such as rare flags and sparse counts, have the plain ones.
    """
    centre, spread = winsorised(samples)
    rare = spread == 0
    return np.where(rare, whole.centre, centre), np.where(rare, whole.deviations, spread)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share < 0.995 else "nearly all"
