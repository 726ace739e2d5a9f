"""Why two datasets are as far apart as they are: features or labels, which features and which classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_count, check_order
from sotdd.basics.display import Progress, Report, report_progress
from sotdd.basics.errors import SotddError
from sotdd.compute.comparison import Comparison, check_memory
from sotdd.compute.cpu.workers import Workers
from sotdd.compute.distance import Distance
from sotdd.compute.engine import ByClass, Engine, Seen
from sotdd.compute.estimators import Estimator
from sotdd.compute.resampling import HALVINGS, SPLITS, Plan, Resample, make_seed
from sotdd.compute.run import choose_engine, run
from sotdd.inputs import open_pair
from sotdd.inputs.agreement import refuse_half_labelled
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.measure.class_names import NamesInDistance
from sotdd.measure.distance import ORDER, choose_estimator, fit_named
from sotdd.measure.explanation.classes import (
    ClassComparison,
    ClassCosts,
    Pair,
    correct_for_all,
    find_same_names,
    match_classes,
    plan_halves,
    plan_pairs,
)
from sotdd.measure.explanation.feature_comparison import (
    FeaturePool,
    FeatureTests,
    find_contributions,
    find_directions,
    find_features,
)
from sotdd.measure.explanation.features import LEVEL, CorrelationChange, FeatureShare, FeatureShares
from sotdd.measure.explanation.result import Explanation
from sotdd.projections.drawing import DrawingSettings, show_drawing
from sotdd.projections.recipe import Projections

Doubles = NDArray[np.float64]

# How often half of the points of each are compared, which tells how shares vary from sample to sample.
_HALF_SAMPLES = 24
# Two passes, and features.
_STAGES = 3
# With fewer splits no outcome of the data is rarer than 5 %.
_FEWEST_SPLITS = 19

# How often points are split for the shares of chance, and halved for their errors; and along how many directions.
_SPLITS = 8
_HALVES = 6
_DIRECTIONS = 16


@show_drawing()
def explain(
    a: Dataset,
    b: Dataset,
    *,
    p: float = ORDER,
    projections: Projections | None = None,
    estimator: Estimator = "auto",
    n_splits: int = SPLITS,
    label_names: NamesInDistance = "auto",
    device: str = "auto",
    progress: Progress = None,
    **drawing: Unpack[DrawingSettings],
) -> Explanation:
    """Say why two labelled datasets are as far apart as they are.

    Measures the distance, measures it again with all labels forgotten, and compares every class of
    one with every class of the other, all through the same projections. Then it compares the points feature by
    feature. Points are split at random beside each, so that only what is beyond noise is given a cause.

    Parameters
    ----------
    a, b, p, n_projections, n_moments, moments, label_law, directions, scale, seed
        As in `distance`, which with the same settings gives the same number, to the last bit.
    projections, estimator
        As in `distance`. Shares and class distances are means over the same projections, each counting
        as it does in the distance; they have no controls.
    n_splits
        How often points are split for each noise floor: of the distance, of the distance without labels, and
        of each class with its counterpart. Fewer are faster; 19 at least.
    label_names
        As in `distance`. With "match" classes carry their names wherever they are compared here.
    device
        Where the work is done, as in `distance`. Features are compared on the processor, by a sample of rows.
    progress
        True for a bar, or a function of (done, total).

    Returns
    -------
    Explanation
        The distance and its noise floor; the parts of what is beyond noise, by features and labels; which features
        make it, by name; the matrix of class distances; for every class its nearest class on the other side, its
        share, whether it has a counterpart and whether it has moved; which names have changed.

    Examples
    --------
    One class of three moves:

    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["cat", "dog", "owl"], 100)
    >>> centres = np.repeat([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]], 100, axis=0)
    >>> moved = centres + np.repeat([[0.0, 0.0], [0.0, 0.0], [3.0, 3.0]], 100, axis=0)
    >>> why = sotdd.explain((centres + rng.normal(size=(300, 2)), y), (moved + rng.normal(size=(300, 2)), y))
    >>> print(why.shares[1].round(2), why.classes[1])
    [0.02 0.07 0.9 ] ('cat', 'dog', 'owl')
    >>> why.without_counterpart
    (('owl',), ('owl',))
    """
    order, chosen = check_order(p), choose_estimator(estimator)
    opened = open_pair(a, b)
    refuse_half_labelled(opened)
    named, recipe, datasets = fit_named(opened, label_names, projections, drawing, chosen)
    splits, count = _check_splits(n_splits), recipe.n_projections
    labelled = any(len(data.classes) > 1 for data in datasets)
    plain = list(map(_forget_labels, datasets if named is None else named.forget_names())) if labelled else []
    check_memory(4, 2, count, splits, chosen)
    with report_progress(progress, "Explaining") as report, choose_engine(device, datasets, count) as engine:
        first, second, third = (_report_stage(report, number) for number in range(_STAGES))
        distance, unlabelled, classes, resampled = _compare(
            datasets, plain, recipe, order, splits, engine, chosen, first
        )
        pairs, p_values = _match(datasets, classes, recipe, splits, engine, second)
        label = None if named is None else "(target)" if named.counts_targets else "(label)"
        features = explain_features(datasets, recipe, order, FeatureNames.of(opened, label), splits, third)
    if named is not None:
        distance, unlabelled = named.describe(distance), named.describe(unlabelled)
    return Explanation(features.datasets, distance, unlabelled, classes, pairs, p_values, resampled, features)


def _compare(
    datasets: list[LabelledData],
    plain: list[LabelledData],
    recipe: Projections,
    p: float,
    n_splits: int,
    engine: Engine,
    estimator: Estimator,
    report: Report,
) -> tuple[Distance, Distance, ClassComparison, Doubles]:
    """The first pass: the distance with labels and without, every two classes, halves of classes and of datasets.

    ``plain`` are the datasets with their labels forgotten; none where there are no labels to forget. Returns the
    distance, that without labels, the classes, and W_p^p (2, S) of half samples with labels and without.
    """
    together = [*datasets, *plain]
    pairs = [(0, 1), (2, 3)] if plain else [(0, 1)]
    comparison = Comparison(together, pairs, recipe, p, engine, estimator=estimator, n_splits=n_splits)
    classes = ClassCosts(datasets, (len(together), len(together) + 1), p, engine)
    with_labels = Plan.of_half_samples(datasets, (0, 1), _HALF_SAMPLES, make_seed(recipe), (p,))
    without = replace(with_labels, codes=np.zeros_like(with_labels.codes))
    halves = plan_halves(datasets, p)
    plans = [with_labels, without, *(plan for side in halves for plan in side if plan is not None)]
    resample = Resample(plans, engine, recipe.n_projections)
    seen: list[Seen] = [*together, *map(ByClass, datasets)]
    run(seen, recipe, engine, [*comparison.collectors, classes, resample], report)
    distances = comparison.conclude()
    found = iter(means[:, 0] for means in resample.means())
    resampled = np.array([next(found), next(found)])
    unknown = np.full(HALVINGS, np.nan)
    first, second = (np.array([unknown if plan is None else next(found) for plan in side]) for side in halves)
    return distances[0, 1], distances[pairs[-1]], classes.conclude((first, second)), resampled


def _match(
    datasets: Sequence[LabelledData],
    comparison: ClassComparison,
    recipe: Projections,
    n_splits: int,
    engine: Engine,
    report: Report,
) -> tuple[tuple[Pair, ...], dict[Pair, float]]:
    """The second pass: which classes belong together, and how likely chance alone puts them this far apart.

    Of classes of one name that do not belong together, the latter as well.
    """
    classes = [data.classes for data in datasets]
    pairs = match_classes(comparison, classes)
    asked = list(dict.fromkeys([*pairs, *find_same_names(classes)]))
    plans = plan_pairs(datasets, asked, n_splits, make_seed(recipe), comparison.p)
    resample = Resample(plans, engine, recipe.n_projections, report)
    run(datasets, recipe, engine, [resample])
    p_values = correct_for_all(np.array([means[:, 0] for means in resample.means()]))
    return tuple(pairs), dict(zip(asked, p_values.tolist(), strict=True))


def _check_splits(n_splits: object) -> int:
    count = check_count(n_splits, "n_splits")
    if count < _FEWEST_SPLITS:
        raise SotddError(f"n_splits is {count}: expected at least {_FEWEST_SPLITS}, such as {SPLITS}.")
    return count


def _forget_labels(data: LabelledData) -> LabelledData:
    """The same points as one class."""
    return replace(data, classes=("all",), codes=np.zeros(data.n_points, np.int32))


def _report_stage(report: Report, number: int) -> Report:
    """Progress of one of the stages, as part of the whole."""
    return lambda done, total: report(number * 1000 + 1000 * done // total, 1000 * _STAGES)


# ------------------------------------------------------------------ features


@dataclass(frozen=True)
class FeatureNames:
    """What datasets and the columns of their points are called.

    Attributes
    ----------
    datasets
        The two datasets.
    names
        Of the features themselves, in the order of columns.
    noun
        What one of them is called.
    shape
        That of a point, where points are images.
    label
        What the columns after the features are called, all of them as one; None where there are none.
    categories
        Columns of tables whose values are features, such as "city=Rome".
    """

    datasets: tuple[str, str]
    names: tuple[str, ...]
    noun: str
    shape: tuple[int, ...] | None
    label: str | None = None
    categories: tuple[str, ...] = ()

    @classmethod
    def of(cls, datasets: Sequence[LabelledData], label: str | None = None) -> FeatureNames:
        """Of datasets without names of classes in their features."""
        data = datasets[0]
        one, other = (part.name for part in datasets)
        called = one, other if other != one else f"{other} (2)"
        columns = next((part.columns for part in datasets if part.columns is not None), None)
        if columns is not None:
            categories = tuple(dict.fromkeys(name for part in datasets for name in part.origin.one_hot))
            return cls(called, columns, "column", None, label, categories)
        if not _is_image(data.point_shape):
            names = tuple(f"feature {number}" for number in range(data.n_features))
            return cls(called, names, "feature", None, label)
        pixels = tuple("pixel " + ", ".join(map(str, place)) for place in np.ndindex(data.point_shape))
        return cls(called, pixels, "pixel", data.point_shape, label)

    def groups(self, n_columns: int) -> NDArray[np.int64]:
        """Of every column which category it is a value of, labels among them; -1 for none."""
        found = np.full(n_columns, -1)
        found[len(self.names) :] = len(self.categories)
        for number, category in enumerate(self.categories):
            found[[place for place, name in enumerate(self.names) if name.startswith(f"{category}=")]] = number
        return found

    @property
    def all_names(self) -> tuple[str, ...]:
        """With that of labels, where they are among the features."""
        return self.names if self.label is None else (*self.names, self.label)


def explain_features(
    datasets: Sequence[LabelledData], recipe: Projections, p: float, names: FeatureNames, n_splits: int, report: Report
) -> FeatureShares:
    """Say which features make the distance between points, and which of them differ beyond noise."""
    seed = make_seed(recipe)
    d = datasets[0].n_features
    with Workers() as workers:
        pool = FeaturePool.of(datasets, recipe.scaler, seed, workers)
        theta = find_directions(d, seed)
        whole = find_contributions(pool, pool.side, theta, p, workers)
        report(1, 3)
        plan = pool.plan_splits(1 + n_splits, seed)
        sides = [plan.mark_sides(number) for number in range(1 + n_splits)]
        halves = [pool.plan_halves(_HALVES, seed).mark_sides(number) for number in range(_HALVES)]
        few = theta[:_DIRECTIONS]
        split, halved = (
            np.array([find_contributions(pool, side, few, p, workers).mean(axis=0) for side in some])
            for some in (sides[1 : 1 + _SPLITS], halves)
        )
        report(2, 3)
        tests = find_features(pool, theta, p, np.stack(sides), LEVEL, seed, workers, names.groups(d))
        report(3, 3)
    return _share_out(names, whole, split, halved, tests, pool.summary)


def _share_out(
    names: FeatureNames, whole: Doubles, split: Doubles, halved: Doubles, tests: FeatureTests, summary: Doubles
) -> FeatureShares:
    """Put it together: parts less those of noise, as shares; of directions, splits and halves, each (R, d + 1)."""
    d = len(names.names)
    table, split, halved = (_sum_labels(part, d) for part in (whole, split, halved))
    p_values = tests.p_values
    if len(p_values) > d:  # the columns of labels count as one
        p_values = np.append(p_values[:d], p_values[d:].min())
    p_values = np.append(p_values, tests.together)
    parts, by_chance = table.mean(axis=0), split.mean(axis=0)
    total = float(parts.sum()) or 1.0
    beyond = p_values <= LEVEL
    excess = float((parts - by_chance)[beyond].sum())
    if excess > 0:
        shares = np.where(beyond, (parts - by_chance) / excess, 0.0)
        stderr = _find_errors(table, split, halved, shares, beyond) / excess
    else:
        shares, stderr = np.full((2, len(parts)), np.nan)
    numbers = np.stack([shares, stderr, p_values, parts / total, by_chance / total])  # (5, d + 1), or one more
    known = np.full((2, 3, len(parts)), np.nan)  # labels, and what is together, have no quartiles and no mean
    known[:, :, :d] = summary[:, :, :d]
    columns = []
    for at, name in enumerate((*names.all_names, "together")):
        share, error, p_value, raw, chance = numbers[:, at].tolist()
        (low, high, mean), (low2, high2, mean2) = known[:, :, at].tolist()
        middle, means = ((low, high), (low2, high2)), (mean, mean2)
        columns.append(FeatureShare(name, share, error, p_value, raw, chance, middle, means))
    together = columns.pop()
    return FeatureShares(names.datasets, names.noun, names.shape, tuple(columns), together, _name_pairs(tests, names))


def _find_errors(
    table: Doubles, split: Doubles, halved: Doubles, shares: Doubles, beyond: NDArray[np.bool_]
) -> Doubles:
    """Standard errors of the parts beyond noise, less shares of their sum: over directions, splits and samples."""
    rest, of_splits, of_halves = (
        np.where(beyond, part - shares * part[:, beyond].sum(axis=1, keepdims=True), 0.0)
        for part in (table, split, halved)
    )
    variance = of_halves.var(axis=0, ddof=1) + of_splits.var(axis=0, ddof=1) / len(split)
    if len(rest) > 1:
        variance += rest.var(axis=0, ddof=1) / len(rest)
    errors: Doubles = np.sqrt(variance)
    return errors


def _sum_labels(table: Doubles, d: int) -> Doubles:
    """Columns after the first d, but for the last of the table, summed up to one."""
    if table.shape[1] == d + 1:
        return table
    return np.column_stack([table[:, :d], table[:, d:-1].sum(axis=1), table[:, -1]])


def _name_pairs(tests: FeatureTests, names: FeatureNames) -> tuple[CorrelationChange, ...]:
    """Pairs by name; those of one name, as of the columns of labels, are left out, and the first of each two kept."""
    every, d = names.all_names, len(names.names)
    found: dict[tuple[str, str], CorrelationChange] = {}
    for i, j, first, second in tests.pairs:
        both = every[min(i, d)], every[min(j, d)]
        if both[0] != both[1]:
            found.setdefault(both, CorrelationChange(both, (first, second)))
    return tuple(found.values())


def _is_image(shape: tuple[int, ...]) -> bool:
    """Whether points of this shape can be looked at: rows and columns, and colours first or last."""
    return (len(shape) == 2 and min(shape) > 1) or (len(shape) == 3 and (shape[0] <= 4 or shape[-1] <= 4))
