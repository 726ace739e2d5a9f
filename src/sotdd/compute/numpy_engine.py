"""The definition: every step of Algorithm 1 in plain NumPy, slow and clear, which the other engines are tested against.

Rows are (B, n), one per projection and a value per point. Sums are in float64, and rows are kept in float32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sotdd.compute.class_moments import EVEN, combine_classes
from sotdd.compute.engine import Engine, LoadedData, refuse_bad_terms
from sotdd.compute.resampling import Marks, Plan, Side
from sotdd.compute.slices import ProjectedPoints, Slices
from sotdd.inputs.data import LabelledData, cut_range
from sotdd.projections.labels import LabelTerms, find_class_terms
from sotdd.projections.maps import BLOCK, ORDERS, Block, DirectionMap, describe_overflow

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Indices = NDArray[np.int64]

_CHUNK = 2 * BLOCK  # projections at a time
# What overflows is found, and explained, once rows are sorted or costs are collected.
_quiet = np.errstate(over="ignore", invalid="ignore")


class NumpyData(LoadedData):
    """Scaled points of all datasets, for one pass."""

    def prepare(self) -> list[slice]:
        """Scale the points of all datasets."""
        scaler, points = (
            self._projections.scaler,
            [data.rows(slice(None)).astype(np.float64) for data in self._datasets],
        )
        self._points = points if scaler is None else [scaler.apply(x) for x in points]
        return cut_range(self._projections.n_projections, _CHUNK)

    def project(self, block: Block) -> Iterator[tuple[Block, list[tuple[Floats, Floats]]]]:
        """FP_θ(x) and FP_φ(x) of every point."""
        projected = [[project_points(x, drawn) for drawn in block.directions] for x in self._points]
        yield block, [(ways[0], ways[-1]) for ways in projected]

    @_quiet
    def sort(self, part: slice, block: Block, projected: list[tuple[Floats, Floats]]) -> Slices:
        """Add class terms to projected points (equation 9) and sort them."""
        sorted_rows, all_terms, moments, norms = [], [], list[tuple[Doubles, Doubles]](), []
        for number, (data, rows) in enumerate(zip(self._datasets, projected, strict=True)):
            t, of_labels = (one[:, data.group()] for one in rows)  # class by class
            terms, by_class = class_terms(of_labels, data.offsets, block.terms), number in self._by_class
            refuse_bad_terms(data.name, of_labels, terms, block.terms, part.start)
            edges = data.offsets if by_class else data.offsets[[0, -1]]
            sorted_rows.append(add_terms(t, terms, data.offsets, block.terms.weights, edges))
            all_terms.append(terms)
            finite = np.isfinite(sorted_rows[-1]).all(axis=1)
            if not finite.all():
                raise describe_overflow(data.name, part.start + int(np.argmin(finite)))
            if self._has_moments and not by_class:
                moments.append(find_moments(t, data, block))
                norms.append(find_norms(self._points[number], data))
        gaussian, directions = ([both[which] for both in moments] for which in (0, 1))
        return Slices(self._engine, part, block, sorted_rows, all_terms, gaussian, directions, norms)


class NumpyEngine(Engine):
    """Projects, shifts, sorts and transports in NumPy, for the time of a ``with`` block."""

    loaded = NumpyData

    def __init__(self) -> None:
        super().__init__(threads=1)

    @_quiet
    def transport(self, rows: Sequence[Floats], pairs: Sequence[tuple[int, int]], p: float) -> Doubles:
        """W_p^p (B, P) between the sorted rows of every pair of datasets."""
        return np.stack([transport_rows(rows[i], rows[j], p) for i, j in pairs], axis=1)

    def average_parts(self, rows: Floats, edges: Doubles) -> Floats:
        """Means (B, Q) of sorted rows over parts of probability with these edges (Q + 1,)."""
        n, wide = rows.shape[1], rows.astype(np.float64)
        integrals = [np.interp(edges, np.arange(n + 1) / n, np.cumsum([0, *row]) / n) for row in wide]
        return (np.diff(integrals, axis=1) / np.diff(edges)).astype(np.float32)

    @_quiet
    def split_costs(self, points: ProjectedPoints, plan: Plan, marks: Marks) -> Doubles:
        """W_p^p (B, S, orders) between the two sides of some splits of a plan, with class terms of each side's own."""
        costs = np.empty((len(points.weights), len(marks), len(plan.orders)))
        for number, marked in enumerate(marks):
            a, b = (_sort_side(points, side, plan.labels) for side in plan.list_sides(marked))
            for column, p in enumerate(plan.orders):
                costs[:, number, column] = transport_rows(a, b, p)
        return costs


# ------------------------------------------------------------------ the definition


@_quiet
def project_points(x: Doubles, drawn: DirectionMap) -> Floats:
    """FP_θ(x) (B, n) of points (n, d): θ·x, or whatever map was sampled."""
    if drawn.matrix is None:
        return drawn(x)
    t = drawn.matrix.astype(np.float64) @ x.T
    return (t if drawn.clamp is None else np.clip(t, -drawn.clamp, drawn.clamp)).astype(np.float32)


def class_terms(t: Floats, offsets: Indices, terms: LabelTerms) -> Doubles:
    """Σ_i ψ⁽ⁱ⁺¹⁾ MTP_λ⁽ⁱ⁾,φ(q_c) (B, C) of every class c, from FP_φ(x) (B, n) class by class (equation 8).

    The sum over moments is one polynomial, whose mean over the class is its term; other laws may have other terms.
    """
    edges = list(pairwise(offsets.tolist()))
    if terms.additive:
        values = terms.evaluate(t)
        return np.stack([values[:, first:last].mean(axis=1) for first, last in edges], axis=1)
    if not terms.binned:
        return find_class_terms(t, offsets, terms)
    found, levels = np.empty((len(t), len(edges))), terms.coefficients.shape[1]
    for number, (first, last) in enumerate(edges):  # means over equal bins: every point K times, then cut in K
        members = np.sort(t[:, first:last], axis=1).astype(np.float64)
        bins = np.repeat(members, levels, axis=1).reshape(len(t), levels, -1).mean(axis=2)
        found[:, number] = np.einsum("bk,bk->b", bins, terms.coefficients)
    return found


def add_terms(t: Floats, terms: Doubles, offsets: Indices, weights: Doubles, edges: Indices) -> Floats:
    """DP = ψ⁽¹⁾ FP_θ(x) + the term of its class, in ascending order between edges (equation 9)."""
    rows = (weights[:, None] * t + np.repeat(terms, np.diff(offsets), axis=1)).astype(np.float32)
    return np.concatenate([np.sort(rows[:, first:last], axis=1) for first, last in pairwise(edges.tolist())], axis=1)


def transport_rows(a: Floats, b: Floats, p: float) -> Doubles:
    """W_p^p (B,) between sorted rows (B, n) and (B, m): the integral of |F⁻¹ - G⁻¹|^p over [0, 1] (equation 3)."""
    n, m = a.shape[1], b.shape[1]  # steps of width 1/n and 1/m, which begin at whole multiples of 1/(n m)
    ends = np.union1d(np.arange(1, n + 1) * m, np.arange(1, m + 1) * n)
    starts = np.concatenate([[0], ends[:-1]])
    gaps = np.abs(a[:, starts // m].astype(np.float64) - b[:, starts // n])
    return gaps**p @ ((ends - starts) / (n * m))  # type: ignore[no-any-return]


def _sort_side(points: ProjectedPoints, side: Side, labels: bool) -> Floats:
    """Sorted data point projections of the points of one side, or feature projections without labels."""
    t, of_labels = (rows[:, side.index] for rows in (points.fetch(), points.fetch_label_rows()))
    if not labels:
        return np.sort(t, axis=1)
    terms = class_terms(of_labels, side.offsets, points.terms)
    return add_terms(t, terms, side.offsets, points.terms.weights, side.offsets[[0, -1]])


# ------------------------------------------------------------------ moments, for control variates


def find_moments(t: Floats, data: LabelledData, block: Block) -> tuple[Doubles, Doubles]:
    """The Gaussian moments and direction moments of a dataset, as `Slices` has them, from t = FP_θ(x) by class."""
    wide, cut = t.astype(np.float64), np.clip(t, -block.terms.limit, block.terms.limit).astype(np.float64)
    powers = [wide, *(cut**k / math.factorial(k) for k in range(1, ORDERS + 1))]
    classes = pairwise(data.offsets.tolist())
    sums = np.stack([[power[:, first:last].sum(axis=1) for power in powers] for first, last in classes])  # (C, 9, B)
    even = np.stack([(wide**k).sum(axis=1) for k in EVEN], axis=1)
    return combine_classes(sums.transpose(2, 0, 1), even, data.counts, block.further)


def find_norms(x: Doubles, data: LabelledData) -> Doubles:
    """The point norms (4 + d,) of a dataset, as `Slices` has them."""
    squares = (x**2).sum(axis=1)
    means = np.stack([x[data.codes == code].mean(axis=0) for code in range(len(data.classes))])
    between = [data.counts / data.n_points @ (means**2).sum(axis=1)]
    return np.concatenate([[np.mean(squares**k) for k in (1, 2, 3)], between, x.mean(axis=0)])
