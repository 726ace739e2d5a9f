"""The engine for processors: NumPy's matrix product, compiled loops, all cores.

Work goes through a chunk of projections at a time. Within a chunk, blocks of points are
projected side by side on all threads, then rows (one projection of one dataset each) are
shifted by their class terms and sorted side by side. So nothing of size projections × points
is ever held beyond one chunk, and any number of cores finds work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise as neighbours
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sotdd.compute.cpu.rows import (
    ITEM_VALUES,
    Doubles,
    Layout,
    Rows,
    find_class_terms,
    fit_chunk,
    lay_out,
    point_sums,
    project,
    scale_rows,
    sort_classes,
    sort_rows,
)
from sotdd.compute.cpu.splits import split_costs
from sotdd.compute.cpu.workers import Draws, Workers
from sotdd.compute.engine import (
    LARGEST_TERM,
    ClassMoments,
    PointSums,
    Pool,
    Projected,
    ProjectedPoints,
    Seen,
    Sorted,
    describe_bad_term,
    describe_overflow,
)
from sotdd.compute.kernels import moments as moment_kernels
from sotdd.compute.kernels import rows as kernels
from sotdd.compute.kernels.quantiles import part_means, row_losses
from sotdd.compute.resampling import NORMAL_DEVIATION, Marks, Plan
from sotdd.inputs.data import LabelledData
from sotdd.projections.directions import Directions, Drawn
from sotdd.projections.draws import Block
from sotdd.projections.moments import Polynomials
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scaler

_Item = TypeVar("_Item")

# Shares that sums over the points of a dataset are made in.
_SHARES = 16

# What a thread takes at a time, so that it seldom waits for Python: blocks of points with about this many
# multiplications; blocks of draws; rows of places.
_ITEM_PRODUCTS, _DRAWN, _PLACES = 1 << 25, 4, 128

# Rows are finished in about this many pieces per thread, of no more than so many values.
_ITEMS, _MOST_VALUES = 4, 1 << 20


class CpuEngine:
    """Projects, shifts, sorts and transports on all cores, for the time of a ``with`` block.

    Parameters
    ----------
    threads
        How many; by default as many as BLAS may use.
    chunk
        About how many projections are in memory at a time, a multiple of 64; by default 512, or
        fewer where that would take more than 256 MB. Results do not depend on either, bit for bit.
    """

    def __init__(self, threads: int | None = None, chunk: int | None = None) -> None:
        self._chunk = chunk
        self.workers: Workers = Workers(threads)

    def __enter__(self) -> CpuEngine:
        """Start the threads."""
        self.workers.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop the threads and leave the process's thread settings as they were."""
        self.workers.__exit__(*error)

    def walk(
        self,
        datasets: Sequence[Seen],
        projections: Projections,
        *,
        degree: int = 0,
        draws: int = 0,
        before_sorting: Callable[[Projected], None] | None = None,
        sort: bool = True,
    ) -> Iterator[Sorted]:
        """See every dataset through one chunk of projections after another.

        Class moments are taken up to ``degree``, a multiple of four; 0 for none. Before each chunk is handed out,
        ``before_sorting`` is called with its feature projections. Without ``sort`` nothing else is made. Rows stay
        valid until the next chunk, and feature projections until the call returns.
        """
        tile, chunk = fit_chunk(datasets, projections, self._chunk)
        layouts = lay_out(datasets, chunk, degree, draws)
        count = projections.n_projections
        parts = [slice(start, min(start + chunk, count)) for start in range(0, count, chunk)]
        drawn = Draws(self.workers, projections, draws, _DRAWN)
        for start, block in drawn.follow(parts, ahead=2):  # the next beside this chunk's work
            part = slice(start, start + len(block))
            terms = self._project_and_sort(layouts, part, block, projections.scaler, tile, before_sorting, sort)
            rows = [layout.rows[: len(block)] for layout in layouts]
            controlled = [layout for layout in layouts if len(layout.values)]
            # Copies, since the next chunk goes to the same place.
            places = [layout.places[: len(block)].copy() for layout in controlled]
            values = [layout.values[: len(block)].copy() for layout in controlled]
            yield Sorted(part, rows, block, terms, places, values)

    def expect(self, projections: Projections, draws: int) -> None:
        """Do nothing yet: draws take little beside what this engine does."""

    def point_sums(self, datasets: Sequence[LabelledData], scaler: Scaler | None) -> list[PointSums]:
        """Sums over the scaled points of each dataset: all threads on a large one, one to each of the small ones."""
        shares = [_share_blocks(data) for data in datasets]
        small = [number for number, parts in enumerate(shares) if len(parts) == 1]
        of_small = self.workers.each(lambda number: point_sums(datasets[number], scaler, shares[number], map), small)
        sums = dict(zip(small, of_small, strict=True))
        for number, data in enumerate(datasets):
            if number not in sums:
                sums[number] = point_sums(data, scaler, shares[number], self.workers.each)
        return [sums[number] for number in range(len(datasets))]

    def transports(self, rows: Sequence[Rows], pairs: Sequence[tuple[int, int]], p: float) -> Doubles:
        """W_p^p (B, P) of every pair of datasets: threads take a pair each, or some rows where there is one pair."""
        count, sizes = len(rows[0]), [part.shape[1] for part in rows]
        costs = np.empty((len(pairs), count))

        def align(number: int) -> kernels.Overlaps | None:
            n, m = (sizes[side] for side in pairs[number])
            return None if n == m else kernels.Overlaps.of(n, m)

        def work(number: int, part: slice, overlaps: kernels.Overlaps | None) -> None:
            i, j = pairs[number]
            kernels.transport_rows(rows[i][part], rows[j][part], p, overlaps, costs[number, part])

        if len(pairs) > 1:
            self.workers.each(lambda number: work(number, slice(None), align(number)), range(len(pairs)))
        else:
            steps, n_points = align(0), sum(sizes[side] for side in pairs[0])
            self.workers.each(lambda part: work(0, part, steps), _cut_rows(count, n_points))
        return costs.T

    def place_moments(self, moments: ClassMoments, block: Block) -> tuple[list[Doubles], list[Doubles]]:
        """What `Sorted` has as places and values, of one dataset whose class moments are known."""
        mean, covariance, even = moments.mean, moments.covariance, moments.even
        counted, orders = self._make_draws(block, mean.shape[1] - 1)
        wide = np.zeros((*counted.shape[:2], mean.shape[1] + 1))  # orders beyond are in the last column
        wide[:, :, 0] = counted[:, :, 0]
        lines, draws = np.ogrid[: wide.shape[0], : wide.shape[1]]
        for moment in range(orders.shape[2]):
            wide[lines, draws, orders[:, :, moment]] += counted[:, :, moment + 1]
        terms = wide[:, :, :-1]
        within = np.maximum(0.0, 2 * even[:, 0] - mean[:, 0] ** 2 - covariance[:, 0, 0])
        variances = ((terms @ covariance) * terms).sum(axis=2) + terms[:, :, 0] ** 2 * within[:, None]
        places = np.stack([(terms @ mean[:, :, None])[:, :, 0], np.sqrt(np.maximum(0.0, variances))], axis=2)
        return [places], [np.column_stack([mean[:, 0], covariance[:, 0, 0] + mean[:, 0] ** 2, even])]

    def _make_draws(self, block: Block, degree: int) -> tuple[Doubles, NDArray[np.int64]]:
        """What draws of the label law count moments by, and the orders of these, as `FurtherDraws.make` gives them."""
        draws, count = block.draws, len(block)
        if draws is None or not degree:
            return np.empty((count, 0, 1)), np.empty((count, 0, 0), np.int64)
        if degree not in draws.made:
            parts = [slice(start, start + _PLACES) for start in range(0, count, _PLACES)]
            found = zip(*self.workers.each(lambda part: draws.part(part).make(degree), parts), strict=True)
            counted, orders = (np.concatenate(made) for made in found)
            draws.made[degree] = counted, orders
        return draws.made[degree]

    def quantiles(self, rows: Rows, edges: Doubles) -> Rows:
        """Means (B, Q) of each sorted row over parts of probability with these edges (Q + 1,)."""
        out = np.empty((len(rows), len(edges) - 1), np.float32)
        places, parts = np.arange(rows.shape[1] + 1) / rows.shape[1], _cut_rows(len(rows), rows.shape[1])
        self.workers.each(lambda part: part_means(rows[part], places, edges, out[part]), parts)
        return out

    def losses(self, rows: Rows, means: Rows, edges: Doubles, smooth: bool) -> Doubles:
        """How far each sorted row is from the function of such means: the mean and the root mean square, (B, 2)."""
        out = np.empty((len(rows), 2))
        places, parts = np.arange(rows.shape[1] + 1) / rows.shape[1], _cut_rows(len(rows), rows.shape[1])
        self.workers.each(lambda part: row_losses(rows[part], places, means[part], edges, smooth, out[part]), parts)
        return out

    def each(self, function: Callable[[_Item], None], items: Sequence[_Item]) -> None:
        """Do one piece of work per item: side by side where there are many, else each on all threads."""
        list((self.workers.each if len(items) >= self.workers.count else map)(function, items))

    def split_costs(self, pool: Pool, plan: Plan, marks: Marks) -> Doubles:
        """W_p^p (B, S, orders) between the two sides of some splits of a plan, class terms and all."""
        return split_costs(pool, plan, marks, self.workers)

    def join_points(self, rows: Sequence[Rows]) -> Rows:
        """The points of several datasets one after another."""
        out = np.empty((len(rows[0]), sum(part.shape[1] for part in rows)), np.float32)
        parts = _cut_rows(*out.shape)
        self.workers.each(lambda part: np.concatenate([one[part] for one in rows], axis=1, out=out[part]), parts)
        return out

    def take_points(self, rows: Rows, index: NDArray[np.integer]) -> Rows:
        """Some of the points."""
        return np.take(rows, index, axis=1)

    def bring_near(self, rows: Rows, deviations: float) -> Rows:
        """Points farther from the median than this many deviations brought that near."""

        def work(part: slice) -> Rows:
            some = rows[part]
            middle = np.median(some, axis=1, keepdims=True)
            deviation = np.median(np.abs(some - middle), axis=1, keepdims=True) * NORMAL_DEVIATION
            reach = np.where(deviation > 0, deviations * deviation, np.inf)
            return np.clip(some, middle - reach, middle + reach).astype(np.float32)

        return np.concatenate(self.workers.each(work, _cut_rows(*rows.shape)))

    def fetch_rows(self, rows: Rows) -> Rows:
        """Rows of this engine as an array."""
        return rows

    def ends(self, rows: Rows) -> Doubles:
        """The smallest and the largest value (B, 2) of each sorted row."""
        return rows[:, [0, -1]].astype(np.float64)

    def collect(self, parts: Sequence[Doubles]) -> Doubles:
        """Put what ``transport`` or ``ends`` gave for one chunk after another together."""
        return np.concatenate(parts)

    def _project_and_sort(
        self,
        layouts: list[Layout],
        here: slice,
        block: Block,
        scaler: Scaler | None,
        tile: int,
        before_sorting: Callable[[Projected], None] | None,
        sort: bool,
    ) -> list[Doubles]:
        """Fill the rows of every dataset with sorted data point projections; returns its class terms (B, C)."""
        total = len(block) * sum(layout.data.n_points for layout in layouts)
        values = min(max(ITEM_VALUES, total // (_ITEMS * self.workers.count)), _MOST_VALUES)
        parts = [(layout, part) for layout in layouts for part in _cut_rows(len(block), layout.data.n_points, values)]
        self._project(layouts, here, block.features, scaler, tile)
        if before_sorting is not None:
            rows = [layout.rows[: len(block)] for layout in layouts]
            before_sorting(Projected(self, here, block, rows))
        if not sort:
            return []
        further = self._make_draws(block, max((layout.degree for layout in layouts), default=0))
        terms = self.workers.each(lambda item: _finish(*item, block, further, here.start), parts)
        return [
            np.concatenate([part for (owner, _), part in zip(parts, terms, strict=True) if owner is layout])
            for layout in layouts
        ]

    def _project(self, layouts: list[Layout], here: slice, drawn: Drawn, scaler: Scaler | None, tile: int) -> None:
        """Fill the rows of every dataset with feature projections, in the order of its points."""
        count = here.stop - here.start
        if isinstance(drawn, Directions):
            with np.errstate(over="ignore"):  # found, and explained, where rows are checked
                drawn = Directions(np.ascontiguousarray(drawn.theta, np.float32), drawn.clamp)
        items: list[tuple[Layout, LabelledData, list[slice]]] = []
        for layout in layouts:
            data, out = layout.data, layout.rows[:count]
            if isinstance(data, ProjectedPoints):
                out[...] = data.rows[here]
            elif layout.twin is None:
                blocks = data.blocks()
                size = 1 + _ITEM_PRODUCTS // (count * data.n_features * (blocks[0].stop - blocks[0].start))
                items += [(layout, data, blocks[first : first + size]) for first in range(0, len(blocks), size)]

        def work(item: tuple[Layout, LabelledData, list[slice]]) -> None:
            layout, data, blocks = item
            for points in blocks:
                project(scale_rows(data.rows(points), scaler, data.name), drawn, tile, layout.rows[:count], points)

        self.workers.each(work, items)
        for layout in layouts:
            if layout.twin is not None:
                layout.rows[:count] = layouts[layout.twin].rows[:count]


# ------------------------------------------------------------------ the verbs, on what one thread takes


def _share_blocks(data: LabelledData) -> list[list[slice]]:
    """Blocks of points in a few shares, which depend on the data alone, so that sums have the same bits."""
    blocks = data.blocks()
    size = max(1, -(-len(blocks) // _SHARES))
    return [blocks[start : start + size] for start in range(0, len(blocks), size)]


def _cut_rows(count: int, n_points: int, values: int = ITEM_VALUES) -> list[slice]:
    """Cut ``count`` rows of ``n_points`` values into parts that a thread takes at a time."""
    size = max(1, values // n_points)
    return [slice(start, stop) for start, stop in neighbours([*range(0, count, size), count])]


def _finish(
    layout: Layout, part: slice, block: Block, further: tuple[Doubles, NDArray[np.int64]], start: int
) -> Doubles:
    """Turn some rows of feature projections into sorted data point projections; returns the class terms."""
    rows, drawn, first = layout.rows[part], block.terms.part(part), start + part.start
    how = layout.order, layout.offsets, drawn.limit, layout.degree, further[0][part], further[1][part]
    fused = isinstance(drawn, Polynomials)
    terms = np.empty((len(rows), len(layout.offsets) - 1 if fused else 0))
    made = rows, layout.places[part], layout.values[part], terms
    moment_kernels.group_rows(rows, *how, drawn.weights, drawn.coefficients, *made)
    if not fused:
        terms = find_class_terms(rows, layout.offsets, drawn)
    fits = (np.abs(terms) < LARGEST_TERM).all(axis=1)  # NaN is not smaller than anything
    if not fits.all():
        line = int(np.argmin(fits))
        raise describe_bad_term(layout.data.name, float(np.abs(rows[line]).max()), drawn, line, first + line)
    if not fused:
        kernels.shift_rows(rows, layout.offsets, drawn.weights, terms)
    if layout.by_class:
        sort_classes(rows, layout.offsets)
    else:
        sort_rows(rows)
    edges = layout.offsets if layout.by_class else layout.offsets[[0, -1]]
    # Sorted values carry anything that is not finite at their ends.
    finite = np.isfinite(rows[:, edges[:-1]]).all(axis=1) & np.isfinite(rows[:, edges[1:] - 1]).all(axis=1)
    if not finite.all():
        raise describe_overflow(layout.data.name, first + int(np.argmin(finite)))
    return terms
