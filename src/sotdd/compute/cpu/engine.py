"""The engine for processors: NumPy's matrix product, compiled loops, all cores."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.resources import Workers
from sotdd.compute.cpu.loaded import CpuData
from sotdd.compute.cpu.rows import Doubles, Rows, cut_rows, size_item
from sotdd.compute.cpu.splits import split_costs
from sotdd.compute.kernels import rows as kernels
from sotdd.compute.kernels.quantiles import part_means
from sotdd.compute.resampling import NORMAL_DEVIATION, Marks, Plan
from sotdd.compute.slices import ProjectedPoints
from sotdd.inputs.data import LabelledData
from sotdd.projections.recipe import Projections

_Item = TypeVar("_Item")

# A thread takes no fewer values of two rows than this at a time.
_MOST_VALUES = 1 << 20


class CpuEngine:
    """Projects, shifts, sorts and transports on all cores, for the time of a ``with`` block.

    Parameters
    ----------
    threads
        How many; by default as many as BLAS may use.
    chunk
        About how many projections are in memory at a time, a multiple of 64; by default 512, or
        fewer where that would take more than 256 MB. Results do not depend on either, bit for bit.
    """

    def __init__(self, threads: int | None = None, chunk: int | None = None) -> None:
        self.chunk: int | None = chunk
        self.workers: Workers = Workers(threads)

    def __enter__(self) -> CpuEngine:
        """Start the threads."""
        self.workers.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop the threads and leave the process's thread settings as they were."""
        self.workers.__exit__(*error)

    def load(
        self,
        datasets: Sequence[LabelledData],
        projections: Projections,
        *,
        n_label_samples: int | None = None,
        by_class: Collection[int] = (),
    ) -> CpuData:
        """Make room for a chunk of projections of all datasets."""
        return CpuData(self, datasets, projections, n_label_samples, by_class)

    def transport(self, rows: Sequence[Rows], pairs: Sequence[tuple[int, int]], p: float) -> Doubles:
        """W_p^p (B, P) of every pair of datasets: threads take a pair each, or some rows where there is one pair."""
        count, sizes = len(rows[0]), [part.shape[1] for part in rows]
        costs = np.empty((len(pairs), count))

        def align(number: int) -> kernels.Overlaps | None:
            n, m = (sizes[side] for side in pairs[number])
            return None if n == m else kernels.Overlaps.of(n, m)

        def work(number: int, part: slice, overlaps: kernels.Overlaps | None) -> None:
            i, j = pairs[number]
            kernels.transport_rows(rows[i][part], rows[j][part], p, overlaps, costs[number, part])

        if len(pairs) > 1:
            self.workers.each(lambda number: work(number, slice(None), align(number)), range(len(pairs)))
        else:
            steps, n_points = align(0), sum(sizes[side] for side in pairs[0])
            parts = cut_rows(count, n_points, size_item(count * n_points, _MOST_VALUES, self.workers))
            self.workers.each(lambda part: work(0, part, steps), parts)
        return costs.T

    def average_parts(self, rows: Rows, edges: Doubles) -> Rows:
        """Means (B, Q) of each sorted row over parts of probability with these edges (Q + 1,)."""
        out = np.empty((len(rows), len(edges) - 1), np.float32)
        places, parts = np.arange(rows.shape[1] + 1) / rows.shape[1], cut_rows(len(rows), rows.shape[1])
        self.workers.each(lambda part: part_means(rows[part], places, edges, out[part]), parts)
        return out

    def each(self, function: Callable[[_Item], None], items: Sequence[_Item]) -> None:
        """Do one piece of work per item: side by side as long as there is one for every thread, then on all of them."""
        together = len(items) - len(items) % self.workers.count
        self.workers.each(function, items[:together])
        list(map(function, items[together:]))

    def split_costs(self, points: ProjectedPoints, plan: Plan, marks: Marks) -> Doubles:
        """W_p^p (B, S, orders) between the two sides of some splits of a plan, class terms and all."""
        return split_costs(points, plan, marks, self.workers)

    def join_points(self, rows: Sequence[Rows]) -> Rows:
        """The points of several datasets one after another."""
        out = np.empty((len(rows[0]), sum(part.shape[1] for part in rows)), np.float32)
        parts = cut_rows(*out.shape)
        self.workers.each(lambda part: np.concatenate([one[part] for one in rows], axis=1, out=out[part]), parts)
        return out

    def take_points(self, rows: Rows, index: NDArray[np.integer]) -> Rows:
        """Some of the points."""
        return np.take(rows, index, axis=1)

    def clip_outliers(self, rows: Rows, deviations: float) -> Rows:
        """Points with those farther from the median than this many deviations brought that near."""

        def work(part: slice) -> Rows:
            some = rows[part]
            middle = np.median(some, axis=1, keepdims=True)
            deviation = np.median(np.abs(some - middle), axis=1, keepdims=True) * NORMAL_DEVIATION
            reach = np.where(deviation > 0, deviations * deviation, np.inf)
            return np.clip(some, middle - reach, middle + reach).astype(np.float32)

        return np.concatenate(self.workers.each(work, cut_rows(*rows.shape)))

    def fetch_rows(self, rows: Rows) -> Rows:
        """Rows of this engine as an array."""
        return rows

    def find_ranges(self, rows: Rows) -> Doubles:
        """The smallest and the largest value (B, 2) of each sorted row."""
        return rows[:, [0, -1]].astype(np.float64)

    def collect(self, parts: Sequence[Doubles]) -> Doubles:
        """Put values of one chunk after another together."""
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
