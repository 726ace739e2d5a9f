"""The distance between two labelled datasets, with its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from sotdd.adaptive import FIRST, MOST, to_tolerance
from sotdd.comparison import compare
from sotdd.data import Dataset, LabelledData, labelled_pair
from sotdd.defaults import default, given, value_of
from sotdd.errors import SotddError
from sotdd.estimators import check_estimator
from sotdd.progress import Progress
from sotdd.projections.directions import DirectionLaw
from sotdd.projections.labels import LabelLaw
from sotdd.projections.moments import MomentLaw
from sotdd.projections.recipe import Projections
from sotdd.result import Distance
from sotdd.scaling import Scaler


def distance(
    a: Dataset,
    b: Dataset,
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
    estimator: str = default("controlled"),
    rel_tol: float | None = None,
    max_projections: int = MOST,
    device: str = "auto",
    precision: Literal["float32", "tf32"] = "float32",
    progress: Progress = None,
) -> Distance:
    """Say how far apart two labelled datasets are: the sliced optimal transport dataset distance.

    Parameters
    ----------
    a, b
        ``(features, labels)``, or features alone, which is one class. Features are any array of
        shape (n, ...) of real numbers, memory-mapped ones included; labels are any hashable values.
        The label sets need not have anything in common.
    n_projections
        How many projections; the error falls with its square root.
    p
        The order of transport, any real number from 1.
    n_moments, moments, label
        How many moments of a class enter and by what law their orders are drawn, or another label
        law altogether; see `Projections.fit`.
    directions, shared_directions
        The law of directions, and whether labels share them.
    scale
        "pooled" to centre and scale features by the pooled data, None for features as they are,
        or a `Scaler` to reuse.
    seed
        An integer, or a NumPy Generator.
    projections
        Projections to reuse in place of all of the above but p: results are then comparable with
        others from the same projections. They bring their own scaler.
    estimator
        "controlled": directions lean towards the principal directions of the data, with weights that
        put it right, and control variates take away most of the variance: about a fifth of the error or
        less for the same time, between datasets that differ. "plain": the mean over projections, as in
        the paper. Both are unbiased; through fixed projections only the plain one is a metric exactly,
        so it is the default where ``projections`` are given. What cannot be controlled is left plain, and
        the result's ``estimator`` says what was: label laws that do not draw polynomials, other laws of
        directions than `Sphere`, directions of the labels' own.
    rel_tol, max_projections
        Draw until the standard error is at most ``rel_tol`` of the value, or there are
        ``max_projections``; ``n_projections`` are then only the first, 512 by default.
    device
        "cpu", "cuda" or such as "cuda:1" (with torch), or "auto": where the data are, or a GPU if one is
        there and the work is worth it, or else the processor.
    precision
        Of products on a GPU: "float32", or "tf32", which is faster and rougher.
    progress
        True for a bar, or a function of (done, total) projections.

    Returns
    -------
    Distance
        The value, its standard error and interval, and W_p^p of every projection.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(300, 5))
    >>> cats_and_dogs = np.where(x[:, 0] > 0, "cat", "dog")
    >>> birds = rng.integers(3, size=300)
    >>> sotdd.distance((x, cats_and_dogs), (x, cats_and_dogs)).value
    0.0
    >>> sotdd.distance((x, cats_and_dogs), (x, birds))
    0.1029 ± 0.0011 (s-OTDD, p=2, 1,000 projections)
    """
    datasets = labelled_pair(a, b)
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
    chosen = estimator_for(estimator, projections)
    if rel_tol is not None and projections is not None:
        raise SotddError("rel_tol is given together with projections, which are as many as they are: leave one out.")
    if rel_tol is not None:
        drawing.setdefault("n_projections", FIRST)
    recipe = projections_for(datasets, projections, drawing, chosen)
    if rel_tol is not None:
        return to_tolerance(
            datasets, recipe, p, rel_tol, max_projections, progress,
            estimator=chosen, device=device, precision=precision,
        )  # fmt: skip
    return compare(datasets, [(0, 1)], recipe, p, progress, estimator=chosen, device=device, precision=precision)[0, 1]


def estimator_for(estimator: str, projections: Projections | None) -> str:
    """The estimator asked for; by default the plain one where projections are given."""
    if projections is not None and not given(estimator=estimator):
        return "plain"
    return check_estimator(value_of(estimator))


def projections_for(
    datasets: Sequence[LabelledData], projections: Projections | None, drawing: dict[str, Any], estimator: str
) -> Projections:
    """Use the given projections, or draw them as asked; not both."""
    if projections is None:
        if estimator == "plain":
            return Projections.fit(list(datasets), **drawing)
        from sotdd.engines.workers import Workers

        with Workers(1):  # BLAS is held to one thread, so that the tilt has the same bits for any number of them
            return Projections.fit(list(datasets), **drawing, tilt=True)
    if not isinstance(projections, Projections):
        raise SotddError(
            f"projections is a {type(projections).__name__}: expected Projections.fit(...) or from_arrays(...)."
        )
    if drawing:
        raise SotddError(
            f"projections are given together with {', '.join(drawing)}: they are drawn already, so leave that out."
        )
    for data in datasets:
        projections.check(data)
    return projections
