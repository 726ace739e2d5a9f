"""The sides of splits on a processor: point by point, or in cells where a pool is large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.compute.cpu.rows import ITEM_VALUES, Doubles, Rows, find_class_terms, sort_rows
from sotdd.compute.cpu.workers import Workers
from sotdd.compute.engine import Pool
from sotdd.compute.kernels import cells as cell_kernels
from sotdd.compute.kernels import couplings
from sotdd.compute.kernels import rows as kernels
from sotdd.compute.kernels.rows import Overlaps, transport_rows
from sotdd.compute.resampling import Marks, Plan, Side
from sotdd.projections.moments import LabelTerms, Polynomials


def split_costs(pool: Pool, plan: Plan, marks: Marks, workers: Workers) -> NDArray[np.float64]:
    """W_p^p (B, S, orders) between the two sides of some splits of a plan, for each of its orders p.

    Threads take a share of the rows, or a split each where labels count and points are not in cells.
    """
    costs, terms = np.empty((len(pool.rows), len(marks), len(plan.orders))), pool.terms
    parts = _share_rows(len(pool.rows), 2 * workers.free if workers.free > 1 else 1)
    if plan.cells is not None and (isinstance(terms, Polynomials) or not plan.labels):
        if plan not in pool.cells:
            pool.cells[plan] = Cells.of(pool, plan, parts, workers)
        pool.cells[plan].split(plan, marks, parts, workers, costs)
        return costs
    overlaps, orders = Overlaps.of(*plan.sizes), np.array(plan.orders)

    def work(item: tuple[int, slice]) -> None:
        at, share = item
        sides, drawn = plan.list_sides(marks[at]), terms.part(share)
        if isinstance(drawn, Polynomials):
            left, right = (side.offsets for side in sides)
            index, offsets = np.concatenate([side.index for side in sides]), np.append(left, left[-1] + right[1:])
            how = index, offsets, plan.sizes[0], drawn.weights, drawn.coefficients, drawn.limit
            kernels.split_rows(pool.rows[share], *how, *overlaps, orders, costs[share, at])
            return
        size = max(1, ITEM_VALUES // len(overlaps.width))
        for start in range(share.start, share.stop, size):
            part = slice(start, min(start + size, share.stop))
            a, b = (_sort_side(pool.rows[part], side, terms.part(part)) for side in sides)
            for column, p in enumerate(plan.orders):
                costs[part, at, column] = transport_rows(a, b, p, overlaps)

    if plan.labels:
        shares = _share_rows(len(pool.rows), -(-2 * workers.free // len(marks)) if workers.free > 1 else 1)
        workers.each(work, [(at, share) for at in range(len(marks)) for share in shares])
    else:  # sides of points in order are in order
        (values, order), how = pool.ranked, (marks, *overlaps, orders)
        workers.each(lambda part: couplings.split_costs(values[part], order[part], *how, costs[part]), parts)
    return costs


@dataclass(frozen=True, eq=False)
class Cells:
    """The points of a pool in cells, as `make_cells` writes them: which cell each is in, and what cells are."""

    made: tuple[NDArray[np.uint16], Doubles, Doubles, NDArray[np.int32]]
    weights: Doubles

    @classmethod
    def of(cls, pool: Pool, plan: Plan, parts: Sequence[slice], workers: Workers) -> Cells:
        """Sort the points of every row once."""
        assert plan.cells is not None
        count, (edges, firsts) = len(pool.rows), plan.cells
        shape, coefficients, cut, weights = (count, len(edges) - 1), np.zeros((count, 1)), np.inf, np.ones(count)
        if plan.labels and isinstance(pool.terms, Polynomials):
            coefficients, cut, weights = pool.terms.coefficients, pool.terms.limit, pool.terms.weights
        of_points = np.empty(pool.rows.shape, np.uint16)
        made = of_points, np.empty(shape), np.empty(shape), np.empty(shape, np.int32)

        def work(part: slice) -> None:
            how = *plan.grouping, edges, firsts, coefficients[part], cut
            cell_kernels.make_cells(pool.rows[part], *how, *(values[part] for values in made))

        workers.each(work, parts)
        return cls(made, weights)

    def split(self, plan: Plan, marks: Marks, parts: Sequence[slice], workers: Workers, costs: Doubles) -> None:
        """Write what some splits cost (B, S, orders)."""
        assert plan.cells is not None
        fewer = int(plan.sizes[1] < plan.sizes[0])
        few, absent = (
            np.stack(workers.each(lambda marked, side=side: np.flatnonzero(marked == side).astype(np.int32), marks))
            for side in (fewer, 2)
        )
        how = plan.cells[1], few, absent

        def work(part: slice) -> None:
            of_part = (values[part] for values in self.made)
            cell_kernels.split_cells(*of_part, *how, self.weights[part], np.array(plan.orders), costs[part])

        workers.each(work, parts)


def _sort_side(source: Rows, side: Side, terms: LabelTerms) -> Rows:
    """Sorted data point projections of the points of one side."""
    rows = np.take(source, side.index, axis=1)
    kernels.shift_rows(rows, side.offsets, terms.weights, find_class_terms(rows, side.offsets, terms))
    sort_rows(rows)
    return rows


def _share_rows(count: int, wanted: int) -> list[slice]:
    """Cut ``count`` rows into about ``wanted`` shares."""
    size = -(-count // min(wanted, count))
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
