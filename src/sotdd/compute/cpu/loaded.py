"""Datasets as the processor's engine holds them for one pass: in memory for a chunk, projected and sorted there.

Within a chunk, blocks of points are projected side by side on all threads, then rows (one projection of one dataset
each) are shifted by their class terms and sorted side by side. So nothing of size projections × points is ever held
beyond one chunk, and any number of cores finds work.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.resources import empty_lines
from sotdd.compute.cpu.rows import (
    ITEM_VALUES,
    Doubles,
    Rows,
    cut_rows,
    scale_rows,
    size_item,
)
from sotdd.compute.engine import refuse_bad_terms
from sotdd.compute.kernels import moments as moment_kernels
from sotdd.compute.kernels import rows as kernels
from sotdd.compute.kernels.moments import norm_sums
from sotdd.compute.sampling import Sampler
from sotdd.compute.slices import Slices
from sotdd.inputs.data import LabelledData, cut_range
from sotdd.projections.blocks import BLOCK, Block
from sotdd.projections.recipe import Projections
from sotdd.projections.terms import LabelTerms, describe_overflow, find_class_terms, sort_classes

if TYPE_CHECKING:
    from sotdd.compute.cpu.engine import CpuEngine
    from sotdd.compute.engine import Engine

# Products are made with tiles of this many directions, which run at nearly full speed. A product's
# rounding depends on its shape, so the tile depends on the problem alone, never on the chunk.
_TILE = 4 * BLOCK
_TILE_BYTES = 128 << 20
_DRAW_BYTES = 64 << 20

# How many tiles are in memory at a time: points are converted to float32 once for all of them. Twice as many where they
# take no more than two of many points.
_TILES = 2

# What rows may take together, where datasets are projected several times.
_CHUNK_BYTES = 512 << 20

# A thread takes no more values of rows than this at a time.
_MOST_VALUES = 1 << 20
# So many classes of so few points each take less time by their polynomials than by powers that nobody else needs.
_MANY_CLASSES, _FEW_POINTS = 256, 64


@dataclass(frozen=True, eq=False)
class _Layout:
    """A dataset with what every chunk needs to know of it."""

    data: LabelledData
    offsets: NDArray[np.int64]  # (C + 1,) class boundaries among grouped points
    order: NDArray[np.int64]  # (n,) the points class by class
    rows: Rows  # (1 or 2, chunk, n) the chunk's projections of it, by each of the directions of a block
    moments: bool  # whether those of classes are taken
    by_class: bool  # whether each class is sorted on its own
    twin: int | None  # an earlier dataset with the same features, if there is one


class CpuData:
    """Datasets, and a place for a chunk of their projections, which the next chunk overwrites."""

    def __init__(
        self,
        engine: CpuEngine,
        datasets: Sequence[LabelledData],
        projections: Projections,
        n_label_samples: int | None,
        by_class: Collection[int],
    ) -> None:
        self._engine, self._workers, self._projections = engine, engine.workers, projections
        self._sampler = Sampler(engine.workers, projections, n_label_samples or 0)
        self._tile, self._chunk = _fit_chunk(datasets, projections, engine.chunk)
        self._moments = n_label_samples is not None
        self._layouts = self._lay_out(datasets, by_class)
        self._norms: list[Doubles] | None = None

    def sample(self) -> Iterator[Block]:
        """Sample a chunk of projections, and the next beside this one's work."""
        return self._sampler.follow(cut_range(self._projections.n_projections, self._chunk), ahead=2)

    def project(self, block: Block) -> Iterator[tuple[Block, list[tuple[Rows, Rows]]]]:
        """Fill the rows of every dataset with projections by all directions, in the order of its points.

        With the first chunk, points are summed up as they go by.
        """
        rows = [layout.rows[:, : len(block)] for layout in self._layouts]
        shares = _list_shares(self._layouts, self._moments and self._norms is None)
        scaler = self._projections.scaler

        def work(share: _Share) -> _PointSums | None:
            number, blocks, projected, summed = share
            data = self._layouts[number].data
            spare = np.empty((blocks[0].stop - blocks[0].start, data.n_features), np.float32)
            sums = _PointSums(data) if summed else None
            for some in blocks:
                points = scale_rows(data.rows(some), scaler, data.name, spare)
                with np.errstate(all="ignore"):  # overflow is found, and explained, where rows are checked
                    for drawn, out in zip(block.directions, rows[number], strict=True) if projected else ():
                        drawn.project(points, out, some.start, self._tile)
                if sums is not None:
                    sums.add(points, some)
            return sums

        made = [(share[0], sums) for share, sums in zip(shares, self._workers.each(work, shares), strict=True) if sums]
        if self._norms is None:
            self._norms = [_PointSums.join([sums for _, sums in own]) for _, own in groupby(made, key=itemgetter(0))]
        for layout, own in zip(self._layouts, rows, strict=True):
            if layout.twin is not None:
                own[...] = rows[layout.twin]
        sides = [list(own) for own in rows]  # one view, or two
        yield block, [(own[0], own[-1]) for own in sides]

    def order_points(self, projected: Sequence[tuple[Rows, Rows]]) -> list[tuple[Rows, Rows]]:
        """The same rows: they are in the order of points."""
        return list(projected)

    def sort(self, part: slice, block: Block, projected: list[tuple[Rows, Rows]]) -> Slices:
        """Turn feature projections of every dataset into sorted data point projections, in place."""
        layouts, further, count = self._layouts, block.further, len(block)
        terms = [np.empty((count, len(layout.offsets) - 1)) for layout in layouts]
        counts = [count if layout.moments else 0 for layout in layouts]
        gaussian = [np.empty((each, further.shape[2], 2)) for each in counts]
        directions = [np.empty((each, 5)) for each in counts]
        values = size_item(count * sum(layout.data.n_points for layout in layouts), ITEM_VALUES, self._workers)
        items = [
            (layout, own, some, [found[some] for found in made])
            for layout, own, *made in zip(layouts, projected, terms, gaussian, directions, strict=True)
            for some in cut_rows(count, layout.data.n_points, min(values, _MOST_VALUES))
        ]
        self._workers.each(lambda item: _finish(*item, block, further, part.start), items)
        rows = [own for own, _ in projected]
        for layout, own, found in zip(layouts, rows, terms, strict=True):
            _refuse_lost_rows(layout, own, found, block.terms, part.start)
        gaussian, directions = [one for one in gaussian if len(one)], [one for one in directions if len(one)]
        engine = cast("Engine", self._engine)
        return Slices(engine, part, block, rows, terms, gaussian, directions, self._norms or [])

    def check(self) -> None:
        """Do nothing: every chunk was checked as it was sorted."""

    def _lay_out(self, datasets: Sequence[LabelledData], by_class: Collection[int]) -> list[_Layout]:
        """Datasets with their places for a chunk; those of the same features as an earlier one are its twins."""
        layouts: list[_Layout] = []
        # One piece of memory, large enough for large pages: threads wait for each other where they get new ones.
        shape, used = (self._projections.n_directions, self._chunk), 0
        memory = empty_lines(shape[0] * shape[1] * sum(data.n_points for data in datasets))
        for number, data in enumerate(datasets):
            size, separate = shape[0] * shape[1] * data.n_points, number in by_class
            rows = memory[used : used + size].reshape(*shape, data.n_points)
            used += size
            same = (layout.data.features is data.features for layout in layouts)
            twin = next((earlier for earlier, found in enumerate(same) if found), None)
            moments = self._moments and not separate
            layouts.append(_Layout(data, data.offsets, data.group(), rows, moments, separate, twin))
        return layouts


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


# ------------------------------------------------------------------ what one thread takes


# Some points of a dataset: its number, blocks of them, whether they are projected, and whether they are summed.
_Share: TypeAlias = tuple[int, list[slice], bool, bool]


def _list_shares(layouts: Sequence[_Layout], summed: bool) -> list[_Share]:
    """What threads take to project all points, and to sum those that have moments: both at once where that fits."""
    shares: list[_Share] = []
    for number, layout in enumerate(layouts):
        data, sums = layout.data, summed and layout.moments
        together = sums and layout.twin is None and _limit_shares(data) == _SHARES
        if layout.twin is None:
            shares += [(number, blocks, True, together) for blocks in _share_points(data)]
        if sums and not together:
            shares += [(number, blocks, False, True) for blocks in _share_points(data, _limit_shares(data))]
    return shares


def _finish(
    layout: _Layout, projected: tuple[Rows, Rows], part: slice, made: list[Doubles], block: Block,
    further: Doubles, start: int,
) -> None:  # fmt: skip
    """Turn some rows of feature projections into sorted data point projections, and write the class terms.

    Polynomials are done in two calls of compiled loops: a thread waits for the interpreter after each.
    """
    rows, label_rows = (own[part] for own in projected)
    (terms, gaussian, directions), drawn = made, block.terms
    n, many, own = rows.shape[1], terms.shape[1] >= _MANY_CLASSES and not layout.moments, len(layout.rows) > 1
    fused = drawn.polynomial and not own and not (many and n <= _FEW_POINTS * terms.shape[1])
    spare = [np.empty(size) for size in (n, 90, 15, 9 * moment_kernels.ROOM)]
    moment_kernels.group_rows(
        rows, layout.order, layout.offsets.view(np.uint64), drawn.limit, further[part], drawn.weights[part],
        drawn.coefficients[part], rows, gaussian.reshape(-1), directions, terms if fused else terms[:, :0],
        np.empty(n, np.float32), *spare,
    )  # fmt: skip
    if not fused:
        drawn = drawn.part(part)
        if own:
            label_rows[...] = label_rows[:, layout.order]
        terms[...] = find_class_terms(label_rows, layout.offsets, drawn)
        refuse_bad_terms(layout.data.name, label_rows, terms, drawn, start + part.start)
        kernels.shift_rows(rows, layout.offsets, drawn.weights, terms)
    sort_classes(rows, layout.offsets if layout.by_class else layout.offsets[[0, -1]])


def _refuse_lost_rows(layout: _Layout, rows: Rows, terms: Doubles, drawn: LabelTerms, start: int) -> None:
    """Refuse rows, now sorted, that are not finite; sorted values carry that at their ends."""
    refuse_bad_terms(layout.data.name, rows, terms, drawn, start)
    edges = layout.offsets if layout.by_class else layout.offsets[[0, -1]]
    finite = np.isfinite(rows[:, [*edges[:-1], *(edges[1:] - 1)]])
    if not finite.all():
        raise describe_overflow(layout.data.name, start + int(np.argmin(finite.all(axis=1))))


# ------------------------------------------------------------------ sums over points

# Shares that the points of a dataset are gone through in, at most, values that each has at least, and the memory that
# sums of their classes may take together. They depend on the data alone, so that sums have the same bits.
_SHARES, _SHARE_VALUES, _SHARE_BYTES = 16, 1 << 16, 256 << 20
# Values that are gone through at a time, which stay in a second-level cache, of no fewer points than have a lane each.
_BLOCK_VALUES, _FEWEST_ROWS = 1 << 18, 8


class _PointSums:
    """Sums over some scaled points of a dataset: |x|², |x|⁴ and |x|⁶ (3,), and the points of each class (C, d)."""

    def __init__(self, data: LabelledData) -> None:
        self._data = data
        self._norms, self._by_class = np.zeros(3), np.zeros((len(data.classes), data.n_features))

    def add(self, points: Rows, block: slice) -> None:
        """Add the points of a block."""
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found in projections
            norm_sums(points, self._data.codes[block], self._norms, np.uint64(0), self._by_class)

    @staticmethod
    def join(shares: Sequence[_PointSums]) -> Doubles:
        """The point norms of a dataset, as `Slices` has them, from all shares of it, added up in their order."""
        data = shares[0]._data
        with np.errstate(over="ignore", invalid="ignore"):
            by_class = reduce(np.add, [share._by_class for share in shares])
            between = np.sum(np.einsum("cd,cd->c", by_class, by_class) / data.counts)
            lengths = reduce(np.add, [share._norms for share in shares])
            return np.concatenate([lengths, [between], by_class.sum(axis=0)]) / data.n_points


def _share_points(data: LabelledData, count: int = _SHARES) -> list[list[slice]]:
    """Points in a few shares of about the same size, each in blocks of about the same size."""
    size = min(data.n_points, max(-(-data.n_points // count), _SHARE_VALUES // data.n_features, 1))
    rows = min(data.blocks()[0].stop, max(_BLOCK_VALUES // data.n_features, _FEWEST_ROWS))
    blocks = -(-size // rows)  # of a share
    cut = cut_range(data.n_points, -(-size // blocks))
    return [cut[start : start + blocks] for start in range(0, len(cut), blocks)]


def _limit_shares(data: LabelledData) -> int:
    """How many shares of a dataset have sums that fit in memory together."""
    return max(1, min(_SHARES, _SHARE_BYTES // (8 * len(data.classes) * data.n_features)))
