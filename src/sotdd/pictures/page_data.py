"""Everything that the report page shows, as JSON values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sotdd.basics.text import json_number, with_error
from sotdd.pictures.scaling_map import ScalingMap
from sotdd.pictures.tree import Tree
from sotdd.pictures.words import faithfulness, summary, unit_of
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scaler
from sotdd.results.distance import Distance
from sotdd.results.explanation import Explanation, changes_in_words, lost_in_words, parts_in_words
from sotdd.results.matrix import DistanceMatrix
from sotdd.results.ranking import Ranked, ranked

# At most this many classes of each dataset are drawn, those with the largest shares.
_MOST_CLASSES = 60


def page_data(
    matrix: DistanceMatrix, explanations: Mapping[tuple[int, int], Explanation], title: str
) -> dict[str, Any]:
    """What the page draws and writes; indices refer to ``names``."""
    tree, scaling = Tree.of(matrix.values), ScalingMap.of(matrix.values)
    first = next(iter(matrix.distances.values()), None)
    return {
        "title": title,
        "names": list(matrix.names),
        "order": tree.order.tolist(),
        "pairs": {f"{i},{j}": _distance(distance) for (i, j), distance in matrix.distances.items()},
        "rankings": [_ranking(matrix.ranking(name)) for name in matrix.names] if first else [],
        "ranking": _all_pairs(matrix),
        "map": {
            "points": scaling.points.round(6).tolist(),
            "stress": scaling.stress,
            "faithful": faithfulness(scaling),
        },
        "branches": [[list(along), list(height)] for along, height in tree.branches()],
        "explanations": {f"{i},{j}": _explanation(why) for (i, j), why in explanations.items()},
        "summary": summary(matrix, tree, scaling, explanations),
        "unit": "" if first is None else unit_of(first),
        "method": "" if first is None else f"{first.method}, p = {first.p:g}",
    }


def settings(matrix: DistanceMatrix, version: str) -> dict[str, str]:
    """The settings behind the numbers, in words."""
    first = next(iter(matrix.distances.values()), None)
    shown = {"sotdd": version, "datasets": f"{len(matrix):,}"}
    if first is None:
        return shown
    shown |= {"method": first.method, "order of transport": f"p = {first.p:g}"}
    if first.n_projections is not None:
        shown["projections"] = f"{first.n_projections:,}"
    shown |= {} if matrix.projections is None else _laws(matrix.projections)
    shown["estimator"] = first.estimator
    shown["scaling"] = "none" if first.scaler is None else _scaling(first.scaler)
    if first.fingerprint is not None:
        shown["fingerprint"] = first.fingerprint
    return shown


def recipe_in_words(projections: Projections) -> dict[str, str]:
    """What data are seen through: how many projections, of which laws, how scaled, and their fingerprint."""
    scaling = "none" if projections.scaler is None else _scaling(projections.scaler)
    said = {"projections": f"{projections.n_projections:,}", **_laws(projections), "scaling": scaling}
    return said | {"fingerprint": projections.fingerprint}


def _laws(projections: Projections) -> dict[str, str]:
    recipe = projections.recipe()
    names = {
        "seed": "seed",
        "n_features": "features",
        "directions": "directions",
        "label": "labels",
        "shared_directions": "same directions for features and labels",
    }
    return {name: _setting(recipe[key]) for key, name in names.items() if key in recipe}


def _scaling(scaler: Scaler) -> str:
    if isinstance(scaler.scale, float):
        return f"all features by {scaler.scale:.6g}, the pooled spread"
    return f"each feature by its own spread, from {scaler.scale.min():.3g} to {scaler.scale.max():.3g}"


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


def _distance(distance: Distance) -> dict[str, Any]:
    low, high = distance.interval(0.95)
    return {
        "value": _short(distance.value),
        "low": None if math.isnan(low) else _short(low),
        "high": None if math.isnan(high) else _short(high),
        "text": with_error(distance.value, distance.stderr),
        "remarks": [*_noise(distance), *distance.remarks, *_roughness(distance)],
    }


def _noise(distance: Distance) -> list[str]:
    """What a terminal says of noise, where a floor was measured."""
    if distance.noise is None:
        return []
    close = "borderline, " if distance.noise.borderline else ""
    within = "within" if distance.within_noise else "beyond"
    return [f"{within} noise ({close}floor {distance.noise.value:.3g})"]


def _roughness(distance: Distance) -> list[str]:
    return [] if distance.unreliable is None else [f"rough: {distance.unreliable}"]


def _ranking(lines: list[Ranked]) -> list[dict[str, Any]]:
    return [{"name": line.name, "rank": line.rank, "tied": line.tied, **_distance(line.distance)} for line in lines]


def _all_pairs(matrix: DistanceMatrix) -> list[dict[str, Any]]:
    """Every pair of datasets, nearest first."""
    keys = {f"{i},{j}": distance for (i, j), distance in matrix.distances.items()}
    return [
        {"pair": line.name, "rank": line.rank, "tied": line.tied, **_distance(line.distance)} for line in ranked(keys)
    ]


def _explanation(why: Explanation) -> dict[str, Any]:
    """The parts, the class distances of the classes that matter most, and a line for every class shown."""
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
        "counterparts": _counterparts(why, chosen),
        "lines": [[_line(line.to_dict()) for line in why.lines(side)[:_MOST_CLASSES]] for side in (0, 1)],
    }


def _counterparts(why: Explanation, chosen: list[Any]) -> list[list[int]]:
    """Counterparts as rows and columns of the matrix that is shown."""
    first, second = ({int(old): new for new, old in enumerate(side)} for side in chosen)
    pairs = why.counterpart_places.items()
    return [[first[i], second[j]] for i, j in pairs if i in first and j in second]


def _line(line: dict[str, Any]) -> dict[str, Any]:
    return {
        "label": str(line["label"]),
        "points": line["n_points"],
        "share": _short(line["share"]),
        "nearest": str(line["nearest"]),
        "distance": with_error(line["distance"], math.nan if line["stderr"] is None else line["stderr"]),
        "counterpart": line["has_counterpart"],
        "moved": line["moved"],
    }


def _short(value: float) -> float:
    """Five digits: enough for the page, which they keep small."""
    return float(f"{value:.5g}")
