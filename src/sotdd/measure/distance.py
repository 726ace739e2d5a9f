"""The distance between two labelled datasets, with its uncertainty; and the paper's own, to the letter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Unpack, cast, get_args

from sotdd.basics.checks import check_choice, check_flag, check_order, describe
from sotdd.basics.display import Progress, report_progress
from sotdd.basics.errors import SotddError, UnknownSetting
from sotdd.basics.threads import Workers
from sotdd.compute.comparison import MOST, compare, compare_to_tolerance
from sotdd.compute.distance import Distance
from sotdd.compute.estimators import Estimator
from sotdd.compute.resampling import SPLITS
from sotdd.inputs import open_pair
from sotdd.inputs.agreement import refuse_half_labelled
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.inputs.opening import split_reading
from sotdd.measure.class_names import NamedClasses, NamesInDistance
from sotdd.projections.directions import Sphere
from sotdd.projections.drawing import DRAWING, CallSettings, Drawing, DrawingSettings, show_drawing
from sotdd.projections.recipe import Projections
from sotdd.sketches.recipe import Recipe, check_projections
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.sketching import Comparable, compare_sketches, read_sketch

# The order of transport unless another is asked for.
ORDER = 2.0

# What is not asked for unless it is given.
_DEFAULTS = {
    "p": ORDER, "method": "sotdd", "projections": None, "estimator": "controlled", "noise_floor": False,
    "label_names": "auto", "rel_tol": None,
}  # fmt: skip

# Methods that compare features alone.
_BLIND_TO_LABELS = ("frechet", "sw", "mmd")

# What the paper leaves to whoever prepares the data, and the label term that is its own.
_ITS_OWN: DrawingSettings = {"label_law": "paper", "scale": None}


class MethodSettings(CallSettings, total=False):
    """How data are read, how projections are drawn, and what else a peer takes: see `sotdd.peers`."""

    max_points: int | None
    inner: Literal["exact", "gaussian"]
    debias: Literal["difference", "powers"] | None
    bandwidth: float | None


@show_drawing()
def distance(
    a: Comparable,
    b: Comparable,
    *,
    p: float = ORDER,
    projections: Projections | None = None,
    estimator: Estimator = "controlled",
    method: str = "sotdd",
    rel_tol: float | None = None,
    max_projections: int = MOST,
    noise_floor: bool = False,
    label_names: NamesInDistance = "auto",
    device: str = "auto",
    progress: Progress = None,
    **settings: Unpack[MethodSettings],
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
    p
        The order of transport, any real number from 1.
    n_projections
        How many projections; the error falls with its square root.
    n_moments, moments, label_law
        How a class enters: "moments" (how many, and by what law their orders are drawn), "quantiles",
        or a label law; see `Projections.fit`.
    directions, label_directions
        The law of directions; and whether class terms share those of features, or have their own ("own").
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
        "controlled": directions lean towards the principal directions of the data, with weights that correct for it,
        and control variates remove most of the variance (docs/estimators.md). "plain": the mean over projections, as in
        the paper. Both are unbiased; through fixed ``projections`` only the plain mean is a metric exactly. What
        cannot be controlled is left plain, and the result's ``estimator`` says what was controlled: label laws that
        do not draw polynomials cannot be, nor other laws of directions than `Sphere` and `Hadamard`.
    method
        "sotdd", or another distance: "otdd", "otdd-gaussian", "wte", "chsw", "frechet", "sw" or "mmd". These take the
        settings and defaults that they have in `sotdd.peers`, and scale features only if told to.
    rel_tol, max_projections
        Draw until the standard error is at most ``rel_tol`` of the value, or there are
        ``max_projections``. It first looks at the error after ``n_projections``, at most 512.
    noise_floor
        Also say what two samples of the pooled data of these sizes would give: from 59 random splits of the
        pooled points, through 128 of the projections. Labels are pooled by value. See `Distance.within_noise`.
    label_names
        "ignore": names of classes do not count, only how classes lie, so that classes that exchange their names are
        no difference. "match": they count: every point carries the name of its class, and two names are as far
        apart as two random points are in their features. "auto" is "ignore", but for targets that were cut
        into ``bins``: these are numbers, which count by their value.
    device
        "cpu", "cuda" or "cuda:1" (with torch), or "auto": where the data are, or a GPU if one is
        there and the work is worth it, or else the processor.
    progress
        True for a bar, or a function of (done, total) projections.
    settings
        How tables are read, as in `open_dataset`: ``label``, ``exclude``, ``missing`` and so on. What else a peer
        takes, such as ``max_points``.

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
    0.1038 ± 0.0011 (s-OTDD, p=2, 1,000 projections)
    >>> sotdd.distance((x[:150], cats_and_dogs[:150]), (x[150:], cats_and_dogs[150:]), noise_floor=True)
    0.10176 ± 0.00063, by itself within noise (95 % limit 0.149) (s-OTDD, p=2, 1,000 projections)
    """
    sources = [(side.name if isinstance(side, LabelledData) else name, side) for name, side in (("a", a), ("b", b))]
    distances, _ = measure_pairs(
        sources, [(0, 1)], lambda **reading: open_pair(a, b, **reading),  # type: ignore[arg-type]  # no sketches are left then
        p=p, projections=projections, estimator=estimator, method=method, noise_floor=noise_floor,
        label_names=label_names, device=device, progress=progress, settings=settings,
        rel_tol=rel_tol, max_projections=max_projections,
    )  # fmt: skip
    return distances[0, 1]


@show_drawing(without=tuple(_ITS_OWN))
def paper(
    a: Dataset,
    b: Dataset,
    *,
    p: float = ORDER,
    projections: Projections | None = None,
    device: str = "auto",
    progress: Progress = None,
    **drawing: Unpack[DrawingSettings],
) -> Distance:
    """Measure s-OTDD as published: ``value ** p`` of the result is what the paper's Algorithm 1 returns.

    A plain mean over independent projections; features as the caller scaled them; moments without a cut. The
    one cut is the authors' own, of convolution projections at ±5. `distance` scales features, cuts moments of
    heavy tails and controls the variance; what that is for is in docs/estimators.md and docs/label-terms.md.

    Parameters
    ----------
    a, b
        As in `distance`. Scale features yourself, as the authors do with pictures: moments of order ten of
        values beyond a few units make the number, or overflow.
    p, n_projections, n_moments, moments, directions, seed
        As in `distance`; ``label_directions="own"`` for the paper's general definition, with φ independent of θ.
    projections
        Explicit draws, from `Projections.from_arrays`, in place of those settings.
    device, progress
        As in `distance`.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=(200, 4)), rng.integers(3, size=200)
    >>> b = rng.normal(1, 1, size=(300, 4)), rng.integers(2, size=300)
    >>> r = sotdd.paper(a, b, n_projections=500)
    >>> algorithm_1 = r.value**r.p
    >>> bool(np.isclose(algorithm_1, r.per_projection.mean()))
    True
    """
    for name in _ITS_OWN:
        if name in drawing:
            raise UnknownSetting(f"the paper's definition has no setting {name}: use sotdd.distance.")
    settings = drawing if projections is not None else {"directions": Sphere(), **drawing, **_ITS_OWN}
    return distance(
        a, b, p=p, projections=projections, estimator="plain", device=device, progress=progress,
        **cast("MethodSettings", settings),
    )  # fmt: skip


def measure_pairs(
    sources: Sequence[tuple[str, Comparable]],
    pairs: Sequence[tuple[int, int]],
    open_all: Callable[..., list[LabelledData]],
    *,
    p: float,
    projections: Projections | None,
    estimator: Estimator,
    method: str,
    noise_floor: bool,
    device: str,
    progress: Progress,
    settings: Mapping[str, Any],
    label_names: NamesInDistance = "auto",
    rel_tol: float | None = None,
    max_projections: int = MOST,
) -> tuple[dict[tuple[int, int], Distance], Projections | Recipe | None]:
    """Distances of some pairs of sources, by their numbers, and what they were measured through; None for peers, names.

    Where one of them is a sketch, all are seen through its projections; otherwise ``open_all`` opens them.
    """
    n_splits = SPLITS if check_flag(noise_floor, "noise_floor") else 0
    if not isinstance(method, str):
        raise SotddError(f"method is {describe(method)}: expected a name, such as 'sotdd' or 'otdd'.")
    given = choose_given(
        projections=projections, rel_tol=rel_tol, noise_floor=noise_floor, label_names=label_names, estimator=estimator
    )
    sources = [(name, read_sketch(one)) for name, one in sources]
    sketch = next((source for _, source in sources if isinstance(source, Sketch)), None)
    if sketch is not None:
        if method != "sotdd":
            raise SotddError(f"{sketch.name!r} is a sketch, which has no points for method {method!r}: give the data.")
        asked = [*settings, *(name for name in given if name != "estimator")]  # which would draw its projections again
        if asked:
            raise SotddError(f"{', '.join(asked)} cannot be chosen for a sketch, which has no points: leave that out.")
        distances = compare_sketches(sources, pairs, p, estimator=estimator, device=device, progress=progress)
        return distances, sketch.through
    reading, settings = split_reading(settings)
    data = open_all(**reading)
    if method not in _BLIND_TO_LABELS:
        refuse_half_labelled(data)
    if method != "sotdd":
        return _measure_by_peer(method, data, pairs, p, settings, given, device, progress), None
    chosen: Estimator = check_choice(estimator, "estimator", get_args(Estimator))
    if rel_tol is not None and projections is not None:
        raise SotddError("rel_tol is given together with projections, whose number is fixed: leave one out.")
    how: dict[str, Any] = {"device": device, "n_splits": n_splits, "estimator": chosen}
    with Workers():  # the same for fitting and comparing
        named, recipe, data = fit_named(data, label_names, projections, settings, chosen)
        if rel_tol is None:
            distances = compare(data, pairs, recipe, p, progress, halves=len(data) > 2, **how)
        else:
            distances = {(0, 1): compare_to_tolerance(data, recipe, p, rel_tol, max_projections, progress, **how)}
    if named is None:
        return distances, recipe
    return {pair: named.describe(found) for pair, found in distances.items()}, None


def choose_given(**settings: object) -> dict[str, object]:
    """Those of some settings that are not as they are by default."""
    return {
        name: value
        for name, value in settings.items()
        if value is not _DEFAULTS[name] and not (isinstance(value, (str, int, float)) and value == _DEFAULTS[name])
    }


def fit_named(
    data: Sequence[LabelledData],
    label_names: object,
    projections: Projections | None,
    settings: Mapping[str, Any],
    estimator: str,
) -> tuple[NamedClasses | None, Projections, list[LabelledData]]:
    """Fit projections to datasets that carry names of classes where these count; None for no names.

    With "auto" the numbers behind bins count, unless projections are given: they do not know them.
    """
    chosen: NamesInDistance = check_choice(label_names, "label_names", get_args(NamesInDistance))
    targets = projections is None and all(part.origin.target is not None for part in data)
    if chosen == "ignore" or (chosen == "auto" and not targets):
        return None, *fit_projections(data, projections, settings, estimator)
    named = NamedClasses.of(data, settings, projections)
    return named, *fit_projections(named.datasets, None, named.settings, estimator)


def fit_projections(
    data: Sequence[LabelledData],
    projections: Projections | None,
    settings: Mapping[str, Any],
    estimator: str = "plain",
    *,
    drawing: Drawing = DRAWING,
) -> tuple[Projections, list[LabelledData]]:
    """The given projections, or those drawn as asked, not both; and the datasets with columns in their order."""
    if projections is None:
        recipe = drawing.but(settings).fit(data, tilt=estimator != "plain")
        return recipe, [recipe.align(part) for part in data]
    check_projections(projections)
    if settings:
        raise SotddError(
            f"projections are given together with {', '.join(settings)}: they are drawn already, so leave that out."
        )
    return projections, [projections.align(part) for part in data]


def _measure_by_peer(
    method: str,
    data: Sequence[LabelledData],
    pairs: Sequence[tuple[int, int]],
    p: float,
    settings: Mapping[str, Any],
    given: Iterable[str],
    device: str,
    progress: Progress,
) -> dict[tuple[int, int], Distance]:
    """Measure by another method, which takes its own settings and none of those ``given`` to s-OTDD."""
    from sotdd.peers import METHODS
    from sotdd.peers.points import find_settings

    if method not in METHODS:
        raise SotddError(f"method is {describe(method)}: expected one of sotdd, {', '.join(METHODS)}.")
    if str(device) not in ("auto", "cpu"):
        raise SotddError(f"device is {device!r} but method {method!r} works on the processor only: leave it out.")
    known, order = find_settings(METHODS[method]), check_order(p)
    asked = {**settings, "p": order} if order != ORDER or "p" in known else settings
    unknown = [*(name for name in asked if name not in known), *given]
    if unknown:
        raise SotddError(f"method {method!r} has no setting {', '.join(unknown)}: it takes {', '.join(known)}.")
    with report_progress(progress, f"Measuring by {method}") as report:
        return METHODS[method](data, pairs, report, **asked)
