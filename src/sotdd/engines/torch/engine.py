"""The engine for torch devices: the twin of ``cpu/engine.py``, with the same verbs.

A dataset is scaled, grouped by class and kept on the device where it fits; otherwise its blocks
of rows stream through for every chunk of projections. Chunks are as large as free memory allows;
when memory runs out all the same, the chunk is halved and the work goes on.

Importing this module imports torch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from sotdd.engines.cpu.workers import Workers
from sotdd.engines.protocol import (
    LARGEST_TERM,
    ClassMoments,
    PointSums,
    Precision,
    View,
    too_large,
    unusable_term,
)
from sotdd.engines.splits import Ways
from sotdd.engines.torch import fused, verbs
from sotdd.engines.torch.splits import FeatureProjections, Pool, split_costs
from sotdd.engines.torch.upload import (
    Uploaded,
    copied,
    fitting_chunk,
    give_back,
    laid_out,
    point_sums,
    scaled_points,
    uploaded_draws,
)
from sotdd.engines.torch.verbs import Along, Layout, Moments, Rows
from sotdd.inputs.data import LabelledData
from sotdd.kernels.quantiles import row_losses
from sotdd.kernels.rows import Overlaps
from sotdd.projections.directions import Directions, Drawn
from sotdd.projections.draws import BLOCK, Block, join_blocks
from sotdd.projections.moments import Polynomials
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scaler

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# Few, so that work begins soon; but a thousand keep the device busy for as long as Python takes to ask for them.
_FIRST_CHUNK = 16 * BLOCK
_LARGE_TURN = 64 * BLOCK
_DRAWING_THREADS = 2
# Blocks that one of them draws at a time.
_TOGETHER = 8
# Chunks that may be begun before the first of them is checked.
_AHEAD = 3
# Chunks whose projections are drawn, or being drawn, when one is begun.
_DRAWN_AHEAD = 3
# Values of controls that are worked on at a time.
_CONTROL_VALUES = 1 << 25


@dataclass(frozen=True, eq=False)
class SortedRows:
    """One dataset through some projections, perhaps still at work on the device."""

    name: str
    rows: Rows  # (B, n) sorted
    terms: torch.Tensor  # (B, C) the term of each class
    largest: torch.Tensor  # (B,) largest |t|, to explain terms that cannot be used
    fits: torch.Tensor  # (2, B) whether class terms, and whether rows, can be used
    moments: Moments | None  # of its classes, where they are asked for


class SortedChunk:
    """All datasets through some projections, begun on the device.

    What must be checked is copied to the host beside the work, so that checking it later waits for
    this chunk alone and the device never runs dry.
    """

    def __init__(self, part: slice, datasets: list[SortedRows], block: Block) -> None:
        self.part: slice = part
        self.datasets: list[SortedRows] = datasets
        self._terms = block.terms
        self._on_device = datasets[0].rows.is_cuda
        self._fits = torch.empty((len(datasets), 2, len(block)), dtype=torch.bool, pin_memory=self._on_device)
        for seen, host in zip(datasets, self._fits, strict=True):
            host.copy_(seen.fits, non_blocking=True)
        self._explained = [(seen.name, seen.largest) for seen in datasets]
        self._copied = torch.cuda.Event() if self._on_device else None  # type: ignore[no-untyped-call]
        if self._copied is not None:
            self._copied.record(torch.cuda.current_stream(datasets[0].rows.device))

    def handed_out(self, block: Block) -> View:
        """The sorted rows, which are not held on to."""
        datasets, self.datasets = self.datasets, []
        moments = [ClassMoments(*seen.moments) for seen in datasets if seen.moments is not None]
        return View(self.part, [seen.rows for seen in datasets], block, [seen.terms for seen in datasets], moments)

    def check(self) -> None:
        """Wait for this chunk, and refuse what is not finite."""
        if self._copied is not None:
            self._copied.synchronize()
        for (name, largest), (terms_fit, rows_fit) in zip(self._explained, self._fits.numpy(), strict=True):
            if not terms_fit.all():
                line = int(np.argmin(terms_fit))
                raise unusable_term(name, float(largest[line]), self._terms, line, self.part.start + line)
            if not rows_fit.all():
                raise too_large(name, self.part.start + int(np.argmin(rows_fit)))


class TorchEngine:
    """Projects, shifts, sorts and transports on a torch device, for the time of a ``with`` block.

    Parameters
    ----------
    device
        "cuda", "cuda:1", "cpu" or a torch device.
    precision
        "float32" for products at full precision, or "tf32", which is faster and rougher.
    chunk
        About how many projections are in memory at a time; by default what fits.
    """

    # Few large steps, which leave Python to the thread that feeds the device.
    drawn_together = _TOGETHER

    def __init__(
        self,
        device: str | torch.device = "cuda",
        precision: Precision = "float32",
        chunk: int | None = None,
    ) -> None:
        self.device: torch.device = verbs.checked_device(device)
        self._tf32 = precision == "tf32"
        self._chunk = chunk
        # Draws are made on the processor for every engine. More threads would only compete for
        # Python's lock with the one that feeds the device.
        self._workers = Workers(_DRAWING_THREADS)
        self._before = ""
        self._steps: dict[tuple[int, int], fused.Steps] = {}
        self._kept: tuple[list[LabelledData], Scaler | None, list[Layout]] | None = None
        self._begun: tuple[Projections, list[Future[Block]]] | None = None

    def __enter__(self) -> TorchEngine:
        """Start the threads that draw; choose the precision of products."""
        self._workers.__enter__()
        self._before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high" if self._tf32 else "highest")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave torch's settings as they were, and nothing on the device."""
        self._kept = self._begun = None
        torch.set_float32_matmul_precision(self._before)
        self._workers.__exit__(kind, error, trace)

    @torch.no_grad()
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

        Rows of a view are the sorted data point projections (B, n), or those of class after class, each sorted
        on its own. Before that ``before_sorting`` is called with the chunk's feature projections.
        """
        self.expect(projections)
        assert self._begun is not None
        (_, begun), self._begun = self._begun, None
        first = _first_chunk(projections, self._chunk)
        layouts = self._layouts(datasets, projections.scaler)
        chunk = self._chunk or fitting_chunk(datasets, self.device, projections.turn_size)
        size = chunk  # what is worked on at a time: halved when memory runs out
        unchecked: deque[SortedChunk] = deque()
        for start, block in self._drawn(projections, _growing(projections.n_projections, first, chunk), begun):
            done = 0
            while done < len(block):
                part = block.part(slice(done, done + size))
                try:
                    chunk_at_work, seen = self._begin(
                        layouts, part, start + done, degree, before_sorting is not None, by_class
                    )
                except torch.OutOfMemoryError as error:
                    size = _halved(size, self.device, error)
                    continue
                done += len(part)
                unchecked.append(chunk_at_work)
                if before_sorting is not None and seen is not None:
                    before_sorting(seen)
                    del seen
                yield chunk_at_work.handed_out(part)
                if len(unchecked) > _AHEAD:
                    unchecked.popleft().check()
        for chunk_at_work in unchecked:
            chunk_at_work.check()

    def expect(self, projections: Projections) -> None:
        """Begin to draw the first chunk of these projections."""
        if self._begun is None or self._begun[0] is not projections:
            part = slice(0, min(_first_chunk(projections, self._chunk), projections.n_projections))
            self._begun = projections, self._begin_draws(projections, part)

    @torch.no_grad()
    def point_sums(self, datasets: Sequence[LabelledData], scaler: Scaler | None) -> list[PointSums]:
        """Sums over the scaled points of each dataset, on the device."""
        return [point_sums(layout, self.device) for layout in self._layouts(datasets, scaler)]

    def each(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        """Do one piece of work per item on the threads that draw."""
        return self._workers.each(function, items)

    def begin(self, function: Callable[[_Item], _Result], item: _Item) -> Future[_Result]:
        """Begin one piece of work on the threads that draw."""
        return self._workers.submit(function, item)

    @torch.no_grad()
    def transport(self, a: Rows, b: Rows, p: float) -> torch.Tensor:
        """W_p^p (B,) between each sorted row of a (B, n) and of b (B, m)."""
        steps = self._steps_between(a.shape[1], b.shape[1])
        try:
            return verbs.transport_rows(a, b, p, steps)
        except torch.OutOfMemoryError as error:
            middle = _halved(len(a), self.device, error)
            halves = slice(0, middle), slice(middle, None)
            return torch.cat([self.transport(a[half], b[half], p) for half in halves])

    @torch.no_grad()
    def transports(self, rows: Sequence[Rows], pairs: Sequence[tuple[int, int]], p: float) -> torch.Tensor:
        """W_p^p (B, P) of every pair of datasets."""
        if len(pairs) > 1 and fused.available(rows[0]):
            return fused.transport_pairs(rows, pairs, p)
        return torch.stack([self.transport(rows[i], rows[j], p) for i, j in pairs], dim=1)

    @torch.no_grad()
    def label_places(
        self, moments: Sequence[ClassMoments], drawn: Polynomials, more: Sequence[Polynomials]
    ) -> list[torch.Tensor]:
        """Of each dataset, mean and deviation of its points under the draw and under further ones, (B, 1 + J, 2)."""
        weights, coefficients = uploaded_draws(drawn, more, self.device)
        return [verbs.label_places(of_data, weights, coefficients).permute(1, 2, 0) for of_data in moments]

    @torch.no_grad()
    def label_controls(
        self,
        moments: Sequence[ClassMoments],
        drawn: Polynomials,
        more: Sequence[Polynomials],
        pairs: Sequence[tuple[int, int]],
        p: float,
    ) -> torch.Tensor:
        """The Gaussian cost of every pair and its parts, less their means over further draws, (B, P, 3)."""
        weights, coefficients = uploaded_draws(drawn, more, self.device)
        by_dataset = [verbs.label_places(of_data, weights, coefficients) for of_data in moments]
        places = torch.stack(by_dataset)  # (N, 2, B, J)
        first, second = copied(np.array(pairs), np.int64, self.device).unbind(1)
        size = max(1, _CONTROL_VALUES // weights.numel())
        parts = zip(torch.split(first, size), torch.split(second, size), strict=True)
        return torch.cat([verbs.label_gaps(places, i, j, p) for i, j in parts], dim=1)

    def direction_values(self, moments: ClassMoments) -> torch.Tensor:
        """The mean of t, the mean square of class means, and the even moments, (B, 5)."""
        mean = moments.mean[:, :1]
        return torch.cat([mean, moments.covariance[:, :1, 0] + mean.square(), moments.even], dim=1)

    @torch.no_grad()
    def quantiles(self, rows: Rows, edges: NDArray[np.float64]) -> NDArray[np.float32]:
        """Means (B, Q) of each sorted row over parts of probability with these edges (Q + 1,), on the host."""
        return verbs.part_means(rows, edges).cpu().numpy()

    def losses(
        self, rows: Rows, means: NDArray[np.float32], edges: NDArray[np.float64], smooth: bool
    ) -> NDArray[np.float64]:
        """How far each sorted row is from the function of such means, (B, 2), found on the host.

        A walk along two functions, piece by piece, is nothing for a device, and rows are copied faster than sorted.
        """
        host, out = rows.cpu().numpy(), np.empty((len(rows), 2))
        places, lines = np.arange(host.shape[1] + 1) / host.shape[1], [slice(k, k + 1) for k in range(len(host))]
        self._workers.each(lambda line: row_losses(host[line], places, means[line], edges, smooth, out[line]), lines)
        return out

    @torch.no_grad()
    def split_costs(self, pool: Pool, splits: Ways, orders: Sequence[float]) -> torch.Tensor:
        """W_p^p (B, S, orders) between the two sides of each split of a pool, class terms and all."""
        steps = self._steps_between(*splits.sizes)
        try:
            return split_costs(pool, splits, orders, steps)
        except torch.OutOfMemoryError as error:
            middle = _halved(len(pool.rows), self.device, error)
            halves = slice(0, middle), slice(middle, None)
            return torch.cat([self.split_costs(pool.part(half), splits, orders) for half in halves])

    def ends(self, rows: Rows) -> torch.Tensor:
        """The smallest and the largest value (B, 2) of each sorted row."""
        return torch.stack([rows[:, 0], rows[:, -1]], dim=1).double()

    def collect(self, parts: Sequence[torch.Tensor]) -> NDArray[np.float64]:
        """Bring what ``transport`` or ``ends`` gave for one chunk after another to the host."""
        values: NDArray[np.float64] = torch.cat(list(parts)).cpu().numpy()
        return values

    def _layouts(self, datasets: Sequence[LabelledData], scaler: Scaler | None) -> list[Layout]:
        """The datasets on the device, kept for the next time they are asked for."""
        if self._kept is not None:
            before, scale, layouts = self._kept
            same = len(before) == len(datasets) and all(a is b for a, b in zip(before, datasets, strict=True))
            if same and scale is scaler:
                return layouts
        self._kept = None  # what they take is free for the next
        layouts = laid_out(datasets, scaler, self.device)
        self._kept = list(datasets), scaler, layouts
        return layouts

    def _steps_between(self, n: int, m: int) -> fused.Steps | None:
        """Overlaps of n and of m equal steps, kept for the next chunk; None where n = m."""
        if n == m:
            return None
        if (n, m) not in self._steps:
            overlaps = Overlaps.of(n, m)
            left, right = (torch.from_numpy(index).long().to(self.device) for index in (overlaps.left, overlaps.right))
            self._steps = {(n, m): (left, right, torch.from_numpy(overlaps.width).to(self.device))}
        return self._steps[n, m]

    # ------------------------------------------------------------------ one chunk

    def _drawn(
        self, projections: Projections, parts: Sequence[slice], begun: list[Future[Block]]
    ) -> Iterator[tuple[int, Block]]:
        """Draw one part after another, some ahead of the one at work; the first was begun before."""
        coming = deque([begun])
        for number, part in enumerate(parts):
            for later in parts[number + len(coming) : number + _DRAWN_AHEAD]:
                coming.append(self._begin_draws(projections, later))
            yield part.start, join_blocks([drawing.result() for drawing in coming.popleft()])

    def _begin_draws(self, projections: Projections, part: slice) -> list[Future[Block]]:
        """Begin to draw some projections, in portions that a thread takes."""
        size = BLOCK * self.drawn_together
        return [
            self._workers.submit(projections.draw, start, min(start + size, part.stop))
            for start in range(part.start, part.stop, size)
        ]

    def _begin(
        self,
        layouts: list[Layout],
        block: Block,
        start: int,
        degree: int,
        keep: bool,
        by_class: bool,
    ) -> tuple[SortedChunk, FeatureProjections | None]:
        """Begin to sort every dataset; the device works on while the next is prepared."""
        drawn = Uploaded.of(block, self.device)
        kept = FeatureProjections(block.terms, drawn.weights, drawn.coefficients, layouts) if keep else None
        datasets = [self._sorted(layout, drawn, degree, kept, by_class) for layout in layouts]
        return SortedChunk(slice(start, start + len(block)), datasets, block), kept

    def _sorted(
        self,
        layout: Layout,
        drawn: Uploaded,
        degree: int,
        kept: FeatureProjections | None,
        by_class: bool,
    ) -> SortedRows:
        """Sorted data point projections of one dataset."""
        label_rows = None
        if drawn.block.label_features is not None:
            label_rows = self._projected(layout, drawn.block.label_features, drawn.phi, len(drawn.block))
        rows = self._projected(layout, drawn.block.features, drawn.theta, len(drawn.block))
        if kept is not None:
            kept.rows.append(rows.clone())
            kept.label_rows.extend([] if label_rows is None else [label_rows])
        moments = verbs.summarise(rows, layout.edges, degree, drawn.block.terms.limit) if degree else None
        by_labels = rows if label_rows is None else label_rows
        terms = verbs.class_terms(by_labels, layout, drawn.block.terms, drawn.coefficients)
        terms_fit = (terms.abs() < LARGEST_TERM).all(dim=1)  # NaN is not smaller than anything
        largest = torch.linalg.vector_norm(by_labels, ord=float("inf"), dim=1)
        del label_rows, by_labels
        verbs.shift_rows(rows, layout.codes, drawn.weights, terms)
        rows = verbs.sort_classes(rows, layout) if by_class else verbs.sort(rows)
        # Sorted values carry anything that is not finite at their ends.
        if by_class:
            ends = torch.cat([rows[:, layout.edges[:-1]], rows[:, layout.edges[1:] - 1]], dim=1)
        else:
            ends = rows[:, :: max(1, rows.shape[1] - 1)]
        rows_fit = ends.isfinite().all(dim=1)
        return SortedRows(layout.data.name, rows, terms, largest, torch.stack([terms_fit, rows_fit]), moments)

    def _projected(self, layout: Layout, drawn: Drawn, theta: Along | None, count: int) -> Rows:
        """Feature projections (B, n) of grouped points."""
        if layout.points is not None:
            rows = verbs.project(layout.points, theta, drawn)
        else:
            rows = torch.empty((count, layout.data.n_points), device=self.device)
            for block in verbs.row_blocks(layout.data):
                values = verbs.project(scaled_points(layout.data, block, layout.affine, self.device), theta, drawn)
                rows[:, block if layout.position is None else layout.position[block]] = values
        if isinstance(drawn, Directions) and drawn.clamp is not None:
            rows.clamp_(-drawn.clamp, drawn.clamp)
        return rows


def _first_chunk(projections: Projections, chunk: int | None) -> int:
    """How many projections come first: few, to begin soon, unless they are cut out of a large turn."""
    turn = projections.turn_size
    usual = _FIRST_CHUNK if turn is None or turn <= _LARGE_TURN else turn  # to cut one would repeat most of its work
    return usual if chunk is None else min(usual, chunk)


def _growing(count: int, first: int, most: int) -> list[slice]:
    """Parts of so many projections, each twice as large as the one before, up to a size."""
    parts, size = [slice(0, min(first, count))], first
    while parts[-1].stop < count:
        size = min(2 * size, max(most, first))
        parts.append(slice(parts[-1].stop, min(count, parts[-1].stop + size)))
    return parts


def _halved(size: int, device: torch.device, error: torch.OutOfMemoryError) -> int:
    """Half as many rows, after memory ran out; a single one that does not fit is torch's own error."""
    if size <= 1:
        raise error
    give_back(device)
    return size // 2
