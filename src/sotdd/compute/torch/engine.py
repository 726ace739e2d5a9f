"""The engine for torch devices: the twin of ``cpu/engine.py``, with the same verbs.

A dataset is scaled, grouped by class and kept on the device where it fits; otherwise its blocks
of rows stream through for every chunk of projections. Chunks are as large as free memory allows;
when memory runs out all the same, the chunk is halved and the work goes on.

Importing this module imports torch.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from sotdd.basics.threads import Workers
from sotdd.compute.cpu.draws import Draws
from sotdd.compute.engine import (
    LARGEST_TERM,
    Pool,
    Projected,
    Seen,
    Sorted,
    describe_bad_term,
    describe_overflow,
)
from sotdd.compute.resampling import NORMAL_DEVIATION, Marks, Plan
from sotdd.compute.torch import fused
from sotdd.compute.torch import rows as verbs
from sotdd.compute.torch.rows import Layout, Rows, copy_array
from sotdd.compute.torch.upload import (
    DRAWN_AHEAD,
    Uploaded,
    find_means,
    fit_chunk,
    give_back,
    lay_out,
    scale_points,
    stretch_points,
)
from sotdd.projections.directions import Directions
from sotdd.projections.draws import BLOCK, Block
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scaler

_Item = TypeVar("_Item")

# Few, so that work begins soon; but a thousand keep the device busy for as long as Python takes to ask for them.
_FIRST_CHUNK = 16 * BLOCK
_LARGE_TURN = 64 * BLOCK
# Bytes that are copied to the host faster through pinned memory; less of it is not worth holding on to.
_WORTH_PINNING = 1 << 20
# Chunks that may be begun before the first of them is checked.
_AHEAD = 3
# Threads that draw, this one among them: turns, turns with further draws of the label law, and directions themselves.
# More would keep the interpreter from feeding the device.
_DRAWING = 2, 3, 6


@dataclass(frozen=True, eq=False)
class SortedRows:
    """One dataset through some projections, perhaps still at work on the device."""

    layout: Layout
    rows: Rows  # (B, n) sorted
    terms: torch.Tensor  # (B, C) the term of each class
    largest: torch.Tensor  # (B,) the largest size of a class term
    ends: torch.Tensor  # (B, …) values that carry whatever is not finite
    controls: tuple[torch.Tensor, ...]  # its places and values, where they are asked for


class _Checks:
    """What must be checked of a chunk that was begun on the device.

    It is copied to the host beside the work, so that checking it later waits for this chunk alone and the device
    never runs dry.
    """

    def __init__(self, part: slice, block: Block, datasets: Sequence[SortedRows]) -> None:
        self._start, self._block, device = part.start, block, datasets[0].rows.device
        self._layouts, self._seen = [seen.layout for seen in datasets], []
        for seen in datasets:
            found = seen.largest, seen.ends
            host = [torch.empty_like(one, device="cpu", pin_memory=device.type == "cuda") for one in found]
            self._seen.append([copy.copy_(one, non_blocking=True) for copy, one in zip(host, found, strict=True)])
        self._copied = torch.cuda.Event() if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        if self._copied is not None:
            self._copied.record(torch.cuda.current_stream(device))

    def finish(self, engine: TorchEngine) -> None:
        """Wait for this chunk, and refuse what is not finite."""
        if self._copied is not None:
            self._copied.synchronize()
        for layout, (sizes, ends) in zip(self._layouts, self._seen, strict=True):
            terms_fit = sizes.numpy() < LARGEST_TERM  # NaN is not smaller than anything
            rows_fit = np.isfinite(ends.numpy()).all(axis=1)
            if not terms_fit.all():
                line = int(np.argmin(terms_fit))
                largest = engine.find_largest(layout, self._block.part(slice(line, line + 1)))
                raise describe_bad_term(layout.data.name, largest, self._block.terms, line, self._start + line)
            if not rows_fit.all():
                raise describe_overflow(layout.data.name, self._start + int(np.argmin(rows_fit)))


class TorchEngine:
    """Projects, shifts, sorts and transports on a torch device, for the time of a ``with`` block.

    Parameters
    ----------
    device
        "cuda", "cuda:1", "cpu" or a torch device.
    chunk
        About how many projections are in memory at a time; by default what fits.
    """

    def __init__(self, device: str | torch.device = "cuda", chunk: int | None = None) -> None:
        self.device: torch.device = verbs.check_device(device)
        self._chunk = chunk
        self.workers: Workers = Workers()  # who draw: projections are drawn on the processor for every engine
        self._before, self._threads = "", 1
        self._kept: tuple[list[Seen], Scaler | None, list[Layout]] | None = None

    def __enter__(self) -> TorchEngine:
        """Start the threads that draw; make products in full float32."""
        self.workers.__enter__()
        self._threads = self.workers.count
        self._before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        return self

    def __exit__(self, *error: object) -> None:
        """Leave torch's settings as they were, and nothing on the device."""
        self._kept = None
        torch.set_float32_matmul_precision(self._before)
        self.workers.__exit__(*error)

    @torch.no_grad()
    def walk(
        self,
        datasets: Sequence[Seen],
        projections: Projections,
        *,
        moments: bool = False,
        draws: int = 0,
        before_sorting: Callable[[Projected], None] | None = None,
        sort: bool = True,
    ) -> Iterator[Sorted]:
        """See every dataset through one chunk of projections after another, as the processor's engine does."""
        self.workers.count = min(self._threads, _DRAWING[2 if projections.turn_size is None else draws > 0])
        coming, first = Draws(self.workers, projections, draws), _find_first(projections, self._chunk)
        coming.begin(slice(0, min(first, projections.n_projections)))  # while points go to the device
        layouts = self._lay_out(datasets, projections.scaler)
        chunk = self._chunk or fit_chunk(datasets, projections, self.device)
        parts = _cut_projections(projections.n_projections, first, chunk)
        size = chunk  # what is worked on at a time: halved when memory runs out
        unchecked: deque[_Checks] = deque()
        for start, block in coming.follow(parts, DRAWN_AHEAD):
            done = 0
            while done < len(block):
                part = block.part(slice(done, done + size))
                here = slice(start + done, start + done + len(part))
                try:
                    drawn = Uploaded.of(part, self.device)
                    seen = None if before_sorting is None else Projected(self, here, part, [])
                    found = [self._see(layout, drawn, moments, seen, sort) for layout in layouts]
                except torch.OutOfMemoryError as error:
                    size = _halve(size, self.device, error)
                    continue
                done += len(part)
                if before_sorting is not None and seen is not None:
                    before_sorting(seen)
                    del seen
                kept = [one for one in found if one is not None]
                means = [find_means(one.layout, self.device) for one in kept if one.controls]
                del found
                if kept:
                    unchecked.append(_Checks(here, part, kept))
                rows, terms = [one.rows for one in kept], [one.terms for one in kept]
                places, values = ([one.controls[which] for one in kept if one.controls] for which in range(2))
                del kept
                yield Sorted(here, rows, part, terms, places, values, means)
                del rows, terms, places, values
                if len(unchecked) > _AHEAD:
                    unchecked.popleft().finish(self)
        for checks in unchecked:
            checks.finish(self)

    @torch.no_grad()
    def transports(self, rows: Sequence[Rows], pairs: Sequence[tuple[int, int]], p: float) -> torch.Tensor:
        """W_p^p (B, P) of every pair of datasets."""
        try:
            if fused.available(rows[0]):
                return fused.transport(rows, pairs, p)
            return torch.stack([verbs.transport_rows(rows[i], rows[j], p) for i, j in pairs], dim=1)
        except torch.OutOfMemoryError as error:
            middle = _halve(len(rows[0]), self.device, error)
            halves = slice(0, middle), slice(middle, None)
            return torch.cat([self.transports([part[half] for part in rows], pairs, p) for half in halves])

    @torch.no_grad()
    def quantiles(self, rows: Rows, edges: NDArray[np.float64]) -> NDArray[np.float32]:
        """Means (B, Q) of each sorted row over parts of probability with these edges (Q + 1,), on the host."""
        return verbs.part_means(rows, edges).cpu().numpy()

    @torch.no_grad()
    def each(self, function: Callable[[_Item], None], items: Sequence[_Item]) -> None:
        """Do one piece of work per item, one after another: each fills the device."""
        list(map(function, items))

    def split_costs(self, pool: Pool, plan: Plan, marks: Marks) -> torch.Tensor:
        """W_p^p (B, S, orders) between the two sides of some splits of a plan, class terms and all."""
        try:
            return verbs.split_costs(pool, plan, marks)
        except torch.OutOfMemoryError as error:
            middle = _halve(len(pool.rows), self.device, error)
            halves = slice(0, middle), slice(middle, None)
            return torch.cat([self.split_costs(pool.part(half), plan, marks) for half in halves])

    def join_points(self, rows: Sequence[Rows]) -> Rows:
        """The points of several datasets one after another."""
        return torch.cat(list(rows), dim=1)

    def take_points(self, rows: Rows, index: NDArray[np.integer]) -> Rows:
        """Some of the points."""
        return rows.index_select(1, copy_array(index, np.int64, self.device))

    def bring_near(self, rows: Rows, deviations: float) -> Rows:
        """Points farther from the median than this many deviations brought that near."""
        middle = torch.quantile(rows, 0.5, dim=1, keepdim=True)
        deviation = torch.quantile((rows - middle).abs(), 0.5, dim=1, keepdim=True) * NORMAL_DEVIATION
        reach = torch.where(deviation > 0, deviations * deviation, torch.inf)
        return torch.clamp(rows, middle - reach, middle + reach)

    def fetch_rows(self, rows: Rows) -> NDArray[np.float32]:
        """Rows of this engine as an array on the host."""
        return rows.cpu().numpy()

    def ends(self, rows: Rows) -> torch.Tensor:
        """The smallest and the largest value (B, 2) of each sorted row."""
        return torch.stack([rows[:, 0], rows[:, -1]], dim=1).double()

    def collect(self, parts: Sequence[torch.Tensor]) -> NDArray[np.float64]:
        """Bring what ``transport`` or ``ends`` gave for one chunk after another to the host."""
        values = torch.cat(list(parts))
        large = values.is_cuda and values.nbytes >= _WORTH_PINNING
        host = torch.empty_like(values, device="cpu", pin_memory=large)
        found: NDArray[np.float64] = host.copy_(values).numpy()
        return found

    def _lay_out(self, datasets: Sequence[Seen], scaler: Scaler | None) -> list[Layout]:
        """The datasets on the device, kept for the next time they are asked for."""
        if self._kept is not None:
            before, scale, layouts = self._kept
            same = len(before) == len(datasets) and all(a is b for a, b in zip(before, datasets, strict=True))
            if same and scale is scaler:
                return layouts
        self._kept = None  # what they take is free for the next
        layouts = lay_out(datasets, scaler, self.device)
        self._kept = list(datasets), scaler, layouts
        return layouts

    # ------------------------------------------------------------------ one chunk

    def _see(
        self, layout: Layout, drawn: Uploaded, moments: bool, seen: Projected | None, sort: bool
    ) -> SortedRows | None:
        """Begin to project one dataset, and to sort it; the device works on while the next is prepared."""
        projected, at = self._project(layout, drawn), layout.position
        rows, label_rows = projected[0], projected[-1]
        if seen is not None:
            seen.rows.append([some.clone() if at is None else some.index_select(1, at) for some in projected])
        if not sort:
            return None
        wanted = moments and not layout.by_class
        how = layout.classes.edges, drawn.block.terms.limit, drawn.draws
        controls = verbs.place_labels(rows, *how) if wanted else ()
        terms = verbs.find_class_terms(label_rows, layout.classes, drawn.terms)
        del projected, label_rows
        largest = torch.linalg.vector_norm(terms, math.inf, dim=1)
        verbs.shift_rows(rows, layout.classes.codes, drawn.terms.weights, terms)
        rows = verbs.sort_classes(rows, layout.classes) if layout.by_class else verbs.sort(rows)
        # Sorted values carry anything that is not finite at their ends.
        if layout.by_class:
            edges = layout.classes.edges
            ends = torch.cat([rows[:, edges[:-1]], rows[:, edges[1:] - 1]], dim=1)
        else:
            ends = rows[:, :: max(1, rows.shape[1] - 1)]
        return SortedRows(layout, rows, terms, largest, ends, controls)

    def find_largest(self, layout: Layout, block: Block) -> float:
        """The largest value of a dataset that class terms are made of, to explain terms that cannot be used."""
        return float(self._project(layout, Uploaded.of(block, self.device))[-1].abs().max())

    def _project(self, layout: Layout, drawn: Uploaded) -> list[Rows]:
        """Projections (B, n) of grouped points by each of the directions."""
        data, ways = layout.data, list(zip(drawn.block.directions, drawn.along, strict=True))
        if layout.points is not None:
            projected = [
                verbs.project(stretch_points(layout.points, directions, layout.kept), along, directions)
                for directions, along in ways
            ]
        else:
            projected = [torch.empty((len(drawn.block), data.n_points), device=self.device) for _ in ways]
            for part in verbs.cut_rows(data):
                points = scale_points(data, part, layout.scaling, self.device)
                at = part if layout.position is None else layout.position[part]
                for rows, (directions, along) in zip(projected, ways, strict=True):
                    rows[:, at] = verbs.project(stretch_points(points, directions, {}), along, directions)
        for rows, (directions, _) in zip(projected, ways, strict=True):
            if isinstance(directions, Directions) and directions.clamp is not None:
                rows.clamp_(-directions.clamp, directions.clamp)
        return projected


def _find_first(projections: Projections, chunk: int | None) -> int:
    """How many projections come first: few, to begin soon, unless they are cut out of a large turn."""
    turn = projections.turn_size
    usual = _FIRST_CHUNK if turn is None or turn <= _LARGE_TURN else turn  # to cut one would repeat most of its work
    return usual if chunk is None else min(usual, chunk)


def _cut_projections(count: int, first: int, most: int) -> list[slice]:
    """Cut this many projections into parts, each twice as large as the one before, up to a size."""
    parts, size = [slice(0, min(first, count))], first
    while parts[-1].stop < count:
        size = min(2 * size, max(most, first))
        parts.append(slice(parts[-1].stop, min(count, parts[-1].stop + size)))
    return parts


def _halve(size: int, device: torch.device, error: torch.OutOfMemoryError) -> int:
    """Half as many rows, after memory ran out; a single one that does not fit is torch's own error."""
    if size <= 1:
        raise error
    give_back(device)
    return size // 2
