"""The report page of a matrix: one HTML file with everything in it, and a summary in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from html import escape
from string import Template
from typing import Any

import numpy as np

from sotdd.basics.errors import require
from sotdd.basics.text import counted, json_number, listed, shown, with_error
from sotdd.basics.version import __version__
from sotdd.pictures.arrangement import ScalingMap, Tree, unit_of
from sotdd.pictures.code import matrix_code
from sotdd.pictures.dataset_facts import Facts, data_section
from sotdd.pictures.parts import (
    Section,
    as_script,
    dated,
    part,
    reliability,
    scrolling,
    settings_list,
    short_names,
    table,
)
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scaler
from sotdd.results.distance import Distance
from sotdd.results.explanation import Explanation, changes_in_words, lost_in_words, parts_in_words
from sotdd.results.matrix import DistanceMatrix
from sotdd.results.ranking import Ranked, ranked

# At most this many classes of each dataset are drawn, those with the largest shares.
_MOST_CLASSES = 60


def page(
    matrix: DistanceMatrix,
    explanations: Mapping[tuple[int, int], Explanation],
    title: str,
    left_out: Sequence[tuple[int, int]] = (),
    facts: Sequence[Facts] = (),
    now: datetime | None = None,
) -> str:
    """The HTML of a report. Names and labels are escaped everywhere, so nothing in them is read as HTML.

    Pairs that were ``left_out`` have too many classes to compare each with each; the page says so. Datasets go by
    short names; of files, by those of the files.
    """
    require("plotly", "a report", "'sotdd[report]'")
    from plotly.offline import get_plotlyjs

    code = matrix_code(matrix)
    names_shown = tuple(short_names(matrix.names))
    matrix = replace(matrix, names=names_shown)
    explanations = {
        (i, j): replace(why, names=(names_shown[i], names_shown[j])) for (i, j), why in explanations.items()
    }
    data = _page_data(matrix, explanations, title)
    data["summary"] += _without_classes(matrix, left_out)
    names = [f'<option value="{index}">{escape(name)}</option>' for index, name in enumerate(matrix.names)]
    return Template(part("page.html")).substitute(
        title=escape(title),
        subtitle=escape(f"{counted(len(matrix), 'dataset')}, {counted(len(matrix.distances), 'distance')}"),
        summary="\n".join(f"<li>{escape(sentence)}</li>" for sentence in data["summary"]),
        options="".join(names),
        pairs_table=table(("rank", "pair", "distance", "95 % interval", "remarks"), _pair_rows(matrix, data)),
        matrix_table=_matrix_table(matrix),
        settings=settings_list(_settings(matrix)),
        reproduction=escape(code),
        date="" if now is None else f" · {dated(now)}",
        about=data_section(facts, names_shown).html(0) if len(facts) == len(matrix) else _sizes(matrix).html(0),
        style=part("page.css"),
        data=as_script(data),
        plotly=get_plotlyjs(),
        charts=part("charts.js"),
        script=part("page.js"),
    )


def _without_classes(matrix: DistanceMatrix, left_out: Sequence[tuple[int, int]]) -> list[str]:
    """A sentence on the pairs that are not compared class by class."""
    if not left_out:
        return []
    pairs = listed([f"{shown(matrix.names[i])} and {shown(matrix.names[j])}" for i, j in left_out], most=3)
    return [f"Too many classes to compare each with each, so left out of the comparison class by class: {pairs}."]


def _sizes(matrix: DistanceMatrix) -> Section:
    """What distances know of their datasets, where the data themselves are not at hand."""
    known = {place: (one.n_points[side], len(one.classes[side])) for pair, one in matrix.distances.items()
             for side, place in enumerate(pair)}  # fmt: skip
    rows = [
        (name, *(f"{number:,}" for number in known[place])) for place, name in enumerate(matrix.names) if place in known
    ]
    return Section("The data", scrolling(table(("dataset", "points", "classes"), rows, numbers=(1, 2)), "The datasets"))


def _pair_rows(matrix: DistanceMatrix, data: Mapping[str, Any]) -> Iterable[Sequence[str]]:
    for line in data["ranking"]:
        i, j = map(int, line["pair"].split(","))
        interval = "–" if line["low"] is None else f"{line['low']:.4g} to {line['high']:.4g}"
        rank = f"{line['rank']}" + (" (tied)" if line["tied"] else "")
        yield rank, f"{matrix.names[i]} – {matrix.names[j]}", line["text"], interval, "; ".join(line["remarks"])


def _matrix_table(matrix: DistanceMatrix) -> str:
    size = range(len(matrix))
    rows = [(matrix.names[i], *("0" if i == j else f"{matrix.values[i, j]:.4g}" for j in size)) for i in size]
    return table(("", *matrix.names), rows)


def _page_data(
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
        "rankings": [_ranking(matrix.ranking(name), "name") for name in matrix.names] if first else [],
        "ranking": _ranking(ranked({f"{i},{j}": one for (i, j), one in matrix.distances.items()}), "pair"),
        "map": {
            "points": scaling.points.round(6).tolist(),
            "stress": scaling.stress,
            "faithful": scaling.faithfulness,
        },
        "branches": [[list(along), list(height)] for along, height in tree.branches()],
        "explanations": {f"{i},{j}": _explanation(why) for (i, j), why in explanations.items()},
        "summary": _summary(matrix, scaling, explanations),
        "unit": "" if first is None else unit_of(first),
    }


def _settings(matrix: DistanceMatrix) -> dict[str, str]:
    """The settings behind the numbers, in words."""
    first = next(iter(matrix.distances.values()), None)
    shown = {"sotdd": __version__, "datasets": f"{len(matrix):,}"}
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
        "remarks": [*reliability(distance), *distance.remarks],
    }


def _ranking(lines: Sequence[Ranked], called: str) -> list[dict[str, Any]]:
    return [{called: line.name, "rank": line.rank, "tied": line.tied, **_distance(line.distance)} for line in lines]


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


def _summary(
    matrix: DistanceMatrix, scaling: ScalingMap, explanations: Mapping[tuple[int, int], Explanation]
) -> list[str]:
    """A few sentences: extremes, features and labels, how faithful the map is, what the numbers mean."""
    if not matrix.distances:
        return ["There is only one dataset here, and nothing to compare it with."]
    sentences = [*_extremes(matrix), *_parts(matrix, explanations), *_lost(matrix, explanations), *_noise(matrix)]
    if len(matrix) > 3:
        sentences.append(f"The map has a stress of {scaling.stress:.3f}: {scaling.faithfulness}.")
    return [*sentences, _meaning(next(iter(matrix.distances.values())))]


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
    times = f", {farthest.value / nearest.value:,.3g} times as far" if nearest.value > 0 else ""
    return [
        f"Nearest: {apart}.",
        f"Farthest: {_pair(matrix, far)} are {with_error(farthest.value, farthest.stderr)} apart{times}.",
    ]


def _parts(matrix: DistanceMatrix, explanations: Mapping[tuple[int, int], Explanation]) -> list[str]:
    """Between which datasets labels matter most, and least."""
    shares = {pair: why.labels for pair, why in explanations.items() if math.isfinite(why.labels)}
    if not shares:
        quiet = explanations and all(why.within_noise for why in explanations.values())
        return ["No explained pair differs beyond noise."] if quiet else []
    most, least = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    if most == least:
        parts = f"{100 * shares[most]:.0f} % is due to labels and the rest to features"
        return [f"Of the difference beyond noise between {_pair(matrix, most)}, {parts}."]
    adds = f"make {100 * shares[least]:.0f} %" if shares[least] > 0 else "add nothing"
    return [
        f"Labels matter most between {_pair(matrix, most)}, where they make {100 * shares[most]:.0f} % of the "
        f"difference beyond noise, and least between {_pair(matrix, least)}, where they {adds}."
    ]


def _lost(matrix: DistanceMatrix, explanations: Mapping[tuple[int, int], Explanation]) -> list[str]:
    """Which datasets have no class with a counterpart in another."""
    pairs = [f"{_pair(matrix, pair)}" for pair, why in explanations.items() if not why.counterparts]
    return [f"No class has a counterpart between {listed(pairs, most=3)}."] if pairs else []


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
    return " and ".join(f"“{matrix.names[index]}”" for index in pair)
