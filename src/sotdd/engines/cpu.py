"""The engine for processors: NumPy's matrix product, compiled loops, all cores.

Work goes through a chunk of projections at a time. Within a chunk, blocks of points are
projected side by side on all threads, then rows (one projection of one dataset each) are
shifted and sorted side by side. So nothing of size projections × points is ever held beyond
one chunk, and any number of cores finds work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import pairwise as neighbours
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from sotdd import kernels
from sotdd.data import LabelledData
from sotdd.engines.workers import Workers
from sotdd.errors import SotddError
from sotdd.projections.directions import Directions, Drawn
from sotdd.projections.draws import BLOCK, Block, join_blocks
from sotdd.projections.labels import LabelTerms
from sotdd.projections.recipe import Projections
from sotdd.scaling import Scaler
from sotdd.transport import Overlaps, transport_rows

# A product of this many directions at once runs at nearly the speed of one with all of them.
_CHUNK = 8 * BLOCK
_CHUNK_BYTES = 256 << 20
_DRAW_BYTES = 64 << 20

# Rows that a thread takes at a time: together about this many values, a second-level cache's worth.
_ITEM_VALUES = 1 << 18

# Rows shorter than this are sorted faster by NumPy's sorting networks than by counting digits.
_SHORT_ROW = 1024

# BLAS libraries multiply small matrices by other code, with other rounding. Products up to this
# many multiplications are always made one block of directions at a time, so that the chunk size
# cannot decide which code it is.
_SMALL_PRODUCT = 4_000_000

# Class terms must fit float32 with room for the feature that is added.
_LARGEST = 1e38


@dataclass(frozen=True, eq=False)
class _Layout:
    """A dataset with what every chunk needs to know of it."""

    data: LabelledData
    offsets: NDArray[np.int64]  # (C + 1,) class boundaries among grouped points
    position: NDArray[np.integer] | None  # (n,) place of each point among grouped points
    rows: NDArray[np.float32]  # (chunk, n) the chunk's projections of it


class CpuEngine:
    """Projects, places, sorts and transports on all cores, for the time of a ``with`` block.

    Parameters
    ----------
    threads
        How many; by default as many as BLAS may use.
    chunk
        How many projections are in memory at a time, a multiple of 64; by default 512, or fewer
        where that would take more than 256 MB. Results do not depend on either.
    """

    def __init__(self, threads: int | None = None, chunk: int | None = None) -> None:
        """Check the settings; threads start with the ``with`` block."""
        if chunk is not None and (chunk < BLOCK or chunk % BLOCK):
            raise SotddError(f"chunk is {chunk!r}: expected a multiple of {BLOCK}.")
        self._chunk = chunk
        self._workers = Workers(threads)

    def __enter__(self) -> CpuEngine:
        """Start the threads."""
        self._workers.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the threads and leave the process's thread settings as they were."""
        self._workers.__exit__(kind, error, trace)

    def views(
        self, datasets: Sequence[LabelledData], projections: Projections
    ) -> Iterator[tuple[slice, list[NDArray[np.float32]]]]:
        """See every dataset through one chunk of projections after another.

        Yields which projections, and for every dataset the sorted data point projections
        (B, n), which stay valid until the next chunk.
        """
        chunk = self._chunk or _fitting_chunk(datasets, projections)
        chunk = min(chunk, -(-projections.n_projections // BLOCK) * BLOCK)
        layouts = [_Layout(data, *data.grouping(), np.empty((chunk, data.n_points), np.float32)) for data in datasets]
        coming = self._begin_draws(projections, 0, chunk)
        for start in range(0, projections.n_projections, chunk):
            block = join_blocks([drawing.result() for drawing in coming])
            coming = self._begin_draws(projections, start + chunk, start + 2 * chunk)  # beside this chunk's work
            self._place(layouts, block, projections.scaler, start)
            yield slice(start, start + len(block)), [layout.rows[: len(block)] for layout in layouts]

    def transport(self, a: NDArray[np.float32], b: NDArray[np.float32], p: float) -> NDArray[np.float64]:
        """W_p^p between each sorted row of a (B, n) and of b (B, m)."""
        n, m = a.shape[1], b.shape[1]
        overlaps = None if n == m else Overlaps.of(n, m)
        parts = _row_parts(len(a), n + m)
        return np.concatenate(self._workers.each(lambda part: transport_rows(a[part], b[part], p, overlaps), parts))

    def _begin_draws(self, projections: Projections, start: int, stop: int) -> list[Future[Block]]:
        """Begin to draw those of the projections start, …, stop - 1 that there are."""
        starts = range(start, min(stop, projections.n_projections), BLOCK)
        return [self._workers.submit(projections.draw, first, first + BLOCK) for first in starts]

    # ------------------------------------------------------------------ one chunk

    def _place(self, layouts: list[_Layout], block: Block, scaler: Scaler | None, start: int) -> None:
        """Fill the rows of every dataset with sorted data point projections."""
        parts = [(layout, part) for layout in layouts for part in _row_parts(len(block), layout.data.n_points)]
        if block.label_features is None:
            self._project(layouts, block.features, len(block), scaler)
            self._workers.each(lambda item: _finish(*item, block, None, start), parts)
            return
        self._project(layouts, block.label_features, len(block), scaler)
        terms = self._workers.each(lambda item: _label_rows(*item, block, start), parts)
        self._project(layouts, block.features, len(block), scaler)
        placed = [(*item, term) for item, term in zip(parts, terms, strict=True)]
        self._workers.each(lambda item: _finish(item[0], item[1], block, item[2], start), placed)

    def _project(self, layouts: list[_Layout], drawn: Drawn, count: int, scaler: Scaler | None) -> None:
        """Fill the rows of every dataset with feature projections, in the order of its points."""
        if isinstance(drawn, Directions):
            drawn = Directions(np.ascontiguousarray(drawn.theta, np.float32), drawn.clamp)
        items = [(layout, points) for layout in layouts for points in layout.data.blocks()]
        self._workers.each(lambda item: _project_points(*item, drawn, count, scaler), items)


def _fitting_chunk(datasets: Sequence[LabelledData], projections: Projections) -> int:
    """The usual chunk, or what of it fits the memory set aside; 64 at least."""
    by_rows = _CHUNK_BYTES // (4 * sum(data.n_points for data in datasets))
    by_draws = _DRAW_BYTES // (8 * projections.n_features)
    return max(1, min(_CHUNK, by_rows, by_draws) // BLOCK) * BLOCK


def _row_parts(count: int, n_points: int) -> list[slice]:
    """Cut ``count`` rows of ``n_points`` values into portions for the threads."""
    size = max(1, min(BLOCK, _ITEM_VALUES // n_points))
    return [slice(start, stop) for start, stop in neighbours([*range(0, count, size), count])]


def _project_points(layout: _Layout, points: slice, drawn: Drawn, count: int, scaler: Scaler | None) -> None:
    """Project one block of points by all ``count`` projections of the chunk."""
    features = _scaled(layout.data.rows(points), scaler)  # (m, d)
    target = layout.rows[:count, points]  # (B, m)
    with np.errstate(all="ignore"):  # overflow is found, and explained, where rows are placed
        if not isinstance(drawn, Directions):
            target[...] = drawn(features)
            return
        step = BLOCK if BLOCK * features.size <= _SMALL_PRODUCT else count
        for start in range(0, count, step):
            np.matmul(drawn.theta[start : start + step], features.T, out=target[start : start + step])


def _scaled(rows: NDArray[np.generic], scaler: Scaler | None) -> NDArray[np.float32]:
    """Points as float32, centred and scaled."""
    if scaler is None:
        with np.errstate(over="ignore"):
            return rows.astype(np.float32, copy=False)
    scaled = np.empty(rows.shape, np.float32)
    kernels.standardise(rows, scaler.centre, 1.0 / scaler.scale, scaled)
    return scaled


def _grouped_rows(layout: _Layout, part: slice, drawn: Drawn) -> NDArray[np.float32]:
    """Some rows, clamped where that is asked for, with the points of each class brought together."""
    rows = layout.rows[part]
    if isinstance(drawn, Directions) and drawn.clamp is not None:
        kernels.clamp_rows(rows, drawn.clamp)
    if layout.position is not None:
        kernels.group_rows(rows, layout.position)
    return rows


def _label_rows(layout: _Layout, part: slice, block: Block, start: int) -> NDArray[np.float64]:
    """Class terms of some rows that hold the projections made for labels."""
    assert block.label_features is not None
    rows = _grouped_rows(layout, part, block.label_features)
    return _class_terms(rows, layout, block.terms, part, start)


def _finish(layout: _Layout, part: slice, block: Block, terms: NDArray[np.float64] | None, start: int) -> None:
    """Turn some rows of feature projections into sorted data point projections."""
    rows = _grouped_rows(layout, part, block.features)
    if terms is None:
        terms = _class_terms(rows, layout, block.terms, part, start)
    kernels.shift_rows(rows, layout.offsets, block.terms.weights[part], terms)
    if rows.shape[1] < _SHORT_ROW:
        rows.sort(axis=1)
    else:
        kernels.radix_sort_rows(rows)
    # Sorted rows carry anything that is not finite at their ends.
    finite = np.isfinite(rows[:, 0]) & np.isfinite(rows[:, -1])
    if not finite.all():
        raise _overflow(layout.data.name, np.inf, block.terms, part.start + int(np.argmin(finite)), start)


def _class_terms(
    rows: NDArray[np.float32], layout: _Layout, terms: LabelTerms, part: slice, start: int
) -> NDArray[np.float64]:
    """The label terms (B, C) of every class."""
    offsets, parameters = layout.offsets, terms.parameters[part]
    result = np.empty((len(rows), len(offsets) - 1))
    if terms.summary is None:
        kernels.class_means(rows, offsets, parameters, _degrees(parameters), result)
    else:
        for c, (first, last) in enumerate(neighbours(offsets)):
            result[:, c] = terms.summary(rows[:, first:last], parameters)
    fits = (np.abs(result) < _LARGEST).all(axis=1)  # NaN is not smaller than anything
    if not fits.all():
        line = int(np.argmin(fits))
        largest = float(np.abs(rows[line]).max())
        raise _overflow(layout.data.name, largest, terms, part.start + line, start)
    return result


def _degrees(coefficients: NDArray[np.float64]) -> NDArray[np.int64]:
    """The degree of each polynomial, lowest order first: where its last non-zero coefficient is."""
    used = coefficients != 0
    last = coefficients.shape[1] - 1 - np.argmax(used[:, ::-1], axis=1)
    return np.where(used.any(axis=1), last, 0)


def _overflow(name: str, largest: float, terms: LabelTerms, line: int, start: int) -> SotddError:
    """Explain why a projection is not finite."""
    if not np.isfinite(largest):
        return SotddError(
            f"features of dataset {name!r} are too large for float32 products (projection {start + line:,} overflows): "
            "use scale='pooled' or divide the features by their spread first."
        )
    if terms.summary is not None:
        return SotddError(
            f"the label law's summary of dataset {name!r} is not finite in projection {start + line:,}: check its "
            "summary function."
        )
    order = int(_degrees(terms.parameters[line : line + 1])[0])
    return SotddError(
        f"class moments of dataset {name!r} overflow: order {order} of projected values as large as {largest:.3g} "
        f"(projection {start + line:,}). Use scale='pooled', bring outliers in, or take lower orders, such as "
        "moments=sotdd.UniformOrders(4)."
    )
