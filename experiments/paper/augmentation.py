"""Which augmentation: Tiny-ImageNet with colours changed as the source, CIFAR-10 as the target.

A classifier is trained on every augmented source and frozen, and a linear layer is trained on the target; its accuracy
is set against the distance between the augmented source and the target. How: ``augmentation_training``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.lib import data
from experiments.lib.correlate import mean_by, partial_spearman, pearson, spearman
from experiments.lib.methods import EXACT, SOTDD, Dataset, Method, measure
from experiments.lib.options import Options, parse
from experiments.lib.store import Row, Unit, complete, read, write
from experiments.paper import augmentation_training, figures
from experiments.paper.augmentation_training import SIDE, SIZES, Sizes, augmented, strengths

UNCUT = "s-OTDD (no clamp)"
METHODS = (SOTDD, UNCUT, EXACT)


def main() -> None:
    """Measure and draw."""
    run(parse(__doc__))


def run(options: Options) -> None:
    """Augment, train, measure, correlate."""
    sizes = SIZES[options.size]
    if {"train", "distances"} & set(options.steps):
        source, check, target, test = augmentation_training.load(options, sizes)
        if "train" in options.steps:
            augmentation_training.train(options, sizes, source, check, target, test)
        if "distances" in options.steps:
            measure_distances(options, sizes, source, target)
    if "report" in options.steps and options.draw:
        summarise(options.results)
        figures.augmentation(options.results)


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
        place = int(str(unit["augmentation"]))
        sampled = source.sample(points)  # before it is changed: one draw of these pictures
        pictures = augmented(sampled, place, sizes.augmentations, 0).numpy()
        a, b = (_flat(part) for part in (data.Images(pictures, sampled.y), target.sample(points)))
        found = measure(method, {"a": a, "b": b}, device="cpu" if method.name == EXACT else options.device)
        return [{"distance": found.values["a", "b"], "seconds": found.seconds}]

    path = options.results / "augmentation_distances.csv"
    for method, workers in ((SOTDD, 1), (UNCUT, 1), (EXACT, options.workers)):
        units = [{"method": method, "augmentation": place} for place in range(sizes.augmentations)]
        complete(path, units, work, title=method, workers=workers)


def _flat(part: data.Images) -> Dataset:
    return part.x, part.y


def summarise(results: Path) -> None:
    """Correlation of distance and accuracy, what is left of it given the brightness, and the seconds of each method."""
    reached = mean_by(read(results / "augmentation_training.csv"), ("augmentation",), "accuracy")
    table = []
    for method in METHODS:
        rows = [row for row in read(results / "augmentation_distances.csv") if row["method"] == method]
        far = [float(row["distance"]) for row in rows]
        accuracy = [reached[row["augmentation"],] for row in rows]
        rho, r = spearman(far, accuracy), pearson(far, accuracy)
        designs = strengths(len(rows))
        bright = [designs[int(row["augmentation"])].brightness for row in rows]
        table.append({
            "method": method, "augmentations": len(rows), "rho": rho.value, "rho_low": rho.low, "rho_high": rho.high,
            "r": r.value, "r_low": r.low, "r_high": r.high, "rho_brightness": spearman(far, bright).value,
            "rho_given": partial_spearman(far, accuracy, bright),
            "seconds": sum(float(row["seconds"]) for row in rows),
        })  # fmt: skip
    write(results / "augmentation_correlations.csv", table)


if __name__ == "__main__":
    main()
