"""Datasets as the torch engine holds them for one pass, and what it does with a chunk of projections.

A dataset is scaled, grouped by class and kept on the device where it fits; otherwise its blocks
of rows stream through for every chunk of projections. Chunks are as large as free memory allows;
when memory runs out all the same, the chunk is halved and the work goes on.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from sotdd.compute.engine import LARGEST_TERM, LoadedData, Sampler, describe_bad_term
from sotdd.compute.slices import Slices
from sotdd.compute.torch import rows as verbs
from sotdd.compute.torch.rows import Layout, Rows
from sotdd.compute.torch.upload import (
    DRAWN_AHEAD,
    Uploaded,
    find_point_norms,
    fit_chunk,
    halve,
    scale_points,
)
from sotdd.inputs.data import LabelledData
from sotdd.projections.blocks import BLOCK, Block
from sotdd.projections.recipe import Projections
from sotdd.projections.terms import describe_overflow

if TYPE_CHECKING:
    from sotdd.compute.torch.engine import TorchEngine

# Few, so that work begins soon; but a thousand keep the device busy for as long as Python takes to ask for them.
_FIRST_CHUNK = 16 * BLOCK
_LARGE_ROTATION = 64 * BLOCK
# Chunks that may be begun before the first of them is checked.
_AHEAD = 3


class _Checks:
    """What must be checked of a chunk that was begun on the device.

    It is copied to the host beside the work, so that checking it later waits for this chunk alone and the device
    never runs dry.
    """

    def __init__(self, part: slice, block: Block, found: Sequence[tuple[Layout, torch.Tensor, torch.Tensor]]) -> None:
        self._start, self._block, device = part.start, block, found[0][1].device
        self._layouts, self._found = [layout for layout, _, _ in found], []
        for _, *values in found:
            host = [torch.empty_like(one, device="cpu", pin_memory=device.type == "cuda") for one in values]
            self._found.append([copy.copy_(one, non_blocking=True) for copy, one in zip(host, values, strict=True)])
        self._copied = torch.cuda.Event() if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        if self._copied is not None:
            self._copied.record(torch.cuda.current_stream(device))

    def finish(self, loaded: TorchData) -> None:
        """Wait for this chunk, and refuse what is not finite."""
        if self._copied is not None:
            self._copied.synchronize()
        for layout, (sizes, ends) in zip(self._layouts, self._found, strict=True):
            terms_fit = sizes.numpy() < LARGEST_TERM  # NaN is not smaller than anything
            rows_fit = np.isfinite(ends.numpy()).all(axis=1)
            if not terms_fit.all():
                line = int(np.argmin(terms_fit))
                largest = loaded.find_largest(layout, self._block.part(slice(line, line + 1)))
                raise describe_bad_term(layout.data.name, largest, self._block.terms, line, self._start + line)
            if not rows_fit.all():
                raise describe_overflow(layout.data.name, self._start + int(np.argmin(rows_fit)))


class TorchData(LoadedData):
    """Datasets on a device, or on their way to it."""

    @torch.no_grad()
    def __init__(
        self,
        engine: TorchEngine,
        datasets: Sequence[LabelledData],
        projections: Projections,
        n_label_samples: int | None,
        by_class: Collection[int],
    ) -> None:
        self._engine, self._device, self._by_class = engine, engine.device, by_class
        self._moments = n_label_samples is not None
        self._sampler = Sampler(engine.workers, projections, n_label_samples or 0)
        first = _find_first(projections, engine.chunk)
        self._sampler.begin(slice(0, min(first, projections.n_projections)))  # while points go to the device
        self._layouts = engine.lay_out(datasets, projections.scaler)
        chunk = engine.chunk or fit_chunk(datasets, projections, engine.device)
        self._parts = _cut_projections(projections.n_projections, first, chunk)
        self._size = chunk  # what is worked on at a time: halved when memory runs out
        self._uploaded: Uploaded | None = None
        self._unchecked: deque[_Checks] = deque()

    def sample(self) -> Iterator[Block]:
        """Sample a chunk of projections, some chunks ahead."""
        return self._sampler.follow(self._parts, DRAWN_AHEAD)

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
                self._size = halve(self._size, self._device, error)
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
            if self._moments and not by_class:
                moments.append(verbs.combine_classes(rows, classes.edges, block.terms.limit, uploaded.draws))
            terms = verbs.find_class_terms(label_rows, classes, uploaded.terms)
            del label_rows
            verbs.shift_rows(rows, classes.codes, uploaded.terms.weights, terms)
            found.append((layout, self._sort_rows(rows, layout if by_class else None), terms))
        self._check_later(part, block, found)
        own = [layout for number, layout in enumerate(self._layouts) if number not in self._by_class]
        norms = [find_point_norms(layout, self._device) for layout in own] if self._moments else []
        gaussian, directions = ([both[which] for both in moments] for which in (0, 1))
        rows_and_terms = [rows for _, rows, _ in found], [terms for _, _, terms in found]
        return Slices(self._engine, part, block, *rows_and_terms, gaussian, directions, norms)

    def check(self) -> None:
        """Wait for all chunks, and refuse what is not finite."""
        while self._unchecked:
            self._unchecked.popleft().finish(self)

    def find_largest(self, layout: Layout, block: Block) -> float:
        """The largest value of a dataset that class terms are made of, to explain terms that cannot be used."""
        return float(self._project(layout, Uploaded.of(block, self._device))[1].abs().max())

    def _sort_rows(self, rows: Rows, by_class: Layout | None) -> Rows:
        """Sort rows, each class on its own if classes are given; in halves where memory runs out."""
        try:
            return verbs.sort(rows) if by_class is None else verbs.sort_classes(rows, by_class.classes)
        except torch.OutOfMemoryError as error:
            middle = halve(len(rows), self._device, error)
            self._size = min(self._size, middle)
            for half in (slice(0, middle), slice(middle, None)):
                rows[half] = self._sort_rows(rows[half], by_class)
            return rows

    def _check_later(self, part: slice, block: Block, found: Sequence[tuple[Layout, Rows, torch.Tensor]]) -> None:
        """Copy to the host what tells whether a chunk is finite, and look at that of an earlier one."""
        values = []
        for number, (layout, rows, terms) in enumerate(found):
            # Sorted values carry anything that is not finite at their ends.
            ends = rows[:, :: max(1, rows.shape[1] - 1)]
            if number in self._by_class:
                edges = layout.classes.edges
                ends = torch.cat([rows[:, edges[:-1]], rows[:, edges[1:] - 1]], dim=1)
            values.append((layout, torch.linalg.vector_norm(terms, math.inf, dim=1), ends))
        self._unchecked.append(_Checks(part, block, values))
        if len(self._unchecked) > _AHEAD:
            self._unchecked.popleft().finish(self)

    def _project(self, layout: Layout, uploaded: Uploaded) -> tuple[Rows, Rows]:
        """Projections (B, n) of grouped points by the directions of features, and by those of labels."""
        data, maps = layout.data, uploaded.directions
        if layout.points is not None:
            projected = [one.project(layout.points, layout.kept) for one in maps]
            return projected[0], projected[-1]
        projected = [torch.empty((len(uploaded.block), data.n_points), device=self._device) for _ in maps]
        for part in verbs.cut_rows(data):
            points = scale_points(data, part, layout.scaling, self._device)
            at = part if layout.position is None else layout.position[part]
            for rows, one in zip(projected, maps, strict=True):
                rows[:, at] = one.project(points, {})
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
