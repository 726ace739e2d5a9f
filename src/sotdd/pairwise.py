"""Distances between every two of several datasets, measured together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal

import numpy as np

from sotdd.data import Dataset
from sotdd.defaults import default, given
from sotdd.distance import projections_for, transports
from sotdd.matrix import DistanceMatrix
from sotdd.progress import Progress
from sotdd.projections.directions import DirectionLaw
from sotdd.projections.labels import LabelLaw
from sotdd.projections.moments import MomentLaw
from sotdd.projections.recipe import Projections, labelled
from sotdd.result import Distance
from sotdd.scaling import Scaler


def pairwise(
    datasets: Mapping[str, Dataset] | Sequence[Dataset],
    *,
    n_projections: int = default(1000),
    p: float = 2,
    n_moments: int = default(5),
    moments: MomentLaw | Sequence[float] | None = default(None),
    label: LabelLaw | None = default(None),
    directions: DirectionLaw | None = default(None),
    shared_directions: bool = default(True),
    scale: Literal["pooled"] | Scaler | None = default("pooled"),
    seed: int | np.random.Generator = default(0),
    projections: Projections | None = None,
    progress: Progress = None,
) -> DistanceMatrix:
    """Say how far apart every two of several datasets are.

    Every dataset is projected and sorted once; all pairs come from that. One scaler serves
    all, so the distances can be compared with each other.

    Parameters
    ----------
    datasets
        Datasets by name, or a list of them, named by their places.
    n_projections, p, n_moments, moments, label, directions, shared_directions, scale, seed, projections, progress
        As in `distance`.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> sotdd.pairwise({"here": x, "there": x + 3}, n_projections=500)
           here           there
    here   0              1.016 ± 0.037
    there  1.016 ± 0.037  0
    """
    data = labelled(datasets)
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
    recipe = projections_for(data, projections, drawing)
    pairs = list(combinations(range(len(data)), 2))
    per_projection = transports(data, pairs, recipe, p, progress)
    distances = {
        (i, j): Distance.from_projections(
            data[i], data[j], row, p, fingerprint=recipe.fingerprint, scaler=recipe.scaler
        )
        for (i, j), row in zip(pairs, per_projection, strict=True)
    }
    return DistanceMatrix(tuple(part.name for part in data), distances)
