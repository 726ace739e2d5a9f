"""Points of a stream dealt to a few groups, so that its sketch knows how far apart halves of the points are.

Every point goes to one of eight groups at random. What the first projections make of it is counted by class and
group, and half of the groups against the other half is a halving. There are seven ways to choose half of eight groups
so that any two of them share just half of theirs, as rows of a Hadamard matrix do.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.streams import Stream, generator
from sotdd.engines.chance import apart_by_halves, seed_of
from sotdd.projections.draws import BLOCK
from sotdd.projections.moments import Polynomials
from sotdd.projections.recipe import Projections
from sotdd.results.noise import HALVING_PROJECTIONS
from sotdd.sketches.counting import BINS, Histograms, Portion, quantiles_of
from sotdd.sketches.levels import QUANTILES, Levels
from sotdd.sketches.uncertainty import HALVING_ORDERS, Halves

Doubles = NDArray[np.float64]

GROUPS = 8

# Halves differ by little everywhere, not by much somewhere, and that shows in a quarter of the usual bins.
GROUP_BINS = BINS // 4

# How much memory the counts of all classes and groups may take together. With more classes nothing is kept.
_MOST_BYTES = 128 << 20

assert HALVING_PROJECTIONS == BLOCK  # portions of the first block have all that is counted


class GroupCounts:
    """Counts of what the first projections make of the points of a stream, by class and group.

    Which group a point is dealt to depends on the projections and on how many points came before it in the same
    builder. So the halves of a sketch depend on how rows were batched, as no other number in it does.

    Attributes
    ----------
    histograms
        Of each class, one for each group.
    sums
        (G, B) of each class, the sums of its label polynomial.
    kept
        Whether label terms are sums over the same projections, and the classes fit.
    """

    def __init__(self, projections: Projections) -> None:
        self.projections = projections
        first = projections.draw(0, BLOCK)
        self.n_rows: int = len(first)
        self.kept: bool = isinstance(first.terms, Polynomials) and first.label_features is None
        self.histograms: dict[Hashable, list[Histograms]] = {}
        self.sums: dict[Hashable, Doubles] = {}
        self.n_dealt: int = 0

    def drop(self) -> None:
        """Keep nothing from here on."""
        self.kept, self.histograms, self.sums = False, {}, {}

    def expect(self, classes: Iterable[Hashable]) -> None:
        """Make room for these classes, before any of their points are counted."""
        new = [label for label in classes if label not in self.histograms] if self.kept else []
        for label in new:
            self.histograms[label] = [Histograms.empty(self.n_rows, GROUP_BINS) for _ in range(GROUPS)]
            self.sums[label] = np.zeros((GROUPS, self.n_rows))
            if sum(group[0].counts.nbytes for group in self.histograms.values()) * GROUPS > _MOST_BYTES:
                self.drop()
                return

    def gather(self, portion: Portion) -> None:
        """Deal some points out, and count them; only the first projections matter."""
        if not self.kept or portion.part.start:
            return
        rng = generator(seed_of(self.projections), Stream.STREAM_GROUPS, self.n_dealt)
        n_points = portion.rows.shape[1]
        self.n_dealt += n_points
        drawn = np.asarray(rng.integers(GROUPS, size=n_points))
        for number, label in enumerate(portion.classes):
            begin, end = portion.offsets[number : number + 2].tolist()
            order = begin + np.argsort(drawn[begin:end], kind="stable")
            sizes: NDArray[np.int64] = np.bincount(drawn[begin:end], minlength=GROUPS).astype(np.int64)
            edges = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
            self._count(label, np.take(portion.rows, order, axis=1), edges, portion)

    def _count(self, label: Hashable, rows: NDArray[np.float32], edges: NDArray[np.int64], portion: Portion) -> None:
        """Count the points of one class, which lie group after group."""
        from sotdd.engines.cpu.verbs import class_sums

        assert isinstance(portion.terms, Polynomials)
        for group, histograms in enumerate(self.histograms[label]):
            first, last = int(edges[group]), int(edges[group + 1])
            if first < last:
                histograms.expect(last - first)
                histograms.count(slice(0, self.n_rows), rows, first, last)
                members = np.ascontiguousarray(rows[:, first:last])
                self.sums[label][group] += class_sums(members, np.array([0, last - first]), portion.terms)[:, 0]

    def merge(self, other: GroupCounts) -> None:
        """Add the counts of another; call `expect` with its classes first."""
        if not (self.kept and other.kept):
            self.drop()
            return
        self.n_dealt += other.n_dealt
        for label, groups in other.histograms.items():
            self.sums[label] += other.sums[label]
            for mine, theirs in zip(self.histograms[label], groups, strict=True):
                mine.expect(theirs.n_points)
                mine.merge(theirs)

    def is_consistent(self, counts: Mapping[Hashable, int]) -> bool:
        """Whether the groups of each class have its points."""
        found = {label: sum(group.n_points for group in groups) for label, groups in self.histograms.items()}
        return not self.kept or (found == dict(counts) and set(self.sums) == set(found))

    def halves(self) -> Halves | None:
        """How far apart halves are, for p = 1 and p = 2; None where nothing was kept, or a half would be empty."""
        from sotdd.engines.cpu.workers import Workers

        if not self.kept:
            return None
        with Workers() as workers:
            parts = workers.each(self._halving, _ways())
        if any(part is None for part in parts):
            return None
        costs = np.stack([part for part in parts if part is not None], axis=1)  # (B, S, orders)
        if not np.isfinite(costs).all():  # the sketch itself is good, and its distances say what overflows
            return None
        weights = self.projections.draw(0, BLOCK).importance
        return np.array([apart_by_halves(costs[:, :, at], weights, p) for at, p in enumerate(HALVING_ORDERS)])

    def _halving(self, signs: NDArray[np.int64]) -> Doubles | None:
        """W_p^p (B, orders) between those groups and the others; None where one half has no points."""
        from sotdd.kernels.quantiles import compare_functions

        levels = Levels(QUANTILES)
        one, other = (self._functions(np.flatnonzero(signs == side), levels) for side in (1, -1))
        if one is None or other is None:
            return None
        costs, within = np.empty((len(HALVING_ORDERS), self.n_rows)), np.empty(self.n_rows)
        for out, p in zip(costs, HALVING_ORDERS, strict=True):
            compare_functions(one, other, levels.edges, levels.smooth, float(p), out, within)
        return costs.T

    def _functions(self, groups: NDArray[np.intp], levels: Levels) -> NDArray[np.float32] | None:
        """Quantile functions (B, Q) of some groups together, with label terms of their own; None for no points."""
        classes: list[Histograms] = []
        terms: list[Doubles] = []
        for label, histograms in self.histograms.items():
            whole = Histograms.empty(self.n_rows, GROUP_BINS)
            for group in groups:
                whole.expect(histograms[group].n_points)
                whole.merge(histograms[group])
            if whole.n_points:
                classes.append(whole)
                terms.append(self.sums[label][groups].sum(axis=0) / whole.n_points)
        if not classes:
            return None
        weights = self.projections.draw(0, BLOCK).terms.weights
        return quantiles_of(classes, slice(0, self.n_rows), weights, np.stack(terms, axis=1), levels)[0]


def _ways() -> NDArray[np.int64]:
    """(7, 8) signs: rows of a Hadamard matrix but the first, which does not halve."""
    signs = np.ones((1, 1), np.int64)
    while len(signs) < GROUPS:
        signs = np.block([[signs, signs], [signs, -signs]])
    return signs[1:]
