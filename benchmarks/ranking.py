"""Which source a ranking chooses, by several rules: python -m benchmarks.ranking [--quick].

A target has one source of its own law among others that changed by different amounts. Sources hold very different
numbers of points: by raw distance small ones are far away, and by what is left beyond noise they come first by luck.
Of each rule the table has the mean change of the source that it chooses, with the right source the smallest of all, of
any size, or the largest. The goal is to stay within 0.06 of the better of distance and excess. The rule of `.nearest`
was chosen on the first three laws.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import sotdd
from sotdd.results import Distance, Ranking

Numbers = NDArray[np.float64]
Labelled = tuple[Numbers, NDArray[np.int64]]

# ------------------------------------------------------------------ the laws


@dataclass(frozen=True)
class Law:
    """How n points that changed by some amount are sampled; how many sources there are, and of which sizes."""

    sample: Callable[[np.random.Generator, int, float], Any]
    sources: int = 20
    sizes: tuple[int, int] = (100, 8000)
    target: int = 1000
    changes: tuple[float, float] = (0.2, 1.2)


def shift_classes(rng: np.random.Generator, n: int, change: float, classes: int = 3) -> Labelled:
    """Normal classes in eight features, of which two are shifted by so many standard deviations of a class."""
    centres = 2 * np.random.default_rng(3).normal(size=(classes, 8))
    labels = rng.integers(classes, size=n)
    return centres[labels] + rng.normal(size=(n, 8)) + change * (np.arange(8) < 2), labels


def shift_tails(rng: np.random.Generator, n: int, change: float) -> Numbers:
    """Eight features of Student's law with three degrees of freedom; two are shifted by so many deviations."""
    return rng.standard_t(3, size=(n, 8)) / np.sqrt(3) + change * (np.arange(8) < 2)


def correlate(rng: np.random.Generator, n: int, change: float) -> Numbers:
    """Eight normal features; two pairs of them have a correlation of tanh(change)."""
    features, rho = rng.normal(size=(n, 8)), np.tanh(change)
    for column in (0, 2):
        features[:, column + 1] = rho * features[:, column] + np.sqrt(1 - rho**2) * features[:, column + 1]
    return features


def shift_table(rng: np.random.Generator, n: int, change: float) -> pd.DataFrame:
    """A frame whose ages, incomes and shares of jobs change; two more columns and the labels stay."""
    shares = np.exp(-change * np.arange(4) / 2)
    return pd.DataFrame(
        {
            "age": rng.normal(40 + 6 * change, 12, n),
            "income": np.exp(rng.normal(10 + 0.4 * change, 0.8, n)),
            "years": rng.gamma(2.0, 3.0, n),
            "job": rng.choice(list("abcd"), n, p=shares / shares.sum()),
            "town": rng.choice(list("pqrstu"), n),
            "label": rng.choice(["no", "yes"], n, p=[0.7, 0.3]),
        }
    )


def flip_labels(rng: np.random.Generator, n: int, change: float) -> Labelled:
    """Three classes in eight features; half of ``change`` of the points get a random label."""
    features, labels = shift_classes(rng, n, 0.0)
    return features, np.where(rng.random(n) < change / 2, rng.integers(3, size=n), labels)


LAWS = {
    "ten classes, two features shifted": Law(lambda rng, n, change: shift_classes(rng, n, change, 10)),
    "three classes, two features shifted": Law(shift_classes),
    "t₃, two features shifted": Law(shift_tails),
    "correlations change": Law(correlate),
    "table with categories": Law(shift_table, sizes=(100, 4000)),
    "three classes, labels flipped": Law(flip_labels, sizes=(100, 4000)),
    "50 sources, small shifts": Law(shift_tails, 50, (100, 4000), changes=(0.05, 0.4)),
    "few points": Law(shift_classes, sizes=(20, 400), target=100),
}

# ------------------------------------------------------------------ the rules


def choose(score: Callable[[Distance], float | None], order: Ranking) -> str:
    """The name of the candidate with the smallest score."""
    return min(order, key=lambda line: score(line.distance) or 0.0).name


def add_error(distance: Distance) -> float:
    """The excess and one standard error, each from its own halvings."""
    return (distance.excess or 0.0) + distance.sampling_stderr


RULES: Mapping[str, Callable[[Ranking], str]] = {
    "distance": lambda order: choose(lambda one: one.value, order),
    "excess": lambda order: choose(lambda one: one.excess, order),
    "excess + own error": lambda order: choose(add_error, order),
    "`.nearest`": lambda order: order.nearest,
}


# ------------------------------------------------------------------ the simulation


def rank_sources(law: Law, right: str, seed: int, n_projections: int = 64) -> tuple[dict[str, float], Ranking]:
    """How much each source changed, by name, and their ranking; the source "0" is the right one."""
    rng = np.random.default_rng(seed)
    sizes = np.exp(rng.uniform(*np.log(law.sizes), law.sources)).round().astype(int).tolist()
    changes = [0.0, *rng.uniform(*law.changes, law.sources - 1).tolist()]
    sizes[0] = {"smallest": law.sizes[0], "any": sizes[0], "largest": law.sizes[1]}[right]
    target = law.sample(rng, law.target, 0.0)
    sources = {str(i): law.sample(rng, n, change) for i, (n, change) in enumerate(zip(sizes, changes, strict=True))}
    return dict(zip(sources, changes, strict=True)), sotdd.rank(target, sources, n_projections=n_projections, seed=seed)


def measure(law: Law, right: str, simulations: int, n_projections: int = 64) -> tuple[dict[str, float], float, float]:
    """The mean change of what each rule chooses; how often the right source is among the best, and how many are."""
    found, held, sizes = {name: list[float]() for name in RULES}, [], []
    for seed in range(simulations):
        changes, order = rank_sources(law, right, seed, n_projections)
        for name, rule in RULES.items():
            found[name].append(changes[rule(order)])
        held.append("0" in order.best)
        sizes.append(len(order.best))
    return {name: float(np.mean(of)) for name, of in found.items()}, float(np.mean(held)), float(np.mean(sizes))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the simulations")
    simulations = 4 if parser.parse_args().quick else 40
    print(
        f"**Mean change of the choice**\n\n| law | right source | {' | '.join(RULES)} | right among the best | best |"
    )
    print("|---" * (len(RULES) + 4) + "|")
    gaps: dict[str, list[float]] = {name: [] for name in RULES}
    for name, law in LAWS.items():
        for right in ("smallest", "any", "largest"):
            found, held, size = measure(law, right, simulations)
            for rule, value in found.items():
                gaps[rule].append(value - min(found["distance"], found["excess"]))
            values = " | ".join(f"{value:.2f}" for value in found.values())
            print(f"| {name} | {right} | {values} | {held:.0%} | {size:.1f} of {law.sources} |", flush=True)
    print(f"\n**Farther than the better of distance and excess**\n\n| | {' | '.join(RULES)} |")
    print("|---" * (len(RULES) + 1) + "|")
    print(f"| on average | {' | '.join(f'{np.mean(of):.3f}' for of in gaps.values())} |")
    print(f"| at most | {' | '.join(f'{max(of):.3f}' for of in gaps.values())} |")


if __name__ == "__main__":
    main()
