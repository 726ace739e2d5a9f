"""The distance between two labelled datasets, with its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from sotdd.basics.defaults import default, given, value_of
from sotdd.basics.errors import SotddError
from sotdd.basics.progress import Progress
from sotdd.engines.adaptive import FIRST, MOST, to_tolerance
from sotdd.engines.comparison import compare
from sotdd.inputs import labelled_pair
from sotdd.inputs.data import LabelledData
from sotdd.projections.directions import DirectionLaw
from sotdd.projections.drawing import LabelChoice
from sotdd.projections.moments import MomentLaw
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scale
from sotdd.results.distance import Distance
from sotdd.results.estimators import check_estimator
from sotdd.results.noise import check_splits
from sotdd.sketches.making import Comparable, read_sketch, through_sketches
from sotdd.sketches.sketch import Sketch


def distance(
    a: Comparable,
    b: Comparable,
    *,
    n_projections: int = default(1000),
    p: float = 2,
    n_moments: int = default(5),
    moments: MomentLaw | Sequence[float] | None = default(None),
    label: LabelChoice | None = default(None),
    directions: DirectionLaw | None = default(None),
    shared_directions: bool = default(True),
    scale: Scale = default("auto"),
    seed: int | np.random.Generator = default(0),
    projections: Projections | None = None,
    estimator: str = default("controlled"),
    rel_tol: float | None = None,
    max_projections: int = MOST,
    noise_floor: bool | int = False,
    device: str = "auto",
    precision: Literal["float32", "tf32"] = "float32",
    progress: Progress = None,
) -> Distance:
    """Say how far apart two labelled datasets are: the sliced optimal transport dataset distance.

    Parameters
    ----------
    a, b
        ``(features, labels)``, or features alone, which is one class; or a frame, a path such as
        ``"table.csv::label=species"``, a torch or Hugging Face dataset: all that `open_dataset` opens.
        Features are any array of shape (n, ...) of real numbers; labels are any hashable values. The
        label sets need not have anything in common. Or a `Sketch`, or the path of one: the other side
        is then seen through the same projections, and no setting that draws them is given.
    n_projections
        How many projections; the error falls with its square root.
    p
        The order of transport, any real number from 1.
    n_moments, moments, label
        How a class enters: "moments" (how many, and by what law their orders are drawn), "quantiles",
        or a label law; see `Projections.fit`.
    directions, shared_directions
        The law of directions, and whether labels share them.
    scale
        How features are brought to one scale, by the pooled data: "features", each by its own robust spread;
        "pooled", all by one number; or "auto", which is "features" where columns have names (frames, CSV,
        Parquet, Arrow) and "pooled" for arrays, images and embeddings. None for features as they are, or a
        `Scaler` to reuse.
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
    noise_floor
        Also say what two samples of the pooled data of these sizes would give: from 59 random splits of the
        pooled points, or as many as given, through 128 of the projections. Labels are pooled by value. See
        `Distance.within_noise`.
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
    >>> sotdd.distance((x[:150], cats_and_dogs[:150]), (x[150:], cats_and_dogs[150:]), noise_floor=True)
    0.10176 ± 0.00063, within noise (floor 0.117) (s-OTDD, p=2, 1,000 projections)
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
    n_splits = check_splits(noise_floor)
    a, b = read_sketch(a), read_sketch(b)
    if isinstance(a, Sketch) or isinstance(b, Sketch):
        asked = {**drawing, **given(estimator=estimator), **({} if rel_tol is None else {"rel_tol": rel_tol})}
        refuse_settings(asked, projections, n_splits)
        sides = [(getattr(side, "name", place), side) for place, side in (("a", a), ("b", b))]
        return through_sketches(sides, [(0, 1)], p, device=device, precision=precision, progress=progress)[0, 1]
    datasets = labelled_pair(a, b)
    chosen = estimator_for(estimator, projections)
    if rel_tol is not None and projections is not None:
        raise SotddError("rel_tol is given together with projections, which are as many as they are: leave one out.")
    if rel_tol is not None:
        drawing.setdefault("n_projections", FIRST)
    recipe, datasets = projections_for(datasets, projections, drawing, chosen)
    if rel_tol is not None:
        return to_tolerance(
            datasets, recipe, p, rel_tol, max_projections, progress,
            estimator=chosen, device=device, precision=precision, n_splits=n_splits,
        )  # fmt: skip
    found = compare(
        datasets, [(0, 1)], recipe, p, progress,
        estimator=chosen, device=device, precision=precision, n_splits=n_splits,
    )  # fmt: skip
    return found[0, 1]


def estimator_for(estimator: str, projections: Projections | None) -> str:
    """The estimator asked for; by default the plain one where projections are given."""
    if projections is not None and not given(estimator=estimator):
        return "plain"
    return check_estimator(value_of(estimator))


def refuse_settings(drawing: dict[str, Any], projections: Projections | None, n_splits: int) -> None:
    """Sketches are drawn already: refuse settings that would draw, projections beside theirs, and splits of points."""
    if n_splits:
        raise SotddError("a noise floor deals out points, which a sketch has none of: compare the data themselves.")
    asked = [*drawing, *([] if projections is None else ["projections"])]
    if asked:
        raise SotddError(f"{', '.join(asked)} cannot be chosen for a sketch, which is made already: leave that out.")


def projections_for(
    datasets: Sequence[LabelledData], projections: Projections | None, drawing: dict[str, Any], estimator: str = "plain"
) -> tuple[Projections, list[LabelledData]]:
    """The given projections, or drawn as asked, not both; and the datasets with columns in their order."""
    if projections is None:
        data = list(datasets)
        if estimator == "plain":
            return Projections.fit(data, **drawing), data
        from sotdd.engines.cpu.workers import Workers

        with Workers(1):  # BLAS is held to one thread, so that the tilt has the same bits for any number of them
            return Projections.fit(data, **drawing, tilt=True), data
    if not isinstance(projections, Projections):
        raise SotddError(
            f"projections is a {type(projections).__name__}: expected Projections.fit(...) or from_arrays(...)."
        )
    if drawing:
        raise SotddError(
            f"projections are given together with {', '.join(drawing)}: they are drawn already, so leave that out."
        )
    return projections, [projections.aligned(data) for data in datasets]
