"""Real pairs through the same directions, by one label law after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise as neighbours

import numpy as np
from numpy.typing import NDArray

import sotdd
from benchmarks.label_pairs import Subset, halves, real_pairs, transfer_pairs
from sotdd.compute.cpu import rows as cpu
from sotdd.compute.kernels.quantiles import part_means
from sotdd.compute.kernels.rows import shift_rows, transport_rows
from sotdd.peers.features import FeaturesOnly
from sotdd.projections import LabelLaw
from sotdd.projections.moments import LabelTerms
from sotdd.projections.scaler import Scaler

Doubles = NDArray[np.float64]
Rows = NDArray[np.float32]

# The law of this name sees each dataset normalised by itself, as the paper does; all others share one scaler.
OWN_SCALE = "moments (the paper's), each dataset normalised by itself"


@dataclass(frozen=True, eq=False)
class View:
    """Datasets through one seed's directions, grouped by class: what all laws share."""

    rows: list[Rows]  # (L, n) of each dataset
    offsets: list[NDArray[np.int64]]
    seed: int

    @classmethod
    def of(cls, sides: Sequence[Subset], scaler: Scaler | None, n_projections: int, seed: int) -> View:
        """Project every dataset once."""
        data = [sotdd.LabelledData.of(side.pair, side.name) for side in sides]
        drawn = _recipe(data[0], FeaturesOnly(), n_projections, seed).draw(0, n_projections).features
        rows, offsets = [], []
        for one in data:
            bounds, order = cpu.group_points(one)
            values = np.empty((n_projections, one.n_points), np.float32)
            points = slice(0, one.n_points)
            cpu.project(cpu.scale_rows(one.rows(points), scaler), drawn, n_projections, values, points)
            rows.append(np.ascontiguousarray(values[:, order]))
            offsets.append(bounds)
        return cls(rows, offsets, seed)

    def terms(self, law: LabelLaw, n_features: int) -> LabelTerms:
        """The law's draws of this seed."""
        count = len(self.rows[0])
        data = sotdd.LabelledData.of(np.zeros((1, n_features), np.float32))
        return _recipe(data, law, count, self.seed).draw(0, count).terms

    def placed(self, index: int, terms: LabelTerms) -> Rows:
        """Sorted data point projections (L, n) of one dataset."""
        rows = self.rows[index].copy()
        shifts = cpu.find_class_terms(rows, self.offsets[index], terms)
        shift_rows(rows, self.offsets[index], terms.weights, shifts)
        cpu.sort_rows(rows)
        return rows

    def transported(self, pairs: Sequence[tuple[int, int]], terms: LabelTerms) -> Doubles:
        """W_2² (pairs, L) under every projection; both of a pair have the same size."""
        return np.stack([transport_rows(self.placed(i, terms), self.placed(j, terms), 2.0, None) for i, j in pairs])


def _recipe(data: sotdd.LabelledData, law: LabelLaw, n_projections: int, seed: int) -> sotdd.Projections:
    return sotdd.Projections.fit([data], n_projections=n_projections, label_law=law, scale=None, seed=seed, tilt=False)


def class_distances(view: View, pairs: Sequence[tuple[int, int]]) -> Doubles:
    """Sliced W_2 between each class of one and each of the other dataset, over all pairs."""
    found: list[float] = []
    for pair in pairs:
        classes = [_quantile_functions(view.rows[i], view.offsets[i]) for i in pair]
        found += [float(np.sqrt(np.mean((x - y) ** 2))) for x in classes[0] for y in classes[1]]
    return np.array(found)


def term_distances(view: View, pairs: Sequence[tuple[int, int]], terms: LabelTerms) -> Doubles:
    """The same by a law: the root mean square difference of the terms of two classes."""
    found: list[float] = []
    for pair in pairs:
        a, b = (cpu.find_class_terms(view.rows[i].copy(), view.offsets[i], terms) for i in pair)
        found += np.sqrt(np.mean((a[:, :, None] - b[:, None, :]) ** 2, axis=0)).ravel().tolist()
    return np.array(found)


def _quantile_functions(rows: Rows, offsets: NDArray[np.int64], levels: int = 64) -> list[Doubles]:
    """Every class as its quantile function at many levels (L, levels)."""
    classes = rows.copy()
    cpu.sort_classes(classes, offsets)
    return [_bin_means(classes[:, first:last], levels) for first, last in neighbours(offsets)]


def _bin_means(values: Rows, levels: int) -> Doubles:
    """Means (L, levels) of sorted values (L, m) over bins of equal probability."""
    count = values.shape[1]
    means = np.empty((len(values), levels), np.float32)
    part_means(values, np.arange(count + 1) / count, np.arange(levels + 1) / levels, means)
    return means.astype(np.float64)


def rank_correlation(a: Doubles, b: Doubles) -> float:
    """Spearman's ρ; NaN where one of the two is the same everywhere."""
    from scipy.stats import spearmanr

    return float(spearmanr(a, b).statistic) if np.ptp(a) and np.ptp(b) else float("nan")


@dataclass(frozen=True, eq=False)
class Measured:
    """What one seed says of one law."""

    real: Doubles  # (pairs, L) W_2² of subsets that truly differ
    whole: Doubles  # (pairs, L) of whole sources
    half: Doubles  # (sources, L) of two samples of one source
    permuted: Doubles  # (sources, L) of a sample and itself with permuted labels
    agreement: float


class Trial:
    """The datasets of all measures, and what OTDD says of them."""

    def __init__(self, count: int, n_projections: int, n_points: int = 400) -> None:
        real, whole = real_pairs(count, n_points), transfer_pairs(n_points)
        same = halves(n_points=n_points)
        self.n_projections = n_projections
        self.exact_real, self.exact_whole = (
            np.array([sotdd.peers.otdd(a.pair, b.pair).value for a, b in pairs]) for pairs in (real, whole)
        )
        self.sides = [side for pair in (*real, *whole) for side in pair]
        self.real, self.whole = _places(0, len(real), 2), _places(len(self.sides) - 2 * len(whole), len(whole), 2)
        start = len(self.sides)
        self.sides += [side for i, (a, b) in enumerate(same) for side in (a, b, a.relabelled(i))]
        self.half = _places(start, len(same), 3)
        self.permuted = [(i, i + 2) for i, _ in self.half]
        self.scaler = Scaler.fit([sotdd.LabelledData.of(side.pair, side.name) for side in self.sides])

    def measure(self, laws: Mapping[str, LabelLaw], seed: int) -> dict[str, Measured]:
        """Every law by one seed; all see the same directions."""
        shared = View.of(self.sides, self.scaler, self.n_projections, seed)
        of_classes = class_distances(shared, self.real[:20])
        found = {}
        for name, law in laws.items():
            view = shared
            if name == OWN_SCALE:
                view = View.of([side.standardised() for side in self.sides], None, self.n_projections, seed)
            terms = view.terms(law, self.sides[0].features.shape[1])
            parts = [view.transported(pairs, terms) for pairs in (self.real, self.whole, self.half, self.permuted)]
            of_terms = term_distances(view, self.real[:20], terms)
            found[name] = Measured(*parts, rank_correlation(of_terms, of_classes))
        return found


def _places(start: int, count: int, step: int) -> list[tuple[int, int]]:
    return [(start + step * i, start + step * i + 1) for i in range(count)]
