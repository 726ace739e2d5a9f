"""Transfer among the *NIST sets, and whether the distance foretells how well a source serves a target.

LeNet-5 is trained on every source; its convolutions are frozen and its head is trained on every target. The
performance gap is what training on the target alone reaches, less that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, permutations

import torch
from torch import Tensor

from experiments import data, figures, networks, training
from experiments.correlate import choice, mean_by, pearson, spearman
from experiments.methods import AUTHORS_SCALE, CHSW, EXACT, GAUSSIAN, METHODS, SOTDD, WTE, Dataset, Method, measure
from experiments.options import Options, parse
from experiments.store import Row, Unit, complete, read, write

GAPS = ("accuracy", "f1", "precision", "recall")
CONVOLUTION = "s-OTDD (convolution)"
UNCUT = "s-OTDD (convolution, no clamp)"
AUTHORS = "s-OTDD (authors' scale)"


@dataclass(frozen=True)
class Sizes:
    """How much is done."""

    seeds: int
    source_epochs: int
    head_epochs: int
    few: int  # points of a target in the scarce setting
    few_epochs: int
    points: int | None  # of each set, for training and s-OTDD
    embedded: int  # points of each set, or zero for no embedding
    slow: int  # points of each set for the slow methods
    n_projections: int
    side: int = 224  # pixels that the embedding sees
    sets: tuple[str, ...] = data.NIST


SIZES = {
    "full": Sizes(5, 20, 10, 2000, 40, None, 10_000, 5000, 10_000),
    "quick": Sizes(1, 2, 2, 500, 10, 3000, 300, 300, 500, 96),
    "smallest": Sizes(1, 1, 1, 100, 2, 200, 0, 60, 64, 64, ("mnist", "usps", "kmnist")),
}


@dataclass(frozen=True, eq=False)
class Task:
    """A set on the device."""

    x: Tensor
    y: Tensor
    test_x: Tensor
    test_y: Tensor

    @property
    def classes(self) -> int:
        """How many there are."""
        return int(self.y.max()) + 1

    def few(self, points: int | None, seed: int) -> Task:
        """With fewer points to learn from."""
        if points is None:
            return self
        rows = torch.randperm(len(self.y), generator=torch.Generator().manual_seed(seed))[:points].to(self.y.device)
        return replace(self, x=self.x[rows], y=self.y[rows])


def main() -> None:
    """Measure and draw."""
    run(parse(__doc__))


def run(options: Options) -> None:
    """Train everything, measure all distances, correlate."""
    sizes = SIZES[options.size]
    measure_distances(options, sizes)
    train(options, sizes)
    if options.draw:
        summarise(options)
        figures.transfer(options.results, "nist", METHODS)


# --------------------------------------------------------------------------- training


def train(options: Options, sizes: Sizes, seeds: Sequence[int] | None = None) -> None:
    """One row per seed, number of target points, source and target; a set's own row trains all of the network on it."""
    tasks = {name: _task(name, options, sizes) for name in sizes.sets}

    @cache
    def pretrained(seed: int, source: str) -> networks.LeNet5:
        return _trained(tasks[source], sizes.source_epochs, seed, f"LeNet-5 on {source}")

    def work(unit: Unit) -> Sequence[Row]:
        seed, points, source, target = unit["seed"], unit["points"], str(unit["source"]), str(unit["target"])
        assert isinstance(seed, int)
        few = points != "all"
        task = tasks[target].few(sizes.few if few else None, seed)
        if source == target:
            alone = _trained(task, sizes.few_epochs, seed, target) if few else pretrained(seed, target)
            return [training.scores(training.apply(alone, task.test_x, networks.planes), task.test_y)]
        epochs = sizes.few_epochs if few else sizes.head_epochs
        return [_transferred(pretrained(seed, source), task, epochs, seed, f"{source} to {target}")]

    units = [
        {"seed": seed, "points": points, "source": source, "target": target}
        for seed in (range(sizes.seeds) if seeds is None else seeds)
        for source in sizes.sets
        for points in ("all", sizes.few)
        for target in sizes.sets
    ]
    complete(options.results / "nist_training.csv", units, work, title="transfer")


def _task(name: str, options: Options, sizes: Sizes) -> Task:
    train, test = data.images(name, options.data, side=28)
    train, test = train.sample(sizes.points), test.sample(sizes.points)
    arrays = (train.x, train.y, test.x, test.y)
    return Task(*(torch.from_numpy(part).to(options.device) for part in arrays))


def _trained(task: Task, epochs: int, seed: int, title: str) -> networks.LeNet5:
    training.seeded(seed)
    model = networks.LeNet5(task.classes).to(task.x.device)
    batch = _batch(len(task.y))
    training.fit(model, task.x, task.y, epochs=epochs, seed=seed, title=title, prepare=networks.planes, batch=batch)
    return model


def _transferred(source: networks.LeNet5, task: Task, epochs: int, seed: int, title: str) -> dict[str, float]:
    """Train a head, which starts from the source's but for its last layer, on frozen convolutions."""
    training.seeded(seed)
    model = networks.LeNet5(task.classes).to(task.x.device)
    for own, other in zip(model.head[:-1], source.head[:-1], strict=True):
        own.load_state_dict(other.state_dict())
    seen, test = (training.apply(source.convolutions, part, networks.planes) for part in (task.x, task.test_x))
    training.fit(model.head, seen, task.y, epochs=epochs, seed=seed, title=title, batch=_batch(len(task.y)))
    return training.scores(training.apply(model.head, test), task.test_y)


def _batch(points: int) -> int:
    """The authors' 64, which the smaller sets need to be learnt at all; larger ones take fewer steps."""
    return 64 if points < 10_000 else 256


# --------------------------------------------------------------------------- distances


def measure_distances(options: Options, sizes: Sizes) -> None:
    """One row per space, method, seed and pair of sets."""
    path = options.results / "nist_distances.csv"
    pixels = {name: data.images(name, options.data, side=28)[0].sample(sizes.points) for name in sizes.sets}
    spaces: dict[str, dict[str, Dataset]] = {"pixels": {name: (part.x, part.y) for name, part in pixels.items()}}
    if sizes.embedded:
        embedded = {name: part.sample(sizes.embedded) for name, part in pixels.items()}
        spaces["embedding"] = {
            name: (networks.efficientnet_features(part.x, options.device, sizes.side), part.y)
            for name, part in embedded.items()
        }

    def sampled(unit: Unit, names: Sequence[str], points: int | None) -> dict[str, Dataset]:
        parts = {name: data.Images(*spaces[str(unit["space"])][name]) for name in names}  # type: ignore[arg-type]
        chosen = {name: part.sample(points, int(str(unit["seed"]))) for name, part in parts.items()}
        return {name: (part.x, part.y) for name, part in chosen.items()}

    def rows(method: Method, datasets: dict[str, Dataset], unit: Unit, device: str) -> Sequence[Row]:
        found = measure(method, datasets, seed=int(str(unit["seed"])), device=device)
        return [{"a": a, "b": b, "distance": far, "seconds": found.seconds} for (a, b), far in found.values.items()]

    def fast(unit: Unit) -> Sequence[Row]:
        points, method = _variants(sizes)[str(unit["method"])]
        return rows(method, sampled(unit, sizes.sets, points), unit, options.device)

    def slow(unit: Unit) -> Sequence[Row]:
        names = [str(unit[side]) for side in "ab" if side in unit] or sizes.sets
        method = Method(str(unit["method"]), n_projections=sizes.n_projections)
        return rows(method, sampled(unit, names, sizes.slow), unit, "cpu")

    seeds = range(min(3, sizes.seeds))
    units: list[Unit] = [
        {"space": space, "method": name, "seed": seed}
        for seed in seeds
        for space in spaces
        for name in _variants(sizes)
        if space == "pixels" or name == SOTDD
    ]
    complete(path, units, fast, title="s-OTDD")
    pairs = list(combinations(sizes.sets, 2))
    units = [
        {"space": space, "method": name, "seed": seed, "a": a, "b": b}
        for seed in seeds
        for space in spaces
        for name in (EXACT, GAUSSIAN)
        for a, b in pairs
    ]
    complete(path, units, slow, title="OTDD", workers=options.workers)
    units = [
        {"space": space, "method": name, "seed": seed} for seed in seeds for space in spaces for name in (WTE, CHSW)
    ]
    complete(path, units, slow, title="WTE, CHSW")


def _variants(sizes: Sizes) -> Mapping[str, tuple[int | None, Method]]:
    """Points of each set, None for all of them, and how they are compared."""
    plain = Method(SOTDD, n_projections=sizes.n_projections)
    stack = replace(plain, image_shape=(28, 28))
    return {
        SOTDD: (None, plain),
        AUTHORS: (None, replace(plain, scale=AUTHORS_SCALE)),
        CONVOLUTION: (sizes.slow, stack),
        UNCUT: (None, replace(stack, clamp=None)),
    }


# --------------------------------------------------------------------------- summary


def gaps(results: object, metric: str, points: str) -> dict[tuple[str, str], float]:
    """Mean over seeds of the gap from (source, target)."""
    rows = [row for row in read(results / "nist_training.csv") if row["points"] == points]  # type: ignore[operator]
    reached = mean_by(rows, ("source", "target"), metric)
    return {
        (source, target): reached[target, target] - reached[source, target]
        for source, target in permutations(sorted({source for source, _ in reached}), 2)
    }


def both_ways(rows: Sequence[Mapping[str, str]]) -> dict[tuple[str, str], float]:
    """Mean distance over seeds, from (source, target)."""
    found = mean_by(rows, ("a", "b"), "distance")
    return {**found, **{(b, a): far for (a, b), far in found.items()}}  # type: ignore[dict-item]


def summarise(options: Options) -> None:
    """Correlations over all ordered pairs, and what choosing by distance is worth."""
    rows = read(options.results / "nist_distances.csv")
    settings = sorted({row["points"] for row in read(options.results / "nist_training.csv")}, reverse=True)
    table = []
    for points in settings:
        for space, method in sorted({(row["space"], row["method"]) for row in rows}, reverse=True):
            chosen = [row for row in rows if (row["space"], row["method"]) == (space, method)]
            far = both_ways(chosen)
            for metric in GAPS:
                gap = gaps(options.results, metric, points)
                pairs = list(gap)
                rho, r = (c([far[pair] for pair in pairs], [gap[pair] for pair in pairs]) for c in (spearman, pearson))
                by_target = choice(far, gap)
                table.append({
                    "points": points, "space": space, "method": method, "metric": metric, "pairs": len(pairs),
                    "rho": rho.value, "rho_low": rho.low, "rho_high": rho.high,
                    "r": r.value, "r_low": r.low, "r_high": r.high,
                    "rho_within": by_target.rho, "nearest_is_best": by_target.best,
                    "regret": by_target.regret, "regret_blind": by_target.blind,
                })  # fmt: skip
    write(options.results / "nist_correlations.csv", table)


if __name__ == "__main__":
    main()
