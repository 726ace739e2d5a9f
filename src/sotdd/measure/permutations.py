"""Two datasets and permutations of their points through the same projections: as many as were asked for so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from sotdd.compute.engine import Engine, Pool
from sotdd.compute.resampling import KeepPools, Marks, Plan, collect_costs, find_distances
from sotdd.compute.run import run
from sotdd.inputs.data import LabelledData
from sotdd.measure.columns import Column, rank_columns, score_columns
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
    find_axes,
    measure_means,
    measure_shares,
    score_axes,
    standardise_statistics,
)
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


class Permutations:
    """What the data and permutations of them cost, and how far they are apart in other aspects.

    Parameters
    ----------
    pair, projections, p, seed, engine
        The two datasets, what they are seen through and how, and what permutations follow from.
    columns
        The columns of both, if they are looked at one by one.
    label_names, judged_by
        As in `sotdd.test`.

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
        p: float,
        seed: int,
        engine: Engine,
        columns: Sequence[Column] | None,
        *,
        label_names: LabelNames = "ignore",
        judged_by: Statistic = "combined",
    ) -> None:
        self.projections, self.p, self._engine, self.columns = projections, p, engine, columns or []
        self.judged_by, self._with_names, self._drawn = judged_by, label_names == "match", 0
        self.plan = plan = replace(Plan.of_pair(pair, (0, 1), 0, seed, (p,)), actual=True, n_cells=None)
        kept = KeepPools((0, 1))
        run(pair, projections, engine, [kept])
        self.pairs, self.within = Pairs(self.columns), Within(self.columns, plan.codes, self._with_names)
        self.table, self.differences = dict[str, Doubles](), Differences()
        self._shown, self._pools = plan if judged_by == "distance" else replace(plan, n_cells=_CELLS_SHOWN), kept.pools
        self._distances = self._cost(plan, kept.pools, plan.mark_all(range(1)))
        self._costs: dict[str, tuple[Plan, list[Pool]]] = {}
        self._measures: dict[str, Measure] = {}
        if judged_by == "combined":
            near, has_classes = [pool.bring_near(FARTHEST) for pool in kept.pools], plan.n_classes > 1
            costly = near
            if len(plan.codes) > _LARGE:
                costly = [pool.part(slice(-(-len(pool.rows) // 2))) for pool in near]
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

    @property
    def distances(self) -> Doubles:
        """The distances (S,) of the data and of some permutations."""
        return find_distances(self._distances[:, :, 0], self.p)

    def standardise(self) -> dict[str, Doubles]:
        """What is judged of every split (S,), by name: statistics in their own deviations, or the distance alone."""
        if self.judged_by == "distance":
            return {"distance": self.distances}
        return standardise_statistics(self.table, self.differences.largest)

    def draw(self, count: int, report: Callable[[int], None]) -> None:
        """Permute until there are this many splits, the data among them."""
        drawn = []
        for start in range(self._drawn, count, _BATCH):
            marks = self.plan.mark_all(range(start, min(start + _BATCH, count)), self._engine.workers.each)
            shown = marks[int(start == 0) : None if self.judged_by == "distance" else max(0, _SHOWN - start)]
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

        def work(some: NDArray[np.bool_]) -> list[Doubles]:
            right = some.astype(np.float64)
            return [measure(right) for measure in self._measures.values()]

        found = zip(*self._engine.workers.each(work, batches), strict=True)
        for name, parts in zip(self._measures, found, strict=True):
            self._add(name, np.concatenate(parts))
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
