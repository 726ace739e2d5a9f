"""The engine for torch devices: the twin of ``cpu.py``, with the same verbs.

A dataset is scaled, grouped by class and kept on the device where it fits; otherwise its blocks
of rows stream through for every chunk of projections. Chunks are as large as free memory allows;
when memory runs out all the same, the chunk is halved and the work goes on.

Importing this module imports torch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import pairwise as neighbours
from types import TracebackType
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from sotdd.data import LabelledData
from sotdd.engines import fused
from sotdd.engines.faults import LARGEST_TERM, summarised, too_large, unusable_term
from sotdd.engines.workers import Workers
from sotdd.errors import SotddError
from sotdd.projections.directions import Directions, Drawn
from sotdd.projections.draws import BLOCK, Block, join_blocks
from sotdd.projections.labels import LabelTerms, Polynomials, Summaries
from sotdd.projections.recipe import Projections
from sotdd.scaling import Scaler
from sotdd.tensors import DeviceFeatures
from sotdd.transport import Overlaps

Rows = torch.Tensor  # (B, n) float32: one row per projection, one value per point

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
# Directions up to this size are pinned, so that their copy goes on beside other work.
_PINNED_BYTES = 32 << 20
# Directions that are drawn ahead may take so much of the processor's memory.
_DRAWN_BYTES = 1 << 30


@dataclass(frozen=True, eq=False)
class _Layout:
    """A dataset with what every chunk needs to know of it."""

    data: LabelledData
    offsets: NDArray[np.int64]  # (C + 1,) class boundaries among grouped points
    edges: torch.Tensor  # (C + 1,) the same on the device
    codes: torch.Tensor  # (n,) class of every grouped point
    position: torch.Tensor | None  # (n,) place of each point among grouped points
    points: torch.Tensor | None  # (n, d) scaled and grouped, where that fits on the device


@dataclass(frozen=True, eq=False)
class _Uploaded:
    """Some projections on the device."""

    block: Block
    theta: torch.Tensor | None  # (B, d), None for a map of the user's own
    phi: torch.Tensor | None  # (B, d) for the labels, where they have their own
    weights: torch.Tensor  # (B,)
    coefficients: torch.Tensor | None  # (B, D + 1), None for summaries


@dataclass(frozen=True, eq=False)
class _PlacedRows:
    """One dataset through some projections, perhaps still at work on the device."""

    name: str
    rows: Rows  # (B, n) sorted
    fits: torch.Tensor  # (B,) whether all class terms can be used
    largest: torch.Tensor  # (B,) largest |t|, to explain those that cannot


@dataclass(frozen=True, eq=False)
class _Placed:
    """All datasets through some projections."""

    part: slice
    datasets: list[_PlacedRows]
    block: Block

    def checked(self) -> tuple[slice, list[Rows]]:
        """Wait for the device, and refuse what is not finite."""
        for placed in self.datasets:
            fits = placed.fits.cpu().numpy()
            if not fits.all():
                line = int(np.argmin(fits))
                largest = float(placed.largest[line])
                raise unusable_term(placed.name, largest, self.block.terms, line, self.part.start + line)
            finite = (torch.isfinite(placed.rows[:, 0]) & torch.isfinite(placed.rows[:, -1])).cpu().numpy()
            if not finite.all():
                raise too_large(placed.name, self.part.start + int(np.argmin(finite)))
        return self.part, [placed.rows for placed in self.datasets]


class TorchEngine:
    """Projects, places, sorts and transports on a torch device, for the time of a ``with`` block.

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
        self.device = checked_device(device)
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
    def views(self, datasets: Sequence[LabelledData], projections: Projections) -> Iterator[tuple[slice, list[Rows]]]:
        """See every dataset through one chunk of projections after another.

        Yields which projections, and for every dataset the sorted data point projections (B, n).
        """
        layouts = self._layouts(datasets, projections.scaler)
        chunk = self._chunk or self._fitting_chunk(layouts)
        size = chunk  # what is worked on at a time: halved when memory runs out
        waiting: _Placed | None = None  # begun on the device, not yet handed out
        for start, block in self._drawn(projections, chunk):
            done = 0
            while done < len(block):
                part = block.part(slice(done, done + size))
                try:
                    placed = self._begin(layouts, part, projections.scaler, start + done)
                except torch.OutOfMemoryError as error:
                    if waiting is None:
                        size = self._halved(size, error)
                        continue
                    yield waiting.checked()
                    waiting = None
                    self._forget()
                    continue
                done += len(part)
                if waiting is not None:
                    yield waiting.checked()
                waiting = placed
        assert waiting is not None
        yield waiting.checked()

    @torch.no_grad()
    def transport(self, a: Rows, b: Rows, p: float) -> NDArray[np.float64]:
        """W_p^p between each sorted row of a (B, n) and of b (B, m)."""
        n, m = a.shape[1], b.shape[1]
        overlaps = None if n == m else Overlaps.of(n, m)
        try:
            return transport_rows(a, b, p, overlaps)
        except torch.OutOfMemoryError as error:
            self._halved(len(a), error)
            middle = len(a) // 2
            return np.concatenate(
                [self.transport(a[:middle], b[:middle], p), self.transport(a[middle:], b[middle:], p)]
            )

    def ends(self, rows: Rows) -> NDArray[np.float64]:
        """The smallest and the largest value (B, 2) of each sorted row."""
        values: NDArray[np.float64] = torch.stack([rows[:, 0], rows[:, -1]], dim=1).double().cpu().numpy()
        return values

    # ------------------------------------------------------------------ memory

    def _free_bytes(self) -> int:
        if self.device.type != "cuda":
            return _HOST_BYTES
        free, _ = torch.cuda.mem_get_info(self.device)
        unused = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return int(free) + int(unused)

    def _fitting_chunk(self, layouts: list[_Layout]) -> int:
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

    def _layouts(self, datasets: Sequence[LabelledData], scaler: Scaler | None) -> list[_Layout]:
        needed = [4 * data.n_points * data.n_features for data in datasets]
        stays = self.device.type == "cuda" and 2 * sum(needed) <= _RESIDENT_SHARE * self._free_bytes()
        return [self._layout(data, scaler, stays) for data in datasets]

    def _layout(self, data: LabelledData, scaler: Scaler | None, stays: bool) -> _Layout:
        offsets, position = data.grouping()
        edges = torch.from_numpy(offsets).to(self.device)
        codes = torch.repeat_interleave(edges.diff()).int()
        place = None if position is None else torch.from_numpy(position).long().to(self.device)
        if not stays:
            return _Layout(data, offsets, edges, codes, place, None)
        try:
            points = torch.cat([self._points(data, block, scaler) for block in _row_blocks(data)])
            if place is not None:
                points = torch.empty_like(points).index_copy_(0, place, points)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            return _Layout(data, offsets, edges, codes, place, None)
        return _Layout(data, offsets, edges, codes, None, points)

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
            raw = torch.from_numpy(np.ascontiguousarray(data.rows(block))).to(self.device)
        if scaler is None:
            points: torch.Tensor = raw.to(torch.float32)
        else:
            centre = torch.from_numpy(scaler.centre.copy()).to(self.device)
            points = ((raw.double() - centre) * (1.0 / scaler.scale)).to(torch.float32)
        return points

    def _begin(self, layouts: list[_Layout], block: Block, scaler: Scaler | None, start: int) -> _Placed:
        """Begin to place every dataset; the device works on while the next is prepared."""
        drawn = self._uploaded(block)
        placed = [self._place(layout, drawn, scaler) for layout in layouts]
        return _Placed(slice(start, start + len(block)), placed, block)

    def _uploaded(self, block: Block) -> _Uploaded:
        theta, phi = (
            self._upload(drawn.theta, np.float32) if isinstance(drawn, Directions) else None
            for drawn in (block.features, block.label_features)
        )
        terms = block.terms
        coefficients = self._upload(terms.coefficients, np.float64) if isinstance(terms, Polynomials) else None
        return _Uploaded(block, theta, phi, self._upload(terms.weights, np.float64), coefficients)

    def _upload(self, array: NDArray[np.floating], dtype: type[np.floating]) -> torch.Tensor:
        with np.errstate(over="ignore"):  # found, and explained, where rows are placed
            host = torch.from_numpy(np.array(array, dtype))
        small = self.device.type == "cuda" and host.nbytes < _PINNED_BYTES
        return (host.pin_memory() if small else host).to(self.device, non_blocking=small)

    def _place(self, layout: _Layout, drawn: _Uploaded, scaler: Scaler | None) -> _PlacedRows:
        """Sorted data point projections of one dataset."""
        label_rows = None
        if drawn.block.label_features is not None:
            label_rows = self._projected(layout, drawn.block.label_features, drawn.phi, len(drawn.block), scaler)
        rows = self._projected(layout, drawn.block.features, drawn.theta, len(drawn.block), scaler)
        by_labels = rows if label_rows is None else label_rows
        terms = class_terms(by_labels, layout, drawn.block.terms, drawn.coefficients)
        fits = (terms.abs() < LARGEST_TERM).all(dim=1)  # NaN is not smaller than anything
        largest = torch.linalg.vector_norm(by_labels, ord=float("inf"), dim=1)
        del label_rows, by_labels
        place(rows, layout.codes, drawn.weights, terms)
        return _PlacedRows(layout.data.name, sort(rows), fits, largest)

    def _projected(
        self, layout: _Layout, drawn: Drawn, theta: torch.Tensor | None, count: int, scaler: Scaler | None
    ) -> Rows:
        """Feature projections (B, n) of grouped points."""
        if layout.points is not None:
            rows = project(layout.points, theta, drawn)
        else:
            rows = torch.empty((count, layout.data.n_points), device=self.device)
            for block in _row_blocks(layout.data):
                values = project(self._points(layout.data, block, scaler), theta, drawn)
                rows[:, block if layout.position is None else layout.position[block]] = values
        if isinstance(drawn, Directions) and drawn.clamp is not None:
            rows.clamp_(-drawn.clamp, drawn.clamp)
        return rows


# ------------------------------------------------------------------ the verbs


def project(points: torch.Tensor, theta: torch.Tensor | None, drawn: Drawn) -> Rows:
    """The feature projections (B, m) of points (m, d)."""
    if theta is not None:
        return theta @ points.T
    assert not isinstance(drawn, Directions)
    return torch.from_numpy(np.asarray(drawn(points.cpu().numpy()), np.float32)).to(points.device)


def class_terms(rows: Rows, layout: _Layout, terms: LabelTerms, coefficients: torch.Tensor | None) -> torch.Tensor:
    """The label term (B, C) of every class in every projection, float64."""
    if coefficients is not None:
        return class_sums(rows, layout.edges, coefficients) / layout.edges.diff()
    assert isinstance(terms, Summaries)
    host = rows.cpu().numpy()
    columns = [summarised(host[:, first:last], terms) for first, last in neighbours(layout.offsets)]
    return torch.from_numpy(np.stack(columns, axis=1)).to(rows.device)


def class_sums(rows: Rows, edges: torch.Tensor, coefficients: torch.Tensor) -> torch.Tensor:
    """Sums (B, C) of each row's polynomial over each class, in float64; edges (C + 1,) bound the classes."""
    if fused.available(rows):
        return fused.class_sums(rows, edges, coefficients)
    codes = torch.repeat_interleave(edges.diff())  # (n,) class of every point
    sums = torch.zeros((len(rows), len(edges) - 1), dtype=torch.float64, device=rows.device)
    for line in range(len(rows)):  # a row at a time: float64 copies stay small
        t = rows[line].double()
        values = coefficients[line, -1].expand_as(t)
        for order in range(coefficients.shape[1] - 2, -1, -1):
            values = values * t + coefficients[line, order]
        sums[line].index_add_(0, codes, values)
    return sums


def place(rows: Rows, codes: torch.Tensor, weights: torch.Tensor, terms: torch.Tensor) -> None:
    """Turn grouped feature projections into data point projections: weight × t + the class's term."""
    if fused.available(rows):
        fused.place(rows, codes, weights, terms)
        return
    for line in range(len(rows)):
        rows[line] = (weights[line] * rows[line].double() + terms[line][codes.long()]).float()


def sort(rows: Rows) -> Rows:
    """Sort every row ascending."""
    return torch.sort(rows, dim=1).values


def transport_rows(a: Rows, b: Rows, p: float, overlaps: Overlaps | None) -> NDArray[np.float64]:
    """W_p^p between each sorted row of a (B, n) and of b (B, m); no overlaps are needed if n = m."""
    steps = None if overlaps is None else _on_device(overlaps, a.device)
    if fused.available(a):
        result = fused.transport(a, b, p, steps)
    elif steps is None:
        result = _powered((a - b).abs_(), p).mean(dim=1, dtype=torch.float64)
    else:
        left, right, width = steps
        result = _powered((a[:, left] - b[:, right]).abs_(), p).double() @ width
    transported: NDArray[np.float64] = result.cpu().numpy()
    return transported


def _on_device(overlaps: Overlaps, device: torch.device) -> fused.Steps:
    left, right = (torch.from_numpy(index).long().to(device) for index in (overlaps.left, overlaps.right))
    return left, right, torch.from_numpy(overlaps.width).to(device)


def _powered(gaps: torch.Tensor, p: float) -> torch.Tensor:
    """|gap|^p; in float64 where float32 could overflow."""
    if p == 1:
        return gaps
    return gaps.square_() if p == 2 and float(gaps.max()) < 1e18 else gaps.double().pow_(p)


def _row_blocks(data: LabelledData) -> list[slice]:
    """Rows that travel to the device at a time: about 64 MB of float32."""
    count = max(1, (16 << 20) // data.n_features)
    return [slice(start, start + count) for start in range(0, data.n_points, count)]


def checked_device(device: str | torch.device) -> torch.device:
    """A torch device that is there, or an error that says which are."""
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise SotddError(f"device is {device!r}: expected 'auto', 'cpu', 'cuda' or such as 'cuda:1'.") from error
    if found.type == "cuda":
        if not torch.cuda.is_available():
            raise SotddError(
                f"device is {device!r} but torch {torch.__version__} finds no GPU here: use device='cpu', or install a "
                "torch with CUDA."
            )
        count = torch.cuda.device_count()
        if found.index is not None and found.index >= count:
            raise SotddError(f"device is {device!r} but there are {count} GPUs here: use cuda:0 to cuda:{count - 1}.")
    elif found.type != "cpu":
        raise SotddError(f"device is {device!r}: expected 'auto', 'cpu', 'cuda' or such as 'cuda:1'.")
    return found
