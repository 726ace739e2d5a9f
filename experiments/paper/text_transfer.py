"""Transfer among text sets: a sentence encoder tuned on a source, adapted to 100 examples per class of a target.

The gap is what the encoder reaches when it is tuned on all of the target, less what it reaches by way of the source;
or, as the authors' scripts have it, what it reaches on the same few examples without a source, less that. How encoders
are tuned: ``text_training``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations, permutations
from pathlib import Path

import numpy as np

from experiments.lib.correlate import choice, mean_by, pearson, spearman
from experiments.lib.methods import EXACT, SOTDD, Dataset, Method, measure
from experiments.lib.options import Options, parse
from experiments.lib.store import Row, Unit, complete, read, write
from experiments.paper import figures, text_training
from experiments.paper.text_training import SIZES, Sizes

METHODS = (SOTDD, EXACT)
NONE = "none"  # the source of the authors' baseline


def main() -> None:
    """Measure and draw."""
    run(parse(__doc__))


def run(options: Options) -> None:
    """Tune, adapt, measure, correlate."""
    sizes = SIZES[options.size]
    if "train" in options.steps:
        text_training.train(options, sizes, *text_training.load(options, sizes))
    if "distances" in options.steps:
        measure_distances(options, sizes)
    if "report" in options.steps and options.draw:
        summarise(options.results)
        figures.transfer(options.results, "text", METHODS)


def measure_distances(options: Options, sizes: Sizes) -> None:
    """Distances between the encoder's embeddings of the train parts, one row per method, seed and pair."""

    @cache
    def embedded() -> dict[str, Dataset]:
        return dict(text_training.embeddings(options, sizes))

    def work(unit: Unit) -> Sequence[Row]:
        seed, slow = int(str(unit["seed"])), unit["method"] == EXACT
        rng = np.random.default_rng(seed)
        chosen = {}
        for name in (str(unit["a"]), str(unit["b"])) if slow else sizes.sets:
            x, y = embedded()[name]
            rows = rng.permutation(len(y))[: sizes.slow_points if slow else sizes.points]
            chosen[name] = x[rows], y[rows]
        method = Method(str(unit["method"]), sizes.n_projections)
        found = measure(method, chosen, seed=seed, device="cpu" if slow else options.device)
        return [{"a": a, "b": b, "distance": far, "seconds": found.seconds} for (a, b), far in found.values.items()]

    path = options.results / "text_distances.csv"
    complete(path, [{"method": SOTDD, "seed": seed} for seed in range(sizes.seeds)], work, title="s-OTDD")
    units = [
        {"method": EXACT, "seed": seed, "a": a, "b": b}
        for seed in range(sizes.seeds)
        for a, b in combinations(sizes.sets, 2)
    ]
    complete(path, units, work, title="OTDD (exact)", workers=options.workers)


def gaps(results: Path, baseline: str | None = None) -> dict[tuple[str, str], float]:
    """Mean over seeds of the gap from (source, target): to the target's own row, or to that of a source to all."""
    reached = mean_by(read(results / "text_training.csv"), ("source", "target"), "accuracy")
    sets = sorted({target for _, target in reached})
    return {(a, b): reached[baseline or b, b] - reached[a, b] for a, b in permutations(sets, 2)}


def summarise(results: Path) -> None:
    """Correlations over all ordered pairs, with the authors' baseline as well, and the seconds of each method."""
    gap, authors = gaps(results), gaps(results, NONE)
    pairs = list(gap)
    table = []
    for method in METHODS:
        rows = [row for row in read(results / "text_distances.csv") if row["method"] == method]
        found = mean_by(rows, ("a", "b"), "distance")
        far = {**found, **{(b, a): value for (a, b), value in found.items()}}
        rho, r = (c([far[pair] for pair in pairs], [gap[pair] for pair in pairs]) for c in (spearman, pearson))
        theirs = [c([far[pair] for pair in pairs], [authors[pair] for pair in pairs]) for c in (spearman, pearson)]
        by_target = choice(far, gap)
        # s-OTDD measures all pairs in one go, so its rows of a seed share their seconds.
        runs = {(row["seed"], row["a"] + row["b"] if method == EXACT else ""): float(row["seconds"]) for row in rows}
        table.append({
            "method": method, "pairs": len(pairs), "rho": rho.value, "r": r.value, "rho_within": by_target.rho,
            "nearest_is_best": by_target.best, "regret": by_target.regret, "regret_blind": by_target.blind,
            "rho_authors": theirs[0].value, "r_authors": theirs[1].value,
            "seconds": sum(runs.values()) / len({row["seed"] for row in rows}),
        })  # fmt: skip
    write(results / "text_correlations.csv", table)


if __name__ == "__main__":
    main()
