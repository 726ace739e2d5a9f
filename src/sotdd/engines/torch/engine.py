"""The engine for torch devices: the twin of ``cpu.py``, with the same verbs.

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
from typing import Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.engines.cpu.workers import Workers
from sotdd.engines.faults import LARGEST_TERM
from sotdd.engines.protocol import PointSums, View
from sotdd.engines.splits import Ways
from sotdd.engines.torch import fused, verbs
from sotdd.engines.torch.moments import summarise
from sotdd.engines.torch.sorted_chunks import SortedChunk, SortedRows
from sotdd.engines.torch.splits import FeatureProjections, Pool, pooled, split_costs
from sotdd.engines.torch.verbs import Layout, Rows
from sotdd.inputs.data import LabelledData
from sotdd.inputs.tensors import DeviceFeatures
from sotdd.kernels.rows import Overlaps
from sotdd.projections.directions import Directions, Drawn
from sotdd.projections.draws import BLOCK, Block, join_blocks
from sotdd.projections.labels import Summaries
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scaler

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# Of the memory that is free: for datasets that stay on the device, and for one chunk's work.
_RESIDENT_SHARE = 0.4
_CHUNK_SHARE = 0.5
# Without a device of its own the engine takes so much of the processor's memory for a chunk.
_HOST_BYTES = 256 << 20
# Bytes per value of the dataset at work: projections, their sort, and the indices that torch sorts along.
_WORK_BYTES = 24
_LARGEST_CHUNK = 32 * BLOCK
_FIRST_CHUNK = 4 * BLOCK
_DRAWING_THREADS = 4
# Chunks that may be begun before the first of them is checked.
_AHEAD = 3
# Directions up to this size are pinned, so that their copy goes on beside other work.
_PINNED_BYTES = 32 << 20
# Directions that are drawn ahead may take so much of the processor's memory.
_DRAWN_BYTES = 1 << 30


@dataclass(frozen=True, eq=False)
class _Uploaded:
    """Some projections on the device."""

    block: Block
    theta: torch.Tensor | None  # (B, d), None for a map of the user's own
    phi: torch.Tensor | None  # (B, d) for the labels, where they have their own
    weights: torch.Tensor  # (B,)
    coefficients: torch.Tensor | None  # (B, D + 1) of polynomials or (B, K) of quantiles, None for summaries


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

    def __init__(
        self,
        device: str | torch.device = "cuda",
        precision: Literal["float32", "tf32"] = "float32",
        chunk: int | None = None,
    ) -> None:
        self.device = verbs.checked_device(device)
        if precision not in ("float32", "tf32"):
            raise SotddError(f"precision is {precision!r}: expected 'float32' or 'tf32'.")
        if chunk is not None and (chunk < BLOCK or chunk % BLOCK):
            raise SotddError(f"chunk is {chunk!r}: expected a multiple of {BLOCK}.")
        self._tf32 = precision == "tf32"
        self._chunk = chunk
        # Draws are made on the processor for every engine. More threads would only compete for
        # Python's lock with the one that feeds the device.
        self._workers = Workers(_DRAWING_THREADS)
        self._before = ""
        self._steps: dict[tuple[int, int], fused.Steps] = {}

    def __enter__(self) -> TorchEngine:
        """Start the threads that draw; choose the precision of products."""
        self._workers.__enter__()
        self._before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high" if self._tf32 else "highest")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave torch's settings as they were."""
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
        layouts = self._layouts(datasets, projections.scaler)
        chunk = self._chunk or self._fitting_chunk(layouts)
        size = chunk  # what is worked on at a time: halved when memory runs out
        unchecked: deque[SortedChunk] = deque()
        for start, block in self._drawn(projections, chunk):
            done = 0
            while done < len(block):
                part = block.part(slice(done, done + size))
                try:
                    chunk_at_work, seen = self._begin(
                        layouts, part, projections.scaler, start + done, degree, before_sorting is not None, by_class
                    )
                except torch.OutOfMemoryError as error:
                    size = self._halved(size, error)
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

    @torch.no_grad()
    def point_sums(self, datasets: Sequence[LabelledData], scaler: Scaler | None) -> list[PointSums]:
        """Sums over the scaled points of each dataset, on the device."""
        return [self._point_sums(data, scaler) for data in datasets]

    def each(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        """Do one piece of work per item on the threads that draw."""
        return self._workers.each(function, items)

    @torch.no_grad()
    def transport(self, a: Rows, b: Rows, p: float) -> torch.Tensor:
        """W_p^p (B,) between each sorted row of a (B, n) and of b (B, m)."""
        n, m = a.shape[1], b.shape[1]
        if n != m and (n, m) not in self._steps:
            self._steps = {(n, m): verbs.steps_of(Overlaps.of(n, m), a.device)}
        try:
            return verbs.transport_rows(a, b, p, None if n == m else self._steps[n, m])
        except torch.OutOfMemoryError as error:
            middle = self._halved(len(a), error)
            halves = slice(0, middle), slice(middle, None)
            return torch.cat([self.transport(a[half], b[half], p) for half in halves])

    @torch.no_grad()
    def quantiles(self, rows: Rows, count: int) -> NDArray[np.float32]:
        """Means (B, count) of each sorted row over parts of equal probability, on the host."""
        try:
            return verbs.bin_means(rows, count).cpu().numpy()
        except torch.OutOfMemoryError as error:
            middle = self._halved(len(rows), error)
            return np.concatenate([self.quantiles(half, count) for half in (rows[:middle], rows[middle:])])

    @torch.no_grad()
    def losses(self, rows: Rows, means: NDArray[np.float32]) -> NDArray[np.float64]:
        """How far each sorted row is from such means, in the mean and in the mean square, (B, 2) on the host."""
        kept = torch.from_numpy(means).to(rows.device)
        first, second = (self.transport(rows, kept, p).double().cpu().numpy() for p in (1.0, 2.0))
        return np.stack([first, np.sqrt(second)], axis=1)

    @torch.no_grad()
    def pool(self, projected: FeatureProjections, members: Sequence[int]) -> Pool:
        """The points of some datasets together, one after another, before class terms are added."""
        return pooled(projected, members)

    @torch.no_grad()
    def split_costs(self, pool: Pool, splits: Ways, orders: Sequence[float]) -> torch.Tensor:
        """W_p^p (B, S, orders) between the two sides of each split of a pool, class terms and all."""
        n, m = splits.sizes
        if n != m and (n, m) not in self._steps:
            self._steps = {(n, m): verbs.steps_of(Overlaps.of(n, m), pool.rows.device)}
        try:
            return split_costs(pool, splits, orders, None if n == m else self._steps[n, m])
        except torch.OutOfMemoryError as error:
            middle = self._halved(len(pool.rows), error)
            halves = slice(0, middle), slice(middle, None)
            return torch.cat([self.split_costs(pool.part(half), splits, orders) for half in halves])

    def ends(self, rows: Rows) -> torch.Tensor:
        """The smallest and the largest value (B, 2) of each sorted row."""
        return torch.stack([rows[:, 0], rows[:, -1]], dim=1).double()

    def collect(self, parts: Sequence[torch.Tensor]) -> NDArray[np.float64]:
        """Bring what ``transport`` or ``ends`` gave for one chunk after another to the host."""
        values: NDArray[np.float64] = torch.cat(list(parts)).cpu().numpy()
        return values

    # ------------------------------------------------------------------ memory

    def _free_bytes(self) -> int:
        if self.device.type != "cuda":
            return _HOST_BYTES
        free, _ = torch.cuda.mem_get_info(self.device)
        unused = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return int(free) + int(unused)

    def _fitting_chunk(self, layouts: list[Layout]) -> int:
        sizes = [layout.data.n_points for layout in layouts]
        per_projection = 4 * sum(sizes) + _WORK_BYTES * max(sizes)
        fitting = int(_CHUNK_SHARE * self._free_bytes()) // per_projection
        fitting = min(fitting, _DRAWN_BYTES // (3 * 4 * layouts[0].data.n_features))
        return max(1, min(_LARGEST_CHUNK, fitting) // BLOCK) * BLOCK

    def _halved(self, size: int, error: torch.OutOfMemoryError) -> int:
        if size <= 1:
            raise SotddError(
                f"a single projection does not fit in the memory of {self.device}: use device='cpu', or fewer points."
            ) from error
        self._forget()
        return size // 2

    def _forget(self) -> None:
        """Give memory that is not in use back to the device."""
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _layouts(self, datasets: Sequence[LabelledData], scaler: Scaler | None) -> list[Layout]:
        needed = [4 * data.n_points * data.n_features for data in datasets]
        stays = self.device.type == "cuda" and 2 * sum(needed) <= _RESIDENT_SHARE * self._free_bytes()
        return [self._layout(data, scaler, stays) for data in datasets]

    def _layout(self, data: LabelledData, scaler: Scaler | None, stays: bool) -> Layout:
        offsets, position = data.grouping()
        edges = torch.from_numpy(offsets).to(self.device)
        codes = torch.repeat_interleave(edges.diff()).int()
        place = None if position is None else torch.from_numpy(position).long().to(self.device)
        if not stays:
            return Layout(data, offsets, edges, codes, place, None, position)
        try:
            points = torch.cat([self._points(data, block, scaler) for block in verbs.row_blocks(data)])
            if place is not None:
                points = torch.empty_like(points).index_copy_(0, place, points)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            return Layout(data, offsets, edges, codes, place, None, position)
        return Layout(data, offsets, edges, codes, None, points, position)

    # ------------------------------------------------------------------ one chunk

    def _drawn(self, projections: Projections, chunk: int) -> Iterator[tuple[int, Block]]:
        """Draw one chunk after another, ahead of the one at work; the first are small, to begin soon."""
        starts = range(0, projections.n_projections, BLOCK)
        coming: deque[Future[Block]] = deque()
        begun = number = 0
        size = min(chunk, _FIRST_CHUNK) // BLOCK
        while number < len(starts):
            wanted = min(len(starts), number + 3 * max(size, _FIRST_CHUNK // BLOCK))
            for first in starts[begun:wanted]:
                coming.append(self._workers.submit(projections.draw, first, first + BLOCK))
            begun = max(begun, wanted)
            count = min(size, len(starts) - number)
            yield starts[number], join_blocks([coming.popleft().result() for _ in range(count)])
            number += count
            size = min(2 * size, chunk // BLOCK)

    def _points(self, data: LabelledData, block: slice, scaler: Scaler | None) -> torch.Tensor:
        """Some points (m, d) on the device, float32, centred and scaled in float64."""
        if isinstance(data.features, DeviceFeatures):
            raw = data.features.tensor[block].reshape(-1, data.n_features).to(self.device)
        else:
            raw = torch.from_numpy(np.require(data.rows(block), requirements=("C", "W"))).to(self.device)
        if scaler is None:
            points: torch.Tensor = raw.to(torch.float32)
        else:
            centre, inverse = (torch.tensor(part, device=self.device) for part in (scaler.centre, scaler.inverse))
            points = ((raw.double() - centre) * inverse).to(torch.float32)
        return points

    def _point_sums(self, data: LabelledData, scaler: Scaler | None) -> PointSums:
        lengths = torch.zeros(3, dtype=torch.float64, device=self.device)
        sums = torch.zeros((len(data.classes), data.n_features), dtype=torch.float64, device=self.device)
        for block in verbs.row_blocks(data):
            points = self._points(data, block, scaler).double()
            squares = points.square().sum(dim=1)
            lengths += torch.stack([squares.sum(), squares.square().sum(), squares.pow(3).sum()])
            sums.index_add_(0, torch.from_numpy(data.codes[block].astype(np.int64)).to(self.device), points)
        return PointSums(lengths.cpu().numpy(), sums.cpu().numpy())

    def _begin(
        self,
        layouts: list[Layout],
        block: Block,
        scaler: Scaler | None,
        start: int,
        degree: int,
        keep: bool,
        by_class: bool,
    ) -> tuple[SortedChunk, FeatureProjections | None]:
        """Begin to sort every dataset; the device works on while the next is prepared."""
        drawn = self._uploaded(block)
        kept = FeatureProjections(block.terms, drawn.weights, drawn.coefficients, layouts) if keep else None
        datasets = [self._sorted(layout, drawn, scaler, degree, kept, by_class) for layout in layouts]
        return SortedChunk(slice(start, start + len(block)), datasets, block), kept

    def _uploaded(self, block: Block) -> _Uploaded:
        theta, phi = (
            self._upload(drawn.theta, np.float32) if isinstance(drawn, Directions) else None
            for drawn in (block.features, block.label_features)
        )
        terms = block.terms
        coefficients = None if isinstance(terms, Summaries) else self._upload(terms.coefficients, np.float64)
        return _Uploaded(block, theta, phi, self._upload(terms.weights, np.float64), coefficients)

    def _upload(self, array: NDArray[np.floating], dtype: type[np.floating]) -> torch.Tensor:
        with np.errstate(over="ignore"):  # found, and explained, where rows are checked
            host = torch.from_numpy(np.array(array, dtype))
        small = self.device.type == "cuda" and host.nbytes < _PINNED_BYTES
        return (host.pin_memory() if small else host).to(self.device, non_blocking=small)

    def _sorted(
        self,
        layout: Layout,
        drawn: _Uploaded,
        scaler: Scaler | None,
        degree: int,
        kept: FeatureProjections | None,
        by_class: bool,
    ) -> SortedRows:
        """Sorted data point projections of one dataset."""
        label_rows = None
        if drawn.block.label_features is not None:
            label_rows = self._projected(layout, drawn.block.label_features, drawn.phi, len(drawn.block), scaler)
        rows = self._projected(layout, drawn.block.features, drawn.theta, len(drawn.block), scaler)
        if kept is not None:
            kept.rows.append(rows.clone())
            kept.label_rows.extend([] if label_rows is None else [label_rows])
        moments = summarise(rows, layout.edges, degree, drawn.block.terms.limit) if degree else None
        by_labels = rows if label_rows is None else label_rows
        terms = verbs.class_terms(by_labels, layout, drawn.block.terms, drawn.coefficients)
        terms_fit = (terms.abs() < LARGEST_TERM).all(dim=1)  # NaN is not smaller than anything
        largest = torch.linalg.vector_norm(by_labels, ord=float("inf"), dim=1)
        del label_rows, by_labels
        verbs.shift_to_classes(rows, layout.codes, drawn.weights, terms)
        rows = verbs.sort_classes(rows, layout) if by_class else verbs.sort(rows)
        ends = layout.edges if by_class else layout.edges[[0, -1]]
        # Sorted values carry anything that is not finite at their ends.
        rows_fit = rows[:, ends[:-1]].isfinite().all(dim=1) & rows[:, ends[1:] - 1].isfinite().all(dim=1)
        return SortedRows(layout.data.name, rows, terms, largest, torch.stack([terms_fit, rows_fit]), moments)

    def _projected(
        self, layout: Layout, drawn: Drawn, theta: torch.Tensor | None, count: int, scaler: Scaler | None
    ) -> Rows:
        """Feature projections (B, n) of grouped points."""
        if layout.points is not None:
            rows = verbs.project(layout.points, theta, drawn)
        else:
            rows = torch.empty((count, layout.data.n_points), device=self.device)
            for block in verbs.row_blocks(layout.data):
                values = verbs.project(self._points(layout.data, block, scaler), theta, drawn)
                rows[:, block if layout.position is None else layout.position[block]] = values
        if isinstance(drawn, Directions) and drawn.clamp is not None:
            rows.clamp_(-drawn.clamp, drawn.clamp)
        return rows
