"""Everything that the page of a report shows, as JSON values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sotdd.basics.text import json_number, with_error
from sotdd.pictures.scaling_map import ScalingMap
from sotdd.pictures.tree import Tree
from sotdd.pictures.words import faithfulness, summary
from sotdd.projections.scaler import Scaler
from sotdd.results.distance import Distance
from sotdd.results.explanation import Explanation
from sotdd.results.explanation_text import changes_in_words, lost_in_words, parts_in_words
from sotdd.results.matrix import DistanceMatrix
from sotdd.results.ranking import Ranked, ranked

# Of each side, so many classes with the largest shares are drawn.
_MOST_CLASSES = 60

_UNITS = {
    "none": "in units of the features",
    "pooled": "in spreads of the pooled data",
    "features": "in spreads of each feature of the pooled data",
}


def page_data(
    matrix: DistanceMatrix, explanations: Mapping[tuple[int, int], Explanation], title: str
) -> dict[str, Any]:
    """What the page draws and writes; places refer to ``names``."""
    tree, made = Tree.of(matrix.values), ScalingMap.of(matrix.values)
    first = next(iter(matrix.distances.values()), None)
    return {
        "title": title,
        "names": list(matrix.names),
        "order": tree.order.tolist(),
        "pairs": {f"{i},{j}": _distance(found) for (i, j), found in matrix.distances.items()},
        "rankings": [_ranking(matrix.ranking(name)) for name in matrix.names] if first else [],
        "ranking": _all_pairs(matrix),
        "map": {"points": made.points.round(6).tolist(), "stress": made.stress, "faithful": faithfulness(made)},
        "branches": [[list(along), list(height)] for along, height in tree.branches()],
        "explanations": {f"{i},{j}": _explanation(why) for (i, j), why in explanations.items()},
        "summary": summary(matrix, tree, made, explanations),
        "unit": "" if first is None else _UNITS[first.scale],
        "method": "" if first is None else f"{first.method}, p = {first.p:g}",
    }


def settings(matrix: DistanceMatrix, version: str) -> dict[str, str]:
    """How it was made, as words for people."""
    first = next(iter(matrix.distances.values()), None)
    said = {"sotdd": version, "datasets": f"{len(matrix):,}"}
    if first is None:
        return said
    said |= {"method": first.method, "order of transport": f"p = {first.p:g}"}
    recipe: Mapping[str, Any] = {} if matrix.projections is None else matrix.projections.recipe()
    if first.n_projections is not None:
        said["projections"] = f"{first.n_projections:,}"
    for key, name in (
        ("seed", "seed"),
        ("n_features", "features"),
        ("directions", "directions"),
        ("label", "labels"),
        ("shared_directions", "one direction for features and labels"),
    ):
        if key in recipe:
            said[name] = _setting(recipe[key])
    said["estimator"] = first.estimator
    said["scaling"] = "none" if first.scaler is None else _scaling(first.scaler)
    if first.fingerprint is not None:
        said["fingerprint"] = first.fingerprint
    return said


def _scaling(scaler: Scaler) -> str:
    if isinstance(scaler.scale, float):
        return f"pooled, by {scaler.scale:.6g}"
    return f"each feature by its own spread, {scaler.scale.min():.3g} to {scaler.scale.max():.3g}"


def _setting(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        law = str(value.get("law", "own law"))
        rest = [f"{key.replace('_', ' ')} {_setting(part)}" for key, part in value.items() if key != "law"]
        return ", ".join([law, *rest])
    if isinstance(value, (list, tuple)):
        return " ".join(_setting(part) for part in value)
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _distance(found: Distance) -> dict[str, Any]:
    low, high = found.interval(0.95)
    return {
        "value": _short(found.value),
        "low": None if math.isnan(low) else _short(low),
        "high": None if math.isnan(high) else _short(high),
        "text": with_error(found.value, found.stderr),
        "remarks": [*found.remarks, *([] if found.unreliable is None else [f"rough: {found.unreliable}"])],
    }


def _ranking(lines: list[Ranked]) -> list[dict[str, Any]]:
    return [{"name": line.name, "rank": line.rank, "tied": line.tied, **_distance(line.distance)} for line in lines]


def _all_pairs(matrix: DistanceMatrix) -> list[dict[str, Any]]:
    """Every pair in order, as places."""
    keys = {f"{i},{j}": found for (i, j), found in matrix.distances.items()}
    return [
        {"pair": line.name, "rank": line.rank, "tied": line.tied, **_distance(line.distance)} for line in ranked(keys)
    ]


def _explanation(why: Explanation) -> dict[str, Any]:
    """The parts, the class matrix cut to the classes that matter most, and a line for every class shown."""
    chosen = [np.sort(np.argsort(-share, kind="stable")[:_MOST_CLASSES]) for share in why.shares]
    return {
        "features": json_number(why.features),
        "parts": parts_in_words(why),
        "changes": changes_in_words(why),
        "lost": [lost_in_words(why, side) for side in (0, 1)],
        "classes": [[str(why.classes[side][i]) for i in chosen[side]] for side in (0, 1)],
        "n_classes": [len(side) for side in why.classes],
        "distances": [[_short(cell) for cell in row] for row in why.class_distances[np.ix_(*chosen)].tolist()],
        "moved": [[_short(cell) for cell in row] for row in why.coupling[np.ix_(*chosen)].tolist()],
        "counterparts": _places(why, chosen),
        "lines": [[_line(line.to_dict()) for line in why.lines(side)[:_MOST_CLASSES]] for side in (0, 1)],
    }


def _places(why: Explanation, chosen: list[Any]) -> list[list[int]]:
    """Counterparts as places in the matrix that is shown."""
    first, second = ({int(old): new for new, old in enumerate(side)} for side in chosen)
    found = why.counterpart_places.items()
    return [[first[i], second[j]] for i, j in found if i in first and j in second]


def _line(told: dict[str, Any]) -> dict[str, Any]:
    return {
        "label": str(told["label"]),
        "points": told["n_points"],
        "share": _short(told["share"]),
        "nearest": str(told["nearest"]),
        "distance": with_error(told["distance"], math.nan if told["stderr"] is None else told["stderr"]),
        "counterpart": told["has_counterpart"],
        "moved": told["moved"],
    }


def _short(value: float) -> float:
    """Five digits: more than a picture shows, and a smaller page."""
    return float(f"{value:.5g}")
