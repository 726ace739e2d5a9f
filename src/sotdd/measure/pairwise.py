"""Several datasets: every two of them, or all in order of their distance to a target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from os import PathLike, fspath
from typing import Unpack

from sotdd.basics.errors import SotddError, check_count, describe
from sotdd.basics.resources import Progress
from sotdd.compute.comparison import check_memory
from sotdd.compute.estimators import Estimator
from sotdd.compute.matrix import Asked, DistanceMatrix, Ranking
from sotdd.inputs import name_sources, open_all
from sotdd.inputs.opening import split_reading
from sotdd.measure.class_names import NamesInDistance
from sotdd.measure.distance import ORDER, Measuring, MethodSettings, measure_pairs
from sotdd.projections.settings import DEFAULT_SETTINGS, show_settings
from sotdd.sketches.saved_projections import Given, SavedProjections, check_projections
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.sketching import Comparable


@show_settings()
def pairwise(
    datasets: Mapping[str, Comparable] | Sequence[Comparable],
    *,
    p: float = ORDER,
    projections: Given | None = None,
    estimator: Estimator = "controlled",
    method: str = "sotdd",
    noise_floor: bool = False,
    label_names: NamesInDistance = "auto",
    device: str = "auto",
    progress: Progress = None,
    **settings: Unpack[MethodSettings],
) -> DistanceMatrix:
    """Say how far apart every two of several datasets are.

    Every dataset is projected and sorted once; all pairs come from that. One scaler serves
    all, so the distances can be compared with each other.

    Parameters
    ----------
    datasets
        Datasets by name, or a list of them, named by their numbers; paths name themselves. Some may be
        sketches: the others are then seen through their projections.
    p, n_projections, n_moments, moments, label_law, directions, label_directions, scale, seed
        As in `distance`.
    projections, estimator, method, device, progress, settings
        As in `distance`.
    noise_floor
        As in `distance`; each pair has its own.
    label_names
        As in `distance`, with the names of all datasets. Where names count, the matrix has no ``projections``
        that others could be measured through.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> sotdd.pairwise({"here": x, "there": x + 3}, n_projections=500)
           here             there
    here   0                1.0422 ± 0.0055
    there  1.0422 ± 0.0055  0
    """
    sources = name_sources(datasets, Sketch)
    if isinstance(method, str) and method == "sotdd":  # before any of them is read
        drawn = (
            DEFAULT_SETTINGS.but(split_reading(settings)[1]) if projections is None else check_projections(projections)
        )
        count = check_count(drawn.n_projections, "n_projections")
        check_memory(len(sources), math.comb(len(sources), 2), count, 0, "plain")
    how = Measuring(p, projections, estimator, method, noise_floor, label_names, device=device, progress=progress)
    pairs = list(combinations(range(len(sources)), 2))
    distances, through = measure_pairs(sources, pairs, partial(open_all, dict(sources)), how, settings)
    paths = {name: fspath(source) if isinstance(source, (str, PathLike)) else None for name, source in sources}
    recipe = through.projections if isinstance(through, SavedProjections) else through
    return DistanceMatrix(tuple(paths), distances, recipe, Asked(paths, {**how.list_chosen(), **settings}))


@show_settings()
def rank(
    target: Comparable,
    candidates: Mapping[str, Comparable] | Sequence[Comparable],
    *,
    p: float = ORDER,
    projections: Given | None = None,
    estimator: Estimator = "controlled",
    method: str = "sotdd",
    noise_floor: bool = False,
    device: str = "auto",
    progress: Progress = None,
    **settings: Unpack[MethodSettings],
) -> Ranking:
    """Rank datasets by their distance from a target, the nearest first.

    Only the distances to the target are measured, all through the same projections. Two candidates or more are ordered
    by what lies beyond the noise of their sizes, plus one standard error. The answer is the set of those that noise
    cannot tell apart from the first (`Ranking.best`).

    Parameters
    ----------
    target
        A dataset, as in `distance`, or a `Sketch`.
    candidates
        Datasets by name, or a list of them, as in `pairwise`.
    p, n_projections, n_moments, moments, label_law, directions, label_directions, scale, seed
        As in `distance`.
    projections, estimator, method, noise_floor, device, progress, settings
        As in `pairwise`.

    Returns
    -------
    Ranking
        The candidates in order, each with its rank and its `Distance`; those not significantly different share a rank.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> mine = rng.normal(size=(500, 4))
    >>> others = {"near": rng.normal(0.1, 1, size=(500, 4)), "far": rng.normal(2, 1, size=(500, 4))}
    >>> order = sotdd.rank(mine, others)
    >>> order.nearest, [line.name for line in order]
    ('near', ['near', 'far'])
    >>> order
    rank  candidate  points           distance  beyond noise
       1  near          500  0.07472 ± 0.00026        0.0607
       2  far           500    0.9744 ± 0.0037         0.973
    nearest: near
    beyond noise: distance minus its expected sampling noise; the order adds one standard error
    """
    if not isinstance(candidates, (Mapping, list, tuple)):
        raise SotddError(f"candidates is {describe(candidates)}: expected a list of datasets, or a dict by name.")
    if not candidates:
        raise SotddError("there are no candidates: expected at least one.")
    others = name_sources(candidates, Sketch)
    [(name, source)] = name_sources([target], Sketch)
    if name == "0":  # it has no name of its own
        name = "target"
    while any(name == other for other, _ in others):
        name = f"{name} (target)"
    sources = [(name, source), *others]
    how = Measuring(p, projections, estimator, method, noise_floor, device=device, progress=progress)
    pairs = [(0, number) for number in range(1, len(sources))]
    distances, _ = measure_pairs(sources, pairs, partial(open_all, dict(sources)), how, settings)
    by_name = {other: distances[0, number] for number, (other, _) in enumerate(others, 1)}
    return Ranking.of(name, by_name)
