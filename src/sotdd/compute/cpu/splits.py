"""The sides of splits on a processor: point by point, or in cells where a pool is large."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.threads import Workers
from sotdd.compute.cpu.rows import ITEM_VALUES, Doubles, Rows, find_class_terms, sort_rows
from sotdd.compute.kernels import cells as cell_kernels
from sotdd.compute.kernels import couplings
from sotdd.compute.kernels import rows as kernels
from sotdd.compute.kernels.rows import Overlaps, transport_rows
from sotdd.compute.resampling import Marks, Plan, Side
from sotdd.compute.slices import ProjectedPoints
from sotdd.inputs.data import cut_range
from sotdd.projections.moments import Polynomials


def split_costs(points: ProjectedPoints, plan: Plan, marks: Marks, workers: Workers) -> NDArray[np.float64]:
    """W_p^p (B, S, orders) between the two sides of some splits of a plan, for each of its orders p.

    Threads take a share of the rows, or of the splits where labels count and points are not in cells.
    """
    costs, terms, orders = (
        np.empty((len(points.rows), len(marks), len(plan.orders))),
        points.terms,
        np.array(plan.orders),
    )
    parts = _share_rows(len(points.rows), 4 * workers.free if workers.free > 1 else 1)
    by_cells = isinstance(terms, Polynomials) and points.shared  # those of features, which class terms need too
    if plan.cells is not None and (by_cells or not plan.labels):
        _split_cells(points, plan, marks, parts, workers, costs)
        return costs
    overlaps = Overlaps.of(*plan.sizes)

    def work(item: tuple[slice, slice]) -> None:
        some, share = item
        drawn = terms.part(share)
        if isinstance(drawn, Polynomials) and points.shared:
            how = plan.grouped, plan.edges, marks[some], plan.sizes, drawn.weights, drawn.coefficients, drawn.limit
            kernels.split_rows(points.fetch()[share], *how, *overlaps, orders, costs[share, some])
            return
        size = max(1, ITEM_VALUES // len(overlaps.width))
        for at, start in product(range(some.start, some.stop), range(share.start, share.stop, size)):
            part = slice(start, min(start + size, share.stop))
            a, b = (_sort_side(points.along(part), side) for side in plan.list_sides(marks[at]))
            for column, p in enumerate(plan.orders):
                costs[part, at, column] = transport_rows(a, b, p, overlaps)

    if plan.labels:
        # Rows of a split have its sides in common: threads take some splits each, and few of them some of the rows.
        some = _share_rows(len(marks), 4 * workers.free if workers.free > 1 else 1)
        shares = _share_rows(len(points.rows), -(-2 * workers.free // len(some)) if workers.free > 1 else 1)
        workers.each(work, [(which, share) for which in some for share in shares])
    else:  # sides of points in order are in order
        (values, order), how = points.ranked, (marks, *overlaps, orders)
        workers.each(lambda part: couplings.split_costs(values[part], order[part], *how, costs[part]), parts)
    return costs


def _split_cells(
    points: ProjectedPoints, plan: Plan, marks: Marks, parts: Sequence[slice], workers: Workers, costs: Doubles
) -> None:
    """Write the costs (B, S, orders) of sides that are counted in cells, which are made once."""
    assert plan.cells is not None
    count, (offsets, edges, firsts), terms = len(points.rows), plan.cells, points.terms
    weights, coefficients, cut = np.ones(count), np.zeros((count, 1)), np.inf
    if plan.labels and isinstance(terms, Polynomials):
        weights, coefficients, cut = terms.weights, terms.coefficients, terms.limit
    is_new, shape = plan not in points.cells, (count, len(edges) - 1)
    if is_new:
        of_points = np.empty(points.rows.shape, np.uint16)
        points.cells[plan] = of_points, np.empty(shape), np.empty(shape), np.empty(shape, np.int32)
    made, few_side = points.cells[plan], int(plan.sizes[1] < plan.sizes[0])
    few = np.stack(workers.each(lambda marked: np.flatnonzero(marked == few_side).astype(np.int32), marks))

    def work(part: slice) -> None:
        here = [values[part] for values in made]
        if is_new:
            how = plan.grouped, offsets, edges, firsts, coefficients[part], cut
            cell_kernels.make_cells(points.fetch()[part], *how, *here)
        cell_kernels.split_cells(firsts, few, weights[part], np.array(plan.orders), costs[part], *here)

    workers.each(work, parts)


def _sort_side(points: ProjectedPoints, side: Side) -> Rows:
    """Sorted data point projections of the points of one side."""
    taken, terms = points.take(side.index), points.terms
    rows = taken.fetch()
    kernels.shift_rows(
        rows, side.offsets, terms.weights, find_class_terms(taken.fetch_label_rows(), side.offsets, terms)
    )
    sort_rows(rows)
    return rows


def _share_rows(count: int, shares: int) -> list[slice]:
    """Cut ``count`` rows into about this many shares."""
    return cut_range(count, -(-count // min(shares, count)))
