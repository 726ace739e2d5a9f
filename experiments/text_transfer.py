"""Transfer among text sets: a sentence encoder tuned on a source, adapted to 100 examples per class of a target.

The gap is what the encoder reaches when it is tuned on all of the target, less what it reaches by way of the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from experiments import data, figures, networks, training
from experiments.correlate import choice, mean_by, pearson, spearman
from experiments.methods import EXACT, SOTDD, Dataset, Method, measure
from experiments.options import Options, parse
from experiments.store import Row, Unit, complete, read, write

METHODS = (SOTDD, EXACT)


@dataclass(frozen=True)
class Sizes:
    """How much is done."""

    seeds: int
    source: int  # examples to tune on
    test: int
    per_class: int
    epochs: int
    adapting_epochs: int
    length: int  # tokens of a text
    points: int  # for s-OTDD
    slow_points: int  # for OTDD (exact)
    n_projections: int
    sets: tuple[str, ...] = data.TEXTS


SIZES = {
    "full": Sizes(3, 3000, 1000, 100, 2, 4, 128, 5000, 2500, 10_000),
    "quick": Sizes(1, 96, 100, 10, 1, 1, 32, 200, 200, 500),
    "smallest": Sizes(1, 16, 16, 4, 1, 1, 16, 24, 24, 64, ("ag_news", "imdb", "yelp_polarity")),
}


@dataclass(frozen=True, eq=False)
class Task:
    """Token numbers and labels of a set."""

    x: Tensor
    y: Tensor
    test_x: Tensor
    test_y: Tensor

    @property
    def classes(self) -> int:
        """How many there are."""
        return int(self.y.max()) + 1

    def few(self, per_class: int, seed: int) -> tuple[Tensor, Tensor]:
        """So many examples of every class."""
        order = torch.randperm(len(self.y), generator=torch.Generator().manual_seed(seed)).to(self.y.device)
        rows = torch.cat([order[self.y[order] == c][:per_class] for c in range(self.classes)])
        return self.x[rows], self.y[rows]


def main() -> None:
    """Measure and draw."""
    run(parse(__doc__))


def run(options: Options) -> None:
    """Tune, adapt, measure, correlate."""
    sizes = SIZES[options.size]
    encoder = networks.sentence_encoder(options.device)
    tasks = {name: _task(name, options, sizes) for name in sizes.sets}
    measure_distances(options, sizes, encoder, tasks)
    train(options, sizes, encoder, tasks)
    if options.draw:
        summarise(options.results)
        figures.transfer(options.results, "text", METHODS)


def _task(name: str, options: Options, sizes: Sizes) -> Task:
    """The train part is for tuning and for distances alike, so take as many as the larger of them needs."""
    found = []
    for part, most in zip(data.texts(name, options.data), (max(sizes.source, sizes.points), sizes.test), strict=True):
        # Each class alike; polarity keeps the rows of the stars that it is made of, so no test row is ever tuned on.
        rows = _balanced(part.y, most)
        chosen = part.rows(rows)
        found += [networks.tokenise(chosen.x, sizes.length), torch.from_numpy(chosen.y)]
    return Task(*(part.to(options.device) for part in found))


def _balanced(labels: np.ndarray, most: int) -> np.ndarray:
    order = np.random.default_rng(0).permutation(len(labels))
    turn = np.empty(len(labels), int)
    for label in np.unique(labels):
        mine = order[labels[order] == label]
        turn[mine] = np.arange(len(mine))
    return order[np.argsort(turn[order], kind="stable")][:most]


def train(
    options: Options,
    sizes: Sizes,
    encoder: torch.nn.Module,
    tasks: dict[str, Task],
    seeds: Sequence[int] | None = None,
) -> None:
    """One row per seed, source and target; a set's own row is tuned on all of it, "none" starts from the encoder."""

    def tuned(
        start: torch.nn.Module, x: Tensor, y: Tensor, classes: int, epochs: int, seed: int, title: str
    ) -> networks.TextClassifier:
        training.seeded(seed)
        model = networks.TextClassifier(deepcopy(start), classes).to(options.device)
        training.fit(model, x, y, epochs=epochs, seed=seed, title=title, rate=1e-4, batch=32)
        return model

    @cache
    def source_model(seed: int, name: str) -> networks.TextClassifier:
        task = tasks[name]
        rows = torch.randperm(len(task.y), generator=torch.Generator().manual_seed(seed))[: sizes.source]
        rows = rows.to(task.y.device)
        return tuned(encoder, task.x[rows], task.y[rows], task.classes, sizes.epochs, seed, f"tuning on {name}")

    def work(unit: Unit) -> Sequence[Row]:
        seed, source, target = int(str(unit["seed"])), str(unit["source"]), str(unit["target"])
        task = tasks[target]
        if source == target:
            model = source_model(seed, target)
        else:
            start = encoder if source == "none" else source_model(seed, source).encoder
            x, y = task.few(sizes.per_class, seed)
            model = tuned(start, x, y, task.classes, sizes.adapting_epochs, seed, f"{source} to {target}")
        return [training.scores(training.apply(model, task.test_x, batch=256), task.test_y)]

    units = [
        {"seed": seed, "source": source, "target": target}
        for seed in (range(sizes.seeds) if seeds is None else seeds)
        for source in (*sizes.sets, "none")
        for target in sizes.sets
    ]
    complete(options.results / "text_training.csv", units, work, title="text transfer")


def measure_distances(options: Options, sizes: Sizes, encoder: torch.nn.Module, tasks: dict[str, Task]) -> None:
    """Distances between the encoder's embeddings of the train parts, one row per method, seed and pair."""
    embed = networks.TextClassifier(encoder, 2).to(options.device).eval().embed
    embedded: dict[str, Dataset] = {
        name: (training.apply(embed, task.x, batch=256).cpu().numpy(), task.y.cpu().numpy())
        for name, task in tasks.items()
    }

    def work(unit: Unit) -> Sequence[Row]:
        seed, slow = int(str(unit["seed"])), unit["method"] == EXACT
        rng = np.random.default_rng(seed)
        chosen = {}
        for name in (str(unit["a"]), str(unit["b"])) if slow else sizes.sets:
            x, y = embedded[name]
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


def gaps(results: Path) -> dict[tuple[str, str], float]:
    """Mean over seeds of the gap from (source, target)."""
    reached = mean_by(read(results / "text_training.csv"), ("source", "target"), "accuracy")
    sets = sorted({target for _, target in reached})
    return {(a, b): reached[b, b] - reached[a, b] for a, b in permutations(sets, 2)}


def summarise(results: Path) -> None:
    """Correlations over all ordered pairs, and the seconds of each method."""
    gap = gaps(results)
    pairs = list(gap)
    # The target that every source serves about as well as any other: far from all, and yet without a gap.
    easiest = min(
        {target for _, target in pairs}, key=lambda target: max(g for (_, b), g in gap.items() if b == target)
    )
    table = []
    for method in METHODS:
        rows = [row for row in read(results / "text_distances.csv") if row["method"] == method]
        found = mean_by(rows, ("a", "b"), "distance")
        far = {**found, **{(b, a): value for (a, b), value in found.items()}}
        rho, r = (c([far[pair] for pair in pairs], [gap[pair] for pair in pairs]) for c in (spearman, pearson))
        by_target = choice(far, gap)
        harder = [pair for pair in pairs if pair[1] != easiest]
        without = [c([far[pair] for pair in harder], [gap[pair] for pair in harder]) for c in (spearman, pearson)]
        # s-OTDD measures all pairs in one go, so its rows of a seed share their seconds.
        runs = {(row["seed"], row["a"] + row["b"] if method == EXACT else ""): float(row["seconds"]) for row in rows}
        table.append({
            "method": method, "pairs": len(pairs), "rho": rho.value, "rho_low": rho.low, "rho_high": rho.high,
            "r": r.value, "r_low": r.low, "r_high": r.high, "rho_within": by_target.rho,
            "nearest_is_best": by_target.best, "regret": by_target.regret, "regret_blind": by_target.blind,
            "easiest": easiest, "rho_without_easiest": without[0].value, "r_without_easiest": without[1].value,
            "seconds": sum(runs.values()) / len({row["seed"] for row in rows}),
        })  # fmt: skip
    write(results / "text_correlations.csv", table)


if __name__ == "__main__":
    main()
