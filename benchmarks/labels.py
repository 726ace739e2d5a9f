"""Which label term is best: python -m benchmarks.labels [--quick] [--markdown FILE].

Every law on the same pairs of real subsets that truly differ, seen through the same directions:

- how far the value moves from seed to seed;
- how it orders the pairs, against exact OTDD on the same points;
- how its distances between classes order, against the sliced W_2 between them;
- how well it sees labels: a dataset against itself with labels permuted, over two halves of one source.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise as neighbours
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import sotdd
from benchmarks import label_candidates as tried
from benchmarks.core import machine
from benchmarks.label_pairs import Subset, halves, real_pairs, transfer_pairs
from sotdd.engines import cpu
from sotdd.peers.chsw import FeaturesOnly
from sotdd.projections import ClassQuantiles, LabelLaw, Moments
from sotdd.projections.labels import LabelTerms
from sotdd.scaling import Scaler
from sotdd.transport import transport_rows

# This one sees each dataset normalised by itself, as the paper does; all others share one scaler.
OWN_SCALE = "moments (the paper's), each dataset normalised by itself"

LAWS: dict[str, LabelLaw] = {
    "no labels (sliced Wasserstein)": FeaturesOnly(),
    "moments (the paper's)": Moments(),
    OWN_SCALE: Moments(),
    "moments, λ_max = 3": Moments(orders=sotdd.ZeroTruncatedPoisson(max_order=3)),
    "moments, uniform on 1, 2, 3": Moments(orders=sotdd.UniformOrders(3)),
    "quantiles, 16 levels": ClassQuantiles(16),
    "quantiles, 64 levels": ClassQuantiles(64),
    "quantiles, weight 2": ClassQuantiles(weight=2.0),
    "quantiles, weight 4": ClassQuantiles(weight=4.0),
    "means": tried.CENTROID,
    "means and deviations": tried.GAUSSIAN,
    "means and deviations, weight 2": replace(tried.GAUSSIAN, weight=2.0),
    "means, rooted central moments": tried.ROOTED,
    "cosines, weight 2": replace(tried.COSINE, weight=2.0),
    "ramps, weight 2": replace(tried.RAMP, weight=2.0),
}

Doubles = NDArray[np.float64]
Rows = NDArray[np.float32]


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
            bounds, position = one.grouping()
            values = np.empty((n_projections, one.n_points), np.float32)
            cpu.project(cpu.scaled(one.rows(slice(None)), scaler), drawn, n_projections, values)
            cpu.group(values, position, None)
            rows.append(values)
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
        shifts = cpu.class_terms(rows, self.offsets[index], terms)
        cpu.place(rows, self.offsets[index], terms.weights, shifts)
        cpu.sort(rows)
        return rows

    def transported(self, pairs: Sequence[tuple[int, int]], terms: LabelTerms) -> Doubles:
        """W_2² (pairs, L) under every projection; both of a pair have the same size."""
        return np.stack([transport_rows(self.placed(i, terms), self.placed(j, terms), 2.0, None) for i, j in pairs])


def _recipe(data: sotdd.LabelledData, law: LabelLaw, n_projections: int, seed: int) -> sotdd.Projections:
    return sotdd.Projections.fit([data], n_projections=n_projections, label=law, scale=None, seed=seed)


# ------------------------------------------------------------------ measures


def rooted_mean(transported: Doubles) -> Doubles:
    """The distance as it is defined: the root of the mean of W_2²."""
    return np.sqrt(transported.mean(axis=-1))


def mean_of_roots(transported: Doubles) -> Doubles:
    """The mean of W_2: a metric too, less moved by rare projections."""
    return np.sqrt(transported).mean(axis=-1)


def median_of_means(transported: Doubles, groups: int = 20) -> Doubles:
    """The root of the median over groups of the mean of W_2² in each; no metric."""
    size = transported.shape[-1] // groups
    parts = transported[..., : groups * size].reshape(*transported.shape[:-1], groups, size)
    return np.sqrt(np.median(parts.mean(axis=-1), axis=-1))


# Of these laws the other aggregations are shown too.
AGGREGATED = ("moments (the paper's)", "quantiles, 16 levels")
AGGREGATIONS = {"": rooted_mean, ", mean of W_2": mean_of_roots, ", median of means": median_of_means}


def rank_correlation(a: Doubles, b: Doubles) -> float:
    """Spearman's ρ."""
    from scipy.stats import spearmanr

    return float(spearmanr(a, b).statistic)


def seed_variation(values: Doubles) -> float:
    """Coefficient of variation over seeds (S, pairs), averaged over pairs."""
    return float(np.mean(values.std(axis=0, ddof=1) / values.mean(axis=0)))


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
        a, b = (cpu.class_terms(view.rows[i].copy(), view.offsets[i], terms) for i in pair)
        found += np.sqrt(np.mean((a[:, :, None] - b[:, None, :]) ** 2, axis=0)).ravel().tolist()
    return np.array(found)


def _quantile_functions(rows: Rows, offsets: NDArray[np.int64], levels: int = 64) -> list[Doubles]:
    """Every class as its quantile function at many levels (L, levels)."""
    classes = rows.copy()
    cpu.sort_classes(classes, offsets)
    return [sotdd.projections.bin_means(classes[:, first:last], levels) for first, last in neighbours(offsets)]


def cost(law: LabelLaw, n: int = 10_000, n_projections: int = 512, repeats: int = 5) -> float:
    """Seconds for one distance between pictures of digits, the best of several."""
    from benchmarks.peers import digits

    data = [digits(n, seed) for seed in (0, 1)]
    recipe = sotdd.Projections.fit(data, n_projections=n_projections, label=law)
    taken = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        sotdd.distance(*data, projections=recipe, device="cpu")
        taken.append(time.perf_counter() - began)
    return min(taken[1:])


# ------------------------------------------------------------------ the table


@dataclass(frozen=True)
class Line:
    """One law, judged."""

    name: str
    variation: float
    otdd: float
    transfer: float
    labels: float
    seen: float

    def cells(self) -> str:
        """A row of the table."""
        labels = "–" if np.isnan(self.labels) else f"{self.labels:.2f}"
        return (
            f"| {self.name} | {100 * self.variation:.1f} % | {self.otdd:.2f} | {self.transfer:.2f} | {labels} | "
            f"{self.seen:.2f} |"
        )


HEADER = (
    "| label term | from seed to seed | ρ with OTDD, subsets | ρ with OTDD, whole sources | ρ of class distances "
    "with sliced W_2 | permuted labels / halves |\n|---|---|---|---|---|---|"
)


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

    def __init__(self, count: int, n_projections: int) -> None:
        real, whole, same = real_pairs(count), transfer_pairs(400), halves()
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
            agreement = rank_correlation(of_terms, of_classes) if of_terms.any() else float("nan")
            found[name] = Measured(*parts, agreement)
        return found

    def judge(self, name: str, by_seed: Sequence[Measured]) -> list[Line]:
        """The table's line of one law; other aggregations over projections for the laws of the package."""
        half, permuted = (
            np.mean([rooted_mean(getattr(one, part)) for one in by_seed], axis=0) for part in ("half", "permuted")
        )
        lines = []
        for suffix, aggregate in AGGREGATIONS.items():
            values = np.stack([aggregate(one.real) for one in by_seed])  # (S, pairs)
            whole = np.mean([aggregate(one.whole) for one in by_seed], axis=0)
            lines.append(
                Line(
                    name + suffix,
                    seed_variation(values),
                    float(np.mean([rank_correlation(one, self.exact_real) for one in values])),
                    rank_correlation(whole, self.exact_whole),
                    float(np.mean([one.agreement for one in by_seed])),
                    float(np.median(permuted / half)),
                )
            )
        return lines if name in AGGREGATED else lines[:1]


def _places(start: int, count: int, step: int) -> list[tuple[int, int]]:
    return [(start + step * i, start + step * i + 1) for i in range(count)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few pairs, projections and seeds")
    parser.add_argument("--markdown", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    count, n_projections, seeds = (6, 128, 2) if options.quick else (60, 2000, 3)
    trial = Trial(count, n_projections)
    by_seed = []
    for seed in range(seeds):
        by_seed.append(trial.measure(LAWS, seed))
        print(f"seed {seed} of {seeds} measured", flush=True)
    lines = [line for name in LAWS for line in trial.judge(name, [found[name] for found in by_seed])]
    table = "\n".join([HEADER, *(line.cells() for line in lines)])
    ratio = cost(ClassQuantiles()) / cost(Moments())
    remark = f"A distance by quantiles takes {ratio:.2f} times as long as by moments, at n = m = 10,000 and d = 784."
    print(table, remark, sep="\n\n")
    if options.markdown:
        text = f"Measured on {machine()}; `python -m benchmarks.labels`.\n\n{table}\n\n{remark}\n"
        options.markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
