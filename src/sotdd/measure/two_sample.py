"""Whether two datasets may be samples of one source, and where they differ: `sotdd.test`."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from sotdd.basics.display import Progress
from sotdd.inputs import open_pair
from sotdd.inputs.agreement import refuse_half_labelled
from sotdd.inputs.data import Dataset
from sotdd.inputs.opening import split_reading
from sotdd.measure.comparison import DRAWING, compare_pair, split_seed
from sotdd.measure.distance import ORDER, fit_projections
from sotdd.measure.permutations import MOST_POINTS, Permuting
from sotdd.measure.statistics import LabelNames, Statistic
from sotdd.measure.two_sample_result import TwoSampleTest
from sotdd.projections.drawing import CallSettings, show_drawing
from sotdd.projections.recipe import Projections


@show_drawing(DRAWING)
def test(
    a: Dataset,
    b: Dataset,
    *,
    p: float = ORDER,
    projections: Projections | None = None,
    n_permutations: int = 999,
    statistic: Statistic = "combined",
    label_names: LabelNames = "ignore",
    max_points: int | None = MOST_POINTS,
    device: str = "auto",
    progress: Progress = None,
    **drawing: Unpack[CallSettings],
) -> TwoSampleTest:
    """Say whether two labelled datasets may be samples of one source, and where they differ: a permutation test.

    Points are permuted between the two datasets, labels with their points, class terms are computed
    anew on each side, and the distance is measured again through the same projections. If features
    and labels of both datasets come from one joint distribution, the datasets themselves are one
    more permutation, so the test errs in at most the stated share of cases, for any size and any law.
    That holds for independent rows. If several rows belong to one person, or neighbours to one series, say so by
    ``groups`` or ``blocks``, and whole groups are permuted; a remark warns if rows look dependent.

    The distance tested is the plain mean over the test's own 128 projections, as for the permutations: ``distance(a, b,
    n_projections=128, estimator="plain")`` with the other settings the same. The default of `sotdd.distance` has 1,000
    projections and a smaller error, so its number differs a little.

    Labels are pooled by value ("cat" is "cat", 0 is not "0"). The distance itself never looks at
    their names, so the same classes under new names are not found to differ; under each other's
    names they may or may not be.

    Parameters
    ----------
    a, b
        As in `sotdd.distance`.
    p
        The order of transport.
    n_projections
        How many projections. Time grows with permutations × projections × points. On a processor, neighbouring points
        of a class are counted together if there are more than 2,048 points in all, in the data as in permutations.
    n_moments, moments, label_law, directions, label_directions, scale
        As in `sotdd.distance`. A scaler that is given must not come from one of the two alone.
    seed
        Of the permutations and, unless ``projections`` are given, of the projections.
    projections
        As in `sotdd.distance`.
    n_permutations
        How many permutations, at most; the smallest p-value is 1 / (n_permutations + 1). Of 400 or more, 39 come first,
        and then 99; if they give p ≥ 0.5 or p ≥ 0.2 the test ends there. That can only prevent rejections, so every
        level below 0.2 still holds.
    statistic
        "combined": classes as they lie and features alone, each by p = 1 and by p = 2, and how far means differ
        beside the spread in every direction, points beyond three spreads brought that near; the largest difference
        of a single column, of a rare mark (a gap, a rare category, a flag), of how two columns go together, of how
        columns go together with the classes, and along the principal axes. Whatever stands out most counts, and every
        permutation is judged in the same way, so that the level holds. Single columns are looked at in up to 33
        million values. "distance": the distance alone.
    label_names
        "ignore": the names of labels never count, only how classes lie. "match": they do: means of classes of
        the same name are compared, and their shares, so that two classes that exchange their names differ.
    max_points
        Use a random sample of this many points of each dataset, where there are more.
    groups, blocks
        Which rows belong together, as in `sotdd.open_dataset`: a column, or a number of neighbours. For arrays, open
        each dataset with groups of its own. A group that is in both datasets counts as two.
    label, exclude, missing and others
        How tables are read, as in `sotdd.open_dataset`.
    device
        As in `sotdd.distance`.
    progress
        True for a bar, or a function of (done, total).

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 5))
    >>> y = np.where(x[:, 0] > 0, "cat", "dog")
    >>> sotdd.test((x[:200], y[:200]), (x[200:], y[200:]), n_permutations=199)
    p = 0.775; distance 0.102, by chance 0.0745 to 0.137 (199 permutations, 128 projections)
    >>> wrong = rng.permutation(y)
    >>> sotdd.test((x[:200], y[:200]), (x[200:], wrong[200:]), n_permutations=199)  # doctest: +NORMALIZE_WHITESPACE
    p = 0.005, most by within classes (11.8 deviations, by chance up to 1.8); 2 classes changed; distance 0.136,
    by chance 0.0755 to 0.119 (199 permutations, 128 projections)
    """
    how = Permuting(p, n_permutations, statistic, label_names, max_points)
    reading, drawn = split_reading(drawing)
    seed, settings = split_seed(drawn, projections)
    pair = open_pair(a, b, **{**reading, "max_points": how.max_points, "seed": seed})
    refuse_half_labelled(pair)
    fit = partial(fit_projections, projections=projections, settings=settings, drawing=DRAWING)
    return compare_pair(pair, fit, how, seed, device=device, progress=progress)
