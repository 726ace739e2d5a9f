"""Every two of several datasets, with one projection and one sort of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from os import PathLike, fspath
from typing import Any, Unpack

from sotdd.basics.memory import within_memory
from sotdd.basics.progress import Progress
from sotdd.engines.comparison import compare
from sotdd.engines.protocol import Precision
from sotdd.inputs import labelled, named
from sotdd.inputs.comparable import refuse_half_labelled
from sotdd.measure.class_names import NamedClasses, NamesInDistance, names_count
from sotdd.measure.distance import (
    BLIND_TO_LABELS,
    FEWER_POINTS,
    ORDER,
    MethodSettings,
    by_peer,
    check_method,
    check_splits,
    chosen_estimator,
    is_given,
    projections_for,
    refuse_for_peers,
    refuse_for_sketches,
)
from sotdd.projections.drawing import shows_drawing
from sotdd.projections.recipe import Projections
from sotdd.results.distance import Distance
from sotdd.results.estimators import Estimator
from sotdd.results.matrix import Asked, DistanceMatrix
from sotdd.sketches.making import Comparable, read_sketch, through_sketches
from sotdd.sketches.sketch import Sketch


@shows_drawing()
@within_memory(FEWER_POINTS)
def pairwise(
    datasets: Mapping[str, Comparable] | Sequence[Comparable],
    *,
    p: float = ORDER,
    projections: Projections | None = None,
    estimator: Estimator = "auto",
    method: str = "sotdd",
    noise_floor: bool | int = False,
    label_names: NamesInDistance = "auto",
    device: str = "auto",
    precision: Precision = "float32",
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
    p, n_projections, n_moments, moments, label_law, directions, shared_directions, scale, seed
        As in `distance`.
    projections, estimator, method, device, precision, progress, settings
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
    sources = named(datasets, Sketch)
    distances, recipe = distances_between(
        sources,
        list(combinations(range(len(sources)), 2)),
        p=p,
        projections=projections,
        estimator=estimator,
        method=method,
        noise_floor=noise_floor,
        label_names=label_names,
        device=device,
        precision=precision,
        progress=progress,
        settings=settings,
    )
    also = {
        "label_names": (label_names, "auto"),
        "method": (method, "sotdd"),
        "projections": (projections, None),
        "noise_floor": (noise_floor, False),
        "p": (p, ORDER),
        "estimator": (estimator, "auto"),
    }
    asked = {**{name: value for name, (value, usual) in also.items() if value != usual}, **settings}
    paths = {name: fspath(source) if isinstance(source, (str, PathLike)) else None for name, source in sources}
    return DistanceMatrix(tuple(paths), distances, recipe, Asked(paths, asked))


def distances_between(
    sources: Sequence[tuple[str, Any]],
    pairs: Sequence[tuple[int, int]],
    *,
    p: float,
    projections: Projections | None,
    estimator: Estimator,
    method: str,
    noise_floor: bool | int,
    device: str,
    precision: Precision,
    progress: Progress,
    settings: Mapping[str, Any],
    label_names: NamesInDistance = "auto",
) -> tuple[dict[tuple[int, int], Distance], Projections | None]:
    """Distances of some pairs of named sources, by their numbers, and what they were measured through."""
    n_splits = check_splits(noise_floor)
    check_method(method)
    read: list[tuple[str, Any]] = [(name, read_sketch(source)) for name, source in sources]
    sketch = next((source for _, source in read if isinstance(source, Sketch)), None)
    if sketch is not None:
        also = {**settings, **({"label_names": label_names} if is_given(label_names, "auto") else {})}
        refuse_for_sketches(read, method, also, projections, n_splits)
        distances = through_sketches(
            read, pairs, p, estimator=estimator, device=device, precision=precision, progress=progress
        )
        return distances, sketch.projections
    data = labelled(dict(read))
    if method not in BLIND_TO_LABELS and not all(part.origin.labelled for part in data):
        refuse_half_labelled(data)
    if method != "sotdd":
        refuse_for_peers(method, estimator=(estimator, "auto"), label_names=(label_names, "auto"))
        return by_peer(method, data, pairs, p, settings, projections, n_splits, device, progress), None
    chosen = chosen_estimator(estimator)
    may_count = is_given(label_names, "auto") or data[0].origin.target is not None
    counts = may_count and names_count(label_names, data, projections)
    counted = NamedClasses.of(data, settings, projections) if counts else None
    if counted is None:
        recipe, data = projections_for(data, projections, settings, chosen)
    else:
        recipe, data = projections_for(counted.datasets, None, counted.settings, chosen)
    distances = compare(
        data, pairs, recipe, p, progress,
        estimator=chosen, device=device, precision=precision, n_splits=n_splits, halves=len(data) > 2,
    )  # fmt: skip
    if counted is None:
        return distances, recipe
    return {pair: counted.result(distance) for pair, distance in distances.items()}, None
