"""Which augmentation: Tiny-ImageNet with colours changed as the source, CIFAR-10 as the target.

A classifier is trained on every augmented source and tuned on the target; its accuracy is set against the distance
between the augmented source and the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from experiments import data, figures, networks, training
from experiments.correlate import mean_by, pearson, spearman
from experiments.jitter import Jitter
from experiments.methods import EXACT, SOTDD, Dataset, Method, measure
from experiments.options import Options, parse
from experiments.store import Row, Unit, complete, read, write

UNCUT = "s-OTDD (no clamp)"
METHODS = (SOTDD, UNCUT, EXACT)
SIDE = 32


@dataclass(frozen=True)
class Sizes:
    """How much is done."""

    augmentations: int
    seeds: int
    source: int
    target: int
    epochs: int
    tuning_epochs: int
    points: int  # of each side
    n_projections: int
    uncut_points: int
    uncut_projections: int
    width: int = 64


SIZES = {
    "full": Sizes(15, 3, 16_000, 5000, 5, 5, 3000, 5000, 5000, 100_000, 32),
    "quick": Sizes(5, 1, 600, 300, 1, 1, 300, 500, 300, 500, 8),
    "smallest": Sizes(3, 1, 60, 40, 1, 1, 60, 64, 60, 64, 4),
}


def main() -> None:
    """Measure and draw."""
    run(parse(__doc__))


def strengths(count: int) -> list[Jitter]:
    """Augmentations: each strength drawn from the paper's range, the same ones every time; the first changes least."""
    least, most = np.array([0.1, 0.1, 0.1, 0.0]), np.array([0.9, 0.9, 0.9, 0.5])
    drawn = least + (most - least) * np.random.default_rng(0).uniform(size=(count, 4))
    drawn[0] = least
    return [Jitter(*row) for row in drawn.tolist()]


def run(options: Options) -> None:
    """Augment, train, tune, measure, correlate."""
    sizes = SIZES[options.size]
    source = data.images("tiny_imagenet", options.data, side=SIDE, most=sizes.source)[0]
    target, test = (part.sample(sizes.target) for part in data.images("cifar10", options.data))
    measure_distances(options, sizes, source, target)
    train(options, sizes, source, target, test)
    if options.draw:
        summarise(options.results)
        figures.augmentation(options.results)


def augmented(source: data.Images, place: int, count: int, seed: int, device: str) -> Tensor:
    """The source by one of the augmentations."""
    generator = torch.Generator().manual_seed(seed)
    whole = torch.from_numpy(source.x)
    return torch.cat([strengths(count)[place](part.to(device), generator) for part in whole.split(4096)])


def train(
    options: Options,
    sizes: Sizes,
    source: data.Images,
    target: data.Images,
    test: data.Images,
    seeds: Sequence[int] | None = None,
) -> None:
    """One row per seed and augmentation."""
    place_labels = torch.from_numpy(source.y).to(options.device)
    x, y, test_x, test_y = (torch.from_numpy(part).to(options.device) for part in (target.x, target.y, test.x, test.y))

    def work(unit: Unit) -> Sequence[Row]:
        seed, place = int(str(unit["seed"])), int(str(unit["augmentation"]))
        pictures = augmented(source, place, sizes.augmentations, seed, options.device)
        training.seeded(seed)
        model = networks.ResNet18(200, small=True, width=sizes.width).to(options.device)
        model = model.to(memory_format=torch.channels_last)
        settings = {"prepare": networks.planes, "batch": 256, "seed": seed}
        training.fit(model, pictures, place_labels, epochs=sizes.epochs, title=f"augmentation {place}", **settings)
        model.head = torch.nn.Linear(model.head.in_features, 10).to(options.device)
        training.fit(model, x, y, epochs=sizes.tuning_epochs, title="tuning on CIFAR-10", **settings)
        return [training.scores(training.apply(model, test_x, networks.planes), test_y)]

    units = [
        {"seed": seed, "augmentation": place}
        for seed in (range(sizes.seeds) if seeds is None else seeds)
        for place in range(sizes.augmentations)
    ]
    complete(options.results / "augmentation_training.csv", units, work, title="augmentation")


def measure_distances(options: Options, sizes: Sizes, source: data.Images, target: data.Images) -> None:
    """One row per method and augmentation."""
    shape = (SIDE, SIDE, 3)
    methods = {
        SOTDD: (sizes.points, Method(SOTDD, sizes.n_projections, image_shape=shape)),
        UNCUT: (sizes.uncut_points, Method(SOTDD, sizes.uncut_projections, image_shape=shape, clamp=None)),
        EXACT: (sizes.points, Method(EXACT)),
    }

    def work(unit: Unit) -> Sequence[Row]:
        points, method = methods[str(unit["method"])]
        pictures = augmented(source, int(str(unit["augmentation"])), sizes.augmentations, 0, "cpu").numpy()
        a, b = (_flat(part.sample(points)) for part in (data.Images(pictures, source.y), target))
        found = measure(method, {"a": a, "b": b}, device="cpu" if method.name == EXACT else options.device)
        return [{"distance": found.values["a", "b"], "seconds": found.seconds}]

    path = options.results / "augmentation_distances.csv"
    for method, workers in ((SOTDD, 1), (UNCUT, 1), (EXACT, options.workers)):
        units = [{"method": method, "augmentation": place} for place in range(sizes.augmentations)]
        complete(path, units, work, title=method, workers=workers)


def _flat(part: data.Images) -> Dataset:
    return part.x, part.y


def summarise(results: Path) -> None:
    """Correlation of distance and accuracy, and the seconds of each method."""
    reached = mean_by(read(results / "augmentation_training.csv"), ("augmentation",), "accuracy")
    table = []
    for method in METHODS:
        rows = [row for row in read(results / "augmentation_distances.csv") if row["method"] == method]
        far = [float(row["distance"]) for row in rows]
        accuracy = [reached[row["augmentation"],] for row in rows]
        rho, r = spearman(far, accuracy), pearson(far, accuracy)
        table.append({
            "method": method, "augmentations": len(rows), "rho": rho.value, "rho_low": rho.low, "rho_high": rho.high,
            "r": r.value, "r_low": r.low, "r_high": r.high, "seconds": sum(float(row["seconds"]) for row in rows),
        })  # fmt: skip
    write(results / "augmentation_correlations.csv", table)


if __name__ == "__main__":
    main()
