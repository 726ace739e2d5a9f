"""The engine for processors: NumPy's matrix product, compiled loops, all cores.

Work goes through a chunk of projections at a time. Within a chunk, blocks of points are
projected side by side on all threads, then rows (one projection of one dataset each) are
shifted by their class terms and sorted side by side. So nothing of size projections × points
is ever held beyond one chunk, and any number of cores finds work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.threads import Workers
from sotdd.compute.cpu.draws import Draws
from sotdd.compute.cpu.rows import (
    ITEM_VALUES,
    SHARES,
    Doubles,
    Layout,
    PointSums,
    Rows,
    find_class_terms,
    fit_chunk,
    lay_out,
    limit_shares,
    project,
    scale_rows,
    share_points,
    sort_classes,
    sort_rows,
)
from sotdd.compute.cpu.splits import split_costs
from sotdd.compute.engine import (
    Pool,
    Projected,
    Seen,
    Sorted,
    describe_overflow,
    refuse_bad_terms,
)
from sotdd.compute.kernels import moments as moment_kernels
from sotdd.compute.kernels import rows as kernels
from sotdd.compute.kernels.quantiles import part_means
from sotdd.compute.resampling import NORMAL_DEVIATION, Marks, Plan
from sotdd.inputs.data import cut_range
from sotdd.projections.directions import Directions, Drawn
from sotdd.projections.draws import Block
from sotdd.projections.moments import LabelTerms, Polynomials
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scaler

_Item = TypeVar("_Item")


# Rows are finished in about this many pieces per thread, of no more than so many values.
_ITEMS, _MOST_VALUES = 4, 1 << 20
# So many classes of so few points each take less time by their polynomials than by powers that nobody else needs.
_MANY_CLASSES, _FEW_POINTS = 256, 64


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
        self._chunk = chunk
        self.workers: Workers = Workers(threads)

    def __enter__(self) -> CpuEngine:
        """Start the threads."""
        self.workers.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop the threads and leave the process's thread settings as they were."""
        self.workers.__exit__(*error)

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
        """See every dataset through one chunk of projections after another.

        With ``moments`` those of classes are taken. Before each chunk is handed out, ``before_sorting`` is called with
        its feature projections. Without ``sort`` nothing else is made. Rows stay valid until the next chunk, and
        feature projections until the call returns.
        """
        tile, chunk = fit_chunk(datasets, projections, self._chunk)
        layouts = lay_out(datasets, chunk, projections.n_directions, moments)
        count = projections.n_projections
        parts = [slice(start, min(start + chunk, count)) for start in range(0, count, chunk)]
        drawn, means = Draws(self.workers, projections, draws), list[Doubles]()
        for start, block in drawn.follow(parts, ahead=2):  # the next beside this chunk's work
            here = slice(start, start + len(block))
            rows = [layout.rows[:, : len(block)] for layout in layouts]
            means += self._project(layouts, rows, block, projections.scaler, tile, moments and not means)
            if before_sorting is not None:
                before_sorting(Projected(self, here, block, rows))
            yield self._sort(layouts, here, block, means) if sort else Sorted(here, [], block, [], [], [], [])

    def transports(self, rows: Sequence[Rows], pairs: Sequence[tuple[int, int]], p: float) -> Doubles:
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
            parts = _cut_rows(count, n_points, self._size_item(count * n_points, _MOST_VALUES))
            self.workers.each(lambda part: work(0, part, steps), parts)
        return costs.T

    def quantiles(self, rows: Rows, edges: Doubles) -> Rows:
        """Means (B, Q) of each sorted row over parts of probability with these edges (Q + 1,)."""
        out = np.empty((len(rows), len(edges) - 1), np.float32)
        places, parts = np.arange(rows.shape[1] + 1) / rows.shape[1], _cut_rows(len(rows), rows.shape[1])
        self.workers.each(lambda part: part_means(rows[part], places, edges, out[part]), parts)
        return out

    def each(self, function: Callable[[_Item], None], items: Sequence[_Item]) -> None:
        """Do one piece of work per item: side by side as long as there is one for every thread, then on all of them."""
        together = len(items) - len(items) % self.workers.count
        self.workers.each(function, items[:together])
        list(map(function, items[together:]))

    def split_costs(self, pool: Pool, plan: Plan, marks: Marks) -> Doubles:
        """W_p^p (B, S, orders) between the two sides of some splits of a plan, class terms and all."""
        return split_costs(pool, plan, marks, self.workers)

    def join_points(self, rows: Sequence[Rows]) -> Rows:
        """The points of several datasets one after another."""
        out = np.empty((len(rows[0]), sum(part.shape[1] for part in rows)), np.float32)
        parts = _cut_rows(*out.shape)
        self.workers.each(lambda part: np.concatenate([one[part] for one in rows], axis=1, out=out[part]), parts)
        return out

    def take_points(self, rows: Rows, index: NDArray[np.integer]) -> Rows:
        """Some of the points."""
        return np.take(rows, index, axis=1)

    def bring_near(self, rows: Rows, deviations: float) -> Rows:
        """Points farther from the median than this many deviations brought that near."""

        def work(part: slice) -> Rows:
            some = rows[part]
            middle = np.median(some, axis=1, keepdims=True)
            deviation = np.median(np.abs(some - middle), axis=1, keepdims=True) * NORMAL_DEVIATION
            reach = np.where(deviation > 0, deviations * deviation, np.inf)
            return np.clip(some, middle - reach, middle + reach).astype(np.float32)

        return np.concatenate(self.workers.each(work, _cut_rows(*rows.shape)))

    def fetch_rows(self, rows: Rows) -> Rows:
        """Rows of this engine as an array."""
        return rows

    def ends(self, rows: Rows) -> Doubles:
        """The smallest and the largest value (B, 2) of each sorted row."""
        return rows[:, [0, -1]].astype(np.float64)

    def collect(self, parts: Sequence[Doubles]) -> Doubles:
        """Put what ``transport`` or ``ends`` gave for one chunk after another together."""
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _sort(self, layouts: list[Layout], here: slice, block: Block, means: list[Doubles]) -> Sorted:
        """Turn feature projections of every dataset into sorted data point projections."""
        further = block.further
        terms = [np.empty((len(block), len(layout.offsets) - 1)) for layout in layouts]
        counts = [len(block) if layout.moments else 0 for layout in layouts]
        places = [np.empty((count, further.shape[2], 2)) for count in counts]
        controls = [np.empty((count, 5)) for count in counts]
        values = self._size_item(len(block) * sum(layout.data.n_points for layout in layouts), ITEM_VALUES)
        parts = [
            (layout, part, [found[part] for found in made])
            for layout, *made in zip(layouts, terms, places, controls, strict=True)
            for part in _cut_rows(len(block), layout.data.n_points, min(values, _MOST_VALUES))
        ]
        self.workers.each(lambda item: _finish(*item, block, further, here.start), parts)
        rows = [layout.rows[0, : len(block)] for layout in layouts]
        for layout, seen, found in zip(layouts, rows, terms, strict=True):
            _refuse_lost_rows(layout, seen, found, block.terms, here.start)
        controlled = [[one for one in found if len(one)] for found in (places, controls)]
        return Sorted(here, rows, block, terms, controlled[0], controlled[1], means)

    def _size_item(self, total: int, least: int) -> int:
        """How much of some work a thread takes at a time: each comes back for more a few times."""
        return max(least, -(-total // (_ITEMS * self.workers.count)))

    def _project(
        self, layouts: list[Layout], rows: list[Rows], block: Block, scaler: Scaler | None, tile: int, summed: bool
    ) -> list[Doubles]:
        """Fill the rows of every dataset with projections by all directions, in the order of its points.

        Where they are to be ``summed``, returns the means of points that `Sorted` has.
        """
        directions, shares = [_make_plain(drawn) for drawn in block.directions], _list_shares(layouts, summed)

        def work(share: _Share) -> PointSums | None:
            number, blocks, projected, summed = share
            data = layouts[number].data
            spare = np.empty((blocks[0].stop - blocks[0].start, data.n_features), np.float32)
            sums = PointSums(data) if summed else None
            for some in blocks:
                points = scale_rows(data.rows(some), scaler, data.name, spare)
                for drawn, out in zip(directions, rows[number], strict=True) if projected else ():
                    project(points, drawn, tile, out, some)
                if sums is not None:
                    sums.add(points, some)
            return sums

        made = [(share[0], sums) for share, sums in zip(shares, self.workers.each(work, shares), strict=True) if sums]
        for layout, own in zip(layouts, rows, strict=True):
            if layout.twin is not None:
                own[...] = rows[layout.twin]
        return [PointSums.join([sums for _, sums in own]) for _, own in groupby(made, key=itemgetter(0))]


# ------------------------------------------------------------------ the verbs, on what one thread takes


def _make_plain(drawn: Drawn) -> Drawn:
    """Directions as products take them."""
    if not isinstance(drawn, Directions):
        return drawn
    with np.errstate(over="ignore"):  # found, and explained, where rows are checked
        return Directions(np.ascontiguousarray(drawn.theta, np.float32), drawn.clamp)


# Some points of a dataset: its number, blocks of them, whether they are projected, and whether they are summed.
_Share: TypeAlias = tuple[int, list[slice], bool, bool]


def _list_shares(layouts: Sequence[Layout], summed: bool) -> list[_Share]:
    """What threads take to project all points, and to sum those that have moments: both at once where that fits."""
    shares: list[_Share] = []
    for number, layout in enumerate(layouts):
        data, sums = layout.data, summed and layout.moments
        together = sums and layout.twin is None and limit_shares(data) == SHARES
        if layout.twin is None:
            shares += [(number, blocks, True, together) for blocks in share_points(data)]
        if sums and not together:
            shares += [(number, blocks, False, True) for blocks in share_points(data, limit_shares(data))]
    return shares


def _cut_rows(count: int, n_points: int, values: int = ITEM_VALUES) -> list[slice]:
    """Cut ``count`` rows of ``n_points`` values into parts that a thread takes at a time."""
    return cut_range(count, -(-count // -(-count * n_points // values)))  # all of about the same size


def _finish(layout: Layout, part: slice, made: list[Doubles], block: Block, further: Doubles, start: int) -> None:
    """Turn some rows of feature projections into sorted data point projections, and write the class terms.

    Polynomials are done in two calls of compiled loops: a thread waits for the interpreter after each.
    """
    rows, label_rows, (terms, places, values), drawn = layout.rows[0, part], layout.rows[-1, part], made, block.terms
    n, many, own = rows.shape[1], terms.shape[1] >= _MANY_CLASSES and not layout.moments, len(layout.rows) > 1
    fused = isinstance(drawn, Polynomials) and not own and not (many and n <= _FEW_POINTS * terms.shape[1])
    spare = [np.empty(size) for size in (n, 90, 15, 9 * moment_kernels.ROOM)]
    moment_kernels.group_rows(
        rows, layout.order, layout.offsets.view(np.uint64), drawn.limit, further[part], drawn.weights[part],
        drawn.coefficients[part], rows, places.reshape(-1), values, terms if fused else terms[:, :0],
        np.empty(n, np.float32), *spare,
    )  # fmt: skip
    if not fused:
        drawn = drawn.part(part)
        if own:
            label_rows[...] = label_rows[:, layout.order]
        terms[...] = find_class_terms(label_rows, layout.offsets, drawn)
        refuse_bad_terms(layout.data.name, label_rows, terms, drawn, start + part.start)
        kernels.shift_rows(rows, layout.offsets, drawn.weights, terms)
    if layout.by_class:
        sort_classes(rows, layout.offsets)
    else:
        sort_rows(rows)


def _refuse_lost_rows(layout: Layout, rows: Rows, terms: Doubles, drawn: LabelTerms, start: int) -> None:
    """Refuse rows, now sorted, that are not finite; sorted values carry that at their ends."""
    refuse_bad_terms(layout.data.name, rows, terms, drawn, start)
    edges = layout.offsets if layout.by_class else layout.offsets[[0, -1]]
    finite = np.isfinite(rows[:, [*edges[:-1], *(edges[1:] - 1)]])
    if not finite.all():
        raise describe_overflow(layout.data.name, start + int(np.argmin(finite.all(axis=1))))
