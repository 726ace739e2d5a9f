"""The comparison of two datasets: points are permuted between them, and one result says whether and where they differ.

`sotdd.test` is the call; `sotdd.explain`, `sotdd check`, monitors and detectors come to the same `compare_pair`.
Everything that is learned from the data (values of categories, scales, cuts, axes, cells) is learned from the pool of
both, so the level is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Unpack, get_args

import numpy as np

from sotdd.basics.errors import SotddError, check_choice, check_count, check_level, check_order, check_seed
from sotdd.basics.remarks import Remark, Remarks
from sotdd.basics.resources import Progress, Report, check_fits, report_progress
from sotdd.basics.text import say_count
from sotdd.compute.comparison import remark_on_features
from sotdd.compute.engine import Engine, choose_engine
from sotdd.compute.resampling import Marks, Plan, TooAlike, collect_costs, find_distances
from sotdd.compute.slices import ProjectedPoints, project_datasets
from sotdd.inputs import open_pair
from sotdd.inputs.data import Dataset, LabelledData, cut_range, refuse_half_labelled
from sotdd.inputs.features import StreamedFeatures
from sotdd.inputs.opening import split_reading
from sotdd.inputs.sampling import sample_rows
from sotdd.measure import statistics
from sotdd.measure.changes import LEVEL, Aspect, LabelNames, Statistic, TwoSampleTest
from sotdd.measure.columns import (
    Column,
    find_axes,
    number_rows,
    pool_columns,
    rank_values,
    score_axes,
    score_columns,
    score_ranks,
)
from sotdd.measure.distance import ORDER, fit_projections
from sotdd.measure.findings import find_changes
from sotdd.measure.relations import CHANCE, Pairs, Within, count_common, remark_on_rows
from sotdd.measure.shares import share_changes
from sotdd.measure.statistics import Differences, Doubles, Floats, compare_scores
from sotdd.projections.projections import Projections
from sotdd.projections.scaler import Scaler, find_scaler
from sotdd.projections.settings import CallSettings, ProjectionSettings, show_settings
from sotdd.sketches.saved_projections import Given

# Fewer than for a distance: the projections are the same for the data and for all permutations, so their
# choice is no source of error here, and every one of them costs as much as all permutations together.
DEFAULT_SETTINGS = ProjectionSettings(n_projections=128)

# A dataset beside a small one is sampled to so many times its points, or this many if that is more: beyond that, all
# noise is the small one's own.
_ENOUGH_TIMES, _ENOUGH = 20, 1000

# Points farther than this many spreads are brought that near. They are a difference in any case, and their powers stay
# within float64.
_FARTHEST = 1e12

# The distances of this many splits, the data included, are shown beside a verdict that has other aspects; of large
# pools in this many cells, which change them by about 0.2 %.
_SHOWN, _CELLS_SHOWN = 100, 2048

# Cells of large pools, with labels and without. Whatever cells do to the data they do to every permutation, so few
# suffice: statistics from them and from points have correlations of 0.997 and more over permutations.
_CELLS, _CELLS_OF_FEATURES = 512, 256

# Costs of pools of more points than this are from half of the projections: chance is small there, and time is not.
_LARGE = 1 << 14

# Splits between two reports of progress, and those that a thread measures at a time.
_BATCH, _TOGETHER = 256, 32

# Of many permutations these come first, and such a p-value ends the test: the others could change no verdict.
_LOOKS = ((39, 0.5), (99, 0.2))

# Whether datasets are too alike is judged by this many, where fewer gave a p-value of at most that.
_LOOK_ALIKE, _UNSETTLED = 199, 0.1

# Larger datasets are sampled by default.
MOST_POINTS = 20_000


@dataclass
class Permuting:
    """How two datasets are compared: settings of `test`, and the level that decides and at which columns are named."""

    p: float = ORDER
    n_permutations: int = 999
    statistic: Statistic = "combined"
    label_names: LabelNames = "ignore"
    max_points: int | None = MOST_POINTS
    level: float = LEVEL

    def __post_init__(self) -> None:
        """Check them."""
        self.p, self.n_permutations = check_order(self.p), check_count(self.n_permutations, "n_permutations")
        names = check_choice(self.label_names, "label_names", get_args(LabelNames))
        statistic = check_choice(self.statistic, "statistic", get_args(Statistic))
        if names == "match" and statistic != "combined":
            raise SotddError(f"label_names='match' is given with statistic={statistic!r}: only 'combined' sees names.")
        self.max_points = None if self.max_points is None else check_count(self.max_points, "max_points")
        self.level = check_level(self.level, such_as=0.05)


@show_settings(DEFAULT_SETTINGS)
def test(
    a: Dataset,
    b: Dataset,
    *,
    p: float = ORDER,
    projections: Given | None = None,
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

    The distance tested is the plain mean over the test's own 128 projections, as for the permutations. Its unit is the
    spread of all points, which are permuted and so count the same; for datasets of one size it is that of
    ``distance(a, b, n_projections=128, estimator="plain")``. With ``projections=matrix`` it is the unit of that matrix.

    Labels are pooled by value ("cat" is "cat", 0 is not "0"). The distance itself ignores their names, so the same
    classes under new names are not found to differ; if two swap their names, they may or may not be.

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
        How many permutations, at most; the smallest p-value is 1 / (n_permutations + 1). With 400 or more, the test
        stops after 39 if p ≥ 0.5 and after 99 if p ≥ 0.2. That can only prevent rejections, so every level below 0.2
        still holds.
    statistic
        "combined": the distance with labels and without, each for p = 1 and p = 2; the gap between means in units of
        the joint spread, with points clipped to three spreads; and the largest difference of a single column, of a
        rare mark (a gap, a rare category, a flag), of the relation of two columns, of the relation of columns to the
        classes, and along the principal axes. The statistic that stands out most decides, and every permutation is
        judged in the same way, so that the level holds. Single columns are tested in tables of up to 33 million
        values. "distance": the distance alone.
    label_names
        "ignore": class names are ignored. "match": means and shares of classes of the same name are compared too, so
        that two classes that swap their names differ.
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
    p = 0.755; distance 0.102, by chance 0.0848 to 0.133 (199 permutations, 128 projections)
    >>> wrong = rng.permutation(y)
    >>> sotdd.test((x[:200], y[:200]), (x[200:], wrong[200:]), n_permutations=199)  # doctest: +NORMALIZE_WHITESPACE
    p = 0.005, most by within classes (12.3 deviations, by chance up to 1.8); 2 classes changed; distance 0.136,
    by chance 0.0762 to 0.124 (199 permutations, 128 projections)
    """
    how = Permuting(p, n_permutations, statistic, label_names, max_points)
    reading, drawn = split_reading(drawing)
    seed, settings = split_seed(drawn, projections)
    pair = open_pair(a, b, **{**reading, "max_points": how.max_points, "seed": seed})
    refuse_half_labelled(pair)
    fit = partial(
        fit_projections, projections=projections, settings=settings, drawing=DEFAULT_SETTINGS, weigh_points=True
    )
    return compare_pair(pair, fit, how, seed, device=device, progress=progress)


def compare_pair(
    pair: Sequence[LabelledData],
    fit: Callable[[Sequence[LabelledData]], tuple[Projections, list[LabelledData]]],
    how: Permuting,
    seed: int,
    *,
    remarks: Remarks | None = None,
    device: str = "auto",
    progress: Progress = None,
    with_shares: bool = False,
) -> TwoSampleTest:
    """Compare two datasets that share their features: the one path to whether, and where, they differ.

    ``fit`` makes projections for the rows that are compared, and brings their columns in its order. Remarks are on
    rows that seem to depend on each other, unless others are given. Shares of columns are measured if any changed, or
    with ``with_shares`` in any case.
    """
    data, sampled = sample_datasets(pair, how.max_points, seed)
    enough = max(_ENOUGH, _ENOUGH_TIMES * min(part.n_points for part in data))
    data, thinned = sample_datasets(data, enough, seed)
    recipe, data = fit(data)
    recipe = recipe.evenly()
    unit = recipe.scaler
    if unit is not None and any(remark.kind == "one point" for remark in unit.remarks):
        unit = find_scaler("features", data, weigh_points=True)  # which a single point cannot stretch
    near = [bring_near(part, unit) for part in data]
    is_far = any(one is not other for one, other in zip(near, data, strict=True))
    if is_far and unit is not recipe.scaler:
        recipe, near = fit(near)
        recipe = recipe.evenly()
    if remarks is None:
        remarks = tuple(remark.of(part.name) for part in pair for remark in remark_on_rows(part))
    all_remarks = (*sampled, *thinned, *remarks, *remark_on_features(near, recipe))
    columns = pool_columns(data) if how.statistic == "combined" else None
    with report_progress(progress, "Permuting") as report, choose_engine(device, near, recipe.n_projections) as engine:
        measured = Permutations(near, recipe, how, seed, engine, columns)
        found = measured.test(report)
    all_remarks += (*_remark_on_common(columns or [], pair), *found.too_alike.list_remarks())
    found = replace(found, remarks=all_remarks, changes=find_changes(measured, how.level, found.rejects(how.level)))
    if is_far:
        found = replace(found, far=_find_farthest(columns or []))
    if found.changes.changed or with_shares:
        found = replace(found, changes=share_changes(found.changes, data, recipe, how.p))
    return found


def _remark_on_common(columns: Sequence[Column], pair: Sequence[LabelledData]) -> Remarks:
    """The remark on rows of the second dataset that stand in the first one too, unless that may be chance."""
    if not columns:
        return ()
    before, now = columns[0].split(number_rows(columns))
    found, _, p_value = count_common(before, now)
    said = Remark("rows in both", found=found, rows=len(now), name=pair[1].name, other=pair[0].name)
    return (said,) if p_value <= CHANCE else ()


def _find_farthest(columns: Sequence[Column]) -> str:
    """The column with the largest value, and how large it is on either side."""
    ends = {one.name: [float(np.abs(side).max(initial=0.0)) for side in one.sides] for one in columns if one.is_number}
    if not ends:
        return "values beyond all that a distance can hold"
    name = max(ends, key=lambda name: max(ends[name]))
    return f"{name} goes to {ends[name][0]:.4g} and {ends[name][1]:.4g}"


def split_seed(drawing: Mapping[str, Any], projections: Given | None) -> tuple[int, dict[str, Any]]:
    """The seed as a number, for splits and samples; and settings to draw projections by it, unless some are given."""
    settings: dict[str, Any] = dict(drawing)
    seed = check_seed(settings.pop("seed", DEFAULT_SETTINGS.seed))
    return seed, settings if projections is not None else {**settings, "seed": seed}


def sample_datasets(data: Sequence[LabelledData], most: int | None, seed: int) -> tuple[list[LabelledData], Remarks]:
    """A random sample of each dataset that has more than so many points, and a remark on each sample."""
    found, remarks = [*data], []
    for place, part in enumerate(data):
        if most is not None and part.n_points > most:
            found[place] = part.take(sample_rows(part.n_points, most, seed))
            remarks.append(Remark("sampled", taken=most, n_points=part.n_points, name=part.name))
    return found, tuple(remarks)


def bring_near(data: LabelledData, scaler: Scaler | None) -> LabelledData:
    """A dataset with values however large brought within range: they are tested, not refused."""
    centre, scale = (0.0, 1.0) if scaler is None else (scaler.centre, scaler.scales)
    with np.errstate(over="ignore"):
        farthest = _FARTHEST / math.sqrt(data.n_features) * scale  # so that no projection is farther
        low, high = centre - farthest, centre + farthest
    for block in data.blocks():
        rows = data.rows(block)
        if (rows < low).any() or (rows > high).any():
            shape, cut = (data.n_points, data.n_features), lambda rows: np.clip(data.rows(rows), low, high, dtype=float)
            return replace(data, features=StreamedFeatures(data.name, shape, np.float64, cut))
    return data


class Permutations:
    """What two datasets and permutations of them cost, and how far they are apart in other aspects.

    Single columns are tested if there are ``columns``, those of both datasets.

    Attributes
    ----------
    plan
        How points are permuted; the first split is the data.
    table
        By name the statistics that are judged: (S,), or costs W_p^p (L, S) of every projection.
    differences
        How far scores differ: of columns, pairs of them, classes and axes. The largest are judged too.
    pairs, within
        The columns that are compared two by two, and within classes.
    """

    def __init__(
        self,
        pair: Sequence[LabelledData],
        projections: Projections,
        how: Permuting,
        seed: int,
        engine: Engine,
        columns: Sequence[Column] | None,
    ) -> None:
        self._projections, self._how, self._engine, self.columns = projections, how, engine, columns or []
        self._with_names, self._judges_all, self._drawn = how.label_names == "match", how.statistic == "combined", 0
        self.plan = plan = replace(Plan.of_pair(pair, (0, 1), 0, seed, (how.p,)), actual=True, n_cells=None)
        pools = [ProjectedPoints.pool(points) for points in project_datasets(pair, projections, engine)]
        self.pairs, self.within = Pairs(self.columns), Within(self.columns, plan.codes, self._with_names)
        self.table, self.differences = dict[str, Doubles](), Differences()
        self._shown, self._pools = replace(plan, n_cells=_CELLS_SHOWN) if self._judges_all else plan, pools
        self._distances = self._cost(plan, pools, plan.mark_all(range(1)))
        self._costs: dict[str, tuple[Plan, list[ProjectedPoints]]] = {}
        self._measures: dict[str, statistics.Measure] = {}
        if self._judges_all:
            near, has_classes = [pool.clip_outliers(statistics.FARTHEST) for pool in pools], plan.n_classes > 1
            is_large = len(plan.codes) > _LARGE
            costly = [pool.along(slice(-(-len(pool.rows) // 2))) for pool in near] if is_large else near
            of_labels = replace(plan, orders=statistics.ORDERS, n_cells=_CELLS)
            of_features = replace(of_labels, labels=False, n_cells=_CELLS_OF_FEATURES)
            self._costs = {"distance": (of_labels, costly)} if has_classes else {}
            self._costs["features"] = of_features, costly
            rows = np.concatenate([pool.fetch() for pool in near])
            table = statistics.centre_rows(rows, None).T if columns is None else _list_ranked(columns)
            self._axes = score_axes(find_axes(table))
            self._measures["means"] = statistics.measure_means(rows)
            if self._with_names and has_classes:
                self._measures["classes by name"] = statistics.measure_means(rows, plan.codes)
                self._measures[statistics.SHARES] = statistics.measure_shares(plan.codes)

    def test(self, report: Report) -> TwoSampleTest:
        """Permute, and say whether the datasets differ.

        Of many permutations some come first, and the test may end with them: to end with a p-value that is far from
        small takes rejections away and adds none, so every level below 0.2 still holds. Some more permutations say
        whether they are too alike, if that is not settled.
        """
        most, count = self._how.n_permutations, self._projections.n_projections
        what = f"{say_count(most, 'permutation')} through {say_count(count, 'projection')}"
        check_fits(most * (8 * count * 2 * len(statistics.ORDERS) + sum(self.plan.sizes)), what, "n_permutations", most)
        for look, settled in [*(_LOOKS if most >= 400 else ()), (most, 0.0)]:
            self.draw(1 + look, lambda done: report(done, 1 + most))
            found = self._judge()
            if found.p_value >= settled:
                break
        if self._drawn <= _LOOK_ALIKE < most and found.too_alike.p_value <= _UNSETTLED:
            self.draw(1 + _LOOK_ALIKE, lambda done: report(done, 1 + most))
            found = replace(found, too_alike=self._judge().too_alike)
        return found

    def _judge(self) -> TwoSampleTest:
        """The test by the permutations that were measured."""
        distances = find_distances(self._distances[:, :, 0], self._how.p)
        scores, squares = {"distance": distances}, distances[: 1 + _LOOK_ALIKE] ** 2
        if self._judges_all:
            scores = statistics.standardise_statistics(self.table, self.differences.largest)
            squares = statistics.combine_squares(
                self.table, self.differences.squares, min(self._drawn, 1 + _LOOK_ALIKE)
            )
        outstanding = np.max([*scores.values()], axis=0) if scores else np.zeros(self._drawn)
        return TwoSampleTest(
            distance=float(distances[0]),
            null_distances=distances[1:],
            statistic=float(outstanding[0]),
            null=outstanding[1:],
            judged_by=self._how.statistic,
            p=self._how.p,
            n_points=self.plan.sizes,
            n_projections=self._projections.n_projections,
            fingerprint=self._projections.fingerprint,
            aspects={name: Aspect.of(values) for name, values in scores.items()},
            too_alike=TooAlike.of(squares, self.plan.sizes),
            strongest=max(scores, key=lambda name: float(scores[name][0]), default="distance"),
        )

    def draw(self, count: int, report: Callable[[int], None]) -> None:
        """Permute until there are this many splits, the data among them."""
        each, members = self._engine.workers.each, []
        for start in range(self._drawn, count, _BATCH):
            marks = self.plan.mark_all(range(start, min(start + _BATCH, count)), each)
            shown = marks[int(start == 0) : max(0, _SHOWN - start) if self._judges_all else None]
            if len(shown):
                costs = self._cost(self._shown, self._pools, shown)
                self._distances = np.concatenate([self._distances, costs], axis=1)
            for name, values in self._measure(marks).items():
                self.table[name] = np.concatenate([self.table.get(name, values[..., :0]), values], axis=-1)
            members.append((marks == 1).astype(np.float32))
            report(start + len(marks))
        self._drawn = count
        if self._judges_all:
            right = np.concatenate(members)
            scores = chain(score_columns(self.columns, self._with_names, each), self.pairs.score(), [self._axes])
            compared = chain.from_iterable(compare_scores(some, right, each) for some in scores)
            self.differences.extend(chain(compared, self.within.compare(right, each)))

    def _measure(self, marks: Marks) -> dict[str, Doubles]:
        """The statistics of some splits: (S,), or costs (L, S)."""
        parts, found = [marks[some] == 1 for some in cut_range(len(marks), _TOGETHER)], dict[str, Doubles]()
        for name, (plan, pools) in self._costs.items():
            costs = self._cost(plan, pools, marks)
            found |= {f"{name}, order {order:g}": costs[:, :, place] for place, order in enumerate(plan.orders)}
        for name, measure in self._measures.items():
            found[name] = np.concatenate([*self._engine.workers.each(measure, parts)])
        return found

    def _cost(self, plan: Plan, pools: Sequence[ProjectedPoints], marks: Marks) -> Doubles:
        """W_p^p (L, S, orders) of some splits."""
        return collect_costs([self._engine.split_costs(pool, plan, marks) for pool in pools], plan, self._engine)


def _list_ranked(columns: Sequence[Column]) -> Floats:
    """(N, k) normal scores of ranks of all columns, categories by their values, gaps by a mark."""
    ranks = [column.ranks for column in columns if column.is_number]
    marks = [mark for column in columns if column.kind != "label" for mark in column.list_marks().values()]
    ranks += map(rank_values, [*marks, np.zeros(len(columns[0].known))])
    return np.stack([score_ranks(one).astype(np.float32) for one in ranks], axis=1)
