"""Shares of features in words and tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sotdd.basics.text import aligned, counted, listed, shown
from sotdd.results.feature_shares import CorrelationChange, FeatureShare, FeatureShares

# Pairs of features that a sentence names.
_PAIRS = 3
_TOGETHER = "together"


def in_words(features: FeatureShares) -> str:
    """Which features differ beyond noise, in a sentence; empty where there is one feature, which says nothing."""
    noun, beyond = features.noun, features.beyond_noise
    if not beyond and not features.together.beyond_noise:
        return "" if len(features) == 1 else f"no {noun} differs beyond noise"
    said = []
    if beyond and noun == "pixel":
        said.append(f"{len(beyond):,} of {counted(len(features), noun)} differ beyond noise")
    elif beyond:
        said.append(f"{noun if len(beyond) == 1 else noun + 's'} beyond noise: {listed([one.name for one in beyond])}")
    if features.together.beyond_noise:
        said.append(f"{noun}s go together differently{'' if noun == 'pixel' else _of_pairs(features.pairs)}")
    return "; ".join(said)


def directions_in_words(features: FeatureShares) -> str:
    """How much lies along the leading direction; empty where that is not known, or noise."""
    first = features.directions[0] if features.directions else None
    if first is None or not first.beyond_noise:
        return ""
    share, by_chance = f"{first.share:.0%}", f"{first.by_chance:.0%}"
    return f"the strongest direction makes {share} of the distance between points ({by_chance} by chance)"


def header(features: FeatureShares) -> tuple[str, ...]:
    """The columns of the table."""
    return f"{features.noun} beyond noise", "share", *(f"middle half of {shown(name)}" for name in features.datasets)


def lines(features: FeatureShares, limit: int | None) -> list[tuple[str, ...]]:
    """Of those beyond noise, the first ``limit``; and that of all together, where it is beyond noise too."""
    beyond = features.beyond_noise[:limit]
    table: list[tuple[str, ...]] = [(shown(one.name), share_in_words(one), *middle_in_words(one)) for one in beyond]
    if features.together.beyond_noise:
        table.append((f"{features.noun}s {_TOGETHER}", share_in_words(features.together), "", ""))
    return table


def middle_in_words(one: FeatureShare) -> tuple[str, str]:
    """From quartile to quartile in either dataset; where that is the same, the means."""
    if math.isnan(one.means[0]):
        return "", ""
    first, second = (f"{_number(low)} to {_number(high)}" for low, high in one.middle)
    if first == second or any(low == high for low, high in one.middle):
        return f"mean {_number(one.means[0])}", f"mean {_number(one.means[1])}"
    return first, second


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"


def rest_in_words(features: FeatureShares, limit: int | None) -> str:
    """What the table leaves out."""
    beyond = len(features.beyond_noise)
    more = 0 if limit is None else max(0, beyond - limit)
    within = len(features) - beyond
    said = [f"{more:,} more beyond noise"] if more else []
    said += [f"{counted(within, features.noun)} within noise"] if within else []
    return ("… and " + " and ".join(said)) if said else ""


def as_text(features: FeatureShares, limit: int | None) -> str:
    """A sentence, and a table of those beyond noise."""
    first = [line for line in (in_words(features), directions_in_words(features)) if line]
    table = lines(features, limit)
    if table and features.noun != "pixel":
        rest = rest_in_words(features, limit)
        return "\n".join([*first, *aligned([header(features), *table], to_the_right=[1]), *([rest] if rest else [])])
    return "\n".join(first)


def share_in_words(one: FeatureShare) -> str:
    """A share and its error in per cent."""
    if math.isnan(one.share):
        return "–"
    error = f" ± {one.stderr:.0%}" if math.isfinite(one.stderr) else ""
    return f"{one.share:.0%}{error}"


def _of_pairs(pairs: Sequence[CorrelationChange]) -> str:
    said = [
        f"{shown(pair.names[0])} and {shown(pair.names[1])} (correlation {pair.correlations[0]:.2f} and "
        f"{pair.correlations[1]:.2f})"
        for pair in pairs[:_PAIRS]
    ]
    more = f" and {len(pairs) - _PAIRS:,} more pairs" if len(pairs) > _PAIRS else ""
    return f": {', '.join(said)}{more}" if said else ""
