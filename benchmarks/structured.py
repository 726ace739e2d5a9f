"""Whether structured directions measure what directions uniform on the sphere measure, pair by pair.

Run with the folder of datasets, from the root of the repository::

    python -m benchmarks.structured DATA --markdown structured.md

The mean of W_2² by `sotdd.projections.Hadamard`, plain and controlled, is compared with that by
`sotdd.projections.Sphere`, controlled. Rows of a turn are not independent, so errors of structured means are those
between turns. A line holds where the difference is below 0.3 % of the
mean, or within three of its standard errors while these are below 0.3 %.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sotdd
from benchmarks.estimators import _sample
from sotdd.projections.rotations import FEWEST_FEATURES, rotation_size

Labelled = tuple[NDArray[Any], NDArray[Any]]
Doubles = NDArray[np.float64]

# Plain means need this many times the projections of controlled ones.
_PLAIN = 32

# A difference, and the standard error of one, that do not matter.
_SMALL = 0.003

_GREY = {
    "MNIST": "mnist",
    "USPS": "usps",
    "Fashion-MNIST": "fashion_mnist",
    "KMNIST": "kmnist",
    "EMNIST": "emnist_letters",
}
_TEXTS = {
    "AG news": "ag_news",
    "Amazon": "amazon_review_full",
    "DBpedia": "dbpedia14",
    "IMDb": "imdb_train2000",
    "Yelp": "yelp_review_full",
}
_WORDS = 1200  # features of texts: just above a power of two


@dataclass(frozen=True)
class Line:
    """What was measured of one pair."""

    name: str
    n_features: int
    sphere: tuple[float, float]  # mean of W_2² and its standard error, controlled
    plain: tuple[float, float]  # by structured directions
    controlled: tuple[float, float]
    variances: tuple[float, float]  # of a mean by structured directions over that by the sphere: plain, controlled

    def apart(self, found: tuple[float, float]) -> tuple[float, float]:
        """The difference from the sphere and its standard error, as shares of the mean."""
        mean, error = self.sphere
        return found[0] / mean - 1, float(np.hypot(found[1], error)) / mean

    @property
    def holds(self) -> bool:
        """Whether structured directions measure the same."""
        return all(
            abs(gap) < _SMALL or (abs(gap) < 3 * error and error < _SMALL)
            for gap, error in (self.apart(self.plain), self.apart(self.controlled))
        )

    def row(self) -> str:
        """A line of the table."""
        cells = [
            f"{100 * gap:+.2f} ± {100 * error:.2f} %" for gap, error in map(self.apart, (self.plain, self.controlled))
        ]
        ratios = [f"{ratio:.2f}" for ratio in self.variances]
        verdict = "yes" if self.holds else "**no**"
        return f"| {self.name} | {self.n_features:,} | {' | '.join(cells)} | {' | '.join(ratios)} | {verdict} |"


# ------------------------------------------------------------------ the pairs


def _words(path: Path, count: int, seed: int) -> Labelled:
    """Counts of hashed words of random texts: sparse, as people have them."""
    from sklearn.feature_extraction.text import HashingVectorizer

    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = [(row["title"] + " " + row["text"], int(row["label"])) for row in csv.DictReader(file)]
    chosen = np.random.default_rng(seed).permutation(len(rows))[:count]
    counted = HashingVectorizer(n_features=_WORDS, alternate_sign=False, norm=None)
    features = counted.transform([rows[i][0] for i in chosen]).toarray().astype(np.float32)
    return features, np.array([rows[i][1] for i in chosen])


def real_pairs(folder: Path, count: int) -> Iterator[tuple[str, Labelled, Labelled]]:
    """Pictures and texts, each with each, and halves of some."""
    grey = {
        name: _sample(folder / f"{file}.npz", 2 * count, place, 28) for place, (name, file) in enumerate(_GREY.items())
    }
    texts = {name: _words(folder / f"{file}.csv.gz", count, place) for place, (name, file) in enumerate(_TEXTS.items())}
    for (one, (x, y)), (other, (u, v)) in combinations(grey.items(), 2):
        yield f"{one}, {other}", (x[:count], y[:count]), (u[:count], v[:count])
    for name in ("MNIST", "KMNIST"):
        x, y = grey[name]
        yield f"{name}, halves", (x[:count], y[:count]), (x[count:], y[count:])
    colour = _sample(folder / "cifar10.npz", 2 * count, 5)
    small = _sample(folder / "tiny_imagenet_subset.npz", count, 6, 32)
    yield "CIFAR-10, Tiny-ImageNet", (colour[0][:count], colour[1][:count]), small
    yield "CIFAR-10, halves", *((colour[0][half], colour[1][half]) for half in (slice(count), slice(count, None)))
    for (one, left), (other, right) in combinations(texts.items(), 2):
        yield f"{one}, {other}", left, right


def hostile_pairs(count: int) -> Iterator[tuple[str, Labelled, Labelled]]:
    """Data that structured directions might not like."""
    rng = np.random.default_rng(0)

    def side(features: NDArray[Any], classes: int = 4) -> Labelled:
        return features, rng.integers(classes, size=len(features))

    def axes(d: int, skew: float) -> Labelled:
        points = np.zeros((count, d))
        place = (d * rng.random(count) ** skew).astype(int)
        points[np.arange(count), place] = rng.normal(1, 0.5, size=count)
        return points, place % 3

    yield "normal, moved", side(rng.normal(size=(count, 3))), side(rng.normal(0.3, 1, size=(count, 3)))
    for d in (64, 65, 129, 257, 1025):
        yield "normal, moved", side(rng.normal(size=(count, d))), side(rng.normal(0.1, 1.1, size=(count, d)))
    for d in (100, 512):
        one_hot = [np.eye(d)[(d * rng.random(count) ** power).astype(int)] for power in (1.0, 2.0)]
        yield "one-hot rows", side(one_hot[0]), side(one_hot[1])
        yield "along axes", axes(d, 1.0), axes(d, 3.0)
    dominant = [np.r_[30.0, np.ones(199)] * rng.normal(moved, 1, size=(count, 200)) for moved in (0.0, 0.2)]
    yield "a dominant feature", side(dominant[0]), side(dominant[1])
    corners = [1 - 2.0 * rng.integers(0, 2, size=(count, 256)) for _ in range(2)]
    corners[1][:, ::2] = corners[1][:, :1]
    yield "corners of a cube", side(corners[0]), side(corners[1])
    walsh = np.array([[(-1.0) ** bin(i & j).count("1") for j in range(256)] for i in range(256)])
    rows = [walsh[(256 * rng.random(count) ** power).astype(int)] for power in (1.0, 2.0)]
    yield "rows of H itself", side(rows[0]), side(rows[1])
    yield "Student t3", side(rng.standard_t(3, size=(count, 90))), side(rng.standard_t(3, size=(count, 90)) + 0.2)
    single = np.zeros((5, 300))
    single[2:, 7] = 1.0
    yield "two points and three", (single[:2] + np.eye(2, 300), np.arange(2)), (single[2:], np.arange(3) % 2)


# ------------------------------------------------------------------ what is measured


def measure(name: str, a: Labelled, b: Labelled, count: int, seed: int = 0) -> Line:
    """One pair, by ``count`` projections and, structured and plain, by many more."""
    d = int(np.prod(np.shape(a[0])[1:]))
    size = rotation_size(d) if d >= FEWEST_FEATURES else 64
    count = -(-count // size) * size
    settings: dict[str, Any] = {"seed": seed + 3, "n_projections": count}
    sphere = sotdd.distance(a, b, **settings)
    usual = sotdd.distance(a, b, seed=seed + 4, n_projections=count // 2, estimator="plain")
    plain = sotdd.distance(
        a, b, seed=seed + 5, n_projections=_PLAIN * count, estimator="plain", directions=sotdd.projections.Hadamard()
    )
    controlled = sotdd.distance(a, b, **{**settings, "seed": seed + 6}, directions=sotdd.projections.Hadamard())
    found = [_by_turns(part.contributions, size) for part in (plain, controlled)]
    alone = [float(np.var(part.contributions)) for part in (usual, sphere)]
    variances = [
        error**2 * len(part.contributions) / single
        for (_, error), part, single in zip(found, (plain, controlled), alone, strict=True)
    ]
    mean, error = _by_turns(sphere.contributions, 1)
    return Line(name, d, (mean, error), found[0], found[1], (variances[0], variances[1]))


def _by_turns(contributions: Doubles | None, size: int) -> tuple[float, float]:
    """The mean, and its standard error by the means of turns."""
    assert contributions is not None
    means = contributions.reshape(-1, size).mean(axis=1)
    return float(means.mean()), float(np.std(means, ddof=1)) / len(means) ** 0.5


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--projections", type=int, default=1 << 16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--features", type=int, help="pairs with this many features; all by default")
    parser.add_argument("--only", default="", help="part of the name of a pair; all by default")
    parser.add_argument("--markdown", type=Path, help="also write the table to this file")
    asked = parser.parse_args()
    lines = [
        "| pair | features | plain | controlled | variance, plain | controlled | holds |",
        "|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for kind in (hostile_pairs(asked.points), real_pairs(asked.folder, asked.points)):
        for name, a, b in kind:
            if asked.only in name and asked.features in (None, int(np.prod(np.shape(a[0])[1:]))):
                lines.append(measure(name, a, b, asked.projections, asked.seed).row())
                print(lines[-1], flush=True)
                if asked.markdown:
                    asked.markdown.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
