"""The engine for processors: NumPy's matrix product, compiled loops, all cores.

Work goes through a chunk of projections at a time. Within a chunk, blocks of points are
projected side by side on all threads, then rows (one projection of one dataset each) are
shifted by their class terms and sorted side by side. So nothing of size projections × points
is ever held beyond one chunk, and any number of cores finds work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import pairwise as neighbours
from types import TracebackType
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sotdd.engines.cpu.sparse import multiplies_stored, point_sums, project_stored
from sotdd.engines.cpu.splits import FeatureProjections, Pool, split_costs
from sotdd.engines.cpu.verbs import Doubles, Rows, class_terms, group, project, scaled, sort_classes, sort_rows
from sotdd.engines.cpu.workers import Workers
from sotdd.engines.protocol import LARGEST_TERM, ClassMoments, PointSums, View, too_large, unusable_term
from sotdd.engines.splits import Ways
from sotdd.inputs.data import LabelledData
from sotdd.inputs.sparse import SparseRows
from sotdd.kernels import moments as moment_kernels
from sotdd.kernels import rows as kernels
from sotdd.kernels.quantiles import part_means, row_losses
from sotdd.projections.directions import Directions, Drawn
from sotdd.projections.draws import BLOCK, Block, join_blocks
from sotdd.projections.labels import LabelTerms
from sotdd.projections.moments import Polynomials
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scaler

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# Products are made with tiles of this many directions, which run at nearly full speed. A product's
# rounding depends on its shape, so the tile depends on the problem alone, never on the chunk.
_TILE = 4 * BLOCK
_TILE_BYTES = 128 << 20
_DRAW_BYTES = 64 << 20

# How many tiles are in memory at a time: points are converted to float32 once for all of them.
_TILES = 2

# Shares that sums over the points of a dataset are made in.
_SHARES = 16

# Rows that a thread takes at a time: together about this many values, a second-level cache's worth.
_ITEM_VALUES = 1 << 18


@dataclass(frozen=True, eq=False)
class _Layout:
    """A dataset with what every chunk needs to know of it."""

    data: LabelledData
    offsets: NDArray[np.int64]  # (C + 1,) class boundaries among grouped points
    position: NDArray[np.integer] | None  # (n,) index of each point among grouped points
    rows: Rows  # (chunk, n) the chunk's projections of it
    moments: tuple[Doubles, Doubles, Doubles] | None  # (chunk, …) what `ClassMoments` is made of, where asked for
    sparse: bool  # whether points are multiplied as they are stored


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
        self._workers = Workers(threads)

    def __enter__(self) -> CpuEngine:
        """Start the threads."""
        self._workers.__enter__()
        return self

    # Of how many blocks further draws of label terms are made in one piece of work: every thread takes a block.
    drawn_together = 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the threads and leave the process's thread settings as they were."""
        self._workers.__exit__(kind, error, trace)

    def views(
        self,
        datasets: Sequence[LabelledData],
        projections: Projections,
        *,
        degree: int = 0,
        before_sorting: Callable[[FeatureProjections], None] | None = None,
        by_class: bool = False,
    ) -> Iterator[View]:
        """See every dataset through one chunk of projections after another.

        Class moments are taken up to ``degree``, a multiple of four; 0 for none. Before each chunk is handed out,
        ``before_sorting`` is called with its feature projections. With ``by_class`` rows hold class after class, each
        sorted on its own. Rows stay valid until the next view, and feature projections until the call returns.
        """
        tile = _fitting_tile(datasets, projections)
        usual = max(_TILES * tile, _fitting_turn(datasets, projections))
        chunk = -(-self._chunk // tile) * tile if self._chunk else usual
        chunk = min(chunk, -(-projections.n_projections // BLOCK) * BLOCK)
        layouts = [_laid_out(data, chunk, degree, projections) for data in datasets]
        coming = self._begin_draws(projections, 0, chunk)
        for start in range(0, projections.n_projections, chunk):
            block = join_blocks([drawing.result() for drawing in coming])
            coming = self._begin_draws(projections, start + chunk, start + 2 * chunk)  # beside this chunk's work
            terms = self._sorted(layouts, block, projections.scaler, tile, start, before_sorting, by_class)
            rows = [layout.rows[: len(block)] for layout in layouts]
            by_dataset = [layout.moments for layout in layouts if layout.moments is not None]
            moments = [ClassMoments(*(part[: len(block)] for part in parts)) for parts in by_dataset]
            yield View(slice(start, start + len(block)), rows, block, terms, moments)

    def expect(self, projections: Projections) -> None:
        """Nothing: draws take little beside what this engine does."""

    def point_sums(self, datasets: Sequence[LabelledData], scaler: Scaler | None) -> list[PointSums]:
        """Sums over the scaled points of each dataset: all threads on a large one, one to each of the small ones."""
        shares = [_shares_of(data) for data in datasets]
        small = [number for number, parts in enumerate(shares) if len(parts) == 1]
        of_small = self._workers.each(lambda number: point_sums(datasets[number], scaler, shares[number], map), small)
        sums = dict(zip(small, of_small, strict=True))
        for number, data in enumerate(datasets):
            if number not in sums:
                sums[number] = point_sums(data, scaler, shares[number], self._workers.each)
        return [sums[number] for number in range(len(datasets))]

    def transport(self, a: Rows, b: Rows, p: float) -> Doubles:
        """W_p^p between each sorted row of a (B, n) and of b (B, m)."""
        (count, n), (_, m) = a.shape, b.shape
        overlaps, parts = None if n == m else kernels.Overlaps.of(n, m), _row_parts(count, n + m)
        costs = self._workers.each(lambda part: kernels.transport_rows(a[part], b[part], p, overlaps), parts)
        return np.concatenate(costs)

    def transports(self, rows: Sequence[Rows], pairs: Sequence[tuple[int, int]], p: float) -> Doubles:
        """W_p^p (B, P) of every pair of datasets."""
        if len(pairs) == 1:
            (i, j), *_ = pairs
            return self.transport(rows[i], rows[j], p)[:, None]
        costs = np.empty((len(rows[0]), len(pairs)))

        def work(number: int) -> None:
            a, b = (rows[side] for side in pairs[number])
            overlaps = None if a.shape[1] == b.shape[1] else kernels.Overlaps.of(a.shape[1], b.shape[1])
            costs[:, number] = kernels.transport_rows(a, b, p, overlaps)

        self._workers.each(work, range(len(pairs)))
        return costs

    def label_places(
        self, moments: Sequence[ClassMoments], drawn: Polynomials, more: Sequence[Polynomials]
    ) -> list[Doubles]:
        """Of each dataset, mean and deviation of its points under the draw and under further ones, (B, 1 + J, 2)."""
        draws = sum(len(terms.weights) for terms in more) // len(drawn.weights)
        places = [np.empty((len(drawn.weights), 1 + draws, 2)) for _ in moments]

        def work(number: int) -> None:
            here, of_block = _places_of_block(moments, drawn, more, number)
            for whole, part in zip(places, of_block, strict=True):
                whole[here] = part

        self._workers.each(work, range(len(more)))
        return places

    def label_controls(
        self,
        moments: Sequence[ClassMoments],
        drawn: Polynomials,
        more: Sequence[Polynomials],
        pairs: Sequence[tuple[int, int]],
        p: float,
    ) -> Doubles:
        """The Gaussian cost of every pair and its parts, less their means over further draws, (B, P, 3)."""
        out = np.empty((len(drawn.weights), len(pairs), 3))

        def work(number: int) -> None:
            here, places = _places_of_block(moments, drawn, more, number)
            for column, (i, j) in enumerate(pairs):
                moment_kernels.gaussian_gaps(places[i], places[j], p, out[here, column])

        self._workers.each(work, range(len(more)))
        return out

    def direction_values(self, moments: ClassMoments) -> Doubles:
        """The mean of t, the mean square of class means, and the even moments, (B, 5)."""
        mean = moments.mean[:, 0]
        return np.column_stack([mean, moments.covariance[:, 0, 0] + mean**2, moments.even])

    def quantiles(self, rows: Rows, edges: Doubles) -> Rows:
        """Means (B, Q) of each sorted row over parts of probability with these edges (Q + 1,)."""
        out = np.empty((len(rows), len(edges) - 1), np.float32)
        places, parts = np.arange(rows.shape[1] + 1) / rows.shape[1], _row_parts(len(rows), rows.shape[1])
        self._workers.each(lambda part: part_means(rows[part], places, edges, out[part]), parts)
        return out

    def losses(self, rows: Rows, means: Rows, edges: Doubles, smooth: bool) -> Doubles:
        """How far each sorted row is from the function of such means: the mean and the root mean square, (B, 2)."""
        out = np.empty((len(rows), 2))
        places, parts = np.arange(rows.shape[1] + 1) / rows.shape[1], _row_parts(len(rows), rows.shape[1])
        self._workers.each(lambda part: row_losses(rows[part], places, means[part], edges, smooth, out[part]), parts)
        return out

    def split_costs(self, pool: Pool, splits: Ways, orders: Sequence[float]) -> Doubles:
        """W_p^p (B, S, orders) between the two sides of each split of a pool, class terms and all."""
        return split_costs(pool, splits, orders, self._workers)

    def ends(self, rows: Rows) -> Doubles:
        """The smallest and the largest value (B, 2) of each sorted row."""
        return rows[:, [0, -1]].astype(np.float64)

    def each(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        """Do one piece of work per item on the engine's threads, and wait."""
        return self._workers.each(function, items)

    def begin(self, function: Callable[[_Item], _Result], item: _Item) -> Future[_Result]:
        """Begin one piece of work on the engine's threads."""
        return self._workers.submit(function, item)

    def collect(self, parts: Sequence[Doubles]) -> Doubles:
        """Put what ``transport`` or ``ends`` gave for one chunk after another together."""
        return np.concatenate(parts)

    def _begin_draws(self, projections: Projections, start: int, stop: int) -> list[Future[Block]]:
        """Begin to draw those of the projections start, …, stop - 1 that there are."""
        starts = range(start, min(stop, projections.n_projections), BLOCK)
        return [self._workers.submit(projections.draw, first, first + BLOCK) for first in starts]

    def _sorted(
        self,
        layouts: list[_Layout],
        block: Block,
        scaler: Scaler | None,
        tile: int,
        start: int,
        before_sorting: Callable[[FeatureProjections], None] | None,
        by_class: bool,
    ) -> list[Doubles]:
        """Fill the rows of every dataset with sorted data point projections; returns its class terms (B, C)."""
        parts = [(layout, part) for layout in layouts for part in _row_parts(len(block), layout.data.n_points)]
        terms: list[Doubles | None] = [None] * len(parts)
        label_rows: list[Rows] | None = None
        if block.label_features is not None:
            self._project(layouts, block.label_features, len(block), scaler, tile)
            if before_sorting is not None:
                label_rows = [layout.rows[: len(block)].copy() for layout in layouts]
            terms = list(self._workers.each(lambda item: _label_terms(*item, block, start), parts))
        self._project(layouts, block.features, len(block), scaler, tile)
        if before_sorting is not None:
            before_sorting(FeatureProjections(block, [layout.rows[: len(block)] for layout in layouts], label_rows))
        items = [(*item, term) for item, term in zip(parts, terms, strict=True)]
        used = self._workers.each(lambda item: _finish(*item, block, start, by_class), items)
        return [
            np.concatenate([term for (owner, _), term in zip(parts, used, strict=True) if owner is layout])
            for layout in layouts
        ]

    def _project(self, layouts: list[_Layout], drawn: Drawn, count: int, scaler: Scaler | None, tile: int) -> None:
        """Fill the rows of every dataset with feature projections, in the order of its points."""
        if isinstance(drawn, Directions):
            with np.errstate(over="ignore"):  # found, and explained, where rows are checked
                drawn = Directions(np.ascontiguousarray(drawn.theta, np.float32), drawn.clamp)
        dense = [
            layout
            for layout in layouts
            if not layout.sparse or not project_stored(layout.data, drawn, scaler, self._workers, layout.rows[:count])
        ]
        items = [(layout, points) for layout in dense for points in layout.data.blocks()]

        def work(item: tuple[_Layout, slice]) -> None:
            layout, points = item
            features = scaled(layout.data.rows(points), scaler, layout.data.name)
            project(features, drawn, tile, layout.rows[:count, points])

        self._workers.each(work, items)


# ------------------------------------------------------------------ the verbs, on what one thread takes


def _places_of_block(
    moments: Sequence[ClassMoments], drawn: Polynomials, more: Sequence[Polynomials], number: int
) -> tuple[slice, list[Doubles]]:
    """Which projections one block of further draws is for, and the places (B, 1 + J, 2) of each dataset under it."""
    sizes = [len(terms.weights) for terms in more]
    first, last = np.cumsum([0, *sizes])[number : number + 2] * len(drawn.weights) // sum(sizes)
    here = slice(first, last)
    own, further, count = drawn.part(here), more[number], last - first
    weights = np.column_stack([own.weights, further.weights.reshape(count, -1)])  # (B, 1 + J)
    columns = max(own.coefficients.shape[1], further.coefficients.shape[1])
    coefficients = np.zeros((*weights.shape, columns))  # (B, 1 + J, D)
    coefficients[:, 0, : own.coefficients.shape[1]] = own.coefficients
    coefficients[:, 1:, : further.coefficients.shape[1]] = further.coefficients.reshape(count, weights.shape[1] - 1, -1)
    places = []
    for of_data in moments:
        places.append(np.empty((*weights.shape, 2)))
        parts = (of_data.mean[here], of_data.covariance[here], of_data.even[here])
        moment_kernels.gaussian_places(*parts, weights, coefficients, places[-1])
    return here, places


def _laid_out(data: LabelledData, chunk: int, degree: int, projections: Projections) -> _Layout:
    room = np.empty((chunk, degree + 1)), np.empty((chunk, degree + 1, degree + 1)), np.empty((chunk, 3))
    rows = np.empty((chunk, data.n_points), np.float32)
    sparse = isinstance(data.features, SparseRows) and multiplies_stored(data, projections)
    return _Layout(data, *data.grouping(), rows, room if degree else None, sparse)


def _shares_of(data: LabelledData) -> list[list[slice]]:
    """Blocks of points in a few shares, which depend on the data alone, so that sums have the same bits."""
    blocks = data.blocks()
    size = max(1, -(-len(blocks) // _SHARES))
    return [blocks[start : start + size] for start in range(0, len(blocks), size)]


def _fitting_tile(datasets: Sequence[LabelledData], projections: Projections) -> int:
    """The usual tile, or what of it fits the memory set aside; 64 at least."""
    by_rows = _TILE_BYTES // (4 * sum(data.n_points for data in datasets))
    by_draws = _DRAW_BYTES // (8 * projections.n_features * _TILES)
    return max(1, min(_TILE, by_rows, by_draws) // BLOCK) * BLOCK


def _fitting_turn(datasets: Sequence[LabelledData], projections: Projections) -> int:
    """As much of a turn of structured directions as fits the memory set aside: a power of two; 0 without turns.

    Projections of a turn share most of their work, so a chunk should hold all of them.
    """
    if projections.turn_size is None:
        return 0
    fitting = _TILES * _TILE_BYTES // (4 * sum(data.n_points for data in datasets))
    return min(projections.turn_size, 1 << max(BLOCK, fitting).bit_length() - 1)


def _row_parts(count: int, n_points: int) -> list[slice]:
    """Cut ``count`` rows of ``n_points`` values into portions for the threads."""
    size = max(1, min(BLOCK, _ITEM_VALUES // n_points))
    return [slice(start, stop) for start, stop in neighbours([*range(0, count, size), count])]


def _label_terms(layout: _Layout, part: slice, block: Block, start: int) -> Doubles:
    """Class terms of some rows that hold the projections made for labels."""
    assert block.label_features is not None
    rows = layout.rows[part]
    group(rows, layout.position, block.label_features)
    return _checked_terms(rows, layout, block.terms.part(part), start + part.start)


def _finish(layout: _Layout, part: slice, terms: Doubles | None, block: Block, start: int, by_class: bool) -> Doubles:
    """Turn some rows of feature projections into sorted data point projections; returns the class terms."""
    rows = layout.rows[part]
    group(rows, layout.position, block.features)
    if layout.moments is not None:
        moments = (room[part] for room in layout.moments)
        moment_kernels.summarise_rows(rows, layout.offsets, block.terms.limit, *moments)
    if terms is None:
        terms = _checked_terms(rows, layout, block.terms.part(part), start + part.start)
    kernels.shift_rows(rows, layout.offsets, block.terms.weights[part], terms)
    edges = layout.offsets if by_class else layout.offsets[[0, -1]]
    if by_class:
        sort_classes(rows, layout.offsets)
    else:
        sort_rows(rows)
    # Sorted values carry anything that is not finite at their ends.
    finite = np.isfinite(rows[:, edges[:-1]]).all(axis=1) & np.isfinite(rows[:, edges[1:] - 1]).all(axis=1)
    if not finite.all():
        raise too_large(layout.data.name, start + part.start + int(np.argmin(finite)))
    return terms


def _checked_terms(rows: Rows, layout: _Layout, terms: LabelTerms, start: int) -> Doubles:
    """Class terms, or an error that says why there are none."""
    result = class_terms(rows, layout.offsets, terms)
    fits = (np.abs(result) < LARGEST_TERM).all(axis=1)  # NaN is not smaller than anything
    if not fits.all():
        line = int(np.argmin(fits))
        raise unusable_term(layout.data.name, float(np.abs(rows[line]).max()), terms, line, start + line)
    return result
