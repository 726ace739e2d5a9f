"""Two datasets and permutations of their points through the same projections: as many as were asked for so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from sotdd.compute.engine import Engine, Pool
from sotdd.compute.resampling import KeepPools, Marks, Plan, collect_costs, find_distances
from sotdd.compute.run import run
from sotdd.inputs.data import LabelledData
from sotdd.measure.columns import COLUMNS, RARE, Column, rank_columns, score_columns
from sotdd.measure.relations import PAIRS, WITHIN, Pairs, Within
from sotdd.measure.scores import Compared, Differences, Doubles, Floats, compare_block
from sotdd.measure.statistics import (
    AXES,
    FARTHEST,
    ORDERS,
    SHARES,
    LabelNames,
    Measure,
    Statistic,
    balance_costs,
    centre_rows,
    find_axes,
    measure_means,
    measure_shares,
    score_axes,
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
    costs
        W_p^p (L, S, orders) by aspect. Where there are others, "distance" is of the data alone, and "chance" of the
        first 100 splits.
    measured
        Statistics (S,) that are made of neither costs nor scores.
    differences
        How far scores differ: of columns, pairs of them, classes and axes.
    pairs, within
        The columns that are compared two by two, and within classes; None where there are none.
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
        self.judged_by, combined = judged_by, judged_by == "combined"
        plan = replace(Plan.of_pair(pair, (0, 1), 0, seed, (p,)), actual=True, n_cells=None)
        self.plan: Plan = plan
        kept = KeepPools((0, 1))
        run(pair, projections, engine, [kept])
        self._plans: dict[str, tuple[Plan, list[Pool], int | None]] = {"distance": (plan, kept.pools, None)}
        self._measures: dict[str, Measure] = {}
        if combined:
            near, has_classes = [pool.bring_near(FARTHEST) for pool in kept.pools], plan.n_classes > 1
            costly = near
            if len(plan.codes) > _LARGE:
                costly = [pool.part(slice(-(-len(pool.rows) // 2))) for pool in near]
            of_labels = replace(plan, orders=ORDERS, n_cells=_CELLS)
            of_features = replace(of_labels, labels=False, n_cells=_CELLS_OF_FEATURES)
            self._plans = {
                "distance": (plan, kept.pools, 1),
                "chance": (replace(plan, n_cells=_CELLS_SHOWN), kept.pools, _SHOWN),
                **({"labels": (of_labels, costly, None)} if has_classes else {}),
                "features": (of_features, costly, None),
            }
            rows = np.concatenate([pool.values() for pool in near])
            self._axes = find_axes(centre_rows(rows, None).T if columns is None else _list_ranked(columns))
            self._measures["means"] = measure_means(rows)
            if label_names == "match" and has_classes:
                self._measures["classes by name"] = measure_means(rows, plan.codes)
                self._measures[SHARES] = measure_shares(plan.codes)
        self.pairs, self.within = Pairs(self.columns), Within(self.columns, plan.codes, label_names == "match")
        self._label_names, self.differences = label_names, Differences()
        self.costs: dict[str, Doubles] = {}
        self.measured: dict[str, Doubles] = {}
        self._drawn = 0

    @property
    def distances(self) -> Doubles:
        """The distances (S,) of the data and of some permutations."""
        of_data, of_all = self.costs["distance"], self.costs.get("chance", self.costs["distance"])
        return find_distances(np.concatenate([of_data[:, :1], of_all[:, 1:]], axis=1)[:, :, 0], self.p)

    @property
    def statistics(self) -> dict[str, Doubles]:
        """Statistics (S,) that are sums over projections or points."""
        balanced = {
            f"{'distance' if aspect == 'labels' else aspect}, order {order:g}": balance_costs(
                self.costs[aspect][:, :, column]
            )
            for aspect in ("labels", "features")
            if aspect in self.costs
            for column, order in enumerate(ORDERS)
        }
        return balanced | self.measured

    @property
    def largest(self) -> dict[str, Doubles]:
        """Statistics (S,) that are the largest of many."""
        counted = (COLUMNS, RARE, PAIRS, WITHIN, AXES)
        return {name: values for name, values in self.differences.largest.items() if name in counted}

    def draw(self, count: int, report: Callable[[int], None]) -> None:
        """Permute until there are this many splits, the data among them."""
        drawn = []
        for start in range(self._drawn, count, _BATCH):
            marks = self.plan.mark_all(range(start, min(start + _BATCH, count)), self._engine.workers.each)
            for aspect, (plan, pools, most) in self._plans.items():
                some = marks if most is None else marks[: max(0, most - start)]
                if len(some):
                    parts = [self._engine.split_costs(pool, plan, some) for pool in pools]
                    _append(self.costs, aspect, collect_costs(parts, plan, self._engine))
            drawn.append(marks)
            report(start + len(marks))
        self._drawn = count
        if self._measures:
            self._measure(np.concatenate(drawn))

    def _measure(self, marks: Marks) -> None:
        members, each = marks == 1, self._engine.workers.each
        batches = [members[start : start + _TOGETHER] for start in range(0, len(members), _TOGETHER)]

        def work(some: Marks) -> list[Doubles]:
            right = some.astype(np.float64)
            return [measure(right) for measure in self._measures.values()]

        for name, found in zip(self._measures, zip(*each(work, batches), strict=True), strict=True):
            _append(self.measured, name, np.concatenate(found))
        self.differences.extend(self._compare(members.astype(np.float32)))

    def _compare(self, members: Floats) -> Iterator[Compared]:
        """All scores, some at a time."""
        each = self._engine.workers.each
        columns = score_columns(self.columns, self._label_names == "match", each)
        for block in chain(columns, self.pairs.blocks(), score_axes(self._axes)):
            yield compare_block(block, members, each)
        yield from self.within.compare(members, each)


def _list_ranked(columns: Sequence[Column]) -> Floats:
    """(N, k) normal scores of ranks of all columns, categories by their values, gaps by a mark."""
    table = [column.numbers for column in columns if column.is_number]
    table += [mark for column in columns if column.kind != "label" for mark in column.list_marks().values()]
    return rank_columns(np.column_stack([*table, np.zeros(len(columns[0].known))]))


def _append(kept: dict[str, Doubles], name: str, found: Doubles) -> None:
    """Put what was found for further splits after what is known of the earlier ones."""
    axis = found.ndim > 1  # of costs (L, S, orders)
    kept[name] = np.concatenate([kept[name], found], axis=int(axis)) if name in kept else found
