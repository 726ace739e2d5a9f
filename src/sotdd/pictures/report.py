"""Reports: a result as one web page that can be passed on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, TypeAlias

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.basics.files import checked_path, refuse_unwritable, write_whole
from sotdd.basics.progress import Progress, reporting
from sotdd.basics.text import counted, quoted
from sotdd.basics.version import __version__
from sotdd.engines.class_comparison import are_too_many
from sotdd.inputs import labelled
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.measure.explain import explain
from sotdd.pictures.dataset_facts import facts_of
from sotdd.results.estimators import Estimator
from sotdd.results.explanation import Explanation
from sotdd.results.matrix import DistanceMatrix
from sotdd.results.two_sample import TwoSampleTest

Pairs: TypeAlias = Sequence[tuple[str, str]]

# Names of files that a browser would not open as a page.
_OTHER_KINDS = (".pdf", ".docx", ".doc", ".png", ".jpg", ".svg", ".json", ".csv", ".xlsx", ".md", ".txt")


def report(
    result: DistanceMatrix | TwoSampleTest | Explanation,
    path: str | os.PathLike[str],
    *,
    datasets: Mapping[str, Dataset] | Sequence[Dataset] | None = None,
    explanations: Mapping[tuple[str, str], Explanation] | Pairs | Literal["all"] | None = None,
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
        Which pairs to explain class by class: "all", the default if datasets are passed; some pairs of
        names; or explanations made before, by pairs of names. For a matrix only.
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
    content = page(result, explained, heading, __version__, left_out, facts, datetime.now(UTC))
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
    shown = None if title is None else str(title)
    if isinstance(result, Explanation):
        made = explanation_page(result, names, facts, title=shown, asked=asked)
    else:
        made = test_page(result, names, facts, title=shown, asked=asked)
    write_whole(target, made.html(datetime.now(UTC)).encode("utf-8", "backslashreplace"))
    return target


def refuse_page(path: str | os.PathLike[str]) -> Path:
    """Refuse a page that could not be written, or would be taken for something else, before anything is measured."""
    target = checked_path(path)
    if target.suffix.lower() in _OTHER_KINDS:
        raise SotddError(
            f"cannot write {quoted(target)}: the report is a web page; call it {target.stem + '.html'!r}, and print it "
            "to a file from a browser."
        )
    refuse_unwritable(target)
    return target


def _explained(
    matrix: DistanceMatrix,
    datasets: list[LabelledData] | None,
    explanations: Mapping[tuple[str, str], Explanation] | Pairs | Literal["all"] | None,
    progress: Progress,
) -> tuple[dict[tuple[int, int], Explanation], list[tuple[int, int]]]:
    """Explanations by indices (i, j) with i < j: those passed in, or made from the datasets; and what has none.

    Pairs with too many classes are left out where all are to be explained, and refused where they were asked for.
    """
    if isinstance(explanations, Mapping):
        return {_indices(matrix, pair): _fitting(matrix, pair, why) for pair, why in explanations.items()}, []
    if datasets is None:
        if explanations is not None:
            raise SotddError("explanations cannot be made without datasets: pass datasets= too.")
        return {}, []
    everything = explanations is None or (isinstance(explanations, str) and explanations == "all")
    if not everything and (isinstance(explanations, str) or not isinstance(explanations, Sequence | Set)):
        raise SotddError(
            f"explanations is {described(explanations)}: expected 'all', pairs of names, or explanations by pairs."
        )
    if matrix.projections is None:
        raise SotddError("only distances measured by s-OTDD can be explained class by class: leave datasets out.")
    data = datasets
    if tuple(part.name for part in data) != matrix.names:
        raise SotddError(
            f"the datasets are {', '.join(part.name for part in data)} but the matrix has {', '.join(matrix.names)}: "
            "pass the datasets it was measured from, in the same order."
        )
    pairs = (
        list(combinations(range(len(matrix)), 2))
        if everything
        else [_indices(matrix, pair) for pair in explanations or ()]
    )
    left_out = [pair for pair in pairs if are_too_many(*(len(data[index].classes) for index in pair))]
    if left_out and not everything:
        one, other = (matrix.names[index] for index in left_out[0])
        raise SotddError(
            f"{one!r} and {other!r} have too many classes to compare each with each: leave them out, or "
            "use coarser labels."
        )
    pairs = [pair for pair in pairs if pair not in left_out]
    made = {}
    with reporting(progress, "Explaining") as update:
        for number, (i, j) in enumerate(pairs, 1):
            known = matrix.distances[i, j]
            how: Estimator = "plain" if known.estimator == "plain" else "controlled"
            made[i, j] = explain(data[i], data[j], projections=matrix.projections, p=known.p, estimator=how)
            update(number, len(pairs))
    return made, left_out


def _indices(matrix: DistanceMatrix, pair: object) -> tuple[int, int]:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise SotddError(f"explanations are looked up by pairs of names, such as ('a', 'b'), not by {described(pair)}.")
    one, other = (matrix.names.index(str(name)) if str(name) in matrix.names else -1 for name in pair)
    if one == other or min(one, other) < 0:
        raise SotddError(f"explanations name {pair[0]!r} and {pair[1]!r}: expected two of {', '.join(matrix.names)}.")
    if one > other:
        raise SotddError(f"explanations name {pair[0]!r} before {pair[1]!r}: the matrix has them in the other order.")
    return one, other


def _fitting(matrix: DistanceMatrix, pair: tuple[str, str], why: object) -> Explanation:
    if not isinstance(why, Explanation):
        raise SotddError(
            f"the explanation of {pair[0]!r} and {pair[1]!r} is {described(why)}: expected an Explanation."
        )
    known = matrix[pair]
    if why.distance.fingerprint != known.fingerprint:
        raise SotddError(
            f"the explanation of {pair[0]!r} and {pair[1]!r} used other projections than the matrix: pass "
            "projections=matrix.projections to sotdd.explain."
        )
    if why.distance.estimator != known.estimator:
        raise SotddError(
            f"the explanation of {pair[0]!r} and {pair[1]!r} has the estimator {why.distance.estimator} but the matrix "
            f"{known.estimator}: pass estimator={known.estimator.partition(' ')[0]!r} to sotdd.explain too."
        )
    return replace(why, names=pair)
