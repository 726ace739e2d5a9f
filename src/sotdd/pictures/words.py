"""A matrix in words: what a reader should take away before looking at pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from sotdd.basics.text import with_error
from sotdd.pictures.scaling_map import ScalingMap
from sotdd.pictures.tree import Tree
from sotdd.results.distance import Distance
from sotdd.results.explanation import Explanation
from sotdd.results.matrix import DistanceMatrix

# Groups are named where the last join is this many times as far as the one before.
_CLEAR_GAP = 1.8
_MOST_NAMES = 8


def summary(
    matrix: DistanceMatrix, tree: Tree, made: ScalingMap, explanations: Mapping[tuple[int, int], Explanation]
) -> list[str]:
    """Some sentences: extremes, groups, features and labels, how faithful the map is, what the numbers are."""
    if not matrix.distances:
        return ["There is a single dataset here, and nothing to compare it with."]
    sentences = [
        *_extremes(matrix),
        *_groups(matrix, tree),
        *_parts(matrix, explanations),
        *_lost(matrix, explanations),
    ]
    if len(matrix) > 3:
        sentences.append(f"The map shows these distances with a stress of {made.stress:.3f}: {faithfulness(made)}.")
    return [*sentences, reading(next(iter(matrix.distances.values())))]


def faithfulness(made: ScalingMap) -> str:
    """Kruskal's words for a stress."""
    for limit, word in ((0.025, "excellent"), (0.05, "good"), (0.1, "fair")):
        if made.stress <= limit:
            return word
    return "poor, so trust the matrix rather than the map"


def reading(found: Distance) -> str:
    """What the numbers are and are not."""
    if found.scaler is None:
        unit = "Distances are in the units of the features"
    else:
        of = "the pooled data" if found.scaler.kind == "pooled" else "each column of the pooled data"
        unit = f"The unit is the spread of {of}, so numbers compare within this page, not across pages"
    if math.isnan(found.stderr):
        return f"{unit}."
    return (
        f"{unit}; ± is one standard error, and intervals cover 95 %, over the choice of {found.n_projections:,} "
        "projections. Neither knows of the sampling of the data."
    )


def _extremes(matrix: DistanceMatrix) -> list[str]:
    order = sorted(matrix.distances.items(), key=lambda item: item[1].value)
    (near, nearest), (far, farthest) = order[0], order[-1]
    said = f"{_pair(matrix, near)} are {with_error(nearest.value, nearest.stderr)} apart"
    if len(order) == 1:
        return [f"{said}."]
    times = f", {_times(farthest.value / nearest.value)} as far" if nearest.value > 0 else ""
    return [
        f"Nearest: {said}.",
        f"Farthest: {_pair(matrix, far)} are {with_error(farthest.value, farthest.stderr)} apart{times}.",
    ]


def _groups(matrix: DistanceMatrix, tree: Tree) -> list[str]:
    """The two groups that join last, where that is a clear step."""
    if len(matrix) < 3 or tree.links[-1, 2] < _CLEAR_GAP * tree.links[-2, 2]:
        return []
    groups = sorted((_members(tree, int(side)) for side in tree.links[-1, :2]), key=len, reverse=True)
    large, small = ([matrix.names[place] for place in group] for group in groups)
    before, last = (f"{height:.2g}" for height in tree.links[-2:, 2])
    if len(small) == 1:
        return [f"{_listed(small)} stands apart: it joins the others at {last}, which have all joined by {before}."]
    return [f"They fall into two groups: {_listed(large)}; and {_listed(small)}."]


def _members(tree: Tree, group: int) -> list[int]:
    count = len(tree.order)
    if group < count:
        return [group]
    left, right = tree.links[group - count, :2]
    return [*_members(tree, int(left)), *_members(tree, int(right))]


def _parts(matrix: DistanceMatrix, explanations: Mapping[tuple[int, int], Explanation]) -> list[str]:
    """Where labels and where features make the difference."""
    shares = {pair: why.labels for pair, why in explanations.items() if math.isfinite(why.labels)}
    if not shares:
        quiet = explanations and all(why.within_noise for why in explanations.values())
        return ["In no pair that was explained is anything beyond noise."] if quiet else []
    most, least = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    if most == least:
        said = f"{_share(shares[most])} is labels and the rest features"
        return [f"Of what is beyond noise between {_pair(matrix, most)}, {said}."]
    return [
        f"Labels matter most between {_pair(matrix, most)}, where they add {_share(shares[most])} of what is beyond "
        f"noise, and least between {_pair(matrix, least)}, {_share(shares[least])}."
    ]


def _lost(matrix: DistanceMatrix, explanations: Mapping[tuple[int, int], Explanation]) -> list[str]:
    """Which two datasets have no class in common, to look at first."""
    strangers = [pair for pair, why in explanations.items() if not why.counterparts]
    if not strangers:
        return []
    if len(strangers) == 1:
        return [f"{_pair(matrix, strangers[0])} have no class that corresponds."]
    inside = np.unique(strangers)
    alone = [place for place in inside if sum(place in pair for pair in strangers) == len(matrix) - 1]
    if alone and len(strangers) == len(alone) * (len(matrix) - 1) - len(alone) * (len(alone) - 1) // 2:
        return [
            f"No class of {_listed([matrix.names[place] for place in alone])} corresponds to one of another dataset."
        ]
    return [f"In {len(strangers)} of {len(explanations)} pairs no class corresponds to one of the other dataset."]


def _pair(matrix: DistanceMatrix, pair: tuple[int, int]) -> str:
    return _listed([matrix.names[place] for place in pair])


def _listed(names: Sequence[str]) -> str:
    quoted = [f"“{name}”" for name in names[:_MOST_NAMES]]
    if len(names) > _MOST_NAMES:
        return f"{', '.join(quoted)} and {len(names) - _MOST_NAMES} more"
    return quoted[0] if len(names) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def _times(ratio: float) -> str:
    return f"{ratio:.1f} times" if ratio < 10 else f"{ratio:,.0f} times"


def _share(share: float) -> str:
    return f"{100 * share:.0f} %"
