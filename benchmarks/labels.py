"""Which label term is best: python -m benchmarks.labels [--quick] [--markdown FILE].

Every law on the same pairs of real subsets that truly differ, seen through the same directions:

- how far the value moves from seed to seed, and how uncertain the worst pair is;
- how it orders the pairs, against exact OTDD on the same points, and by how much better than moments;
- how its distances between classes order, against the sliced W_2 between them;
- how well it sees labels: a dataset against itself with labels permuted, over two halves of one source.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import sotdd
from benchmarks import label_candidates as tried
from benchmarks.core import machine
from benchmarks.label_trial import OWN_SCALE, Doubles, Measured, Trial, rank_correlation
from sotdd.peers.features import FeaturesOnly
from sotdd.projections import ClassQuantiles, LabelLaw, Moments

PAPER = "moments (the paper's)"

LAWS: dict[str, LabelLaw] = {
    "no labels (sliced Wasserstein)": FeaturesOnly(),
    PAPER: Moments(cut=None),
    OWN_SCALE: Moments(cut=None),
    "moments, cut at 5": Moments(),
    "moments, λ_max = 3": Moments(orders=sotdd.projections.ZeroTruncatedPoisson(max_order=3), cut=None),
    "moments, uniform on 1, 2, 3": Moments(orders=sotdd.projections.UniformOrders(3), cut=None),
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
AGGREGATED = (PAPER, "quantiles, 16 levels")
AGGREGATIONS = {"": rooted_mean, ", mean of W_2": mean_of_roots, ", median of means": median_of_means}


def seed_variation(values: Doubles) -> float:
    """Coefficient of variation over seeds (S, pairs), averaged over pairs."""
    return float(np.mean(values.std(axis=0, ddof=1) / values.mean(axis=0)))


def worst_error(transported: Doubles) -> float:
    """Relative standard error of the distance for the worst pair: transported (pairs, L)."""
    spread = transported.std(axis=1) / transported.mean(axis=1)
    return float(spread.max() / 2 / np.sqrt(transported.shape[1]))


def gain(values: Doubles, baseline: Doubles, exact: Doubles, draws: int = 1000) -> tuple[float, float]:
    """A 95 % interval of how much better values order the pairs than the baseline: pairs drawn with replacement."""
    rng = np.random.default_rng(0)
    chosen = rng.integers(len(exact), size=(draws, len(exact)))
    gains = [rank_correlation(values[c], exact[c]) - rank_correlation(baseline[c], exact[c]) for c in chosen]
    low, high = np.nanquantile(gains, [0.025, 0.975])
    return float(low), float(high)


def cost(law: LabelLaw, n: int = 10_000, n_projections: int = 512, repeats: int = 5) -> float:
    """Seconds for one distance between pictures of digits, the best of several."""
    from benchmarks.peers import digits

    data = [digits(n, seed) for seed in (0, 1)]
    recipe = sotdd.Projections.fit(data, n_projections=n_projections, label_law=law, tilt=False)
    taken = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        sotdd.distance(*data, projections=recipe, estimator="plain", device="cpu")
        taken.append(time.perf_counter() - began)
    return min(taken[1:])


# ------------------------------------------------------------------ the table


@dataclass(frozen=True)
class Line:
    """One law, judged."""

    name: str
    variation: float
    worst: float
    otdd: float
    gain: tuple[float, float]
    transfer: float
    labels: float
    seen: float

    def cells(self) -> str:
        """A row of the table."""
        labels = "–" if np.isnan(self.labels) else f"{self.labels:.2f}"
        against = "–" if self.gain == (0.0, 0.0) else f"{self.gain[0]:+.2f} to {self.gain[1]:+.2f}".replace("-", "−")
        return (
            f"| {self.name} | {100 * self.variation:.1f} % | {100 * self.worst:.1f} % | {self.otdd:.2f} | {against} | "
            f"{self.transfer:.2f} | {labels} | {self.seen:.2f} |"
        )


HEADER = (
    "| label term | from seed to seed | worst standard error | ρ with OTDD, subsets | gain over moments | ρ with OTDD, "
    "whole sources | ρ of class distances with sliced W_2 | permuted labels / halves |\n" + "|---" * 8 + "|"
)


def judge(trial: Trial, name: str, by_seed: Sequence[Mapping[str, Measured]]) -> list[Line]:
    """The table's line of one law; other aggregations over projections for the laws of the package."""
    own, paper = ([found[law] for found in by_seed] for law in (name, PAPER))
    half, permuted = (
        np.mean([rooted_mean(getattr(one, part)) for one in own], axis=0) for part in ("half", "permuted")
    )
    baseline = np.mean([rooted_mean(one.real) for one in paper], axis=0)
    lines = []
    for suffix, aggregate in AGGREGATIONS.items() if name in AGGREGATED else [("", rooted_mean)]:
        values = np.stack([aggregate(one.real) for one in own])  # (S, pairs)
        lines.append(
            Line(
                name + suffix,
                seed_variation(values),
                float(np.mean([worst_error(one.real) for one in own])),
                float(np.mean([rank_correlation(one, trial.exact_real) for one in values])),
                gain(values.mean(axis=0), baseline, trial.exact_real),
                rank_correlation(np.mean([aggregate(one.whole) for one in own], axis=0), trial.exact_whole),
                float(np.mean([one.agreement for one in own])),
                float(np.median(permuted / half)),
            )
        )
    return lines


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
    table = "\n".join([HEADER, *(line.cells() for name in LAWS for line in judge(trial, name, by_seed))])
    ratio = cost(ClassQuantiles()) / cost(Moments())
    remark = f"A distance by quantiles takes {ratio:.2f} times as long as by moments, at n = m = 10,000 and d = 784."
    print(table, remark, sep="\n\n")
    if options.markdown:
        text = f"Measured on {machine()}; `python -m benchmarks.labels`.\n\n{table}\n\n{remark}\n"
        options.markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
