"""Which label term is the default: python -m benchmarks.label_choice [--quick] [--markdown FILE].

Every term on pictures, digits, word counts, text embeddings, tables and heavy tails, through the same directions:

- how it orders pairs, against exact OTDD less OTDD's own floor on the same points;
- how it orders graded changes (label flips, prior shift, noise), and how far the largest stands above none;
- its relative error at 1,000 projections, plain and by the default estimator at equal processor time, and how often
  the plain 95 % interval covers;
- what a cut does to the value of well-known pairs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from experiments.files import default_folder
from scipy.special import stdtrit
from scipy.stats import kendalltau

import sotdd
from benchmarks import estimators
from benchmarks.core import machine
from benchmarks.label_families import CHANGES, FAMILIES, Family, samples
from benchmarks.label_trial import Doubles, rank_correlation
from benchmarks.labels import gain
from benchmarks.ordinary import Pair, ordinary_pairs, standardised
from sotdd.projections import ClassQuantiles, Directions, Moments
from sotdd.projections.directions import Sphere


@dataclass(frozen=True)
class CutSphere:
    """Uniform directions whose projected values are cut, the feature's own too."""

    clamp: float = 5.0

    def describe(self) -> Mapping[str, object]:
        """Name the law."""
        return {"law": "sphere, cut", "clamp": self.clamp}

    def draw(self, rng: np.random.Generator, n_projections: int, n_features: int) -> Directions:
        """The same directions as without the cut."""
        return Directions(Sphere().draw(rng, n_projections, n_features).theta, self.clamp)


DEFAULT = "cut at 5"

# Moments unless said otherwise; data are scaled before, so every cut is in spreads.
TERMS: dict[str, dict[str, Any]] = {
    "no cut (paper)": {"label_law": Moments(cut=None)},
    DEFAULT: {"label_law": Moments()},
    "cut at 5, feature too": {"label_law": Moments(cut=None), "directions": CutSphere()},
    "cut at 3": {"label_law": Moments(cut=3.0)},
    "λ ≤ 3, no cut": {"label_law": Moments(orders=sotdd.projections.ZeroTruncatedPoisson(max_order=3), cut=None)},
    "quantiles": {"label_law": ClassQuantiles()},
}


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    pairs: int = 60
    points: int = 150
    projections: int = 2000
    repeats: int = 10
    covered: int = 3
    controlled: int = 20
    batches: int = 60
    batch: int = 1000


QUICK = Sizes(pairs=5, points=60, projections=128, repeats=2, covered=1, controlled=2, batches=8, batch=100)


def costs(pair: Pair, term: str, n_projections: int, seed: int) -> Doubles:
    """W_2² (L,) of a scaled pair under plain projections."""
    found = sotdd.distance(
        *pair, **TERMS[term], n_projections=n_projections, seed=seed, scale=None, estimator="plain", device="cpu"
    ).per_projection
    assert found is not None
    return found


# ------------------------------------------------------------------ against OTDD


def above_its_floor(first: Pair, second: Pair) -> float:
    """OTDD² between two datasets, each given as two samples, less half of what it is between samples of one."""
    (a, other_a), (b, other_b) = first, second
    across, *within = (sotdd.peers.otdd(*pair).value ** 2 for pair in ((a, b), (a, other_a), (b, other_b)))
    return float(across - sum(within) / 2)


@dataclass(frozen=True, eq=False)
class Judged:
    """What one family says of every term."""

    exact: Doubles  # (pairs,) OTDD² above its floor
    values: dict[str, Doubles]  # (pairs,) of every term
    errors: dict[str, Doubles]  # (pairs,) relative, of the distance by 1,000 plain projections
    covered: dict[str, float]
    controlled: dict[str, tuple[float, float]]  # median relative error by the default estimator, and seconds
    graded: dict[tuple[str, str], Doubles]  # (change, term): (2, repeats) Kendall's τ, largest change / none


def judge(family: Family, sizes: Sizes) -> Judged:
    """Every measure of every term on one family."""
    exact, kept = [], []
    for first, second in family.pairs(sizes.pairs):
        parts = samples(first, sizes.points), samples(second, sizes.points)
        exact.append(above_its_floor(*parts))
        kept.append((parts[0][0], parts[1][0]))
    by_term = {term: [costs(pair, term, sizes.projections, seed) for seed, pair in enumerate(kept)] for term in TERMS}
    return Judged(
        np.array(exact),
        {term: np.array([found.mean() for found in each]) for term, each in by_term.items()},
        {term: np.array([relative_error(found) for found in each]) for term, each in by_term.items()},
        {term: coverage(kept[: sizes.covered], term, sizes) for term in TERMS},
        {term: by_default_estimator(kept[: sizes.controlled], term) for term in TERMS},
        {(change, term): order(family, change, term, sizes) for change in CHANGES for term in TERMS},
    )


def relative_error(found: Doubles, n_projections: int = 1000) -> float:
    """Standard error of the rooted mean of this many costs, over its value."""
    return float(found.std() / found.mean() / 2 / np.sqrt(n_projections))


def coverage(pairs: Sequence[Pair], term: str, sizes: Sizes) -> float:
    """How often Student's interval from one batch of projections covers the mean over all batches."""
    within = []
    for pair in pairs:
        found = costs(pair, term, sizes.batches * sizes.batch, seed=10**6)
        batches = found.reshape(sizes.batches, sizes.batch)
        reach = stdtrit(sizes.batch - 1, 0.975) * batches.std(axis=1, ddof=1) / np.sqrt(sizes.batch)
        within.append(np.abs(batches.mean(axis=1) - found.mean()) <= reach)
    return float(np.mean(within))


def by_default_estimator(pairs: Sequence[Pair], term: str) -> tuple[float, float]:
    """Median relative error of 1,000 controlled projections, and the processor time that all took."""
    began = time.process_time()
    found = [
        sotdd.distance(*pair, **TERMS[term], scale=None, seed=seed, device="cpu") for seed, pair in enumerate(pairs)
    ]
    return float(np.median([one.stderr / one.value for one in found])), time.process_time() - began


def order(family: Family, change: str, term: str, sizes: Sizes) -> Doubles:
    """Of every repeat Kendall's τ of distance and degree, and the ratio of the largest change to none, (2, repeats).

    The projections of a repeat are the same for all degrees, as they are for calls with the same seed.
    """
    change_by, degrees = CHANGES[change]
    agreement, ratios = [], []
    for repeat in range(sizes.repeats):
        rng = np.random.default_rng([7, repeat])
        first, second = family.parts(250, rng)
        changed = [(first, change_by(second, degree, rng)) for degree in degrees]
        found = [np.sqrt(costs(pair, term, sizes.projections // 2, repeat).mean()) for pair in changed]
        agreement.append(kendalltau(found, degrees).statistic)
        ratios.append(found[-1] / found[0])
    return np.array([agreement, ratios])


# ------------------------------------------------------------------ tables


def table(title: str, rows: Mapping[str, Sequence[str]], columns: Sequence[str], corner: str = "data") -> str:
    """One measure: families down, terms across."""
    head = [f"| {corner} | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    return "\n".join([f"**{title}**\n", *head, *(f"| {name} | {' | '.join(row)} |" for name, row in rows.items())])


def tables(judged: Mapping[str, Judged]) -> Iterator[str]:
    """All measures of all families."""
    terms = list(TERMS)

    def rows(cell: Callable[[Judged, str], str]) -> dict[str, list[str]]:
        return {name: [cell(found, term) for term in terms] for name, found in judged.items()}

    yield table("Spearman's ρ with OTDD above its floor, and the gain over the default", rows(_correlation), terms)
    for change in CHANGES:
        graded = rows(partial(_graded, change)) | {"all, and the gain over the default": _over_all(judged, change)}
        yield table(f"{change.capitalize()}: Kendall's τ with the degree (largest change over none)", graded, terms)
    errors = rows(lambda found, term: _percent(np.median(found.errors[term]), found.errors[term].max()))
    yield table("Relative error by 1,000 plain projections: median and worst pair", errors, terms)
    yield table(
        "Median relative error by 1,000 projections and the default estimator (at equal time, over the default term's)",
        rows(_at_equal_time),
        terms,
    )
    yield table(
        "Coverage of plain 95 % intervals", rows(lambda found, term: f"{100 * found.covered[term]:.0f} %"), terms
    )


def _correlation(found: Judged, term: str) -> str:
    own = f"{rank_correlation(found.values[term], found.exact):.2f}"
    if term == DEFAULT:
        return f"**{own}**"
    low, high = gain(found.values[term], found.values[DEFAULT], found.exact)
    return f"{own} ({low:+.2f} to {high:+.2f})".replace("-", "−")


def _graded(change: str, found: Judged, term: str) -> str:
    agreement, ratios = found.graded[change, term]
    return f"{agreement.mean():.2f} ({np.median(ratios):.2f})".replace("-", "−")


def _over_all(judged: Mapping[str, Judged], change: str) -> list[str]:
    """Mean τ over all families, and a 95 % interval of the gain over the default: repeats drawn with replacement."""
    rng = np.random.default_rng(0)
    found = {term: np.concatenate([one.graded[change, term][0] for one in judged.values()]) for term in TERMS}
    cells = []
    for term, each in found.items():
        gains = rng.choice(each - found[DEFAULT], (2000, len(each))).mean(axis=1)
        interval = "" if term == DEFAULT else " ({:+.2f} to {:+.2f})".format(*np.quantile(gains, [0.025, 0.975]))
        cells.append(f"{each.mean():.2f}{interval}".replace("-", "−"))
    return cells


def _at_equal_time(found: Judged, term: str) -> str:
    """The error of the default estimator, and how it compares with that of the default term had both taken as long."""
    (error, seconds), (base, base_seconds) = found.controlled[term], found.controlled[DEFAULT]
    return f"{_percent(error)} ({error / base * np.sqrt(seconds / base_seconds):.1f})"


def _percent(*shares: float) -> str:
    return ", ".join(f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %" for share in shares)


CUTS = {"no cut": None, "cut at 10": 10.0, "cut at 5": 5.0, "cut at 4": 4.0}


def known_pairs(n_points: int) -> dict[str, estimators.Pair]:
    """Pictures, and a table in raw units and standardised."""
    wanted = ("MNIST, Fashion-MNIST", "MNIST, KMNIST", "MNIST, USPS")
    found = {name: pair for name, pair in estimators.pairs(default_folder(), n_points) if name in wanted}
    found["CIFAR-10, halves"] = estimators.colour_halves(default_folder(), n_points // 2)
    for name in ("one law", "income moved"):
        pair = ordinary_pairs()[f"customers, {name}"]
        found |= {f"customers, {name}, raw units": pair, f"customers, {name}, standardised": standardised(pair)}
    return found


def values(n_points: int, n_projections: int) -> str:
    """What a cut does to the value."""
    rows = {}
    for name, pair in known_pairs(n_points).items():
        found = [
            sotdd.distance(*pair, label_law=Moments(cut=cut), n_projections=n_projections, estimator="plain")
            for cut in CUTS.values()
        ]
        rows[name] = [repr(one).partition(" (")[0].removesuffix(", rough") for one in found]
    return table(f"Values by {n_projections:,} plain projections", rows, list(CUTS), "pair")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few pairs, points and projections")
    parser.add_argument("--markdown", type=Path, help="also write the tables to this file")
    options = parser.parse_args()
    sizes = QUICK if options.quick else Sizes()
    judged = {}
    for name, family in FAMILIES.items():
        began = time.perf_counter()
        judged[name] = judge(family, sizes)
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
    found = [*tables(judged), values(200 if options.quick else 1000, sizes.projections)]
    print(*found, sep="\n\n")
    if options.markdown:
        opening = f"Measured on {machine()}; `python -m benchmarks.label_choice`."
        options.markdown.write_text("\n\n".join([opening, *found]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
