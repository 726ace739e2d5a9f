"""Pooled datasets dealt out to two sides, many times, from feature projections that are made already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise as neighbours

import numpy as np
from numpy.typing import NDArray

from sotdd.engines.cpu.verbs import Rows, class_terms, sort_rows
from sotdd.engines.cpu.workers import Workers
from sotdd.engines.splits import NORMAL_DEVIATION, Side, Ways
from sotdd.kernels import rows as kernels
from sotdd.kernels.rows import Overlaps, transport_rows
from sotdd.projections.directions import Directions, Drawn
from sotdd.projections.draws import Block
from sotdd.projections.labels import LabelTerms

# Values of a side that a thread works on at a time: with their copies, a second-level cache's worth.
_ITEM_VALUES = 1 << 17


@dataclass(frozen=True, eq=False)
class FeatureProjections:
    """Datasets through some projections, before class terms are known: points in their own order."""

    block: Block
    rows: list[Rows]  # (B, n) of each dataset
    label_rows: list[Rows] | None  # the same for labels, where they have projections of their own

    def pool(self, members: Sequence[int]) -> Pool:
        """The points of some of the datasets together."""
        label_rows = None
        if self.label_rows is not None and self.block.label_features is not None:
            label_rows = _joined(self.label_rows, members, self.block.label_features)
        return Pool(_joined(self.rows, members, self.block.features), label_rows, self.block.terms)


@dataclass(frozen=True, eq=False)
class Pool:
    """The points of several datasets, one dataset after another, before class terms are added."""

    rows: Rows  # (B, N)
    label_rows: Rows | None  # (B, N)
    terms: LabelTerms
    shifts: NDArray[np.float64] | None = None  # (B, C) how far each class is shifted, if not by its term

    def shifted(self, shifts: NDArray[np.float64]) -> Pool:
        """The same points, each at t + the shift (B, C) of its class, whatever the label terms say."""
        return replace(self, shifts=shifts)

    def values(self) -> Rows:
        """The projections (B, N), points in their own order."""
        return self.rows

    def within(self, deviations: float) -> Pool:
        """The same points, those farther from the median than this many deviations brought that near."""
        middle = np.median(self.rows, axis=1, keepdims=True)
        deviation = np.median(np.abs(self.rows - middle), axis=1, keepdims=True) * NORMAL_DEVIATION
        reach = np.where(deviation > 0, deviations * deviation, np.inf)
        return replace(self, rows=np.clip(self.rows, middle - reach, middle + reach).astype(np.float32))

    def part(self, rows: slice) -> Pool:
        """Some of the projections."""
        label_rows = None if self.label_rows is None else self.label_rows[rows]
        shifts = None if self.shifts is None else self.shifts[rows]
        return Pool(self.rows[rows], label_rows, self.terms.part(rows), shifts)


def _joined(rows: list[Rows], members: Sequence[int], drawn: Drawn) -> Rows:
    together = np.concatenate([rows[member] for member in members], axis=1)
    if isinstance(drawn, Directions) and drawn.clamp is not None:
        kernels.clamp_rows(together, drawn.clamp)
    return together


def split_costs(pool: Pool, splits: Ways, orders: Sequence[float], workers: Workers) -> NDArray[np.float64]:
    """W_p^p (B, S, orders) between the two sides of every split, for each order p.

    Threads take a split each, or a share of its rows where there are few splits, and draw it
    themselves, so that no more splits are held than threads are at work.
    """
    n, m = splits.sizes
    overlaps = None if n == m else Overlaps.of(n, m)
    costs = np.empty((len(pool.rows), len(splits), len(orders)))

    def work(item: tuple[int, slice]) -> None:
        number, share = item
        left, right = splits.draw(number)
        size = max(1, _ITEM_VALUES // (n + m))
        for start, stop in neighbours([*range(share.start, share.stop, size), share.stop]):
            part = slice(start, stop)
            a, b = (_sorted_side(pool, part, side) for side in (left, right))
            for column, p in enumerate(orders):
                costs[part, number, column] = transport_rows(a, b, p, overlaps)

    shares = _shares(len(pool.rows), -(-2 * workers.count // len(splits)))
    workers.each(work, [(number, share) for number in range(len(splits)) for share in shares])
    return costs


def _sorted_side(pool: Pool, part: slice, side: Side) -> Rows:
    """Sorted data point projections of the points of one side."""
    rows = _taken(pool.rows[part], side.index)
    if pool.shifts is not None:
        weights, shifts = np.ones(len(rows)), np.ascontiguousarray(pool.shifts[part][:, side.classes])
    else:
        terms = pool.terms.part(part)
        by_labels = rows if pool.label_rows is None else _taken(pool.label_rows[part], side.index)
        weights, shifts = terms.weights, class_terms(by_labels, side.offsets, terms)
    kernels.shift_rows(rows, side.offsets, weights, shifts)
    sort_rows(rows)
    return rows


def _taken(rows: Rows, index: NDArray[np.int64]) -> Rows:
    taken = np.empty((len(rows), len(index)), np.float32)
    kernels.take_columns(rows, index, taken)
    return taken


def _shares(count: int, wanted: int) -> list[slice]:
    """Cut ``count`` rows into about ``wanted`` shares."""
    size = -(-count // min(wanted, count))
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
