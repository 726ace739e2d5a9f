"""A test of two datasets: their points are shuffled between them, through the same projections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sotdd.chance import usable_costs
from sotdd.checks import check_count, check_order, check_seed
from sotdd.comparison import remarks_on_features
from sotdd.data import Dataset, LabelledData
from sotdd.defaults import default, given
from sotdd.distance import projections_for
from sotdd.errors import SotddError
from sotdd.inputs import labelled_pair
from sotdd.noise import rooted_means
from sotdd.progress import Progress, Report, reporting
from sotdd.projections.directions import DirectionLaw
from sotdd.projections.labels import LabelLaw
from sotdd.projections.moments import MomentLaw
from sotdd.projections.recipe import Projections
from sotdd.scaling import Scale
from sotdd.splits import Splits
from sotdd.two_sample import Statistic, TwoSampleTest, check_statistic, statistics

# Fewer than for a distance: the projections are the same for the data and for all shuffles, so their
# choice is no source of error here, and every one of them costs as much as all shuffles together.
PROJECTIONS = 128

# Splits that are made between two reports of progress.
_BATCH = 64

# Samples of points are drawn from a stream of their own; splits use 3.
_SAMPLING = 4


def test(
    a: Dataset,
    b: Dataset,
    *,
    n_permutations: int = 999,
    n_projections: int = default(PROJECTIONS),
    p: float = 2,
    statistic: Statistic = "balanced",
    max_points: int | None = None,
    n_moments: int = default(5),
    moments: MomentLaw | Sequence[float] | None = default(None),
    label: LabelLaw | None = default(None),
    directions: DirectionLaw | None = default(None),
    shared_directions: bool = default(True),
    scale: Scale = default("auto"),
    seed: int | np.random.Generator = 0,
    projections: Projections | None = None,
    device: str = "auto",
    precision: Literal["float32", "tf32"] = "float32",
    progress: Progress = None,
) -> TwoSampleTest:
    """Say whether two labelled datasets may be samples of one source: a permutation test.

    Points are shuffled between the two datasets, labels with their points, class terms are computed
    anew on each side, and the distance is measured again through the same projections. If features
    and labels of both datasets come from one joint distribution, the datasets themselves are one
    more shuffle, so the test errs in at most the stated share of cases, for any size and any law.

    The distance that is tested is the plain mean over the test's own 128 projections, since shuffles are
    judged by the same: ``distance(a, b, n_projections=128, estimator="plain")`` with the other settings
    the same. The default of `sotdd.distance` takes 1,000, leans them towards the data and controls
    them, so its number differs from this one by about the error of 128 plain projections.

    Labels are pooled by value ("cat" is "cat", 0 is not "0"). The distance itself never looks at
    their names, so the same classes under new names are not found to differ; under each other's
    names they may or may not be.

    Parameters
    ----------
    a, b
        As in `sotdd.distance`.
    n_permutations
        How many shuffles; the smallest p-value is 1 / (n_permutations + 1).
    n_projections
        How many projections. Time grows with permutations × projections × points.
    p
        The order of transport.
    statistic
        "balanced": W_p^p of each projection is divided by the root of what shuffles give under it,
        which finds more than "distance", the distance itself, where few projections of high order
        would drown the others.
    max_points
        Use a random sample of so many points of each dataset, where there are more.
    n_moments, moments, label, directions, shared_directions, scale, projections, device, precision
        As in `sotdd.distance`. A scaler that is given must not come from one of the two alone.
    seed
        Of the shuffles and, unless ``projections`` are given, of the projections.
    progress
        True for a bar, or a function of (done, total).

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 5))
    >>> y = np.where(x[:, 0] > 0, "cat", "dog")
    >>> sotdd.test((x[:200], y[:200]), (x[200:], y[200:]), n_permutations=199)
    p = 0.475: distance 0.102, by chance 0.0782 to 0.134 (199 draws, 128 projections)
    >>> wrong = rng.permutation(y)
    >>> sotdd.test((x[:200], y[:200]), (x[200:], wrong[200:]), n_permutations=199)
    p = 0.015: distance 0.136, by chance 0.0738 to 0.122 (199 draws, 128 projections)
    """
    check_count(n_permutations, "n_permutations")
    p, judged_by, key = check_order(p), check_statistic(statistic), check_seed(seed)
    data = labelled_pair(a, b)
    data, remarks = sampled(data, max_points, key)
    drawing = given(
        n_projections=n_projections,
        n_moments=n_moments,
        moments=moments,
        label=label,
        directions=directions,
        shared_directions=shared_directions,
        scale=scale,
    )
    if projections is None:
        drawing = {"n_projections": PROJECTIONS, "seed": key, **drawing}
    recipe, data = projections_for(data, projections, drawing)
    recipe.refuse_weighted("a test")
    sizes = data[0].n_points, data[1].n_points
    splits = Splits.of(data, sizes, n_permutations + 1, key, actual=True)
    with reporting(progress, "Shuffling") as report:
        costs = costs_of_splits(data, splits, recipe, p, report, device, precision)
    judged = statistics(costs, p, judged_by)
    distances = rooted_means(costs, p)
    return TwoSampleTest(
        distance=float(distances[0]),
        null_distances=distances[1:],
        statistic=float(judged[0]),
        null=judged[1:],
        judged_by=judged_by,
        p=p,
        n_points=sizes,
        n_projections=recipe.n_projections,
        fingerprint=recipe.fingerprint,
        remarks=(*remarks, *remarks_on_features(data, recipe)),
    )


def costs_of_splits(
    data: Sequence[LabelledData],
    splits: Splits,
    projections: Projections,
    p: float,
    report: Report,
    device: str = "auto",
    precision: Literal["float32", "tf32"] = "float32",
) -> NDArray[np.float64]:
    """W_p^p (L, S) between the sides of every split of the pooled datasets, under every projection."""
    from sotdd.engines.choice import engine_for

    total = projections.n_projections * len(splits)
    try:
        np.empty(total)
    except (MemoryError, ValueError) as error:
        raise SotddError(
            f"{len(splits):,} splits through {projections.n_projections:,} projections do not fit in memory: use fewer."
        ) from error
    with engine_for(device, data, projections.n_projections, precision) as active:
        columns: list[list[Any]] = [[] for _ in range(0, len(splits), _BATCH)]
        done = 0

        def deal_out(unplaced: object) -> None:
            nonlocal done
            pool = active.pool(unplaced, range(len(data)))
            for number, kept in enumerate(columns):
                batch = splits.part(number * _BATCH, (number + 1) * _BATCH)
                kept.append(active.split_costs(pool, batch, p))
                done += len(kept[-1]) * len(batch)
                report(done, total)

        for _ in active.views(data, projections, unplaced=deal_out):
            pass
        costs = np.concatenate([active.collect(kept) for kept in columns], axis=1)
    return usable_costs(costs, p)


def sampled(data: list[LabelledData], max_points: int | None, seed: int) -> tuple[list[LabelledData], tuple[str, ...]]:
    """Random samples of datasets that have more points than that, and what there is to say of it."""
    if max_points is None:
        return data, ()
    most = check_count(max_points, "max_points")
    result, remarks = [], []
    for place, part in enumerate(data):
        if part.n_points <= most:
            result.append(part)
            continue
        key = np.random.SeedSequence(seed, spawn_key=(place, _SAMPLING))
        rows = np.sort(np.random.default_rng(key).choice(part.n_points, most, replace=False))
        result.append(part.take(rows))
        remarks.append(f"{most:,} of the {part.n_points:,} points of {part.name!r} were sampled")
    return result, tuple(remarks)
