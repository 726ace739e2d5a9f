"""Distances between every two of several datasets, measured together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from os import PathLike, fspath
from typing import Any, Literal

import numpy as np

from sotdd.basics.defaults import default, given
from sotdd.basics.errors import SotddError
from sotdd.basics.progress import Progress, reporting
from sotdd.engines.comparison import compare
from sotdd.inputs import labelled, named
from sotdd.inputs.data import LabelledData
from sotdd.measure.distance import estimator_for, projections_for, refuse_settings
from sotdd.projections.directions import DirectionLaw
from sotdd.projections.drawing import LabelChoice
from sotdd.projections.moments import MomentLaw
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scale
from sotdd.results.distance import Distance
from sotdd.results.matrix import Asked, DistanceMatrix
from sotdd.results.noise import check_splits
from sotdd.sketches.making import Comparable, read_sketch, through_sketches
from sotdd.sketches.sketch import Sketch

_ORDER = 2.0
_ESTIMATOR = default("controlled")

# Settings that draw projections, which a sketch has already.
_DRAWING = (
    "n_projections", "n_moments", "moments", "label", "directions", "shared_directions", "scale", "seed",
)  # fmt: skip


def pairwise(
    datasets: Mapping[str, Comparable] | Sequence[Comparable],
    *,
    method: str = "sotdd",
    n_projections: int = default(1000),
    p: float = default(_ORDER),
    n_moments: int = default(5),
    moments: MomentLaw | Sequence[float] | None = default(None),
    label: LabelChoice | None = default(None),
    directions: DirectionLaw | None = default(None),
    shared_directions: bool = default(True),
    scale: Scale = default("auto"),
    seed: int | np.random.Generator = default(0),
    projections: Projections | None = None,
    estimator: str = _ESTIMATOR,
    noise_floor: bool | int = False,
    device: str = "auto",
    precision: Literal["float32", "tf32"] = "float32",
    progress: Progress = None,
    **options: object,
) -> DistanceMatrix:
    """Say how far apart every two of several datasets are.

    Every dataset is projected and sorted once; all pairs come from that. One scaler serves
    all, so the distances can be compared with each other.

    Parameters
    ----------
    datasets
        Datasets by name, or a list of them, named by their places; paths name themselves. Some may be
        sketches: the others are then seen through their projections.
    method
        "sotdd", or a peer of it: "otdd", "otdd-gaussian", "wte", "chsw", "frechet", "sw" or "mmd".
    n_projections, p, n_moments, moments, label, directions, shared_directions, scale, seed
        As in `distance`.
    projections, estimator, noise_floor, device, precision, progress
        As in `distance`; each pair has its own noise floor. A peer takes those of them that it has, see `sotdd.peers`.
    options
        What else a peer takes, such as ``max_points``.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> sotdd.pairwise({"here": x, "there": x + 3}, n_projections=500)
           here             there
    here   0                1.0422 ± 0.0055
    there  1.0422 ± 0.0055  0
    """
    drawing = given(
        n_projections=n_projections,
        n_moments=n_moments,
        moments=moments,
        label=label,
        directions=directions,
        shared_directions=shared_directions,
        scale=scale,
        seed=seed,
    )
    sources = named(datasets, Sketch)
    settings = {**drawing, **given(p=p, estimator=estimator), **options}
    found, recipe = measured(
        sources,
        list(combinations(range(len(sources)), 2)),
        method=method,
        settings=settings,
        projections=projections,
        noise_floor=noise_floor,
        device=device,
        precision=precision,
        progress=progress,
    )
    also = {"method": (method, "sotdd"), "projections": (projections, None), "noise_floor": (noise_floor, False)}
    asked = {**{name: value for name, (value, usual) in also.items() if value != usual}, **settings}
    paths = {name: fspath(source) if isinstance(source, (str, PathLike)) else None for name, source in sources}
    return DistanceMatrix(tuple(paths), found, recipe, Asked(paths, asked))


def measured(
    sources: Sequence[tuple[str, Any]],
    pairs: Sequence[tuple[int, int]],
    *,
    method: str = "sotdd",
    settings: Mapping[str, Any],
    projections: Projections | None = None,
    noise_floor: bool | int = False,
    device: str = "auto",
    precision: Literal["float32", "tf32"] = "float32",
    progress: Progress = None,
) -> tuple[dict[tuple[int, int], Distance], Projections | None]:
    """Distances of some pairs of sources, by their places, and what they were measured through.

    ``settings`` are those that a caller gave: p, what draws projections, and what a peer takes.
    """
    n_splits = check_splits(noise_floor)
    read: list[tuple[str, Any]] = [(name, read_sketch(source)) for name, source in sources]
    sketches = {name: source for name, source in read if isinstance(source, Sketch)}
    drawing = {name: value for name, value in settings.items() if name in _DRAWING}
    estimating = {name: value for name, value in settings.items() if name == "estimator"}
    p = settings.get("p", _ORDER)
    if method == "sotdd":
        unknown = [name for name in settings if name not in {*_DRAWING, *estimating, "p"}]
        if unknown:
            raise SotddError(
                f"there is no setting {', '.join(unknown)} of s-OTDD: check the spelling, or name a method."
            )
    if method == "sotdd" and sketches:
        refuse_settings({**drawing, **estimating}, projections, n_splits)
        found = through_sketches(read, pairs, p, device=device, precision=precision, progress=progress)
        return found, next(iter(sketches.values())).projections
    for name in sketches:
        raise SotddError(f"{name!r} is a sketch, which has no points for method {method!r}: give the data.")
    data = labelled(dict(read))
    if method != "sotdd":
        if str(device) not in ("auto", "cpu"):
            raise SotddError(f"device is {device!r} but method {method!r} works on the processor only: leave it out.")
        asked = {**settings, **({} if projections is None else {"projections": projections})}
        asked |= {"noise_floor": noise_floor} if n_splits else {}
        return _by_peer(method, data, pairs, asked, progress), None
    chosen = estimator_for(estimating.get("estimator", _ESTIMATOR), projections)
    recipe, data = projections_for(data, projections, drawing, chosen)
    found = compare(
        data, pairs, recipe, p, progress,
        estimator=chosen, device=device, precision=precision, n_splits=n_splits, halves=len(data) > 2,
    )  # fmt: skip
    return found, recipe


def _by_peer(
    method: str,
    data: Sequence[LabelledData],
    pairs: Sequence[tuple[int, int]],
    asked: Mapping[str, object],
    progress: Progress,
) -> dict[tuple[int, int], Distance]:
    """Measure by another method, which may be told only what it knows."""
    from sotdd.peers.call import current_names
    from sotdd.peers.methods import METHODS, settings_of

    if not isinstance(method, str) or method not in METHODS:
        raise SotddError(f"method is {method!r}: expected one of sotdd, {', '.join(METHODS)}.")
    asked = current_names(asked, settings_of(method), stacklevel=5)  # the caller of `pairwise`
    unknown = [name for name in asked if name not in settings_of(method)]
    if unknown:
        raise SotddError(
            f"method {method!r} has no setting {', '.join(unknown)}: it takes {', '.join(settings_of(method))}."
        )
    with reporting(progress, f"Measuring by {method}") as report:
        return METHODS[method](data, pairs, report, **asked)
