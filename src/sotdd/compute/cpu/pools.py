"""Pooled points, and what the two sides of every way to split them cost, from feature projections that are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise as neighbours

import numpy as np
from numpy.typing import NDArray

from sotdd.compute.cpu.rows import Rows, find_class_terms, sort_rows
from sotdd.compute.cpu.workers import Workers
from sotdd.compute.kernels import rows as kernels
from sotdd.compute.kernels.rows import Overlaps, transport_rows
from sotdd.compute.resampling import NORMAL_DEVIATION, Plan, Pooling, PoolKey, Side
from sotdd.projections.directions import Directions, Drawn
from sotdd.projections.draws import Block
from sotdd.projections.labels import LabelTerms

# Values of a side that a thread works on at a time: with their copies, a second-level cache's worth.
_ITEM_VALUES = 1 << 17


@dataclass(frozen=True, eq=False)
class ProjectedRows(Pooling["PooledRows"]):
    """Datasets through some projections, before class terms are known: points in their own order."""

    part: slice
    block: Block
    rows: list[Rows]  # (B, n) of each dataset
    label_rows: list[Rows] | None  # the same for labels, where they have projections of their own
    pools: dict[PoolKey, PooledRows] = field(default_factory=dict)  # those that were asked for

    def join_points(self, members: Sequence[int], part: slice) -> PooledRows:
        """The points of some datasets together, under some projections."""
        label_rows = None
        if self.label_rows is not None and self.block.label_features is not None:
            label_rows = _join_rows([self.label_rows[one][part] for one in members], self.block.label_features)
        rows = _join_rows([self.rows[one][part] for one in members], self.block.features)
        return PooledRows(rows, label_rows, self.block.terms.part(part))


@dataclass(frozen=True, eq=False)
class PooledRows:
    """The points of several datasets, one dataset after another, before class terms are added."""

    rows: Rows  # (B, N)
    label_rows: Rows | None  # (B, N)
    terms: LabelTerms

    def values(self) -> Rows:
        """The projections (B, N), points in their own order."""
        return self.rows

    def label_values(self) -> Rows:
        """The projections made for labels, where they have their own."""
        assert self.label_rows is not None
        return self.label_rows

    def within(self, deviations: float) -> PooledRows:
        """The same points, those farther from the median than this many deviations brought that near."""
        middle = np.median(self.rows, axis=1, keepdims=True)
        deviation = np.median(np.abs(self.rows - middle), axis=1, keepdims=True) * NORMAL_DEVIATION
        reach = np.where(deviation > 0, deviations * deviation, np.inf)
        return replace(self, rows=np.clip(self.rows, middle - reach, middle + reach).astype(np.float32))

    def take(self, index: NDArray[np.integer]) -> PooledRows:
        """Some of the points."""
        label_rows = None if self.label_rows is None else np.take(self.label_rows, index, axis=1)
        return replace(self, rows=np.take(self.rows, index, axis=1), label_rows=label_rows)

    def part(self, rows: slice) -> PooledRows:
        """Some of the projections."""
        label_rows = None if self.label_rows is None else self.label_rows[rows]
        return PooledRows(self.rows[rows], label_rows, self.terms.part(rows))


def _join_rows(rows: list[Rows], drawn: Drawn) -> Rows:
    together = np.concatenate(rows, axis=1)
    if isinstance(drawn, Directions) and drawn.clamp is not None:
        kernels.clamp_rows(together, drawn.clamp)
    return together


def split_costs(pool: PooledRows, plan: Plan, numbers: range, workers: Workers) -> NDArray[np.float64]:
    """W_p^p (B, S, orders) between the two sides of some ways of a plan, for each of its orders p.

    Threads take a split each, or a share of its rows where there are few splits, and draw it
    themselves, so that no more splits are held than threads are at work.
    """
    n, m = plan.sizes
    overlaps = None if n == m else Overlaps.of(n, m)
    costs = np.empty((len(pool.rows), len(numbers), len(plan.orders)))

    def work(item: tuple[int, slice]) -> None:
        at, share = item
        left, right = plan.draw(numbers[at])
        size = max(1, _ITEM_VALUES // (n + m))
        for start, stop in neighbours([*range(share.start, share.stop, size), share.stop]):
            part = slice(start, stop)
            a, b = (_sort_side(pool, part, side, labels=plan.labels) for side in (left, right))
            for column, p in enumerate(plan.orders):
                costs[part, at, column] = transport_rows(a, b, p, overlaps)

    shares = _cut_rows(len(pool.rows), -(-2 * workers.count // len(numbers)))
    workers.each(work, [(at, share) for at in range(len(numbers)) for share in shares])
    return costs


def _sort_side(pool: PooledRows, part: slice, side: Side, *, labels: bool) -> Rows:
    """Sorted data point projections of the points of one side, or feature projections where labels do not count."""
    rows = _take_columns(pool.rows[part], side.index)
    if labels:
        terms = pool.terms.part(part)
        by_labels = rows if pool.label_rows is None else _take_columns(pool.label_rows[part], side.index)
        kernels.shift_rows(rows, side.offsets, terms.weights, find_class_terms(by_labels, side.offsets, terms))
    sort_rows(rows)
    return rows


def _take_columns(rows: Rows, index: NDArray[np.int64]) -> Rows:
    taken = np.empty((len(rows), len(index)), np.float32)
    kernels.take_columns(rows, index, taken)
    return taken


def _cut_rows(count: int, wanted: int) -> list[slice]:
    """Cut ``count`` rows into about ``wanted`` shares."""
    size = -(-count // min(wanted, count))
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
