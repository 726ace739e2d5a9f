"""Algorithm 1 of the paper: sample projections, project points, add class terms, sort, transport.

Everything that is computed on points is this one loop, which callers pull chunks of projections from. `numpy_engine`
has each step in a few lines of NumPy; the other engines do the same faster.

In the paper's words, a point x of class y goes to (equations 8 and 9)

    DP(x, q_y) = ψ⁽¹⁾ FP_θ(x) + Σ_i ψ⁽ⁱ⁺¹⁾ MTP_λ⁽ⁱ⁾,φ(q_y),    MTP_λ,φ(q_y) = mean over the class of FP_φ(x)^λ / λ!

and the distance to the power p is the mean over projections of W_p^p between the points of both datasets
(equations 10 and 11). The sum over moments is one polynomial in FP_φ(x), whose mean over a class is its term;
with Algorithm 1, φ = θ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.resources import Report, kept_property
from sotdd.compute.class_moments import LABEL_SAMPLES, find_controlled
from sotdd.inputs.data import LabelledData
from sotdd.projections.labels import LabelTerms
from sotdd.projections.maps import Block
from sotdd.projections.projections import Projections

if TYPE_CHECKING:
    from sotdd.compute.engine import Engine, LoadedData, Rows, Values


@dataclass(frozen=True, eq=False)
class ProjectedPoints:
    """Projected points of one dataset, or of several pooled, before class terms are added.

    Attributes
    ----------
    engine
        The engine whose rows these are.
    part
        Which projections.
    terms
        How labels enter.
    weights
        (B,) the weight of each projection in a mean.
    rows
        (B, N) FP_θ of every point, one dataset after another, points in their own order.
    label_rows
        (B, N) FP_φ, which class terms are computed from: the same rows where φ = θ.
    sizes
        How many points of each dataset there are.
    cells
        What an engine keeps of the points for every plan that it splits them by.
    """

    engine: Engine
    part: slice
    terms: LabelTerms
    weights: NDArray[np.float64]
    rows: Rows
    label_rows: Rows
    sizes: tuple[int, ...]
    cells: dict[object, Any] = field(default_factory=dict, init=False)

    @classmethod
    def pool(cls, parts: Sequence[ProjectedPoints]) -> ProjectedPoints:
        """Copy the points of several datasets."""
        first = parts[0]
        rows = label_rows = first.engine.join_points([one.rows for one in parts])
        if not first.shared:
            label_rows = first.engine.join_points([one.label_rows for one in parts])
        return replace(first, rows=rows, label_rows=label_rows, sizes=tuple(n for one in parts for n in one.sizes))

    @property
    def shared(self) -> bool:
        """Whether class terms are computed from feature projections, φ = θ."""
        return self.label_rows is self.rows

    def fetch(self) -> NDArray[np.float32]:
        """The feature projections (B, N) as an array."""
        return self.engine.fetch_rows(self.rows)

    def fetch_label_rows(self) -> NDArray[np.float32]:
        """The projections (B, N) that class terms are computed from, as an array."""
        return self.engine.fetch_rows(self.label_rows)

    @kept_property
    def ranked(self) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """The feature projections (B, N) in order, and which point each is of."""
        values = self.fetch()
        order = np.concatenate(self.engine.workers.each(lambda row: np.argsort(row)[None], values))
        return np.take_along_axis(values, order, axis=1), order.astype(np.int32)

    def along(self, some: slice) -> ProjectedPoints:
        """The same points along some of the projections."""
        first, stop, _ = some.indices(len(self.weights))
        part = slice(self.part.start + first, self.part.start + stop)
        cut = replace(self, part=part, terms=self.terms.part(some), weights=self.weights[some], rows=self.rows[some])
        return replace(cut, label_rows=cut.rows if self.shared else self.label_rows[some])

    def select(self, members: tuple[int, ...]) -> ProjectedPoints:
        """The points of some of the datasets."""
        if members == tuple(range(len(self.sizes))):
            return self
        edges = np.cumsum([0, *self.sizes]).tolist()
        chosen = [slice(edges[one], edges[one + 1]) for one in members]
        return self._change(
            lambda rows: self.engine.join_points([rows[:, columns] for columns in chosen]),
            tuple(self.sizes[one] for one in members),
        )

    def take(self, index: NDArray[np.integer]) -> ProjectedPoints:
        """Some of the points, as of one dataset."""
        return self._change(lambda rows: self.engine.take_points(rows, index), (len(index),))

    def clip_outliers(self, deviations: float) -> ProjectedPoints:
        """The same points, those farther from the median than this many deviations brought that near."""
        return self._change(lambda rows: self.engine.clip_outliers(rows, deviations), self.sizes)

    def _change(self, change: Any, sizes: tuple[int, ...]) -> ProjectedPoints:  # noqa: ANN401
        rows = change(self.rows)
        return replace(self, rows=rows, label_rows=rows if self.shared else change(self.label_rows), sizes=sizes)


@dataclass(frozen=True, eq=False)
class Slices:
    """All datasets along one chunk of projections; rows are valid until the next.

    Attributes
    ----------
    engine
        The engine whose rows and values these are.
    part, block
        Which projections, and the θ, φ, λ and ψ that were sampled.
    rows
        Of each dataset, DP of its points (B, n) in ascending order; or class after class, each in order.
    class_terms
        Of each dataset, the sum over moments (B, C) that every class adds to its points.
    gaussian_moments
        Of each dataset with class moments, mean and deviation of its points (B, 1 + J, 2), by the label terms and by J
        further samples of them.
    direction_moments
        Of the same, (B, 5): the mean of t = FP_θ, the mean square of its class means, and the means of t²/2!, t⁴/4!
        and t⁶/6!.
    point_norms
        Of the same, means over scaled points (4 + d,): of |x|², |x|⁴ and |x|⁶, of |m|² with m the mean of its class,
        and of x itself.
    points
        Copies of the points of all datasets before they were sorted, along as many projections as were requested.
    """

    engine: Engine
    part: slice
    block: Block
    rows: Sequence[Rows]
    class_terms: Sequence[Values]
    gaussian_moments: Sequence[Values] = ()
    direction_moments: Sequence[Values] = ()
    point_norms: Sequence[Values] = ()
    points: ProjectedPoints | None = None

    def transport(self, pairs: Sequence[tuple[int, int]], p: float) -> Values:
        """W_p^p (B, P) of pairs of datasets: the summands of equation 11."""
        return self.engine.transport(self.rows, pairs, p)


def slice_datasets(
    datasets: Sequence[LabelledData],
    projections: Projections,
    engine: Engine,
    *,
    class_moments: bool = False,
    unsorted: int = 0,
    by_class: Collection[int] = (),
    report: Report | None = None,
) -> Iterator[Slices]:
    """Project datasets to the line and sort them, a chunk of projections at a time.

    Parameters
    ----------
    datasets, projections, engine
        What is projected, by what, and who does it.
    class_moments
        Whether class moments are taken, as far as the laws of the projections have use for them.
    unsorted
        Of this many projections, the first ones, points are kept in their own order too.
    by_class
        The numbers of datasets of which each class is sorted on its own.
    report
        Is told how many projections are done, and how many there are.
    """
    n_label_samples = None
    if class_moments and any(controlled := find_controlled(projections)):
        n_label_samples = LABEL_SAMPLES if controlled[0] else 0
    loaded = engine.load(datasets, projections, n_label_samples=n_label_samples, by_class=by_class)
    for part, block, projected in _project(loaded):
        # The order of points is lost below.
        points = None
        if part.start < unsorted:
            points = ProjectedPoints.pool(_list_points(engine, loaded, part, block, projected, unsorted - part.start))
        # For every class Σ ψ MTP (equation 8), for every point DP (equation 9), and these in order (for equation 3).
        yield replace(loaded.sort(part, block, projected), points=points)
        if report is not None:
            report(part.stop, projections.n_projections)
    loaded.check()


def project_datasets(
    datasets: Sequence[LabelledData], projections: Projections, engine: Engine, most: int | None = None
) -> Iterator[list[ProjectedPoints]]:
    """Project datasets, and neither add class terms nor sort; rows are valid until the next chunk.

    Yields the points of each dataset, along all projections or the first ``most`` of them.
    """
    if most is not None and most < projections.n_projections:
        projections = replace(projections, n_projections=most)
    loaded = engine.load(datasets, projections)
    for part, block, projected in _project(loaded):
        yield _list_points(engine, loaded, part, block, projected)


def _project(loaded: LoadedData) -> Iterator[tuple[slice, Block, list[tuple[Rows, Rows]]]]:
    """The loop of Algorithm 1 up to its feature projections: which of the L, what was sampled, and all rows."""
    done = 0
    for chunk in loaded.sample():  # θ_l ~ U(S^(d-1)), λ_l ~ σ(Λ^k), ψ_l ~ U(S^k); φ_l = θ_l, or its own
        for block, projected in loaded.project(chunk):  # FP_θ(x_i) of all points, and FP_φ(x_i)
            yield slice(done, done + len(block)), block, projected
            done += len(block)


def _list_points(
    engine: Engine,
    loaded: LoadedData,
    part: slice,
    block: Block,
    projected: Sequence[tuple[Rows, Rows]],
    most: int | None = None,
) -> list[ProjectedPoints]:
    """The points of each dataset in their own order, along the first ``most`` of some projections."""
    part = slice(part.start, min(part.stop, part.start + (len(block) if most is None else most)))
    how = engine, part, block.terms.part(slice(most)), block.importance[:most]
    if most is not None and most < len(block):
        firsts = [(rows[:most], label_rows[:most], label_rows is rows) for rows, label_rows in projected]
        projected = [(rows, rows if shared else label_rows) for rows, label_rows, shared in firsts]
    return [ProjectedPoints(*how, *rows, (rows[0].shape[1],)) for rows in loaded.order_points(projected)]
