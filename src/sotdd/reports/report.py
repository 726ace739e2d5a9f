"""Reports: a result as one web page that can be passed on; and the page of a matrix, with charts to click."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import combinations
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from sotdd.basics.checks import describe
from sotdd.basics.display import Progress, report_progress
from sotdd.basics.errors import SotddError, require
from sotdd.basics.text import join_names, json_number, say_count, with_error
from sotdd.compute.distance import Distance
from sotdd.compute.estimators import Estimator
from sotdd.compute.matrix import DistanceMatrix
from sotdd.compute.ranking import Ranking
from sotdd.inputs import open_all
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.measure.explanation.call import explain
from sotdd.measure.explanation.classes import are_too_many
from sotdd.measure.explanation.result import Explanation, say_changes, say_lost_classes, say_parts
from sotdd.measure.two_sample import TwoSampleTest
from sotdd.reports.arrangement import Groups, ScalingMap, say_unit
from sotdd.reports.code import write_matrix_code
from sotdd.reports.dataset_facts import Facts, collect_facts, make_data_section
from sotdd.reports.page import (
    Page,
    Section,
    make_table,
    read_part,
    refuse_page,
    say_recipe,
    say_reliability,
    say_scaling,
    scroll,
    shorten_names,
)
from sotdd.reports.pair_pages import Asked, make_pair_page

# At most this many classes of each dataset are drawn, those with the largest shares.
_MOST_CLASSES = 60


def report(
    result: DistanceMatrix | TwoSampleTest | Explanation,
    path: str | os.PathLike[str],
    *,
    datasets: Mapping[str, Dataset] | Sequence[Dataset] | None = None,
    explanations: Mapping[tuple[str, str], Explanation] | None = None,
    title: str | None = None,
    progress: Progress = None,
) -> Path:
    """Write a result as one HTML page that needs neither network nor server.

    The page sums up the result in words. Of a matrix it ranks the pairs with their intervals, draws a heat map,
    a map and a dendrogram, and compares any two datasets class by class. Of a test it shows the verdict and the
    distance beside chance, of an explanation what the distance comes from. It also shows the settings and
    the fingerprint of the projections.

    Parameters
    ----------
    result
        What `pairwise`, `test` or `explain` returned.
    path
        Where to write it; an existing file is replaced once the new one is complete.
    datasets
        The datasets that were compared: the page says how many points, classes and missing values each has and
        where its values lie. Those of a matrix are compared class by class, through the same projections.
    explanations
        Explanations made before, by pairs of names, instead of those of all pairs of the datasets; {} for none.
        For a matrix only.
    title
        The title of the page; None for a question that fits the result.
    progress
        True for a bar, or a function of (done, total) pairs.

    Returns
    -------
    Path
        The path of the page.

    Examples
    --------
    >>> import numpy as np, sotdd, tempfile
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=60)
    >>> data = {"ours": (rng.normal(size=(60, 3)), y), "theirs": (rng.normal(1, 1, size=(60, 3)), y)}
    >>> matrix = sotdd.pairwise(data, n_projections=100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sotdd.report(matrix, f"{folder}/report.html", datasets=data).name
    'report.html'
    """
    if isinstance(result, (TwoSampleTest, Explanation)):
        if explanations is not None:
            raise SotddError("are given with a result that is no matrix: leave them out.", setting="explanations")
        return report_pair(result, path, datasets, title)
    if not isinstance(result, DistanceMatrix):
        raise SotddError(
            f"is {describe(result)}: expected what sotdd.pairwise, sotdd.test or sotdd.explain returned.",
            setting="result",
        )
    target = refuse_page(path)  # before classes are compared, which may take long
    data = None if datasets is None else open_all(datasets)
    found, left_out = _explain_pairs(result, data, explanations, progress)
    heading = "How far apart are these datasets?" if title is None else str(title)
    return make_matrix_page(result, found, heading, left_out, [collect_facts(one) for one in data or ()]).write(target)


def report_pair(
    result: TwoSampleTest | Explanation,
    path: str | os.PathLike[str],
    datasets: Mapping[str, Dataset] | Sequence[Dataset] | None = None,
    title: str | None = None,
    asked: Asked | None = None,
) -> Path:
    """Write the page of two datasets; ``asked`` are their sources and the settings of the call, if they are known."""
    target = refuse_page(path)
    data = [] if datasets is None else open_all(datasets)
    if data and len(data) != 2:
        raise SotddError(
            f"has {say_count(len(data), 'dataset')}: expected the two that were compared.", setting="datasets"
        )
    usual = result.names if isinstance(result, Explanation) else ("a", "b")
    names = [one.name for one in data] or list(usual)
    return make_pair_page(result, names, [collect_facts(one) for one in data], title, asked).write(target)


def _explain_pairs(
    matrix: DistanceMatrix,
    datasets: list[LabelledData] | None,
    explanations: Mapping[tuple[str, str], Explanation] | None,
    progress: Progress,
) -> tuple[dict[tuple[int, int], Explanation], list[tuple[int, int]]]:
    """Explanations by indices (i, j) with i < j: those passed in, or of all pairs that have not too many classes.

    Also returns the pairs that have too many.
    """
    if explanations is not None:
        if not isinstance(explanations, Mapping):
            raise SotddError(
                f"is {describe(explanations)}: expected explanations by pairs of names.", setting="explanations"
            )
        return {_find_pair(matrix, pair, why): why for pair, why in explanations.items()}, []
    if datasets is None:
        return {}, []
    if matrix.projections is None:
        raise SotddError("only distances measured by s-OTDD can be explained class by class: leave datasets out.")
    if tuple(part.name for part in datasets) != matrix.names:
        raise SotddError(
            f"the datasets are {', '.join(part.name for part in datasets)} but the matrix has "
            f"{', '.join(matrix.names)}: pass the datasets it was measured from, in the same order."
        )
    pairs = list(combinations(range(len(matrix)), 2))
    left_out = [pair for pair in pairs if are_too_many(*(len(datasets[index].classes) for index in pair))]
    made = {}
    with report_progress(progress, "Explaining") as update:
        for number, (i, j) in enumerate(pairs, 1):
            if (i, j) not in left_out:
                through: dict[str, Any] = {"projections": matrix.projections, **_find_settings(matrix.distances[i, j])}
                made[i, j] = explain(datasets[i], datasets[j], **through)
            update(number, len(pairs))
    return made, left_out


def _find_settings(distance: Distance) -> dict[str, Any]:
    """The order and the estimator that explain this very number."""
    estimator: Estimator = "plain" if distance.estimator == "plain" else "controlled"
    return {"p": distance.p, "estimator": estimator}


def _find_pair(matrix: DistanceMatrix, pair: tuple[str, str], why: object) -> tuple[int, int]:
    """The places of a pair of names, in the order of the matrix; refuse what does not fit the matrix."""
    known = matrix[pair]
    one, other = map(matrix.names.index, pair)
    if one > other:
        raise SotddError(f"has {pair[0]!r} before {pair[1]!r}, unlike the matrix: swap them.", setting="explanations")
    if not isinstance(why, Explanation):
        raise SotddError(f"has {describe(why)} for {pair}: expected an Explanation.", setting="explanations")
    if (why.distance.fingerprint, why.distance.estimator) != (known.fingerprint, known.estimator):
        raise SotddError(
            f"the explanation of {pair[0]!r} and {pair[1]!r} was made by other projections or another estimator: pass "
            f"projections=matrix.projections and estimator={_find_settings(known)['estimator']!r} to sotdd.explain."
        )
    return one, other


def make_matrix_page(
    matrix: DistanceMatrix,
    explanations: Mapping[tuple[int, int], Explanation],
    title: str,
    left_out: Sequence[tuple[int, int]] = (),
    facts: Sequence[Facts] = (),
) -> Page:
    """Everything that the page shows; datasets go by short names.

    Pairs that were ``left_out`` have too many classes to compare each with each; the page says so.
    """
    require("plotly", "a report", "'sotdd[report]'")
    from plotly.offline import get_plotlyjs

    code = write_matrix_code(matrix)
    names = shorten_names(matrix.names)
    matrix = replace(matrix, names=tuple(names))
    explanations = {(i, j): replace(why, names=(names[i], names[j])) for (i, j), why in explanations.items()}
    data = _collect_data(matrix, explanations, title)
    if left_out:
        pairs = join_names([_say_pair(matrix, pair) for pair in left_out], most=3)
        data["summary"].append(f"Too many classes, so left out of the comparison class by class: {pairs}.")
    size = range(len(matrix))
    values = [(names[i], *("0" if i == j else f"{matrix.values[i, j]:.4g}" for j in size)) for i in size]
    charts = Template(read_part("matrix.html")).substitute(
        options="".join(f'<option value="{index}">{escape(name)}</option>' for index, name in enumerate(names)),
        pairs_table=make_table(("rank", "pair", "distance", "95 % interval", "remarks"), _write_pairs(matrix, data)),
        matrix_table=make_table(("", *names), values),
    )
    return Page(
        title,
        f"{say_count(len(matrix), 'dataset')}, {say_count(len(matrix.distances), 'distance')}",
        "plain",
        data["summary"][0],
        data["summary"][1:],
        [make_data_section(facts, names) if len(facts) == len(matrix) else _make_sizes(matrix)],
        _list_settings(matrix),
        code,
        data,
        charts,
        [get_plotlyjs(), read_part("charts.js"), read_part("matrix.js")],
    )


def _make_sizes(matrix: DistanceMatrix) -> Section:
    """What distances know of their datasets, where the data themselves are not at hand."""
    known = {place: (one.n_points[side], len(one.classes[side])) for pair, one in matrix.distances.items()
             for side, place in enumerate(pair)}  # fmt: skip
    rows = [
        (name, *(f"{number:,}" for number in known[place])) for place, name in enumerate(matrix.names) if place in known
    ]
    return Section(
        "The data", scroll(make_table(("dataset", "points", "classes"), rows, numbers=(1, 2)), "The datasets")
    )


def _write_pairs(matrix: DistanceMatrix, data: Mapping[str, Any]) -> Iterable[Sequence[str]]:
    for line in data["ranking"]:
        i, j = map(int, line["pair"].split(","))
        interval = "–" if line["low"] is None else f"{line['low']:.4g} to {line['high']:.4g}"
        rank = f"{line['rank']}" + (" (tied)" if line["tied"] else "")
        yield rank, f"{matrix.names[i]} – {matrix.names[j]}", line["text"], interval, "; ".join(line["remarks"])


def _collect_data(
    matrix: DistanceMatrix, explanations: Mapping[tuple[int, int], Explanation], title: str
) -> dict[str, Any]:
    """What the page draws and writes; indices refer to ``names``."""
    groups, scaling = Groups.of(matrix.values), ScalingMap.of(matrix.values)
    first = next(iter(matrix.distances.values()), None)
    named = {f"{i},{j}": distance for (i, j), distance in matrix.distances.items()}
    return {
        "title": title,
        "names": list(matrix.names),
        "order": groups.order,
        "pairs": {pair: _collect_distance(distance) for pair, distance in named.items()},
        "rankings": [_collect_ranking(matrix.ranking(name), "name") for name in matrix.names] if first else [],
        "ranking": _collect_ranking(Ranking.of("", named), "pair"),
        "map": {
            "points": scaling.points.round(6).tolist(),
            "stress": scaling.stress,
            "faithful": scaling.faithfulness,
        },
        "branches": groups.branches,
        "explanations": {f"{i},{j}": _collect_explanation(why) for (i, j), why in explanations.items()},
        "summary": _sum_up(matrix, explanations),
        "unit": "" if first is None else say_unit(first),
    }


def _list_settings(matrix: DistanceMatrix) -> dict[str, str]:
    """The settings behind the numbers, in words."""
    first = next(iter(matrix.distances.values()), None)
    said = {"datasets": f"{len(matrix):,}"}
    if first is None:
        return said
    said |= {"method": first.method, "order of transport": f"p = {first.p:g}", "estimator": first.estimator}
    return said | (
        {"scaling": say_scaling(first.scaler)} if matrix.projections is None else say_recipe(matrix.projections)
    )


def _collect_distance(distance: Distance) -> dict[str, Any]:
    low, high = distance.interval(0.95)
    return {
        "value": _round(distance.value),
        "low": None if math.isnan(low) else _round(low),
        "high": None if math.isnan(high) else _round(high),
        "text": with_error(distance.value, distance.stderr),
        "remarks": [*say_reliability(distance), *map(str, distance.remarks)],
    }


def _collect_ranking(ranking: Ranking, called: str) -> list[dict[str, Any]]:
    return [
        {called: line.name, "rank": line.rank, "tied": line.tied, **_collect_distance(line.distance)}
        for line in ranking
    ]


def _collect_explanation(why: Explanation) -> dict[str, Any]:
    """The parts, the class distances of the classes that matter most, and a line for every class shown."""
    chosen = [np.sort(np.argsort(-share, kind="stable")[:_MOST_CLASSES]) for share in why.shares]
    return {
        "features": json_number(why.features),
        "parts": say_parts(why),
        "changes": say_changes(why),
        "lost": [say_lost_classes(why, side) for side in (0, 1)],
        "classes": [[str(why.classes[side][i]) for i in chosen[side]] for side in (0, 1)],
        "n_classes": [len(side) for side in why.classes],
        "distances": [[_round(cell) for cell in row] for row in why.class_distances[np.ix_(*chosen)].tolist()],
        "moved": [[_round(cell) for cell in row] for row in why.coupling[np.ix_(*chosen)].tolist()],
        "counterparts": _find_counterparts(why, chosen),
        "lines": [[_collect_line(line.to_dict()) for line in why.lines(side)[:_MOST_CLASSES]] for side in (0, 1)],
    }


def _find_counterparts(why: Explanation, chosen: list[Any]) -> list[list[int]]:
    """Counterparts as rows and columns of the matrix that is shown."""
    first, second = ({int(old): new for new, old in enumerate(side)} for side in chosen)
    pairs = why.counterpart_places.items()
    return [[first[i], second[j]] for i, j in pairs if i in first and j in second]


def _collect_line(line: dict[str, Any]) -> dict[str, Any]:
    return {
        "label": str(line["label"]),
        "points": line["n_points"],
        "share": _round(line["share"]),
        "nearest": str(line["nearest"]),
        "distance": with_error(line["distance"], math.nan if line["stderr"] is None else line["stderr"]),
        "counterpart": line["has_counterpart"],
        "moved": line["moved"],
    }


def _round(value: float) -> float:
    """Five digits: enough for the page, which they keep small."""
    return float(f"{value:.5g}")


def _sum_up(matrix: DistanceMatrix, explanations: Mapping[tuple[int, int], Explanation]) -> list[str]:
    """A few sentences: extremes, features and labels, noise, and what the numbers mean."""
    if not matrix.distances:
        return ["There is only one dataset here, and nothing to compare it with."]
    said = [*_say_extremes(matrix), *_say_parts(matrix, explanations)]
    lost = [_say_pair(matrix, pair) for pair, why in explanations.items() if not why.counterparts]
    if lost:
        said.append(f"No class has a counterpart between {join_names(lost, most=3)}.")
    return [*said, *_say_noise(matrix), _say_meaning(next(iter(matrix.distances.values())))]


def _say_meaning(distance: Distance) -> str:
    """The unit, and what the errors cover."""
    unit = f"Distances are {say_unit(distance)}"
    if distance.scaler is not None:
        unit += ", which is that of the data on this page: do not compare them across pages"
    if math.isnan(distance.stderr):
        return f"{unit}."
    return (
        f"{unit}. ± is one standard error and intervals are at 95 %, both over the choice of "
        f"{say_count(distance.n_projections or 0, 'projection')}; neither covers the sampling of the data."
    )


def _say_extremes(matrix: DistanceMatrix) -> list[str]:
    order = sorted(matrix.distances.items(), key=lambda item: item[1].value)
    (near, nearest), (far, farthest) = order[0], order[-1]
    apart = f"{_say_pair(matrix, near)} are {with_error(nearest.value, nearest.stderr)} apart"
    if len(order) == 1:
        return [f"{apart}."]
    if farthest.within_noise:
        largest = f"{with_error(farthest.value, farthest.stderr)} between {_say_pair(matrix, far)}"
        return [f"No two are clearly apart: the largest distance, {largest}, is within noise."]
    times = f", {farthest.value / nearest.value:,.3g} times as far" if nearest.value > 0 else ""
    return [
        f"Nearest: {apart}.",
        f"Farthest: {_say_pair(matrix, far)} are {with_error(farthest.value, farthest.stderr)} apart{times}.",
    ]


def _say_parts(matrix: DistanceMatrix, explanations: Mapping[tuple[int, int], Explanation]) -> list[str]:
    """Between which datasets labels matter most, and least."""
    shares = {pair: why.labels for pair, why in explanations.items() if math.isfinite(why.labels)}
    if not shares:
        quiet = explanations and all(why.within_noise for why in explanations.values())
        return ["No explained pair differs beyond noise."] if quiet else []
    most, least = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    if most == least:
        parts = f"{100 * shares[most]:.0f} % is due to labels and the rest to features"
        return [f"Of the difference beyond noise between {_say_pair(matrix, most)}, {parts}."]
    adds = f"make {100 * shares[least]:.0f} %" if shares[least] > 0 else "add nothing"
    return [
        f"Labels matter most between {_say_pair(matrix, most)}, where they make {100 * shares[most]:.0f} % of the "
        f"difference beyond noise, and least between {_say_pair(matrix, least)}, where they {adds}."
    ]


def _say_noise(matrix: DistanceMatrix) -> list[str]:
    """How many distances are within noise, where floors were measured; and how many errors are rough."""
    known = [distance for distance in matrix.distances.values() if distance.noise is not None]
    rough = sum(not distance.reliable for distance in matrix.distances.values())
    said = []
    if known:
        within = sum(bool(distance.within_noise) for distance in known)
        verb = "is" if within == 1 else "are"
        count = f"{within:,} of {say_count(len(known), 'distance')} {verb}" if within else "No distance is"
        said.append(f"{count} within noise, as near as two samples of the same data are.")
    if rough:
        errors = f"{rough:,} of {say_count(len(matrix.distances), 'error')} {'is' if rough == 1 else 'are'} rough"
        said.append(f"{errors}, since few projections carry most of the cost: use more projections.")
    return said


def _say_pair(matrix: DistanceMatrix, pair: tuple[int, int]) -> str:
    return " and ".join(f"“{matrix.names[index]}”" for index in pair)
