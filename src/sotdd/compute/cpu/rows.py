"""What the processor's engine does to rows, one verb each, and how datasets lie in memory meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise as neighbours

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.memory import empty_lines
from sotdd.compute.engine import ByClass, Seen
from sotdd.compute.kernels import rows as kernels
from sotdd.compute.kernels.moments import norm_sums
from sotdd.compute.kernels.rows import SHORT_ROW
from sotdd.inputs.data import LabelledData, cut_range
from sotdd.projections.directions import Directions, Drawn
from sotdd.projections.draws import BLOCK
from sotdd.projections.labels import Quantiles, Summaries, summarise_class
from sotdd.projections.moments import LabelTerms, Polynomials
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scaler
from sotdd.projections.turns import TurnedDirections

Rows = NDArray[np.float32]  # (B, n): one row per projection, one value per point
Doubles = NDArray[np.float64]

# Products are made with tiles of this many directions, which run at nearly full speed. A product's
# rounding depends on its shape, so the tile depends on the problem alone, never on the chunk.
_TILE = 4 * BLOCK
_TILE_BYTES = 128 << 20
_DRAW_BYTES = 64 << 20

# How many tiles are in memory at a time: points are converted to float32 once for all of them. Twice as many where they
# take no more than two of many points.
_TILES = 2

# Values that a thread works on at a time: with their copies, a second-level cache's worth.
ITEM_VALUES = 1 << 17

# What rows may take together, where datasets are seen in several ways.
_CHUNK_BYTES = 512 << 20


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


def project(features: Rows, drawn: Drawn, tile: int, rows: Rows, points: slice) -> None:
    """Write the feature projections of points (m, d) to these columns of rows (B, n)."""
    out = rows[:, points]
    with np.errstate(all="ignore"):  # overflow is found, and explained, where rows are checked
        if isinstance(drawn, TurnedDirections):
            drawn.write(features, rows, points.start)
            return
        if not isinstance(drawn, Directions):
            out[...] = drawn(features)
            return
        whole = len(out) // tile * tile
        if whole:  # in one call, though each tile is a product of its own
            tiles = drawn.theta[:whole].reshape(-1, tile, drawn.theta.shape[1])
            np.matmul(tiles, features.T, out=rows[:whole].reshape(-1, tile, rows.shape[1])[:, :, points])
        if whole < len(out):
            np.matmul(drawn.theta[whole:], features.T, out=out[whole:])
        if drawn.clamp is not None:
            np.clip(out, np.float32(-drawn.clamp), np.float32(drawn.clamp), out=out)


def sum_classes(rows: Rows, offsets: NDArray[np.int64], terms: Polynomials) -> Doubles:
    """Sums (B, C) of each row's polynomial over each class; they add up over parts of a dataset."""
    sums = np.empty((len(rows), len(offsets) - 1))
    kernels.class_sums(rows, offsets, terms.coefficients, terms.limit, sums)
    return sums


def find_class_terms(rows: Rows, offsets: NDArray[np.int64], terms: LabelTerms) -> Doubles:
    """The label term (B, C) of every class in every projection; may reorder the values within a class."""
    if isinstance(terms, Polynomials):
        return sum_classes(rows, offsets, terms) / np.diff(offsets)
    if isinstance(terms, Quantiles):
        result = np.empty((len(rows), len(offsets) - 1))
        sort_classes(rows, offsets)
        kernels.quantile_terms(rows, offsets, terms.coefficients, result)
        return result
    assert isinstance(terms, Summaries)
    return np.stack([summarise_class(terms, rows[:, first:last]) for first, last in neighbours(offsets)], axis=1)


def sort_rows(rows: Rows) -> None:
    """Sort every row ascending, in place."""
    sort_classes(rows, np.array([0, rows.shape[1]]))


def sort_classes(rows: Rows, offsets: NDArray[np.int64]) -> None:
    """Sort the values of each class within every row: NumPy's networks are faster with few, counting with many."""
    spare, counts = np.empty(rows.shape[1], np.int32), np.empty((4, 2048), np.uint32)
    for first, last in neighbours(offsets.tolist()):
        if last - first < SHORT_ROW:
            rows[:, first:last].sort(axis=1)
        else:
            kernels.sort_part(rows.view(np.int32), first, last, spare, counts)


# ------------------------------------------------------------------ how datasets lie in memory


@dataclass(frozen=True, eq=False)
class Layout:
    """A dataset with what every chunk needs to know of it."""

    data: LabelledData
    offsets: NDArray[np.int64]  # (C + 1,) class boundaries among grouped points
    order: NDArray[np.int64]  # (n,) the points class by class
    rows: Rows  # (1 or 2, chunk, n) the chunk's projections of it, by each of the directions of a block
    moments: bool  # whether those of classes are wanted, which controls are made of
    by_class: bool  # whether each class is sorted on its own
    twin: int | None  # an earlier dataset with the same features, if there is one


def lay_out(datasets: Sequence[Seen], chunk: int, n_directions: int, moments: bool) -> list[Layout]:
    """Datasets with their places for a chunk; those of the same features as an earlier one are its twins."""
    layouts: list[Layout] = []
    whole = [(seen.data, True) if isinstance(seen, ByClass) else (seen, False) for seen in datasets]
    # One piece of memory, large enough for large pages: threads wait for each other where they get new ones.
    memory, used = empty_lines(n_directions * chunk * sum(data.n_points for data, _ in whole)), 0
    for data, by_class in whole:
        size = n_directions * chunk * data.n_points
        rows = memory[used : used + size].reshape(n_directions, chunk, data.n_points)
        used += rows.size
        same = (layout.data.features is data.features for layout in layouts)
        twin = next((number for number, found in enumerate(same) if found), None)
        layouts.append(Layout(data, data.offsets, data.group(), rows, moments and not by_class, by_class, twin))
    return layouts


def fit_chunk(datasets: Sequence[Seen], projections: Projections, wanted: int | None) -> tuple[int, int]:
    """The tile of products, and how many projections are in memory at a time, about as many as ``wanted``."""
    whole = [seen.data if isinstance(seen, ByClass) else seen for seen in datasets]
    # Points of twins are projected once, and products depend on nothing else.
    distinct = {id(data.features): data.n_points for data in whole}
    n_points, size = max(1, projections.n_directions * sum(distinct.values())), projections.turn_size
    by_rows, by_draws = _TILE_BYTES // (4 * n_points), _DRAW_BYTES // (8 * projections.n_features * _TILES)
    tile = max(1, min(_TILE, by_rows, by_draws) // BLOCK) * BLOCK
    few = 8 * _TILES * tile * n_points <= _TILES * _TILE_BYTES
    chunk = -(-wanted // tile) * tile if wanted else (1 + few) * _TILES * tile
    if size is not None and not wanted:  # a turn's projections share most of their work: all of it, or a power of two
        fitting = _TILES * _TILE_BYTES // (4 * n_points)
        chunk = max(chunk, min(size, 1 << max(BLOCK, fitting).bit_length() - 1))
    chunk = min(chunk, -(-projections.n_projections // BLOCK) * BLOCK)
    together = projections.n_directions * sum(data.n_points for data in whole)
    while chunk > tile and 4 * chunk * together > _CHUNK_BYTES:  # as where a dataset is seen in several ways
        chunk = max(tile, chunk // 2 // tile * tile)
    return tile, chunk


# ------------------------------------------------------------------ sums over points

# Shares that the points of a dataset are gone through in, at most, values that each has at least, and the memory that
# sums of their classes may take together. They depend on the data alone, so that sums have the same bits.
SHARES, _SHARE_VALUES, _SHARE_BYTES = 16, 1 << 16, 256 << 20
# Values that are gone through at a time, which stay in a second-level cache, of no fewer points than have a lane each.
_BLOCK_VALUES, _FEWEST_ROWS = 1 << 18, 8


class PointSums:
    """Sums over some scaled points of a dataset: |x|², |x|⁴ and |x|⁶ (3,), and the points of each class (C, d)."""

    def __init__(self, data: LabelledData) -> None:
        self._data = data
        self._lengths, self._by_class = np.zeros(3), np.zeros((len(data.classes), data.n_features))

    def add(self, points: Rows, block: slice) -> None:
        """Add the points of a block."""
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found in projections
            norm_sums(points, self._data.codes[block], self._lengths, np.uint64(0), self._by_class)

    @staticmethod
    def join(shares: Sequence[PointSums]) -> Doubles:
        """The means that `Sorted` has of a dataset, from all shares of it, added up in their order."""
        data = shares[0]._data
        with np.errstate(over="ignore", invalid="ignore"):
            by_class = reduce(np.add, [share._by_class for share in shares])
            between = np.sum(np.einsum("cd,cd->c", by_class, by_class) / data.counts)
            lengths = reduce(np.add, [share._lengths for share in shares])
            return np.concatenate([lengths, [between], by_class.sum(axis=0)]) / data.n_points


def share_points(data: LabelledData, count: int = SHARES) -> list[list[slice]]:
    """Points in a few shares of about the same size, each in blocks of about the same size."""
    size = min(data.n_points, max(-(-data.n_points // count), _SHARE_VALUES // data.n_features, 1))
    rows = min(data.blocks()[0].stop, max(_BLOCK_VALUES // data.n_features, _FEWEST_ROWS))
    blocks = -(-size // rows)  # of a share
    cut = cut_range(data.n_points, -(-size // blocks))
    return [cut[start : start + blocks] for start in range(0, len(cut), blocks)]


def limit_shares(data: LabelledData) -> int:
    """How many shares of a dataset have sums that fit in memory together."""
    return max(1, min(SHARES, _SHARE_BYTES // (8 * len(data.classes) * data.n_features)))
