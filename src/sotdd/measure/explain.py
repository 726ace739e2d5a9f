"""Why two datasets are as far apart as they are: features or labels, which features and which classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_count, check_order
from sotdd.basics.errors import SotddError
from sotdd.basics.progress import Progress, Report, reporting
from sotdd.basics.streams import Stream, generator
from sotdd.engines.chance import seed_of
from sotdd.engines.class_comparison import chance_of_any, compare_classes, deals_of_pairs
from sotdd.engines.comparison import compare
from sotdd.engines.cpu.workers import Workers
from sotdd.engines.feature_chance import FeatureChance, features_by_chance
from sotdd.engines.feature_shares import Contributions, FeaturePool, Sides, contributions, directions_for, leading
from sotdd.engines.protocol import Precision
from sotdd.engines.splits import Deal, HalfSamples, deal_out
from sotdd.inputs import labelled_pair
from sotdd.inputs.comparable import refuse_half_labelled
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.measure.class_names import NamedClasses, NamesInDistance, names_count
from sotdd.measure.distance import ORDER, chosen_estimator, projections_for
from sotdd.projections.drawing import DrawingSettings, shows_drawing
from sotdd.projections.recipe import Projections
from sotdd.results.classes import ClassComparison, ClassMatches, match_classes, same_names
from sotdd.results.estimators import Estimator
from sotdd.results.explanation import Explanation
from sotdd.results.features import LEVEL, CorrelationChange, FeatureShare, FeatureShares, LeadingDirection
from sotdd.results.noise import SPLITS

Doubles = NDArray[np.float64]

# How often half of the points of each are compared, which tells how shares vary from sample to sample.
_HALF_SAMPLES = 24
# With labels, without them, by class, dealt out, by feature.
_STAGES = 5
# With fewer splits no outcome of the data is rarer than 5 %.
_FEWEST_SPLITS = 19

# How often points are split for the shares of chance, and halved for their errors; and along how many directions.
_SPLITS = 8
_HALVES = 6
_DIRECTIONS = 16

# Name at most this many directions, and only for data with few features. One that is stronger than those of all of
# these splits is beyond noise.
_LEADING = 3
_MOST_TURNED = 2048
_SPLITS_TURNED = 19


@shows_drawing()
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
    precision: Precision = "float32",
    progress: Progress = None,
    **drawing: Unpack[DrawingSettings],
) -> Explanation:
    """Say why two labelled datasets are as far apart as they are.

    Measures the distance, measures it again with all labels forgotten, and compares every class of
    one with every class of the other, all through the same projections. Then it compares the points feature by
    feature. Points are dealt out at random beside each, so that only what is beyond noise is given a cause.

    Parameters
    ----------
    a, b, p, n_projections, n_moments, moments, label_law, directions, shared_directions, scale, seed
        As in `distance`, which with the same settings gives the same number, to the last bit.
    projections, estimator
        As in `distance`. Shares and class distances are means over the same projections, each counting
        as it does in the distance; they have no controls.
    n_splits
        How often points are dealt out for each noise floor: of the distance, of the distance without labels, and
        of each class with its counterpart. Fewer are faster; 19 at least.
    label_names
        As in `distance`. With "match" classes carry their names wherever they are compared here.
    device, precision
        Where the distances are measured, as in `distance`. Classes are compared on the processor.
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
    order, chosen = check_order(p), chosen_estimator(estimator)
    opened = labelled_pair(a, b)
    refuse_half_labelled(opened)
    named = NamedClasses.of(opened, drawing, projections) if names_count(label_names, opened, projections) else None
    recipe, datasets = (
        projections_for(opened, projections, drawing, chosen)
        if named is None
        else projections_for(named.datasets, None, named.settings, chosen)
    )
    how: dict[str, Any] = {"estimator": chosen, "device": device, "precision": precision}
    how["n_splits"] = splits = _check_splits(n_splits)
    with reporting(progress, "Explaining") as report:
        whole, forgotten, by_class, dealt, by_feature = (_stage(report, number) for number in range(_STAGES))
        distance = compare(datasets, [(0, 1)], recipe, order, whole, **how)[0, 1]
        unlabelled = distance
        if any(len(data.classes) > 1 for data in datasets):
            plain = [_without_labels(data) for data in datasets] if named is None else named.forgotten()
            unlabelled = compare(plain, [(0, 1)], recipe, order, forgotten, **how)[0, 1]
        classes = compare_classes(datasets[0], datasets[1], recipe, order, by_class)
        matches, resampled = _dealt_out(datasets, classes, recipe, splits, dealt)
        label = None if named is None else "(target)" if named.counts_targets else "(label)"
        features = explain_features(datasets, recipe, order, FeatureNames.of(opened, label), splits, by_feature)
    if named is not None:
        distance, unlabelled = named.result(distance), named.result(unlabelled)
    sizes = datasets[0].counts, datasets[1].counts
    return Explanation(features.datasets, distance, unlabelled, sizes, classes, matches, resampled, features)


def _dealt_out(
    datasets: Sequence[LabelledData], comparison: ClassComparison, recipe: Projections, n_splits: int, report: Report
) -> tuple[ClassMatches, NDArray[np.float64]]:
    """Match classes and deal their points out anew; and compare half of all points, with labels and without.

    Classes of one name are dealt out too, to see whether names have changed.
    """
    classes = [data.classes for data in datasets]
    pairs = match_classes(comparison, classes)
    asked = list(dict.fromkeys([*pairs, *same_names(classes)]))
    halves = [Deal(HalfSamples.of(datasets, _HALF_SAMPLES, seed_of(recipe), labels=labels)) for labels in (True, False)]
    deals = [*deals_of_pairs(datasets, asked, n_splits, seed_of(recipe)), *halves]
    costs = deal_out(datasets, deals, recipe, comparison.p, report)
    p_values = chance_of_any(np.array(costs[:-2]))
    return ClassMatches(tuple(pairs), dict(zip(asked, p_values.tolist(), strict=True))), np.array(costs[-2:])


def _check_splits(n_splits: object) -> int:
    count = check_count(n_splits, "n_splits")
    if count < _FEWEST_SPLITS:
        raise SotddError(f"n_splits is {count}: expected at least {_FEWEST_SPLITS}, such as {SPLITS}.")
    return count


def _without_labels(data: LabelledData) -> LabelledData:
    """The same points as one class."""
    return replace(data, classes=("all",), codes=np.zeros(data.n_points, np.int32))


def _stage(report: Report, number: int) -> Report:
    """Progress of one of the stages, as part of the whole."""
    return lambda done, total: report(number * 1000 + 1000 * done // total, 1000 * _STAGES)


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
    seed = seed_of(recipe)
    d = datasets[0].n_features
    with Workers() as workers:
        pool = FeaturePool.of(datasets, recipe.scaler, seed, workers)
        theta = directions_for(d, seed)
        whole = contributions(pool, pool.side, theta, p, workers)
        report(1, 3)
        sides = [
            generator(seed, Stream.FEATURE_SPLITS, number).permutation(pool.side) for number in range(_SPLITS_TURNED)
        ]
        halves = [_half(pool.side, seed, number) for number in range(_HALVES)]
        few = theta[:_DIRECTIONS]
        dealt = [contributions(pool, side, few, p, workers).parts for side in sides[:_SPLITS]]
        halved = [contributions(pool, side, few, p, workers).parts for side in halves]
        directions: tuple[LeadingDirection, ...] = ()
        if names.noun == "feature" and names.label is None and 1 < d <= _MOST_TURNED:
            directions = _directions(pool, [pool.side, *sides], theta, p, workers)
        report(2, 3)
        chance = features_by_chance(pool, theta, p, n_splits, LEVEL, seed, workers, names.groups(d))
        report(3, 3)
    summary = _summary(pool.summary, len(names.names))
    return _shares(names, whole, np.array(dealt), np.array(halved), chance, summary, directions)


def _shares(
    names: FeatureNames,
    whole: Contributions,
    dealt: Doubles,
    halved: Doubles,
    chance: FeatureChance,
    summary: Doubles,
    directions: tuple[LeadingDirection, ...],
) -> FeatureShares:
    """Put it together: parts less those of chance, as shares; ``dealt`` (R, d + 1) and ``halved`` (K, d + 1)."""
    d = len(names.names)
    dealt, halved = _grouped(dealt, d), _grouped(halved, d)
    table = _grouped(whole.table, d)
    p_values = _grouped_chance(chance.p_values, d)
    parts, by_chance = table.mean(axis=0), dealt.mean(axis=0)
    total = float(parts.sum()) or 1.0
    beyond = np.append(p_values, chance.together) <= LEVEL
    excess = float((parts - by_chance)[beyond].sum())
    if excess > 0:
        shares = np.where(beyond, (parts - by_chance) / excess, 0.0)
        stderr = _errors(table, dealt, halved, shares, beyond) / excess
    else:
        shares, stderr = np.full((2, len(parts)), np.nan)
    together = FeatureShare(
        "together",
        float(shares[-1]),
        float(stderr[-1]),
        chance.together <= LEVEL,
        chance.together,
        float(parts[-1]) / total,
        float(by_chance[-1]) / total,
    )
    return FeatureShares(
        names.datasets,
        names.all_names,
        names.noun,
        names.shape,
        shares[:-1].copy(),
        stderr[:-1].copy(),
        p_values,
        parts[:-1] / total,
        by_chance[:-1] / total,
        summary,
        together,
        _pairs(chance, names),
        directions,
    )


def _errors(table: Doubles, dealt: Doubles, halved: Doubles, shares: Doubles, beyond: NDArray[np.bool_]) -> Doubles:
    """Standard errors of the parts beyond noise, less shares of their sum: over directions, splits and samples."""
    rest, of_splits, of_halves = (
        np.where(beyond, part - shares * part[:, beyond].sum(axis=1, keepdims=True), 0.0)
        for part in (table, dealt, halved)
    )
    variance = of_halves.var(axis=0, ddof=1) + of_splits.var(axis=0, ddof=1) / len(dealt)
    if len(rest) > 1:
        variance += rest.var(axis=0, ddof=1) / len(rest)
    errors: Doubles = np.sqrt(variance)
    return errors


def _grouped(table: Doubles, d: int) -> Doubles:
    """Columns after the first d, but for the last of the table, summed up to one."""
    if table.shape[1] == d + 1:
        return table
    return np.column_stack([table[:, :d], table[:, d:-1].sum(axis=1), table[:, -1]])


def _grouped_chance(p_values: Doubles, d: int) -> Doubles:
    return p_values if len(p_values) == d else np.append(p_values[:d], p_values[d:].min())


def _summary(summary: Doubles, d: int) -> Doubles:
    """That of the features; labels among them have none."""
    return summary if summary.shape[2] == d else np.dstack([summary[:, :, :d], np.full((2, 3, 1), np.nan)])


def _pairs(chance: FeatureChance, names: FeatureNames) -> tuple[CorrelationChange, ...]:
    """Pairs by name; those of one name, as of the columns of labels, are left out, and the first of each two kept."""
    every, d = names.all_names, len(names.names)
    found: dict[tuple[str, str], CorrelationChange] = {}
    for i, j, first, second in chance.pairs:
        both = every[min(i, d)] if i >= d else every[i], every[min(j, d)] if j >= d else every[j]
        if both[0] != both[1]:
            found.setdefault(both, CorrelationChange(both, (first, second)))
    return tuple(found.values())


def _directions(
    pool: FeaturePool, sides: Sequence[Sides], theta: NDArray[np.float32], p: float, workers: Workers
) -> tuple[LeadingDirection, ...]:
    """The strongest directions of the data, which come first, beside those of random splits."""
    values, vectors = leading(pool, sides[0], theta, p, workers)
    whole = float(values.sum())
    if whole <= 0:
        return ()
    by_chance = [float(leading(pool, side, theta[:_DIRECTIONS], p, workers)[0][0]) for side in sides[1:]]
    return tuple(
        LeadingDirection(float(value) / whole, float(np.mean(by_chance)) / whole, bool(value > max(by_chance)), vector)
        for value, vector in zip(values[:_LEADING], vectors[:_LEADING], strict=True)
        if value > 0
    )


def _half(side: Sides, seed: int, number: int) -> Sides:
    """Half of the points of each side; the others are on neither."""
    rng = generator(seed, Stream.FEATURE_HALVES, number)
    half = np.full_like(side, 2)
    for which in (0, 1):
        members = np.flatnonzero(side == which)
        half[rng.permutation(members)[: math.ceil(len(members) / 2)]] = which
    return half


def _is_image(shape: tuple[int, ...]) -> bool:
    """Whether points of this shape can be looked at: rows and columns, and colours first or last."""
    return (len(shape) == 2 and min(shape) > 1) or (len(shape) == 3 and (shape[0] <= 4 or shape[-1] <= 4))
