"""The distance between two labelled datasets, with its uncertainty; and the paper's own, to the letter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Unpack, cast, get_args

import numpy as np

from sotdd.basics.errors import SotddError, UnknownSetting, check_choice, check_flag, check_order, describe
from sotdd.basics.resources import Progress, Workers, report_progress
from sotdd.compute.comparison import MOST, compare, compare_to_tolerance
from sotdd.compute.distance import Distance
from sotdd.compute.estimators import Estimator
from sotdd.compute.resampling import SPLITS
from sotdd.inputs import open_pair
from sotdd.inputs.data import Dataset, LabelledData, refuse_half_labelled
from sotdd.inputs.opening import split_reading
from sotdd.measure.class_names import NamedClasses, NamesInDistance
from sotdd.projections.directions import Sphere
from sotdd.projections.projections import Projections
from sotdd.projections.settings import (
    DEFAULT_SETTINGS,
    ProjectionKeywords,
    ProjectionSettings,
    SampledSettings,
    show_settings,
)
from sotdd.sketches.saved_projections import Given, SavedProjections, check_projections
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.sketching import Comparable, compare_sketches, read_sketch

# The default order of transport.
ORDER = 2.0

# What changes the number that is measured, and so is refused where it cannot be chosen.
_CHOSEN = ("label_names", "method", "projections", "noise_floor", "p", "estimator", "rel_tol")

# Methods that compare features alone.
_BLIND_TO_LABELS = ("frechet", "sw", "mmd")

# What the paper leaves to whoever prepares the data, and the label term that is its own.
_ITS_OWN: ProjectionKeywords = {"label_law": "paper", "scale": None}


class MethodSettings(SampledSettings, total=False):
    """How data are read, how projections are drawn, and what else a peer takes: see `sotdd.peers`."""

    inner: Literal["exact", "gaussian"]
    debias: Literal["difference", "powers"] | None
    bandwidth: float | None


@dataclass(frozen=True)
class Measuring:
    """The settings of `distance` but for those by which data are read or projections drawn."""

    p: float = ORDER
    projections: Given | None = None
    estimator: Estimator = "controlled"
    method: str = "sotdd"
    noise_floor: bool = False
    label_names: NamesInDistance = "auto"
    rel_tol: float | None = None
    max_projections: int = MOST
    device: str = "auto"
    progress: Progress = None

    def list_chosen(self) -> dict[str, Any]:
        """Those that change what is measured, where they are not as they are by default."""
        usual = Measuring()
        pairs = [(name, getattr(self, name), getattr(usual, name)) for name in _CHOSEN]
        return {name: one for name, one, other in pairs if one is not other and not (np.isscalar(one) and one == other)}


@show_settings()
def distance(
    a: Comparable,
    b: Comparable,
    *,
    p: float = ORDER,
    projections: Given | None = None,
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
        is then projected by the same projections, whose settings cannot be passed as well.
    p
        The order of transport, any real number from 1.
    n_projections
        How many projections; the error falls with its square root.
    n_moments, moments, label_law
        How a class is summarised: "moments" (how many, and the law of their orders), "quantiles", or a label law; see
        `Projections.fit`.
    directions, label_directions
        The law of directions; and whether class terms share those of features, or have their own ("own").
    scale
        How features are brought to one scale, in which both datasets count the same: "features", each by its own
        robust spread; "arcsinh", the same with tails by their logarithm; "pooled", all by one number; or "auto",
        which is "arcsinh" where columns have names (frames, CSV, Parquet, Arrow) and "pooled" for arrays, images and
        embeddings. None for features as they are, or a `Scaler` to reuse.
    seed
        The seed of everything random in the call, projections, samples and splits: an integer, or a NumPy Generator.
    projections
        Projections to reuse in place of all of the above but p, or a matrix that has some: results are then comparable
        with others from the same projections. They bring their own scaler.
    estimator
        "controlled": importance sampling of directions near the principal directions of the data, and control
        variates, which remove most of the variance (docs/estimators.md). "plain": the mean over projections, as in
        the paper. Both are unbiased; through fixed ``projections`` only the plain mean is a metric exactly. Label
        laws without polynomials, and laws of directions other than `Sphere` and `Hadamard`, have no controls; the
        result's ``estimator`` says what was controlled.
    method
        "sotdd", or another distance: "otdd", "otdd-gaussian", "wte", "chsw", "frechet", "sw" or "mmd". These take the
        settings and defaults that they have in `sotdd.peers`, and scale features only on request.
    rel_tol, max_projections
        Sample projections until the standard error is at most ``rel_tol`` of the value, or there are
        ``max_projections``. The error is first checked after ``n_projections``, at most 512.
    noise_floor
        Also measure how far apart two samples of the pooled data of these sizes are: 59 random splits of the pooled
        points, through 128 of the projections. Labels are pooled by value. See `Distance.within_noise`.
    label_names
        "ignore": class names are ignored, so that classes that swap their names are no difference. "match": names
        become further coordinates, and two names are as far apart as two random points are in their features.
        "auto" is "ignore", but for targets that were cut into ``bins``, whose values are used.
    device
        "cpu", "cuda" or "cuda:1" (with torch), or "auto": where the data are, or a GPU if one is
        there and the work is worth it, or else the processor. "numpy" is the definition, slow and clear.
    progress
        True for a bar, or a function of (done, total) projections.
    settings
        How data are read, as in `open_dataset`: ``label``, ``exclude``, ``image_size``, ``max_points`` and so on. What
        else a peer takes, such as ``inner``.

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
    0.10176 ± 0.00063, by itself within noise (95 % limit 0.158) (s-OTDD, p=2, 1,000 projections)
    """
    sources = [(side.name if isinstance(side, LabelledData) else name, side) for name, side in (("a", a), ("b", b))]
    how = Measuring(
        p, projections, estimator, method, noise_floor, label_names, rel_tol, max_projections, device, progress
    )
    open_both = partial(open_pair, a, b)  # type: ignore[arg-type]  # no sketches are left where it is called
    distances, _ = measure_pairs(sources, [(0, 1)], open_both, how, settings)
    return distances[0, 1]


@show_settings(without=tuple(_ITS_OWN))
def paper(
    a: Dataset,
    b: Dataset,
    *,
    p: float = ORDER,
    projections: Given | None = None,
    device: str = "auto",
    progress: Progress = None,
    **drawing: Unpack[SampledSettings],
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
    how: Measuring,
    settings: Mapping[str, Any],
) -> tuple[dict[tuple[int, int], Distance], Projections | SavedProjections | None]:
    """Distances of some pairs of sources, by their numbers, and what they were measured through; None for peers, names.

    Where one of them is a sketch, all are projected by its projections; otherwise ``open_all`` opens them.
    """
    n_splits = SPLITS if check_flag(how.noise_floor, "noise_floor") else 0
    if not isinstance(how.method, str):
        raise SotddError(f"method is {describe(how.method)}: expected a name, such as 'sotdd' or 'otdd'.")
    sources = [(name, read_sketch(one)) for name, one in sources]
    by_peer, sketches = how.method != "sotdd", [source for _, source in sources if isinstance(source, Sketch)]
    drawn = how.projections is not None or bool(sketches)
    reading, settings = split_reading(settings, by_peer=by_peer, drawn=drawn)
    if sketches:
        return _measure_sketches(sources, pairs, how, reading, settings), sketches[0].through
    data = open_all(**reading)
    if how.method not in _BLIND_TO_LABELS:
        refuse_half_labelled(data)
    if by_peer:
        return _measure_by_peer(data, pairs, how, settings), None
    chosen: Estimator = check_choice(how.estimator, "estimator", get_args(Estimator))
    if how.rel_tol is not None and how.projections is not None:
        raise SotddError("rel_tol is given together with projections, whose number is fixed: leave one out.")
    work: dict[str, Any] = {"device": how.device, "n_splits": n_splits, "estimator": chosen}
    with Workers():  # the same for fitting and comparing
        named, recipe, data = fit_named(data, how.label_names, how.projections, settings, chosen)
        if how.rel_tol is None:
            distances = compare(data, pairs, recipe, how.p, how.progress, halves=len(data) > 2, **work)
        else:
            limits = how.rel_tol, how.max_projections
            distances = {(0, 1): compare_to_tolerance(data, recipe, how.p, *limits, how.progress, **work)}
    if named is None:
        return distances, recipe
    return {pair: named.describe(found) for pair, found in distances.items()}, None


def _measure_sketches(
    sources: Sequence[tuple[str, Comparable]],
    pairs: Sequence[tuple[int, int]],
    how: Measuring,
    reading: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> dict[tuple[int, int], Distance]:
    """Measure sketches, and data by the projections of the first; nothing else that has to do with points is taken."""
    names = [source.name for _, source in sources if isinstance(source, Sketch)]
    if how.method != "sotdd":
        raise SotddError(f"{names[0]!r} is a sketch, which has no points for method {how.method!r}: give the data.")
    unread = reading if len(names) == len(sources) else {}
    more = [*settings, *unread, *(one for one in how.list_chosen() if one not in ("p", "estimator", "projections"))]
    if more:
        raise SotddError(f"{', '.join(more)} cannot be chosen for a sketch, which has no points: leave that out.")
    given = None if how.projections is None else check_projections(how.projections)
    shown: dict[str, Any] = {"device": how.device, "progress": how.progress}
    return compare_sketches(sources, pairs, how.p, given, estimator=how.estimator, reading=reading, **shown)


def fit_named(
    data: Sequence[LabelledData],
    label_names: object,
    projections: Given | None,
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
    projections: Given | None,
    settings: Mapping[str, Any],
    estimator: str = "plain",
    *,
    drawing: ProjectionSettings = DEFAULT_SETTINGS,
    weigh_points: bool = False,
) -> tuple[Projections, list[LabelledData]]:
    """Explicit projections, or those drawn by the settings, not both; and the datasets with columns in their order."""
    if projections is None:
        recipe = drawing.but(settings).fit(data, tilt=estimator != "plain", weigh_points=weigh_points)
        return recipe, [recipe.align(part) for part in data]
    projections = check_projections(projections)
    if settings:
        raise SotddError(
            f"projections are given together with {', '.join(settings)}: they are drawn already, so leave that out."
        )
    return projections, [projections.align(part) for part in data]


def _measure_by_peer(
    data: Sequence[LabelledData], pairs: Sequence[tuple[int, int]], how: Measuring, settings: Mapping[str, Any]
) -> dict[tuple[int, int], Distance]:
    """Measure by another method, which takes its own settings and none of those of s-OTDD."""
    from sotdd.peers import METHODS
    from sotdd.peers.points import find_settings

    method = how.method
    if method not in METHODS:
        raise SotddError(f"method is {describe(method)}: expected one of sotdd, {', '.join(METHODS)}.")
    if str(how.device) not in ("auto", "cpu"):
        raise SotddError(f"device is {how.device!r} but method {method!r} works on the processor only: leave it out.")
    known, order = find_settings(METHODS[method]), check_order(how.p)
    requested = {**settings, "p": order} if order != ORDER or "p" in known else settings
    unknown = [name for name in requested if name not in known]
    unknown += [name for name in how.list_chosen() if name not in ("p", "method")]
    if unknown:
        raise SotddError(f"method {method!r} has no setting {', '.join(unknown)}: it takes {', '.join(known)}.")
    with report_progress(how.progress, f"Measuring by {method}") as report:
        return METHODS[method](data, pairs, report, **requested)
