"""Why two datasets are as far apart as they are: features or labels, which features and which classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_order, described
from sotdd.basics.errors import SotddError
from sotdd.basics.memory import within_memory
from sotdd.basics.progress import Progress, Report, reporting
from sotdd.engines.chance import seed_of
from sotdd.engines.class_comparison import chance_of_any, compare_classes, deals_of_pairs
from sotdd.engines.comparison import compare
from sotdd.engines.protocol import Precision
from sotdd.engines.splits import Deal, HalfSamples, deal_out
from sotdd.inputs import labelled_pair
from sotdd.inputs.comparable import refuse_half_labelled
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.measure.class_names import NamedClasses, NamesInDistance, names_count
from sotdd.measure.distance import FEWER_POINTS, ORDER, chosen_estimator, projections_for
from sotdd.measure.feature_causes import FeatureNames, explain_features
from sotdd.projections.drawing import DrawingSettings, shows_drawing
from sotdd.projections.recipe import Projections
from sotdd.results.class_comparison import ClassComparison
from sotdd.results.class_matching import ClassMatches, match_classes, same_names
from sotdd.results.estimators import Estimator
from sotdd.results.explanation import Explanation
from sotdd.results.noise import SPLITS

# How often half of the points of each are compared, which tells how shares vary from sample to sample.
_HALF_SAMPLES = 24
# With labels, without them, by class, dealt out, by feature.
_STAGES = 5
# With fewer splits no outcome of the data is rarer than 5 %.
_FEWEST_SPLITS = 19


@shows_drawing()
@within_memory(FEWER_POINTS)
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
    if not all(part.origin.labelled for part in opened):
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
    whole = isinstance(n_splits, (int, np.integer)) and not isinstance(n_splits, (bool, np.bool_))
    if not whole or n_splits < _FEWEST_SPLITS:  # type: ignore[operator]  # an integer by now
        raise SotddError(
            f"n_splits is {described(n_splits)}: expected a whole number of at least {_FEWEST_SPLITS}, such as "
            f"{SPLITS}."
        )
    return int(n_splits)  # type: ignore[call-overload, no-any-return]


def _without_labels(data: LabelledData) -> LabelledData:
    """The same points as one class."""
    return replace(data, classes=("all",), codes=np.zeros(data.n_points, np.int32))


def _stage(report: Report, number: int) -> Report:
    """Progress of one of the stages, as part of the whole."""
    return lambda done, total: report(number * 1000 + 1000 * done // total, 1000 * _STAGES)
