"""What differential privacy costs a distance: python -m benchmarks.privacy [--data DIR] [--quick].

Real pairs, through projections that were fitted on a third, public set. Errors are against the distance without noise
through the same projections: means and standard deviations over draws of the noise.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from experiments.lib.files import default_folder

import sotdd
from benchmarks.core import Labelled
from sotdd.sketches.private import ExactCounts

_EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
_DELTA = 1e-6


class Party:
    """A dataset, counted once; noise is drawn on its counts as often as it takes. Users draw it once."""

    def __init__(self, data: Labelled, projections: sotdd.Projections) -> None:
        self.projections = projections
        self.plain = sotdd.sketch(data, projections)
        self.classes = np.unique(data[1]).tolist()
        self.exact: ExactCounts | None = sotdd.PrivateBuilder(projections, classes=self.classes).add(*data)._counts

    def released(self, epsilon: float, delta: float) -> sotdd.Sketch:
        """What this party would show."""
        builder = sotdd.PrivateBuilder(self.projections, classes=self.classes)
        builder._counts = self.exact
        return builder.release(epsilon=epsilon, delta=delta)


def distances(one: Party, two: Party, epsilon: float, delta: float, draws: int) -> tuple[float, float]:
    """The mean and the standard deviation of the distance of two releases."""
    found = np.array([one.released(epsilon, delta).distance(two.released(epsilon, delta)).value for _ in range(draws)])
    return float(found.mean()), float(found.std(ddof=1))


def sets(folder: Path, most: int) -> dict[str, Labelled]:
    """Images of 28 × 28 pixels; MNIST also as two halves."""
    found = {}
    for name in ("mnist", "fashion_mnist", "kmnist", "emnist_letters"):
        with np.load(folder / f"{name}.npz") as arrays:
            x = np.concatenate([arrays["X_train"], arrays["X_test"]]).reshape(-1, 784)
            y = np.concatenate([arrays["y_train"], arrays["y_test"]])
        order = np.random.default_rng(0).permutation(len(x))[:most]
        found[name] = x[order], y[order]
    x, y = found["mnist"]
    middle = len(x) // 2
    found["one half"], found["the other"] = (x[:middle], y[:middle]), (x[middle:], y[middle:])
    return found


def by_budget(data: dict[str, Labelled], draws: int, count: int = 64) -> str:
    """Error against ε."""
    projections = sotdd.Projections.fit([data["emnist_letters"]], n_projections=count)
    pairs = [("mnist", "fashion_mnist"), ("mnist", "kmnist"), ("one half", "the other")]
    parties = {name: Party(data[name], projections) for pair in pairs for name in pair}
    titles = [f"ε = {epsilon:g}" for epsilon in _EPSILONS]
    lines = [f"| pair | points | δ | no noise | {' | '.join(titles)} |", "|---" * (4 + len(titles)) + "|"]
    for a, b in pairs:
        one, two = parties[a], parties[b]
        true = one.plain.distance(two.plain, estimator="plain").value
        found = [distances(one, two, epsilon, _DELTA, draws) for epsilon in _EPSILONS]
        cells = [f"{mean:.3f} ± {spread:.3f}" for mean, spread in found]
        points = f"{one.plain.n_points:,} and {two.plain.n_points:,}"
        lines.append(f"| {a} – {b} | {points} | {_DELTA:g} | {true:.3f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def by_size(data: dict[str, Labelled], draws: int, sizes: tuple[int, ...]) -> str:
    """Error at ε = 1 against the number of points and of projections, beside what few projections cost themselves."""
    counts = (16, 64, 256)
    titles = [f"{count} projections" for count in counts]
    lines = [f"| points of each | {' | '.join(titles)} |", "|---" * (1 + len(titles)) + "|"]
    few = []
    rows: dict[int, list[str]] = {size: [] for size in sizes}
    for count in counts:
        projections = sotdd.Projections.fit([data["emnist_letters"]], n_projections=count)
        for size in sizes:
            cut = [(data[name][0][:size], data[name][1][:size]) for name in ("mnist", "fashion_mnist")]
            one, two = (Party(part, projections) for part in cut)
            plain = one.plain.distance(two.plain, estimator="plain")
            mean, spread = distances(one, two, 1.0, _DELTA, draws)
            rows[size].append(f"{100 * (mean / plain.value - 1):+.1f} ± {100 * spread / plain.value:.1f} %")
        few.append(f"± {100 * plain.stderr / plain.value:.0f} %")
    lines += [f"| {size:,} | {' | '.join(cells)} |" for size, cells in rows.items()]
    return "\n".join([*lines, f"| no noise: by few projections alone | {' | '.join(few)} |"])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer draws, smaller data")
    parser.add_argument("--data", type=Path, default=default_folder(), help="folder of mnist.npz and others")
    options = parser.parse_args()
    draws = 3 if options.quick else 8
    data = sets(options.data, 4000 if options.quick else 70_000)
    print("**By budget**", by_budget(data, draws), "**By size**", sep="\n\n", end="\n\n")
    print(by_size(data, draws, (1000, 4000) if options.quick else (2000, 10_000, 70_000)))


if __name__ == "__main__":
    main()
