"""Split Tiny-ImageNet: ten tasks of twenty classes at 224 × 224, and whether the distance foretells the gain.

A ResNet-18 is trained on every task. Its body is frozen and a last layer is trained on every other task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from experiments import data, figures, networks, training
from experiments.correlate import choice, mean_by, pearson, spearman
from experiments.methods import SOTDD, Method, measure
from experiments.options import Options, parse
from experiments.store import Row, Unit, complete, read, write

LINEAR = "s-OTDD (linear)"
UNCUT = "s-OTDD (no clamp)"
METHODS = (SOTDD, UNCUT, LINEAR)

# What a gain is measured against: all of the network trained on the target, or a last layer on a network that
# was never trained, which is what the authors' script does.
BASELINES = ("trained", "untrained")


@dataclass(frozen=True)
class Sizes:
    """How much is done."""

    tasks: int
    classes: int
    side: int
    seeds: int
    epochs: int
    head_epochs: int
    points: int  # of each task, for s-OTDD with its values cut
    n_projections: int
    uncut_projections: int
    linear_projections: int
    width: int = 64
    most: int | None = None  # pictures of all classes together


SIZES = {
    "full": Sizes(10, 20, 224, 3, 12, 60, 300, 2000, 50_000, 10_000),
    "quick": Sizes(4, 5, 64, 1, 3, 20, 200, 500, 500, 500, 16, 8000),
    "smallest": Sizes(3, 2, 32, 1, 1, 2, 40, 64, 64, 64, 4, 2000),
}


@dataclass(frozen=True, eq=False)
class Task:
    """Some classes, on the device."""

    x: Tensor
    y: Tensor
    test_x: Tensor
    test_y: Tensor


def main() -> None:
    """Measure and draw."""
    run(parse(__doc__))


def run(options: Options) -> None:
    """Measure distances, train, correlate."""
    sizes = SIZES[options.size]
    tasks = split(options, sizes)
    measure_distances(options, sizes, tasks)
    train(options, sizes, tasks)
    if options.draw:
        summarise(options.results)
        figures.transfer(options.results, "tiny", METHODS)


def split(options: Options, sizes: Sizes) -> list[Task]:
    """Deal the classes out at random; pictures are enlarged by 8/7 and cut to size, as 256 is to 224."""
    train, test = data.images("tiny_imagenet", options.data, most=sizes.most)
    dealt = np.random.default_rng(0).permutation(200)[: sizes.tasks * sizes.classes].reshape(sizes.tasks, -1)
    tasks = []
    for classes in dealt:
        parts: list[Tensor] = []
        for part in (train, test):
            chosen = part.rows(np.isin(part.y, classes))
            pictures = _enlarged(torch.from_numpy(chosen.x).to(options.device), sizes.side)
            parts += [pictures, torch.from_numpy(np.searchsorted(np.sort(classes), chosen.y)).to(options.device)]
        tasks.append(Task(*parts))
    return tasks


def _enlarged(x: Tensor, side: int) -> Tensor:
    outer = side * 8 // 7
    start = (outer - side) // 2
    found = []
    for part in x.split(256):
        shown = nn.functional.interpolate(part.permute(0, 3, 1, 2).float(), size=(outer, outer), mode="bilinear")
        cut = shown[:, :, start : start + side, start : start + side]
        found.append(cut.permute(0, 2, 3, 1).round().clamp(0, 255).to(torch.uint8).contiguous())
    return torch.cat(found)


def train(options: Options, sizes: Sizes, tasks: list[Task], seeds: Sequence[int] | None = None) -> None:
    """One row per seed, source and target; a task's own row trains all of the network, "untrained" none of it."""

    def network(seed: int) -> networks.ResNet18:
        training.seeded(seed)
        model = networks.ResNet18(sizes.classes, small=sizes.side < 100, width=sizes.width)
        return model.to(options.device, memory_format=torch.channels_last)

    @cache
    def body(seed: int, source: str) -> networks.ResNet18:
        model = network(seed)
        if source != "untrained":
            task = tasks[int(source)]
            training.fit(
                model, task.x, task.y, epochs=sizes.epochs, seed=seed, title=f"ResNet-18 on task {source}",
                prepare=_flipped, batch=128,
            )  # fmt: skip
        return model.eval()

    def work(unit: Unit) -> Sequence[Row]:
        seed, source, task = int(str(unit["seed"])), str(unit["source"]), tasks[int(str(unit["target"]))]
        model = body(seed, source)
        seen, test = (training.apply(model.body, part, networks.planes, 512) for part in (task.x, task.test_x))
        head = model.head
        if source != str(unit["target"]):
            training.seeded(seed)
            head = nn.Linear(seen.shape[1], sizes.classes).to(options.device)
            training.fit(head, seen, task.y, epochs=sizes.head_epochs, seed=seed, title="last layer", rate=1e-2)
        right = training.scores(training.apply(head, test), task.test_y)["accuracy"]
        by_heart = training.scores(training.apply(head, seen), task.y)["accuracy"]
        return [{"accuracy": right, "train_accuracy": by_heart}]

    numbers = [str(place) for place in range(sizes.tasks)]
    units = [
        {"seed": seed, "source": source, "target": target}
        for seed in (range(sizes.seeds) if seeds is None else seeds)
        for source in (*numbers, "untrained")
        for target in numbers
    ]
    complete(options.results / "tiny_training.csv", units, work, title="split Tiny-ImageNet")


def _flipped(x: Tensor) -> Tensor:
    """Half of the pictures mirrored, against learning them by heart."""
    mirrored = torch.rand(len(x), device=x.device) < 0.5
    return networks.planes(torch.where(mirrored[:, None, None, None], x.flip(2), x))


def measure_distances(options: Options, sizes: Sizes, tasks: list[Task]) -> None:
    """One row per method, seed and pair of tasks."""
    shape = (sizes.side, sizes.side, 3)
    variants = {
        SOTDD: (sizes.points, Method(SOTDD, sizes.n_projections, image_shape=shape)),
        UNCUT: (None, Method(SOTDD, sizes.uncut_projections, image_shape=shape, clamp=None)),
        LINEAR: (None, Method(SOTDD, sizes.linear_projections)),
    }

    def work(unit: Unit) -> Sequence[Row]:
        points, method = variants[str(unit["method"])]
        whole = {
            str(place): data.Images(task.x.cpu().numpy(), task.y.cpu().numpy()) for place, task in enumerate(tasks)
        }
        sampled = {name: part.sample(points) for name, part in whole.items()}
        datasets = {name: (part.x, part.y) for name, part in sampled.items()}
        found = measure(method, datasets, seed=int(str(unit["seed"])), device=options.device)
        return [{"a": a, "b": b, "distance": far, "seconds": found.seconds} for (a, b), far in found.values.items()]

    units = [{"method": method, "seed": 0} for method in variants]
    complete(options.results / "tiny_distances.csv", units, work, title="s-OTDD")


def gains(results: Path, baseline: str, column: str) -> dict[tuple[str, str], float]:
    """Mean over seeds of the gain from (source, target)."""
    reached = mean_by(read(results / "tiny_training.csv"), ("source", "target"), column)
    numbers = sorted({target for _, target in reached})
    return {
        (a, b): reached[a, b] - reached[b if baseline == "trained" else "untrained", b]
        for a, b in permutations(numbers, 2)
    }


def summarise(results: Path) -> None:
    """Correlations of distance and gain, for both baselines, on pictures not seen and on those trained on."""
    table = []
    for method in METHODS:
        rows = [row for row in read(results / "tiny_distances.csv") if row["method"] == method]
        if not rows:
            continue
        found = mean_by(rows, ("a", "b"), "distance")
        far = {**found, **{(b, a): value for (a, b), value in found.items()}}
        for baseline in BASELINES:
            for column in ("accuracy", "train_accuracy"):
                gain = gains(results, baseline, column)
                pairs = list(gain)
                rho, r = (c([far[p] for p in pairs], [gain[p] for p in pairs]) for c in (spearman, pearson))
                by_target = choice(far, {pair: -value for pair, value in gain.items()})
                table.append({
                    "method": method, "baseline": baseline, "measured_on": column, "pairs": len(pairs),
                    "rho": rho.value, "rho_low": rho.low, "rho_high": rho.high,
                    "r": r.value, "r_low": r.low, "r_high": r.high,
                    "rho_within": -by_target.rho, "nearest_is_best": by_target.best,
                    "regret": by_target.regret, "regret_blind": by_target.blind,
                    "mean_gain": float(np.mean(list(gain.values()))), "seconds": float(rows[0]["seconds"]),
                })  # fmt: skip
    write(results / "tiny_correlations.csv", table)


def exact_bytes(points: int, side: int) -> int:
    """What OTDD (exact) would hold of two tasks in float64: features, and the plan with its cost."""
    return 8 * (2 * points * side * side * 3 + 6 * points**2)


if __name__ == "__main__":
    main()
