"""A matrix in words: what a reader should know before looking at the charts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from sotdd.basics.text import counted, with_error
from sotdd.pictures.scaling_map import ScalingMap
from sotdd.pictures.tree import Tree
from sotdd.results.distance import Distance
from sotdd.results.explanation import Explanation
from sotdd.results.matrix import DistanceMatrix

# Groups are named if the last join is at least this many times as far as the one before.
_CLEAR_GAP = 1.8
_MOST_NAMES = 8

_UNITS = {
    "none": "in the units of the features",
    "pooled": "in units of the pooled spread",
    "features": "in units of each feature's spread",
}


def summary(
    matrix: DistanceMatrix, tree: Tree, scaling: ScalingMap, explanations: Mapping[tuple[int, int], Explanation]
) -> list[str]:
    """A few sentences: extremes, groups, features and labels, how faithful the map is, what the numbers mean."""
    if not matrix.distances:
        return ["There is only one dataset here, and nothing to compare it with."]
    sentences = [
        *_extremes(matrix),
        *_groups(matrix, tree),
        *_parts(matrix, explanations),
        *_lost(matrix, explanations),
        *_noise(matrix),
    ]
    if len(matrix) > 3:
        sentences.append(f"The map has a stress of {scaling.stress:.3f}: {faithfulness(scaling)}.")
    return [*sentences, _meaning(next(iter(matrix.distances.values())))]


def faithfulness(scaling: ScalingMap) -> str:
    """How well a map shows the distances, in Kruskal's words."""
    for limit, word in ((0.025, "excellent"), (0.05, "good"), (0.1, "fair")):
        if scaling.stress <= limit:
            return word
    return "poor, so trust the matrix rather than the map"


def unit_of(distance: Distance) -> str:
    """What a distance is measured in."""
    return _UNITS[distance.scale]


def _meaning(distance: Distance) -> str:
    """The unit, and what the errors cover."""
    if distance.scaler is None:
        unit = "Distances are in the units of the features"
    else:
        of = "the pooled data" if distance.scaler.kind == "pooled" else "each column of the pooled data"
        unit = f"The unit is the spread of {of}, so compare numbers within this page, not across pages"
    if math.isnan(distance.stderr):
        return f"{unit}."
    return (
        f"{unit}. ± is one standard error and intervals are at 95 %, both over the choice of "
        f"{counted(distance.n_projections or 0, 'projection')}; neither covers the sampling of the data."
    )


def _extremes(matrix: DistanceMatrix) -> list[str]:
    order = sorted(matrix.distances.items(), key=lambda item: item[1].value)
    (near, nearest), (far, farthest) = order[0], order[-1]
    apart = f"{_pair(matrix, near)} are {with_error(nearest.value, nearest.stderr)} apart"
    if len(order) == 1:
        return [f"{apart}."]
    if farthest.within_noise:
        largest = f"{with_error(farthest.value, farthest.stderr)} between {_pair(matrix, far)}"
        return [f"No two are clearly apart: the largest distance, {largest}, is within noise."]
    times = f", {_times(farthest.value / nearest.value)} as far" if nearest.value > 0 else ""
    return [
        f"Nearest: {apart}.",
        f"Farthest: {_pair(matrix, far)} are {with_error(farthest.value, farthest.stderr)} apart{times}.",
    ]


def _groups(matrix: DistanceMatrix, tree: Tree) -> list[str]:
    """The two groups that join last, if they are clearly apart."""
    if len(matrix) < 3 or tree.links[-1, 2] < _CLEAR_GAP * tree.links[-2, 2]:
        return []
    groups = sorted((_members(tree, int(side)) for side in tree.links[-1, :2]), key=len, reverse=True)
    large, small = ([matrix.names[index] for index in group] for group in groups)
    before, last = (f"{height:.2g}" for height in tree.links[-2:, 2])
    if len(small) == 1:
        alone = f"its average distance from the others is {last}, while they join at {before} or less"
        return [f"{_listed(small)} stands apart: {alone}."]
    return [f"There are two groups: {_listed(large)}; and {_listed(small)}."]


def _members(tree: Tree, group: int) -> list[int]:
    count = len(tree.order)
    if group < count:
        return [group]
    left, right = tree.links[group - count, :2]
    return [*_members(tree, int(left)), *_members(tree, int(right))]


def _parts(matrix: DistanceMatrix, explanations: Mapping[tuple[int, int], Explanation]) -> list[str]:
    """Between which datasets labels matter most, and least."""
    shares = {pair: why.labels for pair, why in explanations.items() if math.isfinite(why.labels)}
    if not shares:
        quiet = explanations and all(why.within_noise for why in explanations.values())
        return ["No explained pair differs beyond noise."] if quiet else []
    most, least = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    if most == least:
        parts = f"{_share(shares[most])} is due to labels and the rest to features"
        return [f"Of the difference beyond noise between {_pair(matrix, most)}, {parts}."]
    adds = f"make {_share(shares[least])}" if shares[least] > 0 else "add nothing"
    return [
        f"Labels matter most between {_pair(matrix, most)}, where they make {_share(shares[most])} of the difference "
        f"beyond noise, and least between {_pair(matrix, least)}, where they {adds}."
    ]


def _lost(matrix: DistanceMatrix, explanations: Mapping[tuple[int, int], Explanation]) -> list[str]:
    """Which datasets have no class with a counterpart in another."""
    strangers = [pair for pair, why in explanations.items() if not why.counterparts]
    if not strangers:
        return []
    if len(strangers) == 1:
        return [f"{_pair(matrix, strangers[0])} have no class in common: none has a counterpart."]
    inside = np.unique(strangers)
    alone = [index for index in inside if sum(index in pair for pair in strangers) == len(matrix) - 1]
    if alone and len(strangers) == len(alone) * (len(matrix) - 1) - len(alone) * (len(alone) - 1) // 2:
        names = _listed([matrix.names[index] for index in alone], last="or")
        return [f"No class of {names} has a counterpart in another dataset."]
    return [f"In {len(strangers)} of {len(explanations)} pairs, no class has a counterpart in the other dataset."]


def _noise(matrix: DistanceMatrix) -> list[str]:
    """How many distances are within noise, where floors were measured; and how many errors are rough."""
    known = [distance for distance in matrix.distances.values() if distance.noise is not None]
    rough = sum(not distance.reliable for distance in matrix.distances.values())
    said = []
    if known:
        within = sum(bool(distance.within_noise) for distance in known)
        verb = "is" if within == 1 else "are"
        count = f"{within:,} of {counted(len(known), 'distance')} {verb}" if within else "No distance is"
        said.append(f"{count} within noise, as near as two samples of the same data are.")
    if rough:
        errors = f"{rough:,} of {counted(len(matrix.distances), 'error')} {'is' if rough == 1 else 'are'} rough"
        said.append(f"{errors}, since few projections carry most of the cost: use more projections.")
    return said


def _pair(matrix: DistanceMatrix, pair: tuple[int, int]) -> str:
    return _listed([matrix.names[index] for index in pair])


def _listed(names: Sequence[str], last: str = "and") -> str:
    quoted = [f"“{name}”" for name in names[:_MOST_NAMES]]
    if len(names) > _MOST_NAMES:
        return f"{', '.join(quoted)} and {len(names) - _MOST_NAMES} more"
    return quoted[0] if len(names) == 1 else f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"


def _times(ratio: float) -> str:
    return f"{ratio:.1f} times" if ratio < 10 else f"{ratio:,.0f} times"


def _share(share: float) -> str:
    return f"{round(100 * share)} %"
