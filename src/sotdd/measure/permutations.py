"""Permutations of the points of two datasets through the same projections, and the verdict that follows from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_choice, check_count, check_level, check_order
from sotdd.basics.display import Report
from sotdd.basics.errors import SotddError
from sotdd.basics.memory import check_fits
from sotdd.basics.text import say_count
from sotdd.compute.engine import Engine, Pool
from sotdd.compute.resampling import KeepPools, Marks, Plan, collect_costs, find_distances
from sotdd.compute.run import run
from sotdd.inputs.data import LabelledData
from sotdd.measure.columns import Column, rank_columns, score_columns
from sotdd.measure.distance import ORDER
from sotdd.measure.relations import Pairs, Within
from sotdd.measure.scores import Compared, Differences, Doubles, Floats, compare_scores
from sotdd.measure.statistics import (
    FARTHEST,
    ORDERS,
    SHARES,
    LabelNames,
    Measure,
    Statistic,
    centre_rows,
    describe_aspect,
    find_axes,
    measure_means,
    measure_shares,
    score_axes,
    standardise_statistics,
)
from sotdd.measure.two_sample_result import LEVEL, TwoSampleTest
from sotdd.projections.recipe import Projections

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

# A larger dataset is sampled, unless another number is asked for.
MOST_POINTS = 20_000


@dataclass
class Permuting:
    """How two datasets are compared: the settings of `test` that do not say how projections are drawn.

    Attributes
    ----------
    p, n_permutations, statistic, label_names, max_points
        As in `test`.
    level
        The level that decides, and at which columns are named.
    """

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


class Permutations:
    """What the data and permutations of them cost, and how far they are apart in other aspects.

    Parameters
    ----------
    pair, projections, how, seed, engine
        The two datasets, what they are seen through and how, and what permutations follow from.
    columns
        The columns of both, if they are looked at one by one.

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
        kept = KeepPools((0, 1))
        run(pair, projections, engine, [kept])
        self.pairs, self.within = Pairs(self.columns), Within(self.columns, plan.codes, self._with_names)
        self.table, self.differences = dict[str, Doubles](), Differences()
        self._shown, self._pools = replace(plan, n_cells=_CELLS_SHOWN) if self._judges_all else plan, kept.pools
        self._distances = self._cost(plan, kept.pools, plan.mark_all(range(1)))
        self._costs: dict[str, tuple[Plan, list[Pool]]] = {}
        self._measures: dict[str, Measure] = {}
        if self._judges_all:
            near, has_classes = [pool.bring_near(FARTHEST) for pool in kept.pools], plan.n_classes > 1
            is_large = len(plan.codes) > _LARGE
            costly = [pool.part(slice(-(-len(pool.rows) // 2))) for pool in near] if is_large else near
            of_labels = replace(plan, orders=ORDERS, n_cells=_CELLS)
            of_features = replace(of_labels, labels=False, n_cells=_CELLS_OF_FEATURES)
            self._costs = {"distance": (of_labels, costly)} if has_classes else {}
            self._costs["features"] = of_features, costly
            rows = np.concatenate([pool.values() for pool in near])
            self._axes = find_axes(centre_rows(rows, None).T if columns is None else _list_ranked(columns))
            self._measures["means"] = measure_means(rows)
            if self._with_names and has_classes:
                self._measures["classes by name"] = measure_means(rows, plan.codes)
                self._measures[SHARES] = measure_shares(plan.codes)

    def test(self, report: Report) -> TwoSampleTest:
        """Permute, and say whether the datasets differ.

        Of many permutations some come first, and the test may end with them: to end with a p-value that is far from
        small takes rejections away and adds none, so every level below 0.2 still holds.
        """
        most, count = self._how.n_permutations, self._projections.n_projections
        what = f"{say_count(most, 'permutation')} through {say_count(count, 'projection')}"
        check_fits(most * (8 * count * 2 * len(ORDERS) + sum(self.plan.sizes)), what, "n_permutations", most)
        for look, settled in [*(_LOOKS if most >= 400 else ()), (most, 0.0)]:
            self.draw(1 + look, lambda done: report(done, 1 + most))
            found = self._judge()
            if found.p_value >= settled:
                break
        return found

    def _judge(self) -> TwoSampleTest:
        """The test by the permutations that were measured."""
        distances = find_distances(self._distances[:, :, 0], self._how.p)
        scores = {"distance": distances}
        if self._judges_all:
            scores = standardise_statistics(self.table, self.differences.largest)
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
            aspects={name: describe_aspect(values) for name, values in scores.items()},
            strongest=max(scores, key=lambda name: float(scores[name][0]), default="distance"),
        )

    def draw(self, count: int, report: Callable[[int], None]) -> None:
        """Permute until there are this many splits, the data among them."""
        drawn = []
        for start in range(self._drawn, count, _BATCH):
            marks = self.plan.mark_all(range(start, min(start + _BATCH, count)), self._engine.workers.each)
            shown = marks[int(start == 0) : max(0, _SHOWN - start) if self._judges_all else None]
            if len(shown):
                costs = self._cost(self._shown, self._pools, shown)
                self._distances = np.concatenate([self._distances, costs], axis=1)
            for name, (plan, pools) in self._costs.items():
                for order, costs in zip(plan.orders, np.moveaxis(self._cost(plan, pools, marks), 2, 0), strict=True):
                    self._add(f"{name}, order {order:g}", costs)
            drawn.append(marks)
            report(start + len(marks))
        self._drawn = count
        if self._measures:
            self._measure(np.concatenate(drawn) == 1)

    def _cost(self, plan: Plan, pools: Sequence[Pool], marks: Marks) -> Doubles:
        """W_p^p (L, S, orders) of some splits."""
        return collect_costs([self._engine.split_costs(pool, plan, marks) for pool in pools], plan, self._engine)

    def _measure(self, members: NDArray[np.bool_]) -> None:
        """All that is made of neither distances nor costs."""
        batches = [members[start : start + _TOGETHER] for start in range(0, len(members), _TOGETHER)]
        for name, measure in self._measures.items():
            self._add(name, np.concatenate([*self._engine.workers.each(measure, batches)]))
        self.differences.extend(self._compare(members.astype(np.float32)))

    def _add(self, name: str, found: Doubles) -> None:
        """Put a statistic of further splits after that of the earlier ones."""
        self.table[name] = np.concatenate([self.table[name], found], axis=-1) if name in self.table else found

    def _compare(self, members: Floats) -> Iterator[Compared]:
        """All scores, some at a time."""
        each = self._engine.workers.each
        columns = score_columns(self.columns, self._with_names, each)
        for scores in chain(columns, self.pairs.score(), [score_axes(self._axes)]):
            yield from compare_scores(scores, members, each)
        yield from self.within.compare(members, each)


def _list_ranked(columns: Sequence[Column]) -> Floats:
    """(N, k) normal scores of ranks of all columns, categories by their values, gaps by a mark."""
    table = [column.numbers for column in columns if column.is_number]
    table += [mark for column in columns if column.kind != "label" for mark in column.list_marks().values()]
    return rank_columns(np.column_stack([*table, np.zeros(len(columns[0].known))]))
