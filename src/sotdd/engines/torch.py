"""The engine for torch devices: the twin of ``cpu.py``, with the same verbs.

A dataset is scaled, grouped by class and kept on the device where it fits; otherwise its blocks
of rows stream through for every chunk of projections. Chunks are as large as free memory allows;
when memory runs out all the same, the chunk is halved and the work goes on.

Importing this module imports torch.
"""

from __future__ import annotations

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
from sotdd.projections.labels import LabelTerms, Polynomials
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
_LARGEST_CHUNK = 16 * BLOCK


@dataclass(frozen=True, eq=False)
class _Layout:
    """A dataset with what every chunk needs to know of it."""

    data: LabelledData
    offsets: NDArray[np.int64]  # (C + 1,) class boundaries among grouped points
    codes: torch.Tensor  # (n,) class of every grouped point
    position: torch.Tensor | None  # (n,) place of each point among grouped points
    points: torch.Tensor | None  # (n, d) scaled and grouped, where that fits on the device


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
        self._workers = Workers()  # for draws, which are made on the processor for every engine
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
        coming = self._begin_draws(projections, 0, chunk)
        for start in range(0, projections.n_projections, chunk):
            block = join_blocks([drawing.result() for drawing in coming])
            coming = self._begin_draws(projections, start + chunk, start + 2 * chunk)
            done = 0
            while done < len(block):
                part = block.part(slice(done, done + size))
                try:
                    rows = [self._place(layout, part, projections.scaler, start + done) for layout in layouts]
                except torch.OutOfMemoryError as error:
                    size = self._halved(size, error)
                    continue
                yield slice(start + done, start + done + len(part)), rows
                done += len(part)
                del rows

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
        return max(1, min(_LARGEST_CHUNK, fitting) // BLOCK) * BLOCK

    def _halved(self, size: int, error: torch.OutOfMemoryError) -> int:
        if size <= 1:
            raise SotddError(
                f"a single projection does not fit in the memory of {self.device}: use device='cpu', or fewer points."
            ) from error
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        return size // 2

    def _layouts(self, datasets: Sequence[LabelledData], scaler: Scaler | None) -> list[_Layout]:
        needed = [4 * data.n_points * data.n_features for data in datasets]
        stays = self.device.type == "cuda" and 2 * sum(needed) <= _RESIDENT_SHARE * self._free_bytes()
        return [self._layout(data, scaler, stays) for data in datasets]

    def _layout(self, data: LabelledData, scaler: Scaler | None, stays: bool) -> _Layout:
        offsets, position = data.grouping()
        codes = torch.repeat_interleave(
            torch.arange(len(offsets) - 1, dtype=torch.int32), torch.from_numpy(np.diff(offsets))
        ).to(self.device)
        place = None if position is None else torch.from_numpy(position).long().to(self.device)
        if not stays:
            return _Layout(data, offsets, codes, place, None)
        try:
            points = torch.cat([self._points(data, block, scaler) for block in _row_blocks(data)])
            if place is not None:
                points = torch.empty_like(points).index_copy_(0, place, points)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            return _Layout(data, offsets, codes, place, None)
        return _Layout(data, offsets, codes, None, points)

    # ------------------------------------------------------------------ one chunk

    def _begin_draws(self, projections: Projections, start: int, stop: int) -> list[Future[Block]]:
        """Begin to draw those of the projections start, …, stop - 1 that there are."""
        starts = range(start, min(stop, projections.n_projections), BLOCK)
        return [self._workers.submit(projections.draw, first, first + BLOCK) for first in starts]

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

    def _place(self, layout: _Layout, block: Block, scaler: Scaler | None, start: int) -> Rows:
        """Sorted data point projections of one dataset."""
        label_rows = None
        if block.label_features is not None:
            label_rows = self._projected(layout, block.label_features, len(block), scaler)
            terms = class_terms(label_rows, layout.offsets, block.terms)
        rows = self._projected(layout, block.features, len(block), scaler)
        if label_rows is None:
            terms = class_terms(rows, layout.offsets, block.terms)
        fits = terms.abs() < LARGEST_TERM  # NaN is not smaller than anything
        if not bool(fits.all()):
            line = int(fits.all(dim=1).int().argmin())
            largest = float((rows if label_rows is None else label_rows)[line].abs().max())
            raise unusable_term(layout.data.name, largest, block.terms, line, start + line)
        del label_rows
        place(rows, layout.codes, torch.from_numpy(block.terms.weights).to(self.device), terms)
        rows = sort(rows)
        finite = torch.isfinite(rows[:, 0]) & torch.isfinite(rows[:, -1])
        if not bool(finite.all()):
            raise too_large(layout.data.name, start + int(finite.int().argmin()))
        return rows

    def _projected(self, layout: _Layout, drawn: Drawn, count: int, scaler: Scaler | None) -> Rows:
        """Feature projections (B, n) of grouped points."""
        rows = torch.empty((count, layout.data.n_points), device=self.device)
        theta = None
        if isinstance(drawn, Directions):
            with np.errstate(over="ignore"):  # found, and explained, where rows are placed
                theta = torch.from_numpy(np.ascontiguousarray(drawn.theta, np.float32).copy()).to(self.device)
        if layout.points is not None:
            _write(project(layout.points, theta, drawn), rows, slice(None), None)
        else:
            for block in _row_blocks(layout.data):
                points = self._points(layout.data, block, scaler)
                _write(project(points, theta, drawn), rows, block, layout.position)
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


def class_terms(rows: Rows, offsets: NDArray[np.int64], terms: LabelTerms) -> torch.Tensor:
    """The label term (B, C) of every class in every projection, float64."""
    if isinstance(terms, Polynomials):
        counts = torch.from_numpy(np.diff(offsets)).to(rows.device)
        return class_sums(rows, offsets, terms) / counts
    host = rows.cpu().numpy()
    columns = [summarised(host[:, first:last], terms) for first, last in neighbours(offsets)]
    return torch.from_numpy(np.stack(columns, axis=1)).to(rows.device)


def class_sums(rows: Rows, offsets: NDArray[np.int64], terms: Polynomials) -> torch.Tensor:
    """Sums (B, C) of each row's polynomial over each class, in float64."""
    coefficients = torch.from_numpy(terms.coefficients).to(rows.device)
    edges = torch.from_numpy(offsets).to(rows.device)
    if fused.available(rows):
        return fused.class_sums(rows, edges, coefficients)
    codes = torch.repeat_interleave(edges.diff())  # (n,) class of every point
    sums = torch.zeros((len(rows), len(offsets) - 1), dtype=torch.float64, device=rows.device)
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
    if overlaps is None:
        gaps = (a - b).abs_()
        result = _powered(gaps, p).mean(dim=1, dtype=torch.float64)
    else:
        left, right = (torch.from_numpy(index).long().to(a.device) for index in (overlaps.left, overlaps.right))
        gaps = (a[:, left] - b[:, right]).abs_()
        result = _powered(gaps, p).double() @ torch.from_numpy(overlaps.width).to(a.device)
    transported: NDArray[np.float64] = result.cpu().numpy()
    return transported


def _powered(gaps: torch.Tensor, p: float) -> torch.Tensor:
    """|gap|^p; in float64 where float32 could overflow."""
    if p == 1:
        return gaps
    return gaps.square_() if p == 2 and float(gaps.max()) < 1e18 else gaps.double().pow_(p)


def _write(values: Rows, rows: Rows, block: slice, position: torch.Tensor | None) -> None:
    if position is None:
        rows[:, block] = values
    else:
        rows[:, position[block]] = values


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
