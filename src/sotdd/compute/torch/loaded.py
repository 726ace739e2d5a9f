"""Datasets as the torch engine holds them for one pass, and what fits on the device.

A dataset is scaled, grouped by class and kept on the device where it fits; otherwise its blocks of rows stream through
for every chunk of projections. Chunks are as large as free memory allows; when memory runs out all the same, the chunk
is halved and the work goes on.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import torch

from sotdd.compute.engine import LARGEST_TERM, LoadedData, describe_bad_term
from sotdd.compute.slices import Slices
from sotdd.compute.torch import fused
from sotdd.compute.torch import rows as verbs
from sotdd.compute.torch.rows import Classes, Rows, Uploaded, copy_array
from sotdd.inputs.data import LabelledData
from sotdd.inputs.features import DeviceFeatures
from sotdd.projections.maps import BLOCK, Block, describe_overflow
from sotdd.projections.projections import Projections
from sotdd.projections.scaler import Scaler

# Few, so that work begins soon; but a thousand keep the device busy for as long as Python takes to ask for them.
_FIRST_CHUNK = 16 * BLOCK
_LARGE_ROTATION = 64 * BLOCK
# Threads that sample, this one among them: rotations, rotations with further samples of the label law, and directions
# themselves. More would keep the interpreter from feeding the device.
_SAMPLING = 2, 3, 6
# Chunks that may be begun before the first of them is checked.
_AHEAD = 3
# Of the memory that is free: for datasets that stay on the device, and for one chunk's work.
_RESIDENT_SHARE = 0.4
_CHUNK_SHARE = 0.5
# On the processor the engine takes this much memory for a chunk.
_HOST_BYTES = 256 << 20
# Bytes per value of the dataset at work: projections, their sort, and the indices that torch sorts along.
_WORK_BYTES = 24
_LARGEST_CHUNK = 32 * BLOCK
# Chunks whose projections are drawn, or being drawn, when one is begun, and the memory that directions may take then.
_DRAWN_AHEAD, _DRAWN_BYTES = 6, 1 << 30

# A chunk that was begun on the device: its first projection, what was sampled, of each dataset its largest class terms
# and the ends of its rows, on their way to the host, and when they are there.
_Check: TypeAlias = tuple[int, Block, list[tuple["Layout", torch.Tensor, torch.Tensor]], torch.cuda.Event | None]


@dataclass(frozen=True, eq=False)
class Layout:
    """A dataset with what every chunk needs to know of it."""

    data: LabelledData
    classes: Classes
    position: torch.Tensor | None  # (n,) index of each point among grouped points; None where they lie so
    points: torch.Tensor | None  # (n, d) scaled and grouped, where that fits on the device
    scaler: Scaler | None  # of its points
    kept: dict[object, torch.Tensor] = field(default_factory=dict)  # what was made of the points for all chunks


class TorchData(LoadedData):
    """Datasets on a device, or on their way to it."""

    ahead = _DRAWN_AHEAD

    @torch.no_grad()
    def prepare(self) -> list[slice]:
        """Copy the datasets to the device, where they fit, while the first projections are sampled."""
        engine, projections, self._device = self._engine, self._projections, self._engine.device
        rotates, samples = projections.rotation_size is not None, self._sampler.n_label_samples > 0
        engine.workers.count = min(engine.threads, _SAMPLING[samples if rotates else 2])
        first = _find_first(projections, engine.chunk)
        self._sampler.begin(slice(0, min(first, projections.n_projections)))
        self._layouts: list[Layout] = engine.lay_out(self._datasets, projections.scaler)
        # What is worked on at a time: halved when memory runs out.
        self._size: int = engine.chunk or fit_chunk(self._datasets, projections, engine.device)
        self._uploaded: Uploaded | None = None
        self._unchecked: deque[_Check] = deque()
        return _cut_projections(projections.n_projections, first, self._size)

    @torch.no_grad()
    def project(self, block: Block) -> Iterator[tuple[Block, list[tuple[Rows, Rows]]]]:
        """Begin to project all datasets, in as large parts of the block as memory has room for.

        The device works on while the next is prepared.
        """
        done = 0
        while done < len(block):
            part = block.part(slice(done, done + self._size))
            try:
                uploaded = Uploaded.of(part, self._device)
                projected = [self._project(layout, uploaded) for layout in self._layouts]
            except torch.OutOfMemoryError as error:
                self._size = halve(self._size, error)
                continue
            done += len(part)
            self._uploaded = uploaded
            yield part, projected
            del projected

    def order_points(self, projected: Sequence[tuple[Rows, Rows]]) -> list[tuple[Rows, Rows]]:
        """Copies of rows in the order of points: on the device these are grouped by class."""

        def order(rows: Rows, at: torch.Tensor | None) -> Rows:
            return rows.clone() if at is None else rows.index_select(1, at)

        found = []
        for layout, (rows, label_rows) in zip(self._layouts, projected, strict=True):
            ordered = order(rows, layout.position)
            found.append((ordered, ordered if label_rows is rows else order(label_rows, layout.position)))
        return found

    @torch.no_grad()
    def sort(self, part: slice, block: Block, projected: list[tuple[Rows, Rows]]) -> Slices:
        """Begin to add class terms and to sort, dataset by dataset; the list is emptied, for memory."""
        assert self._uploaded is not None
        uploaded, found, moments = self._uploaded, list[tuple[Layout, Rows, torch.Tensor]](), []
        for number, layout in enumerate(self._layouts):
            rows, label_rows = projected.pop(0)
            classes, by_class = layout.classes, number in self._by_class
            if self._has_moments and not by_class:
                moments.append(verbs.combine_classes(rows, classes.edges, block.terms.limit, uploaded.draws))
            terms = verbs.find_class_terms(label_rows, classes, uploaded)
            del label_rows
            verbs.shift_rows(rows, classes.codes, uploaded.weights, terms)
            found.append((layout, self._sort_rows(rows, layout if by_class else None), terms))
        self._check_later(part, block, found)
        own = [layout for number, layout in enumerate(self._layouts) if number not in self._by_class]
        norms = [find_point_norms(layout, self._device) for layout in own] if self._has_moments else []
        gaussian, directions = ([both[which] for both in moments] for which in (0, 1))
        rows_and_terms = [rows for _, rows, _ in found], [terms for _, _, terms in found]
        return Slices(self._engine, part, block, *rows_and_terms, gaussian, directions, norms)

    def check(self) -> None:
        """Wait for all chunks, and refuse what is not finite."""
        while self._unchecked:
            self._check_next()

    def _sort_rows(self, rows: Rows, by_class: Layout | None) -> Rows:
        """Sort rows, each class on its own if classes are given; in halves where memory runs out."""
        try:
            return verbs.sort(rows) if by_class is None else verbs.sort_classes(rows, by_class.classes)
        except torch.OutOfMemoryError as error:
            middle = halve(len(rows), error)
            self._size = min(self._size, middle)
            for half in (slice(0, middle), slice(middle, None)):
                rows[half] = self._sort_rows(rows[half], by_class)
            return rows

    def _check_later(self, part: slice, block: Block, found: Sequence[tuple[Layout, Rows, torch.Tensor]]) -> None:
        """Copy to the host what tells whether a chunk is finite, and look at that of an earlier one.

        It is copied beside the work, so that checking it later waits for this chunk alone and the device never runs
        dry.
        """
        cuda, values = self._device.type == "cuda", []
        for number, (layout, rows, terms) in enumerate(found):
            # Sorted values carry anything that is not finite at their ends.
            ends = rows[:, :: max(1, rows.shape[1] - 1)]
            if number in self._by_class:
                edges = layout.classes.edges
                ends = torch.cat([rows[:, edges[:-1]], rows[:, edges[1:] - 1]], dim=1)
            sizes, ends = (
                torch.empty_like(one, device="cpu", pin_memory=cuda).copy_(one, non_blocking=True)
                for one in (torch.linalg.vector_norm(terms, math.inf, dim=1), ends)
            )
            values.append((layout, sizes, ends))
        copied = torch.cuda.Event() if cuda else None  # type: ignore[no-untyped-call]
        if copied is not None:
            copied.record(torch.cuda.current_stream(self._device))
        self._unchecked.append((part.start, block, values, copied))
        if len(self._unchecked) > _AHEAD:
            self._check_next()

    def _check_next(self) -> None:
        """Wait for the first chunk that is not checked, and refuse what is not finite."""
        start, block, values, copied = self._unchecked.popleft()
        if copied is not None:
            copied.synchronize()
        for layout, sizes, ends in values:
            name, terms_fit = layout.data.name, sizes.numpy() < LARGEST_TERM  # NaN is not smaller than anything
            rows_fit = np.isfinite(ends.numpy()).all(axis=1)
            if not terms_fit.all():
                line = int(np.argmin(terms_fit))
                one = Uploaded.of(block.part(slice(line, line + 1)), self._device)
                largest = float(self._project(layout, one)[1].abs().max())
                raise describe_bad_term(name, largest, block.terms, line, start + line)
            if not rows_fit.all():
                raise describe_overflow(name, start + int(np.argmin(rows_fit)))

    def _project(self, layout: Layout, uploaded: Uploaded) -> tuple[Rows, Rows]:
        """Projections (B, n) of grouped points by the directions of features, and by those of labels."""
        data, maps = layout.data, uploaded.maps
        if layout.points is not None:
            projected = [project(layout.points, layout.kept) for project in maps]
            return projected[0], projected[-1]
        projected = [torch.empty((len(uploaded.block), data.n_points), device=self._device) for _ in maps]
        for part in verbs.cut_rows(data):
            points = scale_points(data, part, layout.scaler, self._device)
            at = part if layout.position is None else layout.position[part]
            for rows, project in zip(projected, maps, strict=True):
                rows[:, at] = project(points, {})
        return projected[0], projected[-1]


def _find_first(projections: Projections, chunk: int | None) -> int:
    """How many projections come first: few, to begin soon, unless they are cut out of a large rotation."""
    rotation = projections.rotation_size
    usual = _FIRST_CHUNK if rotation is None or rotation <= _LARGE_ROTATION else rotation  # most of its work is shared
    return usual if chunk is None else min(usual, chunk)


def _cut_projections(count: int, first: int, most: int) -> list[slice]:
    """Cut this many projections into parts, each twice as large as the one before, up to a size."""
    parts, size = [slice(0, min(first, count))], first
    while parts[-1].stop < count:
        size = min(2 * size, max(most, first))
        parts.append(slice(parts[-1].stop, min(count, parts[-1].stop + size)))
    return parts


# ------------------------------------------------------------------ points on the device


def scale_points(data: LabelledData, block: slice, scaler: Scaler | None, device: torch.device) -> torch.Tensor:
    """Some points (m, d) on the device, float32, scaled in float64."""
    if isinstance(data.features, DeviceFeatures):
        raw: torch.Tensor = data.features.tensor[block].reshape(-1, data.n_features).to(device)
    else:
        raw = torch.from_numpy(np.require(data.rows(block), requirements=("C", "W"))).to(device)
    if scaler is None:
        return raw.to(torch.float32)
    centre, inverse = _copy_scaler(scaler, device)
    if scaler.arcsinh:
        return ((raw - centre) * inverse).asinh_().to(torch.float32)
    # Both steps are in float64.
    return torch.mul(raw - centre, inverse, out=torch.empty(raw.shape, device=device))


def _copy_scaler(scaler: Scaler, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Centre and inverse scale (d,) on the device, in one copy."""
    both = copy_array(np.stack([scaler.centre, scaler.inverse]), np.float64, device)
    return both[0], both[1]


def lay_out(datasets: Sequence[LabelledData], scaler: Scaler | None, device: torch.device) -> list[Layout]:
    """The datasets' classes on the device, and their points too where all of them fit, those of twins once."""
    sizes = {id(data.features): data.n_points * data.n_features for data in datasets}
    needed = sum(sizes.values())
    stays = device.type == "cuda" and 3 * 4 * needed <= _RESIDENT_SHARE * free_bytes(device)
    layouts: list[Layout] = []
    for data in datasets:
        # The same points in the same classes, or in one class, whose points are in any order.
        twins = (one for one in layouts if one.data.features is data.features)
        twin = next((one for one in twins if one.data.codes is data.codes or len(data.classes) == 1), None)
        layouts.append(_lay_one_out(data, scaler, device, stays, twin))
    return layouts


def _lay_one_out(
    data: LabelledData, scaler: Scaler | None, device: torch.device, stays: bool, twin: Layout | None
) -> Layout:
    offsets = data.offsets
    classes = Classes(offsets, copy_array(offsets, np.int64, device))
    if twin is not None:
        return replace(twin, data=data, classes=classes, kept={})
    position = None
    if (data.codes[1:] < data.codes[:-1]).any():  # not class by class
        order = torch.argsort(copy_array(data.codes, np.int64, device), stable=True)
        position = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=device))
    points = None
    if stays:
        try:
            points = torch.empty((data.n_points, data.n_features), device=device)
            raw = data.features.tensor if isinstance(data.features, DeviceFeatures) else None
            linear = scaler if scaler is not None and not scaler.arcsinh else None
            if raw is not None and linear is not None and raw.device == device and fused.available(raw):
                raw = raw.reshape(points.shape).contiguous()
                centre, inverse = _copy_scaler(linear, device)
                fused.scale_points(raw, position, centre, inverse, points)
                return Layout(data, classes, position, points, scaler)
            for block in verbs.cut_rows(data):
                at = block if position is None else position[block]
                points[at] = scale_points(data, block, scaler, device)
        except torch.OutOfMemoryError:
            points = None
            torch.cuda.empty_cache()
    return Layout(data, classes, position, points, scaler)


def find_point_norms(layout: Layout, device: torch.device) -> torch.Tensor:
    """Means over the scaled points of a dataset, (4 + d,) in float64, as `Slices` has them; kept for the next chunk."""
    if "point norms" not in layout.kept:
        counts, parts = layout.classes.edges.diff(), []
        if layout.points is not None and fused.available(layout.points) and len(layout.data.feature_parts()) == 1:
            by_class, squares = fused.sum_points(layout.points, layout.classes.edges)
            parts.append(by_class)
        else:
            squares = torch.zeros(layout.data.n_points, dtype=torch.float64, device=device)
            parts = [_sum_classes(layout, part, squares, device) for part in layout.data.feature_parts()]
        between = torch.stack([(part.square().sum(dim=1) / counts).sum() for part in parts]).sum()
        lengths = torch.stack([squares.sum(), squares.square().sum(), squares.pow(3).sum(), between])
        total = torch.cat([part.sum(dim=0) for part in parts])
        layout.kept["point norms"] = torch.cat([lengths, total]) / layout.data.n_points
    return layout.kept["point norms"]


def _sum_classes(layout: Layout, part: slice, squares: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Sums (C, …) of some features over each class; with the first ones, squared lengths of points are written too."""
    data = layout.data
    by_class = torch.zeros((len(data.classes), part.stop - part.start), dtype=torch.float64, device=device)
    for block in verbs.cut_rows(data):
        if layout.points is None:
            points = scale_points(data, block, layout.scaler, device).double()
            codes = copy_array(data.codes[block], np.int64, device)
        else:
            points, codes = layout.points[block].double(), layout.classes.codes[block]
        by_class.index_add_(0, codes, points[:, part])
        if part.start == 0:
            squares[block] = points.square_().sum(dim=1)
    return by_class


# ------------------------------------------------------------------ memory


def free_bytes(device: torch.device) -> int:
    """Memory that a chunk may take, what torch holds without using it included."""
    if device.type != "cuda":
        return _HOST_BYTES
    free, _ = torch.cuda.mem_get_info(device)
    held = torch.cuda.memory_stats_as_nested_dict(device)  # asked for once: the flat one takes half a millisecond
    reserved, used = (held[f"{kind}_bytes"]["all"]["current"] for kind in ("reserved", "allocated"))
    return int(free + reserved - used)


def fit_chunk(datasets: Sequence[LabelledData], projections: Projections, device: torch.device) -> int:
    """How many projections of all datasets fit in memory at a time: a multiple of 64, or a power of two."""
    sizes = [data.n_points for data in datasets] or [1]
    per_projection = 4 * sum(sizes) + (_WORK_BYTES + 4 * (projections.n_directions - 1)) * max(sizes)
    fitting = int(_CHUNK_SHARE * free_bytes(device)) // per_projection
    rotation_size = projections.rotation_size
    if rotation_size is not None:  # projections of a rotation share most of their work
        largest = max(_LARGEST_CHUNK, rotation_size)
        return min(largest, 1 << max(BLOCK, fitting).bit_length() - 1)
    fitting = min(fitting, _DRAWN_BYTES // (_DRAWN_AHEAD * 4 * projections.n_directions * projections.n_features))
    return max(1, min(_LARGEST_CHUNK, fitting) // BLOCK) * BLOCK


def halve(size: int, error: torch.OutOfMemoryError) -> int:
    """Half as many rows, after memory ran out; a single one that does not fit is torch's own error."""
    if size <= 1:
        raise error
    torch.cuda.empty_cache()
    return size // 2
