"""A test of two datasets: their points are permuted between them, through the same projections; and its result."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import Received, check_choice, check_count, check_level, check_order
from sotdd.basics.display import Progress, Report, picture, report_progress
from sotdd.basics.errors import SotddError
from sotdd.basics.memory import check_fits
from sotdd.basics.randomness import Stream, check_seed, generator
from sotdd.basics.remarks import Remark, Remarks
from sotdd.basics.text import json_number, say_count
from sotdd.compute.comparison import remark_on_features
from sotdd.compute.resampling import find_distances
from sotdd.compute.run import be_silent, choose_engine
from sotdd.inputs import open_pair
from sotdd.inputs.agreement import refuse_half_labelled
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.inputs.opening import split_reading
from sotdd.measure.columns import Pooled
from sotdd.measure.dependence import remark_on_rows
from sotdd.measure.distance import ORDER, fit_projections
from sotdd.measure.permutations import Permutations
from sotdd.measure.statistics import ORDERS, LabelNames, Statistic, combine_statistics
from sotdd.projections.drawing import CallSettings, Drawing, show_drawing
from sotdd.projections.recipe import Projections

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Fewer than for a distance: the projections are the same for the data and for all permutations, so their
# choice is no source of error here, and every one of them costs as much as all permutations together.
DRAWING = Drawing(n_projections=128)

# A first look takes this many permutations; where they give such a p-value, the others could change no verdict.
_FIRST_LOOK = 99
_SETTLED = 0.2

# Of a test at a given level, the looks before the last: how many permutations, and a p-value that ends it. A late look
# at this many, or as many as give a p-value of this share of the level, ends it for the opposite reason too.
_LOOKS = ((39, 0.5), (_FIRST_LOOK, _SETTLED))
_LATE_LOOK, _SETTLED_LATE, _SPENT = 199, 0.15, 0.1

_QUANTILES = (0.05, 0.5, 0.95, 0.99)

# Less than this many deviations of chance is rounding.
_ROUNDING = 1e-6


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
    max_points: int | None = None,
    device: str = "auto",
    progress: Progress = None,
    **drawing: Unpack[CallSettings],
) -> TwoSampleTest:
    """Say whether two labelled datasets may be samples of one source: a permutation test.

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
    n_moments, moments, label_law, directions, scale
        As in `sotdd.distance`. A scaler that is given must not come from one of the two alone.
    seed
        Of the permutations and, unless ``projections`` are given, of the projections.
    projections
        As in `sotdd.distance`.
    n_permutations
        How many permutations, at most; the smallest p-value is 1 / (n_permutations + 1). Of 400 or more, 99 come first,
        and if they give p ≥ 0.2 the test ends there. That can only prevent rejections, so every level below 0.2 still
        holds.
    statistic
        "combined": classes as they lie and features alone, each by p = 1 and by p = 2, and how far means differ
        beside the spread in every direction, points beyond three spreads brought that near; the largest difference
        of a single column (of up to 33 million values), of how two of up to 40 columns go together, and along the
        principal axes. Whatever stands out most counts, and every permutation is judged in the same way, so that
        the level holds. "distance": the distance alone.
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
    p = 0.69: distance 0.102, by chance 0.0745 to 0.137 (199 draws, 128 projections)
    >>> wrong = rng.permutation(y)
    >>> sotdd.test((x[:200], y[:200]), (x[200:], wrong[200:]), n_permutations=199)
    p = 0.035, most by labels, order 2: distance 0.136, by chance 0.0755 to 0.119 (199 draws, 128 projections)
    """
    count = check_count(n_permutations, "n_permutations")
    p = check_order(p)
    names: LabelNames = check_choice(label_names, "label_names", get_args(LabelNames))
    judged_by: Statistic = check_choice(statistic, "statistic", get_args(Statistic))
    if names == "match" and judged_by != "combined":
        raise SotddError(f"label_names='match' is given with statistic={judged_by!r}: only 'combined' sees names.")
    reading, drawn = split_reading(drawing)
    seed, settings = split_seed(drawn, projections)
    pair = open_pair(a, b, **reading)
    refuse_half_labelled(pair)
    data, remarks = sample_datasets(pair, max_points, seed)
    remarks = (*remarks, *(remark.of(part.name) for part in pair for remark in remark_on_rows(part)))
    recipe, data = fit_projections(data, projections, settings, drawing=DRAWING)
    recipe = recipe.evenly()
    engine = choose_engine(device, data, recipe.n_projections)
    with report_progress(progress, "Permuting") as report, engine as active:
        said = (*remarks, *remark_on_features(data, recipe))
        columns = Pooled.of(data) if judged_by == "combined" else None
        measured = Permutations(data, recipe, p, seed, active, columns, label_names=names, judged_by=judged_by)
        return permute(measured, count, remarks=said, report=report)


def split_seed(drawing: Mapping[str, Any], projections: Projections | None) -> tuple[int, dict[str, Any]]:
    """The seed as a number, for splits and samples; and settings to draw projections by it, unless some are given."""
    settings: dict[str, Any] = dict(drawing)
    seed = check_seed(settings.pop("seed", DRAWING.seed))
    return seed, settings if projections is not None else {**settings, "seed": seed}


def sample_datasets(
    data: Sequence[LabelledData], max_points: int | None, seed: int
) -> tuple[list[LabelledData], Remarks]:
    """A random sample of each dataset that has more than ``max_points``, and a remark on each sample."""
    if max_points is None:
        return list(data), ()
    most = check_count(max_points, "max_points")
    result, remarks = [], []
    for number, part in enumerate(data):
        if part.n_points <= most:
            result.append(part)
            continue
        rows = np.sort(generator(seed, Stream.SAMPLE, number).choice(part.n_points, most, replace=False))
        result.append(part.take(rows))
        remarks.append(Remark("sampled", taken=most, n_points=part.n_points, name=part.name))
    return result, tuple(remarks)


def permute(
    measured: Permutations,
    n_permutations: int,
    *,
    remarks: Remarks = (),
    report: Report = be_silent,
    level: float | None = None,
) -> TwoSampleTest:
    """Test two datasets through the same projections, as they are and with their points permuted.

    Of many permutations the first come first, and the test may end with them. To end with a p-value that is far from
    small takes rejections away and adds none. At a ``level``, a look at 10 / level permutations also ends with a
    rejection, if none of them is as far: that has a chance of at most a tenth of the level, which is added to every
    p-value that comes later. So all p-values stay as rare as they say, whatever one look has to do with another.
    """
    count = measured.projections.n_projections
    what = f"{say_count(n_permutations, 'split')} through {say_count(count, 'projection')}"
    size = 8 * count * 2 * len(ORDERS) + sum(measured.plan.sizes)
    check_fits(n_permutations * size, what, "n_permutations", n_permutations)
    looks, spent = [(_FIRST_LOOK, _SETTLED)], 0.0
    if level is not None:
        most = max(_LATE_LOOK, math.ceil(min(1 / (_SPENT * level), 1 + n_permutations)) - 1)
        spent = 1 / (most + 1) if 2 * most < n_permutations else 0.0
        looks = [*_LOOKS, *([(most, _SETTLED_LATE)] if spent else [])]
    for look, settled in looks if n_permutations > 4 * _FIRST_LOOK else ():
        measured.draw(1 + look, lambda done: report(done, 1 + n_permutations))
        first = _judge(measured, remarks)
        if first.p_value >= settled or first.p_value <= spent:
            return first
    measured.draw(1 + n_permutations, lambda done: report(done, 1 + n_permutations))
    return _judge(measured, remarks, spent)


def _judge(measured: Permutations, remarks: Remarks, spent: float = 0.0) -> TwoSampleTest:
    """The test by the permutations that were measured."""
    distances, statistics, largest = measured.distances, measured.statistics, measured.largest
    outstanding = combine_statistics(statistics, largest) if statistics else distances
    statistics = statistics or {"distance": distances}
    return TwoSampleTest(
        distance=float(distances[0]),
        null_distances=distances[1:],
        statistic=float(outstanding[0]),
        null=outstanding[1:],
        judged_by=measured.judged_by,
        p=measured.p,
        n_points=measured.plan.sizes,
        n_projections=measured.projections.n_projections,
        fingerprint=measured.projections.fingerprint,
        remarks=remarks,
        aspects={name: float(np.mean(_reach(values, values[0]))) for name, values in {**statistics, **largest}.items()},
        spent=spent,
    )


def _reach(values: NDArray[np.float64], least: float) -> NDArray[np.bool_]:
    """Which values are as large, but for rounding: splits that are alike must not differ by the order of sums."""
    return values >= least - _ROUNDING * float(np.std(values))


@dataclass(frozen=True, eq=False)
class TwoSampleTest(Received):
    """Whether two datasets may come from one source, judged against distances that chance gives.

    Attributes
    ----------
    distance
        The distance between the two, by the projections of the test: what `sotdd.distance` gives for
        them with ``estimator="plain"``, not with its default.
    null_distances
        Distances that chance gave: of permuted data, or of batches of a reference.
    statistic
        What is judged. "combined": of several aspects and both orders, the one that stands out most, in its
        own standard deviations; "distance": the distance itself.
    null
        The statistic of what chance gave.
    judged_by
        Which statistic it is.
    p
        The order of transport.
    n_points
        The sizes of the two datasets.
    n_projections
        How many projections were used.
    fingerprint
        Which they were.
    remarks
        What a reader should know, such as that points were sampled.
    aspects
        The p-value of each aspect by itself, such as "features, order 1"; not corrected for there being several.
    spent
        What an earlier look at fewer permutations adds to the p-value; 0 if there was none that could have rejected.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(100, 4)), rng.normal(0.5, 1, size=(80, 4))
    >>> result = sotdd.test(a, b, n_permutations=199)
    >>> result.p_value, result.rejects(0.05)
    (0.005, True)
    >>> bool(result.ratio > 1), bool(result.effect_size > 3)
    (True, True)
    """

    distance: float
    null_distances: NDArray[np.float64]
    statistic: float
    null: NDArray[np.float64]
    judged_by: Statistic
    p: float
    n_points: tuple[int, int]
    n_projections: int
    fingerprint: str
    remarks: Remarks = ()
    aspects: Mapping[str, float] = field(default_factory=dict)
    spent: float = 0.0

    @property
    def p_value(self) -> float:
        """How often chance goes as far, the data themselves counted as one of its outcomes."""
        reached = int(np.count_nonzero(_reach(self.null, self.statistic)))
        return min(1.0, self.spent + (1 + reached) / (1 + len(self.null)))

    @property
    def strongest(self) -> str | None:
        """The aspect with most evidence against one source; None if others have as much, or there is only one."""
        least = min(self.aspects.values(), default=1.0)
        loudest = [name for name, p_value in self.aspects.items() if p_value == least]
        return loudest[0] if len(loudest) == 1 < len(self.aspects) else None

    @property
    def effect_size(self) -> float:
        """How many standard deviations of chance the statistic lies above its mean; NaN where chance has none."""
        deviation = float(np.std(self.null, ddof=1)) if len(self.null) > 1 else 0.0
        return (self.statistic - float(np.mean(self.null))) / deviation if deviation > 0 else math.nan

    @property
    def ratio(self) -> float:
        """The distance in units of the noise floor, the root of the mean W_p^p of chance; NaN if that is 0."""
        floor = float(find_distances(self.null_distances[:, None] ** self.p, self.p)[0])
        return self.distance / floor if floor > 0 else math.nan

    def quantiles(self, levels: Iterable[float] = _QUANTILES) -> dict[float, float]:
        """Quantiles of the distances that chance gave, at levels from 0 to 1."""
        return {level: float(np.quantile(self.null_distances, level)) for level in levels}

    def rejects(self, level: float = 0.05) -> bool:
        """Whether one source is ruled out at this level."""
        return self.p_value <= check_level(level, such_as=0.05)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw what chance gives and where the data lie in it; returns matplotlib's axes."""
        return picture("test")(self, ax)

    def __repr__(self) -> str:
        """The p-value, the distance beside what chance gives, and how many draws it rests on."""
        low, high = self.quantiles((0.05, 0.95)).values()
        most = f", most by {self.strongest}" if self.strongest and self.rejects(0.05) else ""
        return (
            f"p = {self.p_value:.3g}{most}: distance {self.distance:.3g}, by chance {low:.3g} to {high:.3g} "
            f"({say_count(len(self.null), 'draw')}, {say_count(self.n_projections, 'projection')})"
        ) + "".join(f"; {remark}" for remark in self.remarks)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON values; distances by chance as quantiles."""
        result: dict[str, Any] = {
            "p_value": self.p_value,
            "distance": self.distance,
            "statistic": self.statistic,
            "judged_by": self.judged_by,
            "aspects": dict(self.aspects),
            "effect_size": json_number(self.effect_size),
            "ratio": json_number(self.ratio),
            "null_quantiles": {f"{level:g}": value for level, value in self.quantiles().items()},
            "null_mean": float(np.mean(self.null_distances)),
            "n_null": len(self.null),
            "p": self.p,
            "n_points": list(self.n_points),
            "n_projections": self.n_projections,
            "fingerprint": self.fingerprint,
        }
        if self.remarks:
            result["remarks"] = [remark.to_dict() for remark in self.remarks]
        return result
