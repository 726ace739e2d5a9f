"""Reports: a result as one web page that can be passed on."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from sotdd.basics.errors import SotddError, describe
from sotdd.basics.resources import Progress, report_progress
from sotdd.basics.text import join_names, json_number, say_count
from sotdd.compute.estimators import Estimator
from sotdd.compute.matrix import DistanceMatrix, Ranking
from sotdd.inputs import open_all
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.measure.changes import Changes, TwoSampleTest
from sotdd.measure.classes import are_too_many
from sotdd.measure.explain import explain
from sotdd.measure.explanation import Explanation
from sotdd.measure.mix import Mixture
from sotdd.reports.datasets import DatasetSummary, Groups, ScalingMap
from sotdd.reports.page import Tone, refuse_page, shorten_names, write_page

# Pairs of a matrix that are explained, of the nearest and of the farthest; and permutations of their tests.
_NEAREST, _FARTHEST, _PERMUTATIONS = 2, 1, 99

# Numbers of an explanation, without its matrices, which can be large.
_NUMBERS = ("within_noise", "test", "features", "labels", "classes", "renamed")


def report(
    result: DistanceMatrix | Ranking | TwoSampleTest | Changes | Explanation | Mixture,
    path: str | os.PathLike[str],
    *,
    datasets: Mapping[str, Dataset] | Sequence[Dataset] | None = None,
    title: str | None = None,
    progress: Progress = None,
) -> Path | str:
    """Write a result as one HTML page that needs neither network nor server.

    The page sums up the result in words. Of a matrix it ranks the pairs with their intervals, draws a heat map,
    a map and a dendrogram, and explains the nearest pairs and the farthest. Of a test it shows the verdict and the
    distance beside chance, of an explanation what the distance comes from, of a ranking the ties and what is beyond
    chance. It also shows the settings and the fingerprint of the projections.

    Parameters
    ----------
    result
        What `pairwise`, `rank`, `test`, `explain` or `mix` returned, or the ``changes`` of a test.
    path
        Where to write it; an existing file is replaced once the new one is complete.
    datasets
        The datasets that were compared: the page says how many points, classes and missing values each has and
        where its values lie. Of a matrix, the two nearest pairs and the farthest are explained, class by class,
        through the same projections; of a ranking the nearest candidate, of data that hold it and the target by name.
    title
        The title of the page; None for a question that fits the result.
    progress
        False for no bar, a function of (done, total) pairs, or None for a bar if a terminal shows it.

    Returns
    -------
    Path or str
        The path of the page, or its address.

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
    if isinstance(result, (TwoSampleTest, Changes, Explanation)):
        return report_pair(result, path, datasets, title)
    if isinstance(result, Ranking):
        return report_ranking(result, path, datasets, title)
    if isinstance(result, Mixture):
        return report_mixture(result, path, title)
    if not isinstance(result, DistanceMatrix):
        raise SotddError(
            f"is {describe(result)}: expected what sotdd.pairwise, rank, test, explain or mix returned.",
            setting="result",
        )
    refuse_page(path)  # before classes are compared, which may take long
    data = [] if datasets is None else open_all(datasets)
    found, left_out = ({}, []) if datasets is None else _explain_pairs(result, data, progress)
    return write_matrix_page(path, result, found, title, left_out, [DatasetSummary.of(one) for one in data])


def report_pair(
    result: TwoSampleTest | Changes | Explanation,
    path: str | os.PathLike[str],
    datasets: Mapping[str, Dataset] | Sequence[Dataset] | None = None,
    title: str | None = None,
    asked: tuple[Sequence[str], Mapping[str, Any]] | None = None,
) -> Path | str:
    """Write the page of two datasets; ``asked`` are their sources and the settings of the call, if they are known."""
    refuse_page(path)
    data = [] if datasets is None else open_all(datasets)
    if data and len(data) != 2:
        raise SotddError(
            f"has {say_count(len(data), 'dataset')}: expected the two that were compared.", setting="datasets"
        )
    known = result.names if isinstance(result, Explanation) else ("a", "b")
    whole = [one.name for one in data] or list(known)
    names = shorten_names(whole)
    summaries = list(zip(names, map(DatasetSummary.of, data), strict=False))
    shown: dict[str, Any] = {"title": title, "names": names, "datasets": summaries, "asked": asked}
    numbers: dict[str, Any] = {"a": whole[0], "b": whole[1]}
    if isinstance(result, TwoSampleTest):
        numbers |= result.to_dict()
        return write_page(path, "test.html", result.verdict.tone, test=result, data=numbers, **shown)
    if isinstance(result, Changes):
        tone: Tone = "bad" if result.changed or result.pairs or result.classes else "good"
        return write_page(path, "changes.html", tone, changes=result, data=numbers | result.to_dict(), **shown)
    numbers |= _collect_numbers(result)
    why = replace(result, names=(names[0], names[1]))
    return write_page(path, "explanation.html", "good" if why.within_noise else "plain", why=why, data=numbers, **shown)


def report_ranking(
    ranking: Ranking,
    path: str | os.PathLike[str],
    datasets: Mapping[str, Dataset] | Sequence[Dataset] | None = None,
    title: str | None = None,
    asked: tuple[str, Sequence[str], Mapping[str, Any]] | None = None,
) -> Path | str:
    """Write the page of a ranking; ``asked`` are its target, its candidates and the settings, if they are known."""
    refuse_page(path)
    data = {} if datasets is None else {one.name: one for one in open_all(datasets)}
    target, *names = shorten_names([ranking.target, *ranking.names])
    short, why = dict(zip((ranking.target, *ranking.names), (target, *names), strict=True)), None
    if data and ranking.lines:
        if not {ranking.target, ranking.nearest} <= set(data):
            raise SotddError(
                f"are {join_names(list(data))}: expected at least {ranking.target!r} and {ranking.nearest!r}, by name.",
                setting="datasets",
            )
        pair, p = (data[ranking.target], data[ranking.nearest]), ranking.lines[0].distance.p
        if not are_too_many(*(len(one.classes) for one in pair)):
            found = explain(*pair, p=p, n_permutations=_PERMUTATIONS)
            why = replace(found, names=(target, short[ranking.nearest]))
    summaries = [(short.get(name, name), DatasetSummary.of(one)) for name, one in data.items()]
    shown = {"title": title, "target": target, "names": names, "datasets": summaries, "asked": asked, "why": why}
    best = [short[name] for name in ranking.best]
    return write_page(path, "ranking.html", "plain", ranking=ranking, best=best, data=ranking.to_dict(), **shown)


def report_mixture(
    mixture: Mixture,
    path: str | os.PathLike[str],
    title: str | None = None,
    asked: tuple[str, Sequence[str], Mapping[str, Any]] | None = None,
) -> Path | str:
    """Write the page of a mixture; ``asked`` are its target, its sources and the settings, if they are known."""
    target, *names = shorten_names([mixture.target, *mixture.names])
    tone = mixture.left_over.verdict.tone
    shown = {"title": title, "target": target, "names": names, "asked": asked, "data": mixture.to_dict()}
    return write_page(path, "mixture.html", tone, mixture=mixture, **shown)


def _collect_numbers(why: Explanation) -> dict[str, Any]:
    """The main numbers of an explanation as JSON values."""
    whole = why.to_dict()
    parts = {name: whole[name] for name in _NUMBERS}
    return {"distance": why.distance.value, "stderr": json_number(why.distance.stderr), **parts}


def _explain_pairs(
    matrix: DistanceMatrix, datasets: Sequence[LabelledData], progress: Progress
) -> tuple[dict[tuple[int, int], Explanation], list[tuple[int, int]]]:
    """Explanations by indices (i, j) with i < j of the nearest pairs and the farthest that have not too many classes.

    Also returns the pairs that have.
    """
    if matrix.projections is None:
        raise SotddError("only distances measured by s-OTDD can be explained class by class: leave datasets out.")
    if tuple(part.name for part in datasets) != matrix.names:
        raise SotddError(
            f"the datasets are {', '.join(part.name for part in datasets)} but the matrix has "
            f"{', '.join(matrix.names)}: pass the datasets it was measured from, in the same order."
        )
    pairs = list(combinations(range(len(matrix)), 2))
    left_out = [pair for pair in pairs if are_too_many(*(len(datasets[index].classes) for index in pair))]
    known_pairs = sorted(set(pairs) - set(left_out), key=lambda pair: matrix.distances[pair].value)
    chosen = list(dict.fromkeys([*known_pairs[:_NEAREST], *known_pairs[-_FARTHEST:]]))
    made = {}
    with report_progress(sys.stderr.isatty() if progress is None else progress, "Explaining") as update:
        for number, (i, j) in enumerate(chosen, 1):
            known = matrix.distances[i, j]
            estimator: Estimator = "plain" if known.estimator == "plain" else "controlled"
            through: dict[str, Any] = {"projections": matrix.projections, "p": known.p, "estimator": estimator}
            made[i, j] = explain(datasets[i], datasets[j], n_permutations=_PERMUTATIONS, **through)
            update(number, len(chosen))
    return made, left_out


def write_matrix_page(
    path: str | os.PathLike[str],
    matrix: DistanceMatrix,
    explanations: Mapping[tuple[int, int], Explanation],
    title: str | None,
    left_out: Sequence[tuple[int, int]] = (),
    summaries: Sequence[DatasetSummary] = (),
) -> Path | str:
    """Write the page of a matrix, on which datasets go by short names.

    Pairs that were ``left_out`` have too many classes to compare each with each; the page says so.
    """
    sources, chosen = ({}, {}) if matrix.asked is None else (matrix.asked.sources, dict(matrix.asked.settings))
    if isinstance(chosen.get("seed"), np.random.Generator) and matrix.projections is not None:
        chosen["seed"] = matrix.projections.recipe()["seed"]
    names = shorten_names(matrix.names)
    distances = sorted(matrix.distances.items(), key=lambda item: item[1].value)
    found = {f"{i},{j}": _collect_numbers(why) for (i, j), why in explanations.items()}
    by_labels = sorted((why.labels, pair) for pair, why in explanations.items() if np.isfinite(why.labels))
    return write_page(
        path,
        "matrix.html",
        "plain",
        title=title,
        matrix=replace(matrix, names=tuple(names)),
        distances=distances,
        ranking=Ranking.of("", {str(i): one for i, (_, one) in enumerate(distances)}),
        explanations={(i, j): replace(why, names=(names[i], names[j])) for (i, j), why in explanations.items()},
        by_labels=[pair for _, pair in by_labels],
        left_out=left_out,
        datasets=list(zip(names, summaries, strict=False)),
        groups=Groups.of(matrix.values),
        scaling=ScalingMap.of(matrix.values),
        sources={name: sources.get(name) for name in matrix.names},
        asked=chosen,
        data={**matrix.to_dict(), "explanations": found},
    )
