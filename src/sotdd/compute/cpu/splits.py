"""The sides of splits on a processor: point by point, or in cells where a pool is large."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.resources import Workers
from sotdd.compute.cpu.rows import ITEM_VALUES, Doubles, Rows
from sotdd.compute.kernels import cells as cell_kernels
from sotdd.compute.kernels import couplings
from sotdd.compute.kernels import rows as kernels
from sotdd.compute.kernels.rows import Overlaps, transport_rows
from sotdd.compute.resampling import Marks, Plan, Side
from sotdd.compute.slices import ProjectedPoints
from sotdd.inputs.data import cut_range
from sotdd.projections.terms import find_class_terms, sort_classes

# Indices of sides that are listed at a time, so that they take about 64 MB.
_SIDE_VALUES = 1 << 23


def split_costs(points: ProjectedPoints, plan: Plan, marks: Marks, workers: Workers) -> NDArray[np.float64]:
    """W_p^p (B, S, orders) between the two sides of some splits of a plan, for each of its orders p.

    Threads take a share of the rows each; splits take turns, so that these rows stay in fast caches.
    """
    n_rows, n_points = points.rows.shape
    costs, orders = np.empty((n_rows, len(marks), len(plan.orders))), np.array(plan.orders)
    parts = cut_range(n_rows, min(ITEM_VALUES // sum(plan.sizes), -(-n_rows // (2 * workers.free))))
    by_cells = points.terms.additive and points.shared  # those of features, which class terms need too
    if plan.cells is not None and (by_cells or not plan.labels):
        _split_cells(points, plan, marks, parts, workers, costs)
    elif plan.labels:
        for some in cut_range(len(marks), _SIDE_VALUES // n_points):
            sides = workers.each(plan.list_sides, marks[some])
            workers.each(partial(_split_points, points, plan, sides, costs[:, some]), parts)
    else:  # sides of points in order are in order
        (values, order), how = points.ranked, (marks, *Overlaps.of(*plan.sizes), orders)
        workers.each(lambda part: couplings.split_costs(values[part], order[part], *how, costs[part]), parts)
    return costs


@np.errstate(over="ignore", invalid="ignore")  # found, and explained, where costs are collected
def _split_points(
    whole: ProjectedPoints, plan: Plan, splits: Sequence[tuple[Side, Side]], costs: Doubles, part: slice
) -> None:
    """Write the costs (B, S, orders) of splits in some rows, point by point, with class terms of each side's own."""
    points, terms = whole.along(part), whole.terms.part(part)
    overlaps = None if plan.sizes[0] == plan.sizes[1] else Overlaps.of(*plan.sizes)
    labels = terms.point_terms(points.fetch_label_rows()) if terms.additive else None  # (B, N)

    def sort_side(side: Side) -> Rows:
        taken = points.take(side.index)
        if labels is None:
            of_classes = find_class_terms(taken.fetch_label_rows(), side.offsets, terms)
        else:
            sums = np.add.reduceat(np.take(labels, side.index, axis=1), side.offsets[:-1], axis=1)
            of_classes = sums / np.diff(side.offsets)
        rows = taken.fetch()
        kernels.shift_rows(rows, side.offsets, terms.weights, of_classes)
        sort_classes(rows, side.offsets[[0, -1]])
        return rows

    for number, sides in enumerate(splits):
        a, b = map(sort_side, sides)
        for column, p in enumerate(plan.orders):
            costs[part, number, column] = transport_rows(a, b, p, overlaps)


def _split_cells(
    points: ProjectedPoints, plan: Plan, marks: Marks, parts: Sequence[slice], workers: Workers, costs: Doubles
) -> None:
    """Write the costs (B, S, orders) of sides that are counted in cells, which are made once."""
    assert plan.cells is not None
    count, (offsets, edges, firsts) = len(points.rows), plan.cells
    weights = points.terms.weights if plan.labels else np.ones(count)
    is_new, shape = plan not in points.cells, (count, len(edges) - 1)
    if is_new:
        of_points = np.empty(points.rows.shape, np.uint16)
        points.cells[plan] = of_points, np.empty(shape), np.empty(shape), np.empty(shape, np.int32)
    made, few_side = points.cells[plan], int(plan.sizes[1] < plan.sizes[0])
    few = np.stack(workers.each(lambda marked: np.flatnonzero(marked == few_side).astype(np.int32), marks))

    def work(part: slice) -> None:
        here = [values[part] for values in made]
        if is_new:
            some = points.along(part)
            rows, of_labels = some.fetch(), some.fetch_label_rows()
            labels = some.terms.point_terms(of_labels) if plan.labels else np.zeros(rows.shape)
            cell_kernels.make_cells(rows, labels, plan.grouped, offsets, edges, firsts, *here)
        cell_kernels.split_cells(firsts, few, weights[part], np.array(plan.orders), costs[part], *here)

    workers.each(work, parts)
