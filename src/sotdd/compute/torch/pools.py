"""Pooled points and what the sides of their splits cost, on a torch device: the twin of ``cpu/pools.py``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray

from sotdd.compute.resampling import NORMAL_DEVIATION, Plan, Pooling, PoolKey, Side
from sotdd.compute.torch import fused
from sotdd.compute.torch import rows as verbs
from sotdd.compute.torch.rows import Layout, Rows, copy_array
from sotdd.compute.torch.upload import Uploaded
from sotdd.projections.draws import Block
from sotdd.projections.labels import LabelTerms

# Values of splits that are worked on at a time.
_VALUES = 1 << 26


@dataclass(frozen=True, eq=False)
class ProjectedRows(Pooling["PooledRows"]):
    """Datasets through some projections, before class terms are known: points grouped by class."""

    part: slice
    drawn: Uploaded
    layouts: list[Layout]
    rows: list[Rows] = field(default_factory=list)  # (B, n) of each dataset
    label_rows: list[Rows] = field(default_factory=list)  # the same for labels with projections of their own
    pools: dict[PoolKey, PooledRows] = field(default_factory=dict)  # those that were asked for

    @property
    def block(self) -> Block:
        """The projections as drawn."""
        return self.drawn.block

    def join_points(self, members: Sequence[int], part: slice) -> PooledRows:
        """The points of some datasets together, under some projections."""
        layouts = [self.layouts[member] for member in members]
        starts = np.cumsum([0, *(layout.data.n_points for layout in layouts)])
        columns = [
            start + (np.arange(layout.data.n_points) if layout.grouped_at is None else layout.grouped_at)
            for start, layout in zip(starts, layouts, strict=False)
        ]
        rows, label_rows = (
            torch.cat([parts[member][part] for member in members], dim=1) if parts else None
            for parts in (self.rows, self.label_rows)
        )
        assert rows is not None
        columns_of_points = np.concatenate(columns).astype(np.int64)
        terms, weights, coefficients = self.block.terms.part(part), self.drawn.weights[part], self.drawn.coefficients
        coefficients = None if coefficients is None else coefficients[part]
        return PooledRows(layouts[0], columns_of_points, rows, label_rows, terms, weights, coefficients)


@dataclass(frozen=True, eq=False)
class PooledRows:
    """The points of several datasets, one dataset after another, before class terms are added."""

    layout: Layout  # of one of the datasets
    columns: NDArray[np.int64]  # (N,) where each point is in a row, points in their own order
    rows: Rows  # (B, M)
    label_rows: Rows | None  # (B, M)
    terms: LabelTerms
    weights: torch.Tensor
    coefficients: torch.Tensor | None

    def values(self) -> NDArray[np.float32]:
        """The projections (B, N), points in their own order, on the host."""
        return np.ascontiguousarray(self.rows.cpu().numpy()[:, self.columns])

    def label_values(self) -> NDArray[np.float32]:
        """The projections made for labels, where they have their own."""
        assert self.label_rows is not None
        return np.ascontiguousarray(self.label_rows.cpu().numpy()[:, self.columns])

    def within(self, deviations: float) -> PooledRows:
        """The same points, those farther from the median than this many deviations brought that near."""
        middle = torch.quantile(self.rows, 0.5, dim=1, keepdim=True)
        deviation = torch.quantile((self.rows - middle).abs(), 0.5, dim=1, keepdim=True) * NORMAL_DEVIATION
        reach = torch.where(deviation > 0, deviations * deviation, torch.inf)
        return replace(self, rows=torch.clamp(self.rows, middle - reach, middle + reach))

    def take(self, index: NDArray[np.integer]) -> PooledRows:
        """Some of the points."""
        return replace(self, columns=self.columns[index])

    def part(self, rows: slice) -> PooledRows:
        """Some consecutive projections."""
        return replace(
            self,
            rows=self.rows[rows],
            label_rows=None if self.label_rows is None else self.label_rows[rows],
            terms=self.terms.part(rows),
            weights=self.weights[rows],
            coefficients=None if self.coefficients is None else self.coefficients[rows],
        )


def split_costs(pool: PooledRows, plan: Plan, numbers: range, steps: fused.Steps | None) -> torch.Tensor:
    """W_p^p (B, S, orders) between the two sides of some splits of a plan, for each of its orders p."""
    costs = []
    together = max(1, _VALUES // (len(pool.rows) * sum(plan.sizes)))
    for start in range(0, len(numbers), together):
        drawn = [plan.draw(number) for number in numbers[start : start + together]]
        a, b = (
            _sort_sides(pool, sides, labels=plan.labels) for sides in zip(*drawn, strict=True)
        )  # (B · S, n) and (B · S, m)
        found = torch.stack([verbs.transport_rows(a, b, p, steps) for p in plan.orders], dim=1)
        costs.append(found.view(len(pool.rows), len(drawn), len(plan.orders)))
    return torch.cat(costs, dim=1)


def _sort_sides(pool: PooledRows, sides: Sequence[Side], *, labels: bool) -> Rows:
    """Sorted data point projections (B · S, n) of the points of some sides, each of n points.

    All sides are one row for the time of the work, in which the classes of each side are classes of their own.
    """
    device, count, n = pool.rows.device, len(sides), len(sides[0].index)
    starts = np.cumsum([0, *(side.offsets[-1] for side in sides)])
    offsets = np.concatenate([[0], *(side.offsets[1:] + start for side, start in zip(sides, starts, strict=False))])
    chosen = np.concatenate([pool.columns[side.index] for side in sides])
    edges, index = torch.split(
        copy_array(np.concatenate([offsets, chosen]), np.int64, device), [len(offsets), len(chosen)]
    )
    rows = pool.rows.index_select(1, index)
    if labels:
        codes = torch.repeat_interleave(edges.diff(), output_size=len(index)).int()
        layout = Layout(pool.layout.data, offsets, edges, codes, None, None, None, None)
        by_labels = rows if pool.label_rows is None else pool.label_rows.index_select(1, index)
        terms = verbs.find_class_terms(by_labels, layout, pool.terms, pool.coefficients)
        del by_labels
        verbs.shift_rows(rows, codes, pool.weights, terms)
    return verbs.sort(rows.view(len(rows) * count, n))
