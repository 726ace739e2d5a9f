"""Why two datasets are as far apart as they are: features or labels, which features and which classes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import check_choice, check_order
from sotdd.basics.resources import Progress, Report, report_progress
from sotdd.compute.comparison import Comparison, check_memory
from sotdd.compute.distance import Distance
from sotdd.compute.engine import Engine, choose_engine
from sotdd.compute.estimators import Estimator
from sotdd.compute.resampling import SPLITS, Plan, Resampling
from sotdd.compute.slices import slice_datasets
from sotdd.inputs import open_pair
from sotdd.inputs.data import Dataset, LabelledData, refuse_half_labelled
from sotdd.inputs.opening import split_reading
from sotdd.measure.class_names import NamesInDistance
from sotdd.measure.classes import ClassComparison, ClassCosts, match_classes
from sotdd.measure.comparison import DEFAULT_SETTINGS as TEST_SETTINGS
from sotdd.measure.comparison import Permuting, compare_pair, split_seed
from sotdd.measure.distance import ORDER, fit_named, fit_projections
from sotdd.measure.explanation import Explanation
from sotdd.measure.shares import share_changes
from sotdd.projections.projections import Projections
from sotdd.projections.settings import SampledSettings, show_settings
from sotdd.sketches.saved_projections import Given, check_projections

Doubles = NDArray[np.float64]

# How often half of the points of each are compared, which tells how shares vary from sample to sample.
_HALF_SAMPLES = 24
# The test, and two passes.
_STAGES = 3


@show_settings()
def explain(
    a: Dataset,
    b: Dataset,
    *,
    p: float = ORDER,
    projections: Given | None = None,
    estimator: Estimator = "controlled",
    label_names: NamesInDistance = "auto",
    n_permutations: int = 999,
    device: str = "auto",
    progress: Progress = None,
    **drawing: Unpack[SampledSettings],
) -> Explanation:
    """Say why two labelled datasets are as far apart as they are.

    Begins with `sotdd.test`: whether they differ at all, and which columns, pairs of columns and classes changed.
    Measures the distance, measures it again with all labels forgotten, and compares every class of one with every class
    of the other, all through the same projections. Which classes belong together is found from the data, so what is
    said of single classes is approximate: where the test finds no difference, it says that it is not confirmed.

    Parameters
    ----------
    a, b, p, n_projections, n_moments, moments, label_law, directions, scale, seed
        As in `distance`, which with the same settings gives the same number, to the last bit.
    projections, estimator
        As in `distance`. Shares and class distances are means over the same projections, each counting
        as it does in the distance; they have no controls.
    label_names
        As in `distance`. With "match" classes carry their names wherever they are compared here.
    n_permutations
        How many permutations its test takes, at most, as in `test`.
    device
        Where the work is done, as in `distance`.
    progress
        True for a bar, or a function of (done, total).

    Returns
    -------
    Explanation
        The test; the distance and its noise floor; the parts of what is beyond noise, by features and labels; which
        columns make it; the matrix of class distances; for every class its nearest class on the other side, its share,
        whether it has a counterpart and whether it has moved; which names have changed.

    Examples
    --------
    One class of three moves:

    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["cat", "dog", "owl"], 100)
    >>> centres = np.repeat([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]], 100, axis=0)
    >>> moved = centres + np.repeat([[0.0, 0.0], [0.0, 0.0], [3.0, 3.0]], 100, axis=0)
    >>> why = sotdd.explain((centres + rng.normal(size=(300, 2)), y), (moved + rng.normal(size=(300, 2)), y))
    >>> [(line.label, round(line.share, 2), line.counterpart) for line in why.lines(1)]
    [('owl', 0.9, None), ('dog', 0.07, 'dog'), ('cat', 0.02, 'cat')]
    """
    order = check_order(p)
    chosen: Estimator = check_choice(estimator, "estimator", get_args(Estimator))
    reading, settings = split_reading(drawing)
    seed, drawn = split_seed(settings, projections)
    opened = open_pair(a, b, **{**reading, "seed": seed})
    refuse_half_labelled(opened)
    named, recipe, datasets = fit_named(opened, label_names, projections, drawn, chosen)
    count = recipe.n_projections
    labelled = any(len(data.classes) > 1 for data in datasets)
    nameless = (datasets if named is None else named.forget_names()) if labelled else []
    plain = [replace(data, classes=("all",), codes=np.zeros(data.n_points, np.int32)) for data in nameless]
    check_memory(4, 2, count, SPLITS, chosen)
    with report_progress(progress, "Explaining") as report:
        first, second, third = (_report_stage(report, number) for number in range(_STAGES))
        drawn.pop("n_projections", None)  # of the distance
        how = Permuting(order, n_permutations, label_names="match" if label_names == "match" else "ignore")
        few = None if projections is None else check_projections(projections)
        if few is not None and few.seed is not None and few.n_projections > TEST_SETTINGS.n_projections:
            few = few.from_block(0, TEST_SETTINGS.n_projections)  # of which permutations need no more
        fit = partial(fit_projections, projections=few, settings=drawn, drawing=TEST_SETTINGS, weigh_points=True)
        test = compare_pair(opened, fit, how, seed, device=device, progress=first, with_shares=True)
        with choose_engine(device, datasets, count) as engine:
            distance, unlabelled, classes, resampled = _compare(datasets, plain, recipe, order, engine, chosen, second)
            matching = match_classes(datasets, recipe, order, engine, third)
    if named is not None:
        distance, unlabelled = named.describe(distance), named.describe(unlabelled)
        test = replace(test, changes=share_changes(test.changes, opened, recipe, order, datasets))
    one, other = (part.name for part in opened)
    names = one, other if other != one else f"{other} (2)"
    return Explanation(names, test, distance, unlabelled, classes, matching, resampled)


def _compare(
    datasets: list[LabelledData],
    plain: list[LabelledData],
    recipe: Projections,
    p: float,
    engine: Engine,
    estimator: Estimator,
    report: Report,
) -> tuple[Distance, Distance, ClassComparison, Doubles]:
    """The first pass: the distance with labels and without, every two classes, and halves of the datasets.

    ``plain`` are the datasets with their labels forgotten; none where there are no labels to forget. Returns the
    distance, that without labels, the classes, and W_p^p (2, S) of half samples with labels and without.
    """
    together = [*datasets, *plain]
    pairs = [(0, 1), (2, 3)] if plain else [(0, 1)]
    comparison = Comparison(together, pairs, recipe, p, estimator=estimator, n_splits=SPLITS)
    by_class = len(together), len(together) + 1  # the datasets again, each class sorted on its own
    classes = ClassCosts(datasets, by_class, p)
    with_labels = Plan.of_half_samples(datasets, (0, 1), _HALF_SAMPLES, recipe.split_seed, (p,))
    without = replace(with_labels, codes=np.zeros_like(with_labels.codes))
    resampling = Resampling([with_labels, without])
    unsorted = max(comparison.unsorted, resampling.n_projections)
    for slices in slice_datasets(
        [*together, *datasets], recipe, engine,
        class_moments=comparison.class_moments, unsorted=unsorted, by_class=by_class, report=report,
    ):  # fmt: skip
        comparison.add(slices)
        classes.add(slices)
        resampling.add(slices)
    distances, resampled = comparison.conclude(), np.array([means[:, 0] for means in resampling.average()])
    return distances[0, 1], distances[pairs[-1]], classes.conclude(), resampled


def _report_stage(report: Report, number: int) -> Report:
    """Progress of one of the stages, as part of the whole."""
    return lambda done, total: report(number * 1000 + 1000 * done // total, 1000 * _STAGES)
