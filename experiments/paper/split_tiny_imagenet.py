"""Split Tiny-ImageNet: ten tasks of twenty classes at 224 × 224, and whether the distance predicts the gain.

A ResNet-18 is trained on every task. Its body is frozen and a last layer is trained on every other task. How, and what
the tasks are: ``tiny_training``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import permutations
from pathlib import Path

import numpy as np

from experiments.lib import data
from experiments.lib.correlate import choice, mean_by, pearson, spearman
from experiments.lib.methods import SOTDD, Method, measure
from experiments.lib.options import Options, parse
from experiments.lib.store import Row, Unit, complete, read, write
from experiments.paper import figures, tiny_training
from experiments.paper.tiny_training import BY_FAMILY, KINDS, RANDOM, SIZES, Sizes, stem

LINEAR = "s-OTDD (linear)"
UNCUT = "s-OTDD (no clamp)"
METHODS = (SOTDD, UNCUT, LINEAR)

# What a gain is measured against: all of the network trained on the target, or a last layer on a network that
# was never trained, which is what the authors' script does.
BASELINES = ("trained", "untrained")


def main() -> None:
    """Measure and draw."""
    run(parse(__doc__))


def run(options: Options) -> None:
    """Train, measure distances, correlate: tasks at random, and tasks that are families of classes."""
    sizes = SIZES[options.size]
    if "train" in options.steps:
        tiny_training.train(options, KINDS)
    for kind in KINDS if sizes.seeds else (RANDOM,):
        if "distances" in options.steps:
            measure_distances(options, sizes, kind)
        if "report" in options.steps and options.draw:
            summarise(options.results, kind)
    if "report" in options.steps and options.draw:
        figures.transfer(options.results, "tiny", METHODS)


def measure_distances(options: Options, sizes: Sizes, kind: str) -> None:
    """One row per method, seed and pair of tasks."""
    shape = (sizes.side, sizes.side, 3)
    variants = {
        SOTDD: (sizes.points, Method(SOTDD, sizes.n_projections, image_shape=shape)),
        UNCUT: (None, Method(SOTDD, sizes.uncut_projections, image_shape=shape, clamp=None)),
        LINEAR: (None, Method(SOTDD, sizes.linear_projections)),
    }
    few = sizes.family_projections if kind == BY_FAMILY else None
    if few is not None:
        quick = {name: method for name, (_, method) in variants.items() if name != SOTDD}
        variants = {name: (sizes.family_points, replace(method, n_projections=few)) for name, method in quick.items()}

    @cache
    def tasks() -> dict[str, data.Images]:
        """Made where they are needed: a finished file is not worth decoding all pictures for."""
        found = tiny_training.split(options, sizes, kind, sizes.side)
        return {
            str(place): data.Images(tiny_training.centred(task.x, sizes.side).cpu().numpy(), task.y.cpu().numpy())
            for place, task in enumerate(found)
        }

    def work(unit: Unit) -> Sequence[Row]:
        points, method = variants[str(unit["method"])]
        sampled = {name: part.sample(points) for name, part in tasks().items()}
        datasets = {name: (np.ascontiguousarray(part.x), part.y) for name, part in sampled.items()}
        found = measure(method, datasets, seed=int(str(unit["seed"])), device=options.device)
        return [{"a": a, "b": b, "distance": far, "seconds": found.seconds} for (a, b), far in found.values.items()]

    units = [
        {"method": name, "seed": run}
        for name, (_, method) in variants.items()
        for run in range(sizes.runs)
        if method.n_projections
    ]
    complete(options.results / f"{stem(kind)}_distances.csv", units, work, title=f"s-OTDD, tasks: {kind}")


def gains(
    results: Path, baseline: str, column: str, kind: str = RANDOM, seed: str | None = None
) -> dict[tuple[str, str], float]:
    """The gain from (source, target) by one seed, or the mean over all."""
    rows = read(results / f"{stem(kind)}_training.csv")
    reached = mean_by([row for row in rows if seed in (None, row["seed"])], ("source", "target"), column)
    numbers = sorted({target for _, target in reached})
    return {
        (a, b): reached[a, b] - reached[b if baseline == "trained" else "untrained", b]
        for a, b in permutations(numbers, 2)
    }


def summarise(results: Path, kind: str = RANDOM) -> None:
    """Correlations of distance and gain, for both baselines, on pictures not seen and on those trained on."""
    table = []
    for method in METHODS:
        rows = [row for row in read(results / f"{stem(kind)}_distances.csv") if row["method"] == method]
        if not rows:
            continue
        found = mean_by(rows, ("a", "b"), "distance")
        far = {**found, **{(b, a): value for (a, b), value in found.items()}}
        for baseline in BASELINES:
            for column in ("accuracy", "train_accuracy"):
                gain = gains(results, baseline, column, kind)
                pairs = list(gain)
                rho, r = (c([far[p] for p in pairs], [gain[p] for p in pairs]) for c in (spearman, pearson))
                by_target = choice(far, {pair: -value for pair, value in gain.items()})
                table.append({
                    "method": method, "baseline": baseline, "measured_on": column, "pairs": len(pairs),
                    "rho": rho.value, "r": r.value,
                    "rho_within": -by_target.rho, "nearest_is_best": by_target.best,
                    "regret": by_target.regret, "regret_blind": by_target.blind,
                    "mean_gain": float(np.mean(list(gain.values()))), "seconds": float(rows[0]["seconds"]),
                })  # fmt: skip
    write(results / f"{stem(kind)}_correlations.csv", table)


if __name__ == "__main__":
    main()
