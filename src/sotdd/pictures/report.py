"""Reports: a result as one web page that can be passed on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.basics.files import checked_path, refuse_unwritable, write_whole
from sotdd.basics.progress import Progress, reporting
from sotdd.basics.text import counted, quoted
from sotdd.engines.class_comparison import are_too_many
from sotdd.inputs import labelled
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.measure.explain import explain
from sotdd.pictures.dataset_facts import facts_of
from sotdd.results.estimators import Estimator
from sotdd.results.explanation import Explanation
from sotdd.results.matrix import DistanceMatrix
from sotdd.results.two_sample import TwoSampleTest


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
    from sotdd.pictures.page import page

    if isinstance(result, (TwoSampleTest, Explanation)):
        if explanations is not None:
            raise SotddError("explanations are given with a result that is no matrix: leave them out.")
        return report_pair(result, path, datasets, title)
    if not isinstance(result, DistanceMatrix):
        raise SotddError(
            f"result is {described(result)}: expected what sotdd.pairwise, sotdd.test or sotdd.explain returned."
        )
    target = refuse_page(path)  # before classes are compared, which may take long
    data = None if datasets is None else labelled(datasets)
    explained, left_out = _explained(result, data, explanations, progress)
    facts = [facts_of(one) for one in data or ()]
    heading = "How far apart are these datasets?" if title is None else str(title)
    content = page(result, explained, heading, left_out, facts, datetime.now(UTC))
    write_whole(target, content.encode("utf-8", "backslashreplace"))
    return target


def report_pair(
    result: TwoSampleTest | Explanation,
    path: str | os.PathLike[str],
    datasets: Mapping[str, Dataset] | Sequence[Dataset] | None = None,
    title: str | None = None,
    asked: tuple[Sequence[str], Mapping[str, Any]] | None = None,
) -> Path:
    """Write the page of two datasets; ``asked`` are their sources and the settings of the call, if they are known."""
    from sotdd.pictures.pair_pages import explanation_page, test_page

    target = refuse_page(path)
    data = [] if datasets is None else labelled(datasets)
    if data and len(data) != 2:
        raise SotddError(f"datasets has {counted(len(data), 'dataset')}: expected the two that were compared.")
    usual = result.names if isinstance(result, Explanation) else ("a", "b")
    names = [one.name for one in data] or list(usual)
    facts = [facts_of(one) for one in data]
    if isinstance(result, Explanation):
        made = explanation_page(result, names, facts, title, asked)
    else:
        made = test_page(result, names, facts, title, asked)
    write_whole(target, made.html(datetime.now(UTC)).encode("utf-8", "backslashreplace"))
    return target


def refuse_page(path: str | os.PathLike[str]) -> Path:
    """Refuse a page that could not be written, or would be taken for something else, before anything is measured."""
    target = checked_path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise SotddError(f"cannot write {quoted(target)}: the report is a web page; call it {target.stem + '.html'!r}.")
    refuse_unwritable(target)
    return target


def _explained(
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
            raise SotddError(f"explanations is {described(explanations)}: expected explanations by pairs of names.")
        return {_indices(matrix, pair, why): why for pair, why in explanations.items()}, []
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
    with reporting(progress, "Explaining") as update:
        for number, (i, j) in enumerate(pairs, 1):
            if (i, j) not in left_out:
                known = matrix.distances[i, j]
                how: Estimator = "plain" if known.estimator == "plain" else "controlled"
                through = matrix.projections
                made[i, j] = explain(datasets[i], datasets[j], projections=through, p=known.p, estimator=how)
            update(number, len(pairs))
    return made, left_out


def _indices(matrix: DistanceMatrix, pair: object, why: object) -> tuple[int, int]:
    """The places of a pair of names, in the order of the matrix; refuse what does not fit the matrix."""
    names = matrix.names
    if not isinstance(pair, tuple) or len(pair) != 2 or not set(pair) <= set(names):
        raise SotddError(f"explanations has {described(pair)}: expected pairs of two of {', '.join(names)}.")
    one, other = (names.index(name) for name in pair)
    if one >= other:
        raise SotddError(f"explanations has {pair[0]!r} before {pair[1]!r}: the matrix has them in another order.")
    if not isinstance(why, Explanation):
        raise SotddError(f"explanations[{pair[0]!r}, {pair[1]!r}] is {described(why)}: expected an Explanation.")
    known, distance = matrix.distances[one, other], why.distance
    if (distance.fingerprint, distance.estimator) != (known.fingerprint, known.estimator):
        raise SotddError(
            f"the explanation of {pair[0]!r} and {pair[1]!r} was made by other projections or another estimator: pass "
            f"projections=matrix.projections and estimator={known.estimator.partition(' ')[0]!r} to sotdd.explain."
        )
    return one, other
