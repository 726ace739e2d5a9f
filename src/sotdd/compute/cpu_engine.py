"""The engine for processors: NumPy's matrix product, compiled loops, all cores.

Within a chunk of projections, blocks of points are projected side by side on all threads, then rows (one projection of
one dataset each) are shifted by their class terms and sorted side by side. So nothing of size projections × points is
ever held beyond one chunk, and any number of cores finds work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.resources import Workers, empty_lines
from sotdd.compute.engine import Engine, LoadedData, refuse_bad_terms
from sotdd.compute.kernels import couplings
from sotdd.compute.kernels import rows as kernels
from sotdd.compute.kernels.quantiles import part_means
from sotdd.compute.resampling import Marks, Plan, Side
from sotdd.compute.slices import ProjectedPoints, Slices
from sotdd.inputs.data import LabelledData, cut_range
from sotdd.projections.kernels import sort_classes
from sotdd.projections.labels import LabelTerms, find_class_terms
from sotdd.projections.maps import BLOCK, Block, describe_overflow
from sotdd.projections.projections import Projections
from sotdd.projections.scaler import Scaler

Rows = NDArray[np.float32]  # (B, n): one row per projection, one value per point
Doubles = NDArray[np.float64]

# Values that a thread works on at a time: with their copies, a second-level cache's worth.
_ITEM_VALUES = 1 << 17
# Rows are finished in about this many pieces per thread, none of more values than this.
_ITEMS, _MOST_VALUES = 4, 1 << 20

# Products are made with tiles of this many directions, which run at nearly full speed. A product's
# rounding depends on its shape, so the tile depends on the problem alone, never on the chunk.
_TILE = 4 * BLOCK
_TILE_BYTES = 128 << 20
_DRAW_BYTES = 64 << 20

# So many classes of so few points each take less time by their polynomials than by powers that nobody else needs.
_MANY_CLASSES, _FEW_POINTS = 256, 64

# How many tiles are in memory at a time: points are converted to float32 once for all of them. Twice as many where they
# take no more than two of many points.
_TILES = 2

# What rows may take together, where datasets are projected several times.
_CHUNK_BYTES = 512 << 20

# Shares that the points of a dataset are gone through in, at most, values that each has at least, and the memory that
# sums of their classes may take together. They depend on the data alone, so that sums have the same bits.
_SHARES, _SHARE_VALUES, _SHARE_BYTES = 16, 1 << 16, 256 << 20
# Values that are processed at a time, which fit in a second-level cache; and at least this many points, a lane each.
_BLOCK_VALUES, _FEWEST_ROWS = 1 << 18, 8

# Indices of sides that are listed at a time, so that they take about 64 MB.
_SIDE_VALUES = 1 << 23


@dataclass(frozen=True, eq=False)
class _Layout:
    """A dataset with what every chunk needs to know of it."""

    data: LabelledData
    order: NDArray[np.int64]  # (n,) the points class by class
    edges: NDArray[np.int64]  # where what is sorted on its own begins and ends: all points, or each class
    rows: Rows  # (1 or 2, chunk, n) the chunk's projections of it, by each of the directions of a block
    moments: bool  # whether those of classes are taken
    twin: int | None  # an earlier dataset with the same features, if there is one


class CpuData(LoadedData):
    """Datasets, and a place for a chunk of their projections, which the next chunk overwrites."""

    def prepare(self) -> list[slice]:
        """Make room for a chunk of projections of all datasets."""
        self._workers, self._norms = self._engine.workers, list[Doubles]()
        self._tile, self._chunk = _fit_chunk(self._datasets, self._projections, self._engine.chunk)
        self._layouts = self._lay_out()
        return cut_range(self._projections.n_projections, self._chunk)

    def project(self, block: Block) -> Iterator[tuple[Block, list[tuple[Rows, Rows]]]]:
        """Fill the rows of every dataset with projections by all directions, in the order of its points.

        With the first chunk, points are summed up as they go by.
        """
        rows = [layout.rows[:, : len(block)] for layout in self._layouts]
        summed = [layout.moments and not self._norms for layout in self._layouts]
        shares = [
            (number, blocks)
            for number, layout in enumerate(self._layouts)
            if layout.twin is None or summed[number]
            for blocks in _share_points(layout.data, summed[number])
        ]

        def work(share: tuple[int, list[slice]]) -> tuple[int, Doubles, Doubles]:
            """Project some points, and return sums of |x|², |x|⁴ and |x|⁶ (3,) and of the points of each class."""
            number, blocks = share
            data, is_new = self._layouts[number].data, self._layouts[number].twin is None
            spare = np.empty((blocks[0].stop - blocks[0].start, data.n_features), np.float32)
            norms, by_class = np.zeros(3), np.zeros((len(data.classes), data.n_features) if summed[number] else 0)
            for some in blocks:
                points = scale_rows(data.rows(some), self._projections.scaler, data.name, spare)
                with np.errstate(all="ignore"):  # overflow is found, and explained, where rows are checked
                    for drawn, out in zip(block.directions, rows[number], strict=True) if is_new else ():
                        drawn.project(points, out, some.start, self._tile)
                    if summed[number]:
                        kernels.norm_sums(points, data.codes[some], norms, np.uint64(0), by_class)
            return number, norms, by_class

        made = [one for one in self._workers.each(work, shares) if summed[one[0]]]
        if made:
            own = groupby(made, key=itemgetter(0))
            self._norms = [_average_points(self._layouts[number].data, list(found)) for number, found in own]
        for layout, filled in zip(self._layouts, rows, strict=True):
            if layout.twin is not None:
                filled[...] = rows[layout.twin]
        sides = [list(filled) for filled in rows]  # one view, or two
        yield block, [(side[0], side[-1]) for side in sides]

    def sort(self, part: slice, block: Block, projected: list[tuple[Rows, Rows]]) -> Slices:
        """Turn feature projections of every dataset into sorted data point projections, in place."""
        layouts, count = self._layouts, len(block)
        values = _size_item(count * sum(layout.data.n_points for layout in layouts), _ITEM_VALUES, self._workers)
        items = [
            (number, some)
            for number, layout in enumerate(layouts)
            for some in cut_rows(count, layout.data.n_points, min(values, _MOST_VALUES))
        ]

        def finish(item: tuple[int, slice]) -> tuple[int, list[Doubles]]:
            number, some = item
            rows, label_rows = (own[some] for own in projected[number])
            terms, start = block.terms.part(some), part.start + some.start
            return number, _finish(layouts[number], rows, label_rows, terms, block.further[some], start)

        made = groupby(self._workers.each(finish, items), key=itemgetter(0))
        found = [[np.concatenate(parts) for parts in zip(*(one for _, one in own), strict=True)] for _, own in made]
        rows, terms = [own for own, _ in projected], [one[0] for one in found]
        for layout, own, of_classes in zip(layouts, rows, terms, strict=True):
            _refuse_lost_rows(layout, own, of_classes, block, part.start)
        gaussian, directions = ([one[which] for one in found if len(one) > 1] for which in (1, 2))
        return Slices(self._engine, part, block, rows, terms, gaussian, directions, self._norms)

    def _lay_out(self) -> list[_Layout]:
        """Datasets with their places for a chunk; those of the same features as an earlier one are its twins."""
        layouts: list[_Layout] = []
        # One piece of memory, large enough for large pages: threads wait for each other where they get new ones.
        shape, used = (self._projections.n_directions, self._chunk), 0
        memory = empty_lines(shape[0] * shape[1] * sum(data.n_points for data in self._datasets))
        for number, data in enumerate(self._datasets):
            size, separate = shape[0] * shape[1] * data.n_points, number in self._by_class
            rows = memory[used : used + size].reshape(*shape, data.n_points)
            used += size
            same = (layout.data.features is data.features for layout in layouts)
            twin = next((earlier for earlier, found in enumerate(same) if found), None)
            edges = data.offsets if separate else data.offsets[[0, -1]]
            layouts.append(_Layout(data, data.group(), edges, rows, self._has_moments and not separate, twin))
        return layouts


class CpuEngine(Engine):
    """Projects, shifts, sorts and transports on all cores, for the time of a ``with`` block.

    Parameters
    ----------
    threads
        How many; by default as many as BLAS may use.
    chunk
        About how many projections are in memory at a time, a multiple of 64; by default 512, or
        fewer where that would take more than 256 MB. Results do not depend on either, bit for bit.
    """

    loaded = CpuData

    def __init__(self, threads: int | None = None, chunk: int | None = None) -> None:
        super().__init__(threads)
        self.chunk: int | None = chunk

    def transport(self, rows: Sequence[Rows], pairs: Sequence[tuple[int, int]], p: float) -> Doubles:
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
            parts = cut_rows(count, n_points, _size_item(count * n_points, _MOST_VALUES, self.workers))
            self.workers.each(lambda part: work(0, part, steps), parts)
        return costs.T

    def average_parts(self, rows: Rows, edges: Doubles) -> Rows:
        """Means (B, Q) of each sorted row over parts of probability with these edges (Q + 1,)."""
        out = np.empty((len(rows), len(edges) - 1), np.float32)
        places, parts = np.arange(rows.shape[1] + 1) / rows.shape[1], cut_rows(len(rows), rows.shape[1])
        self.workers.each(lambda part: part_means(rows[part], places, edges, out[part]), parts)
        return out

    def split_costs(self, points: ProjectedPoints, plan: Plan, marks: Marks) -> Doubles:
        """W_p^p (B, S, orders) between the two sides of some splits of a plan, for each of its orders p.

        Threads take a share of the rows each; splits take turns, so that these rows stay in fast caches.
        """
        n_rows, n_points = points.rows.shape
        costs, orders = np.empty((n_rows, len(marks), len(plan.orders))), np.array(plan.orders)
        parts = cut_range(n_rows, min(_ITEM_VALUES // sum(plan.sizes), -(-n_rows // (2 * self.workers.free))))
        by_cells = points.terms.additive and points.shared  # those of features, which class terms need too
        if plan.cells is not None and (by_cells or not plan.labels):
            _split_cells(points, plan, marks, parts, self.workers, costs)
        elif plan.labels:
            for some in cut_range(len(marks), _SIDE_VALUES // n_points):
                sides = self.workers.each(plan.list_sides, marks[some])
                self.workers.each(partial(_split_points, points, plan, sides, costs[:, some]), parts)
        else:  # sides of points in order are in order
            (values, order), how = points.ranked, (marks, *kernels.Overlaps.of(*plan.sizes), orders)
            self.workers.each(lambda part: couplings.split_costs(values[part], order[part], *how, costs[part]), parts)
        return costs


def _fit_chunk(datasets: Sequence[LabelledData], projections: Projections, requested: int | None) -> tuple[int, int]:
    """The tile of products, and how many projections are in memory at a time, about as many as ``requested``."""
    # Points of twins are projected once, and products depend on nothing else.
    distinct = {id(data.features): data.n_points for data in datasets}
    n_points, size = max(1, projections.n_directions * sum(distinct.values())), projections.rotation_size
    by_rows, by_draws = _TILE_BYTES // (4 * n_points), _DRAW_BYTES // (8 * projections.n_features * _TILES)
    tile = max(1, min(_TILE, by_rows, by_draws) // BLOCK) * BLOCK
    few = 8 * _TILES * tile * n_points <= _TILES * _TILE_BYTES
    chunk = -(-requested // tile) * tile if requested else (1 + few) * _TILES * tile
    if size is not None and not requested:  # projections of a rotation share most work: all of it, or a power of two
        fitting = _TILES * _TILE_BYTES // (4 * n_points)
        chunk = max(chunk, min(size, 1 << max(BLOCK, fitting).bit_length() - 1))
    chunk = min(chunk, -(-projections.n_projections // BLOCK) * BLOCK)
    together = projections.n_directions * sum(data.n_points for data in datasets)
    while chunk > tile and 4 * chunk * together > _CHUNK_BYTES:  # as where a dataset is projected several times
        chunk = max(tile, chunk // 2 // tile * tile)
    return tile, chunk


def _share_points(data: LabelledData, summed: bool) -> list[list[slice]]:
    """Points in a few shares of about the same size, each in blocks of about the same size."""
    fitting = _SHARE_BYTES // (8 * len(data.classes) * data.n_features) if summed else _SHARES
    count = max(1, min(_SHARES, fitting))
    size = min(data.n_points, max(-(-data.n_points // count), _SHARE_VALUES // data.n_features, 1))
    rows = min(data.blocks()[0].stop, max(_BLOCK_VALUES // data.n_features, _FEWEST_ROWS))
    blocks = -(-size // rows)  # of a share
    cut = cut_range(data.n_points, -(-size // blocks))
    return [cut[start : start + blocks] for start in range(0, len(cut), blocks)]


@np.errstate(over="ignore", invalid="ignore")
def _average_points(data: LabelledData, shares: Sequence[tuple[int, Doubles, Doubles]]) -> Doubles:
    """The point norms of a dataset, as `Slices` has them, from sums over all shares of it, added up in their order."""
    _, norms, by_class = (sum(parts) for parts in zip(*shares, strict=True))
    between = np.sum(np.einsum("cd,cd->c", by_class, by_class) / data.counts)
    return np.concatenate([norms, [between], by_class.sum(axis=0)]) / data.n_points


def _finish(
    layout: _Layout, rows: Rows, label_rows: Rows, drawn: LabelTerms, further: Doubles, start: int
) -> list[Doubles]:
    """Turn some rows of feature projections into sorted data point projections.

    Returns class terms (B, C), and Gaussian and direction moments where they are taken. All is done in few
    calls of compiled loops: a thread waits for the interpreter after each.
    """
    data, offsets, own, count = layout.data, layout.data.offsets, len(layout.rows) > 1, len(rows)
    many = not layout.moments and len(data.classes) >= max(_MANY_CLASSES, data.n_points / _FEW_POINTS)
    fused = drawn.polynomial and not own and not many
    terms, controlled = np.empty((count, len(data.classes) if fused else 0)), count if layout.moments else 0
    gaussian, directions = np.empty((controlled, further.shape[2], 2)), np.empty((controlled, 5))
    spare = [np.empty(size) for size in (data.n_points, 90, 15, 9 * kernels.ROOM)]
    kernels.group_rows(
        rows, layout.order, offsets.view(np.uint64), drawn.limit, further, drawn.weights, drawn.coefficients,
        rows, gaussian.reshape(-1), directions, terms, np.empty(data.n_points, np.float32), *spare,
    )  # fmt: skip
    if not fused:
        if own:
            label_rows[...] = label_rows[:, layout.order]
        terms = find_class_terms(label_rows, offsets, drawn)
        refuse_bad_terms(data.name, label_rows, terms, drawn, start)
        kernels.shift_rows(rows, offsets, drawn.weights, terms)
    sort_classes(rows, layout.edges)
    return [terms, gaussian, directions] if layout.moments else [terms]


def _refuse_lost_rows(layout: _Layout, rows: Rows, terms: Doubles, block: Block, start: int) -> None:
    """Refuse rows, now sorted, that are not finite; sorted values carry that at their ends."""
    refuse_bad_terms(layout.data.name, rows, terms, block.terms, start)
    finite = np.isfinite(rows[:, [*layout.edges[:-1], *(layout.edges[1:] - 1)]])
    if not finite.all():
        raise describe_overflow(layout.data.name, start + int(np.argmin(finite.all(axis=1))))


# ------------------------------------------------------------------ rows


def scale_rows(rows: NDArray[np.generic], scaler: Scaler | None, name: str = "data", spare: Rows | None = None) -> Rows:
    """Points (m, d) as float32, centred and scaled; in ``spare``, where it is given, if they have to be copied."""
    if scaler is not None:
        result = np.empty(rows.shape, np.float32) if spare is None else spare[: len(rows)]
        if scaler.arcsinh:
            result[...] = scaler.apply(rows)
        else:
            kernels.standardise(rows, scaler.centre, scaler.inverse, result)
        return result
    with np.errstate(over="ignore"):  # found, and explained, where rows are checked
        result = rows.astype(np.float32, copy=False)
    if result is not rows and rows.any() and not result.any():
        raise SotddError(f"features of dataset {name!r} are too small for float32 products: use scale='pooled'.")
    return result


def cut_rows(count: int, n_points: int, values: int = _ITEM_VALUES) -> list[slice]:
    """Cut ``count`` rows of ``n_points`` values into parts that a thread takes at a time."""
    return cut_range(count, -(-count // -(-count * n_points // values)))  # all of about the same size


def _size_item(total: int, least: int, workers: Workers) -> int:
    """How much of some work a thread takes at a time: each comes back for more a few times."""
    return max(least, -(-total // (_ITEMS * workers.count)))


# ------------------------------------------------------------------ sides of splits: point by point, or in cells


@np.errstate(over="ignore", invalid="ignore")  # found, and explained, where costs are collected
def _split_points(
    whole: ProjectedPoints, plan: Plan, splits: Sequence[tuple[Side, Side]], costs: Doubles, part: slice
) -> None:
    """Write the costs (B, S, orders) of splits in some rows, point by point, with class terms of each side's own."""
    points, terms = whole.along(part), whole.terms.part(part)
    overlaps = None if plan.sizes[0] == plan.sizes[1] else kernels.Overlaps.of(*plan.sizes)
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
            costs[part, number, column] = kernels.transport_rows(a, b, p, overlaps)


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
            couplings.make_cells(rows, labels, plan.grouped, offsets, edges, firsts, *here)
        couplings.split_cells(firsts, few, weights[part], np.array(plan.orders), costs[part], *here)

    workers.each(work, parts)
