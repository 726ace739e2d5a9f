"""What an explanation says: its sentences, and its tables of features and of classes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sotdd.basics.text import align_rows, join_names, say_count, show, with_error

if TYPE_CHECKING:
    from sotdd.measure.explanation.classes import ClassLine
    from sotdd.measure.explanation.features import FeatureShare, FeatureShares
    from sotdd.measure.explanation.result import Explanation

# Classes and features that are shown unless a number is asked for, and pairs of features that a sentence names.
MOST_SHOWN = 12
_PAIRS = 3


def describe_explanation(why: Explanation, limit: int | None) -> str:
    """The distance and its parts; the features; a table of classes for each side, of ``limit`` rows at most."""
    first = f"{' and '.join(map(show, why.names))}: {why.distance!r}"
    blocks = ["\n".join([first, say_parts(why), *say_changes(why)]), describe_features(why.by_feature, limit)]
    for side in (0, 1):
        one, other = show(why.names[side]), show(why.names[1 - side])
        header = f"class of {one}", "points", "share", "by chance", f"nearest in {other}", "distance", "counterpart"
        lines = why.lines(side)
        table = align_rows([header, *(list_cells(line) for line in lines[:limit])], to_the_right=(1, 2, 3))
        left = len(lines) - len(table) + 1
        more = [f"… and {left:,} more"] if left else []
        blocks.append("\n".join([*table, *more, say_lost_classes(why, side)]))
    return "\n\n".join(filter(None, blocks))


def describe_features(features: FeatureShares, limit: int | None) -> str:
    """Which features differ, and a table of the first ``limit`` of those beyond noise."""
    rows, said = list_features(features, limit), say_features(features)
    if not rows or features.noun == "pixel":
        return said
    header = f"{features.noun} beyond noise", "share", *(f"middle half of {show(name)}" for name in features.datasets)
    table = align_rows([header, *rows], to_the_right=[1])
    return "\n".join(filter(None, [said, *table, say_rest(features, limit)]))


# ------------------------------------------------------------------ features and labels


def say_parts(why: Explanation) -> str:
    """How much of what is beyond noise is features and how much labels."""
    parts = why.parts
    if parts.features_beyond and not parts.whole_beyond:
        return "features alone differ beyond noise; with labels, which add noise of their own, the whole is within it"
    if not parts.whole_beyond:
        return "the distance is within noise: two samples of one source are often as far apart"
    features, labels = _share(parts.features, parts.features_interval), _share(parts.labels, parts.labels_interval)
    if parts.labels < 0:
        return "all of what is beyond noise is features; labels add nothing to it"
    if not parts.labels_beyond:
        return f"of what is beyond noise, features are {features}; labels add nothing beyond noise"
    if not parts.features_beyond:
        return f"of what is beyond noise, labels are {labels}; features alone are within noise"
    return f"of what is beyond noise, features are {features} and labels {labels}"


def _share(share: float, interval: tuple[float, float]) -> str:
    low, high = (min(max(end, 0.0), 1.0) for end in interval)
    return f"{share:.0%}" if f"{low:.0%}" == f"{high:.0%}" else f"{share:.0%} ({low:.0%} to {high:.0%})"


# ------------------------------------------------------------------ classes


def list_cells(line: ClassLine) -> tuple[str, ...]:
    """A class as a row of the table."""
    return (
        show(line.label),
        f"{line.n_points:,}",
        f"{line.share:.0%}",
        f"{line.share_by_chance:.0%}",
        show(line.nearest),
        with_error(line.distance, line.stderr),
        "none" if line.lost else "none by chance" if line.counterpart is None else "moved" if line.moved else "yes",
    )


def say_lost_classes(why: Explanation, side: int) -> str:
    """Which classes of one side have no counterpart; where only features differ, which have moved far."""
    found = {line.label for line in why.lines(side) if line.lost}
    lost = [label for label in why.classes[side] if label in found]
    if lost and not why.parts.labels_beyond and set(lost) <= set(why.classes[1 - side]):
        return f"moved farther than the classes are apart: {join_names(lost)}" if side == 0 else ""
    if not lost:
        absent = sum(line.counterpart is None for line in why.lines(side))
        but = f", but for {say_count(absent, 'class', 'classes')} that chance may leave without one" if absent else ""
        return f"every class of {show(why.names[side])} has a counterpart{but}"
    return f"without a counterpart in {show(why.names[1 - side])}: {join_names(lost)}"


def say_changes(why: Explanation) -> list[str]:
    """Which classes have moved, and which names have changed, each in a sentence; none where there is nothing."""
    said = []
    moved = [
        show(line.label) if line.label == line.counterpart else f"{show(line.label)} ({show(line.counterpart)})"
        for line in why.lines(0)
        if line.moved
    ]
    if moved:
        said.append(f"moved beyond noise: {'class' if len(moved) == 1 else 'classes'} {join_names(moved)}")
    if why.renamed:
        changed = [f"{show(one)} → {show(other)}" for one, other in why.renamed]
        said.append(f"classes have changed names: {join_names(changed)}")
    return said


# ------------------------------------------------------------------ features


def say_features(features: FeatureShares) -> str:
    """Say which features differ beyond noise; empty where there is one feature and it says nothing."""
    noun, beyond = features.noun, features.beyond_noise
    if not beyond and not features.together.beyond_noise:
        return "" if len(features) == 1 else f"no {noun} differs beyond noise"
    said = []
    if beyond and noun == "pixel":
        said.append(f"{len(beyond):,} of {say_count(len(features), noun)} differ beyond noise")
    elif beyond:
        said.append(
            f"{noun if len(beyond) == 1 else noun + 's'} beyond noise: {join_names([one.name for one in beyond])}"
        )
    if features.together.beyond_noise:
        said.append(f"{noun}s go together differently{'' if noun == 'pixel' else _say_pairs(features)}")
    return "; ".join(said)


def _say_pairs(features: FeatureShares) -> str:
    said = [
        f"{show(pair.names[0])} and {show(pair.names[1])} (correlation {pair.correlations[0]:.2f} and "
        f"{pair.correlations[1]:.2f})"
        for pair in features.pairs[:_PAIRS]
    ]
    left = len(features.pairs) - _PAIRS
    more = f" and {left:,} more pairs" if left > 0 else ""
    return f": {', '.join(said)}{more}" if said else ""


def list_features(features: FeatureShares, limit: int | None) -> list[tuple[str, ...]]:
    """Of those beyond noise, the first ``limit`` as rows; and that of all together, where it is beyond noise too."""
    beyond = features.beyond_noise[:limit]
    table: list[tuple[str, ...]] = [(show(one.name), _say_share(one), *_say_middle(one)) for one in beyond]
    if features.together.beyond_noise:
        table.append((f"{features.noun}s together", _say_share(features.together), "", ""))
    return table


def say_rest(features: FeatureShares, limit: int | None) -> str:
    """What the table leaves out."""
    beyond = len(features.beyond_noise)
    more = 0 if limit is None else max(0, beyond - limit)
    within = len(features) - beyond
    said = [f"{more:,} more beyond noise"] if more else []
    said += [f"{say_count(within, features.noun)} within noise"] if within else []
    return ("… and " + " and ".join(said)) if said else ""


def _say_share(one: FeatureShare) -> str:
    """A share and its error in per cent."""
    if math.isnan(one.share):
        return "–"
    error = f" ± {one.stderr:.0%}" if math.isfinite(one.stderr) else ""
    return f"{one.share:z.0%}{error}"


def _say_middle(one: FeatureShare) -> tuple[str, str]:
    """From quartile to quartile in either dataset; where that is the same, the means."""
    if math.isnan(one.means[0]):
        return "", ""
    first, second = (f"{_number(low)} to {_number(high)}" for low, high in one.middle)
    if first == second or any(low == high for low, high in one.middle):
        return f"mean {_number(one.means[0])}", f"mean {_number(one.means[1])}"
    return first, second


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"
