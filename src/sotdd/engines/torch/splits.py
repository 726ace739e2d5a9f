"""Pooled datasets dealt out to two sides on a torch device: the twin of ``cpu/splits.py``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray

from sotdd.engines.splits import NORMAL_DEVIATION, Side, Ways
from sotdd.engines.torch import fused, verbs
from sotdd.engines.torch.upload import copied
from sotdd.engines.torch.verbs import Layout, Rows
from sotdd.projections.labels import LabelTerms

# Values of splits that are worked on at a time.
_VALUES = 1 << 26


@dataclass(frozen=True, eq=False)
class FeatureProjections:
    """Datasets through some projections, before class terms are known: points grouped by class."""

    terms: LabelTerms
    weights: torch.Tensor  # (B,)
    coefficients: torch.Tensor | None  # (B, D + 1), None for summaries
    layouts: list[Layout]
    rows: list[Rows] = field(default_factory=list)  # (B, n) of each dataset
    label_rows: list[Rows] = field(default_factory=list)  # the same for labels with projections of their own

    def pool(self, members: Sequence[int]) -> Pool:
        """The points of some of the datasets together."""
        layouts = [self.layouts[member] for member in members]
        starts = np.cumsum([0, *(layout.data.n_points for layout in layouts)])
        columns = [
            start + (np.arange(layout.data.n_points) if layout.grouped_at is None else layout.grouped_at)
            for start, layout in zip(starts, layouts, strict=False)
        ]
        rows, label_rows = (
            torch.cat([parts[member] for member in members], dim=1) if parts else None
            for parts in (self.rows, self.label_rows)
        )
        assert rows is not None
        columns_of_points = np.concatenate(columns).astype(np.int64)
        return Pool(layouts[0], columns_of_points, rows, label_rows, self.terms, self.weights, self.coefficients)


@dataclass(frozen=True, eq=False)
class Pool:
    """The points of several datasets, one dataset after another, before class terms are added."""

    layout: Layout  # of one of the datasets
    columns: NDArray[np.int64]  # (N,) where each point is in a row, points in their own order
    rows: Rows  # (B, N)
    label_rows: Rows | None  # (B, N)
    terms: LabelTerms
    weights: torch.Tensor
    coefficients: torch.Tensor | None
    shifts: torch.Tensor | None = None  # (B, C) how far each class is shifted, if not by its term

    def shifted(self, shifts: NDArray[np.float64]) -> Pool:
        """The same points, each at t + the shift (B, C) of its class, whatever the label terms say."""
        on_device = torch.from_numpy(shifts).to(self.rows.device)
        return replace(self, shifts=on_device, weights=torch.ones_like(self.weights))

    def values(self) -> NDArray[np.float32]:
        """The projections (B, N), points in their own order, on the host."""
        return self.rows.cpu().numpy()[:, self.columns]

    def within(self, deviations: float) -> Pool:
        """The same points, those farther from the median than this many deviations brought that near."""
        middle = torch.quantile(self.rows, 0.5, dim=1, keepdim=True)
        deviation = torch.quantile((self.rows - middle).abs(), 0.5, dim=1, keepdim=True) * NORMAL_DEVIATION
        reach = torch.where(deviation > 0, deviations * deviation, torch.inf)
        return replace(self, rows=torch.clamp(self.rows, middle - reach, middle + reach))

    def part(self, rows: slice) -> Pool:
        """Some consecutive projections."""
        return Pool(
            self.layout,
            self.columns,
            self.rows[rows],
            None if self.label_rows is None else self.label_rows[rows],
            self.terms.part(rows),
            self.weights[rows],
            None if self.coefficients is None else self.coefficients[rows],
            None if self.shifts is None else self.shifts[rows],
        )


def split_costs(pool: Pool, splits: Ways, orders: Sequence[float], steps: fused.Steps | None) -> torch.Tensor:
    """W_p^p (B, S, orders) between the two sides of every split, for each order p."""
    costs = []
    together = max(1, _VALUES // (len(pool.rows) * sum(splits.sizes)))
    for start in range(0, len(splits), together):
        drawn = [splits.draw(number) for number in range(start, min(start + together, len(splits)))]
        a, b = (_sorted_sides(pool, sides) for sides in zip(*drawn, strict=True))  # (B · S, n) and (B · S, m)
        found = torch.stack([verbs.transport_rows(a, b, p, steps) for p in orders], dim=1)
        costs.append(found.view(len(pool.rows), len(drawn), len(orders)))
    return torch.cat(costs, dim=1)


def _sorted_sides(pool: Pool, sides: Sequence[Side]) -> Rows:
    """Sorted data point projections (B · S, n) of the points of some sides, each of n points.

    All sides are one row for the time of the work, in which the classes of each side are classes of their own.
    """
    device, count, n = pool.rows.device, len(sides), len(sides[0].index)
    starts = np.cumsum([0, *(side.offsets[-1] for side in sides)])
    offsets = np.concatenate([[0], *(side.offsets[1:] + start for side, start in zip(sides, starts, strict=False))])
    chosen = np.concatenate([pool.columns[side.index] for side in sides])
    parts = [offsets, chosen, *([] if pool.shifts is None else [np.concatenate([side.classes for side in sides])])]
    sizes = [len(part) for part in parts]
    edges, index, *classes = torch.split(copied(np.concatenate(parts), np.int64, device), sizes)
    codes = torch.repeat_interleave(edges.diff(), output_size=len(index)).int()
    layout = Layout(pool.layout.data, offsets, edges, codes, None, None, None, None)
    rows = pool.rows.index_select(1, index)
    if pool.shifts is not None:
        terms = pool.shifts[:, classes[0]].contiguous()
    else:
        by_labels = rows if pool.label_rows is None else pool.label_rows.index_select(1, index)
        terms = verbs.class_terms(by_labels, layout, pool.terms, pool.coefficients)
        del by_labels
    verbs.shift_rows(rows, codes, pool.weights, terms)
    return verbs.sort(rows.view(len(rows) * count, n))
