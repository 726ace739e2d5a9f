"""How large a sketch must be for how small an error: python -m benchmarks.sketch_sizes [--data DIR] [--quick].

Each pair is sketched through projections of several seeds. The error is the root mean square, over seeds, of how far
distances of the sketches are from the distance by many projections.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from experiments.lib.files import default_folder
from numpy.typing import NDArray

import sotdd

Pair = tuple[Any, Any]

# Projections and quantiles.
WAYS = [(1000, 384), (1000, 128), (512, 128)]
TRUE = 10_000


def pairs(folder: Path, n: int) -> dict[str, Pair]:
    """Pictures, tables, one feature with heavy tails, texts, and what differs by little."""
    rng = np.random.default_rng(0)
    found: dict[str, Pair] = {}
    if folder.is_dir():
        digits, clothes, signs = (
            _pictures(folder / f"{name}.npz", 2 * n) for name in ("mnist", "fashion_mnist", "kmnist")
        )
        found["mnist, fashion_mnist"] = _first(digits, n), _first(clothes, n)
        found["mnist, kmnist"] = _first(digits, n), _first(signs, n)
        found["halves of mnist"] = _first(digits, n), tuple(part[n:] for part in digits)
        found["news, encyclopedia"] = _texts(folder, n)
    found["log-normal table, one column × 1.5"] = _table(rng, n), _table(rng, n, 0.5)
    found["table of counts, 40 classes"] = _counts(rng, n), _counts(rng, n, 1)
    found["one feature, Student's t"] = _heavy(rng, n), _heavy(rng, n, 0.3)
    return found


def _pictures(path: Path, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    with np.load(path) as arrays:
        x, y = arrays["X_train"], arrays["y_train"]
    chosen = np.random.default_rng(0).permutation(len(x))[:n]
    return x[chosen].reshape(len(chosen), -1), y[chosen]


def _first(data: tuple[NDArray[Any], NDArray[Any]], n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    return data[0][:n], data[1][:n]


def _texts(folder: Path, n: int) -> Pair:
    """Texts as 96 numbers each: latent semantic analysis of their words, unit length."""
    import csv

    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, labels = [], []
    for name in ("ag_news", "dbpedia14"):
        with gzip.open(folder / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))[1:]
        chosen = np.random.default_rng(0).permutation(len(rows))[:n]
        texts.append([" ".join(rows[row][1:]) for row in chosen])
        labels.append(np.array([rows[row][0] for row in chosen]))
    words = TfidfVectorizer(max_features=5000, sublinear_tf=True).fit_transform([*texts[0], *texts[1]])
    vectors = TruncatedSVD(96, random_state=0).fit_transform(words)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    middle = len(texts[0])
    return (vectors[:middle], labels[0]), (vectors[middle:], labels[1])


def _table(rng: np.random.Generator, n: int, more: float = 0.0) -> tuple[NDArray[Any], NDArray[Any]]:
    x = rng.lognormal(size=(n, 12))
    y = (x[:, 0] + rng.normal(size=n) > 1).astype(int)
    x[:, 1] *= 1 + more
    return x, y


def _counts(rng: np.random.Generator, n: int, more: float = 0.0) -> tuple[NDArray[Any], NDArray[Any]]:
    y = rng.integers(40, size=n)
    rates = np.random.default_rng(1).gamma(2, size=(40, 30)) + more * (np.arange(30) == 0)
    return rng.poisson(rates[y]), y


def _heavy(rng: np.random.Generator, n: int, shift: float = 0.0) -> tuple[NDArray[Any], NDArray[Any]]:
    x = rng.standard_t(3, size=(n, 1)) + shift
    return x, (x[:, 0] > 0).astype(int)


def errors(pair: Pair, seeds: int, true: float, ways: list[tuple[int, int]] = WAYS) -> list[tuple[float, float]]:
    """Of each way, the error and the size of a file in kB."""
    found: dict[int, list[float]] = {at: [] for at in range(len(ways))}
    sizes: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(seeds):
            drawn = {count: sotdd.Projections.fit(list(pair), n_projections=count, seed=seed) for count, _ in ways}
            for at, (count, quantiles) in enumerate(ways):
                files = []
                for side, data in enumerate(pair):
                    files.append(Path(folder) / f"{side}.sotdd")
                    sotdd.sketch(data, drawn[count], n_quantiles=quantiles).save(files[-1])
                sizes[at] = files[0].stat().st_size / 1e3
                one, other = (sotdd.Sketch.load(file) for file in files)
                found[at].append(one.distance(other).value)
    off = {at: float(np.sqrt(np.mean((np.array(values) / true - 1) ** 2))) for at, values in found.items()}
    return [(off[at], sizes[at]) for at in sorted(found)]


def of_distances(pair: Pair, seeds: int, true: float, count: int) -> float:
    """The error of distances of the data themselves."""
    values = [sotdd.distance(*pair, n_projections=count, seed=seed).value for seed in range(seeds)]
    return float(np.sqrt(np.mean((np.array(values) / true - 1) ** 2)))


def sizes_and_errors(folder: Path, n: int, seeds: int, most: int = TRUE) -> str:
    """The table."""
    shown = [f"{count:,} × {quantiles}" for count, quantiles in WAYS]
    lines = [
        "| pair | distances, L = 1,000 | L = 256 | " + " | ".join(shown) + " |",
        "|---" * (3 + len(WAYS)) + "|",
    ]
    largest: list[float] = []
    for name, pair in pairs(folder, n).items():
        true = sotdd.distance(*pair, n_projections=most, seed=10_000).value
        of_data = [of_distances(pair, seeds, true, count) for count in (1000, 256)]
        found = errors(pair, seeds, true)
        largest = [
            max(sizes) for sizes in zip(*[largest or [0.0] * len(found), [size for _, size in found]], strict=True)
        ]
        cells = [f"{100 * off:.2f} %" for off in (*of_data, *(off for off, _ in found))]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines.append("| *largest file* | | | " + " | ".join(f"{size:,.0f} kB" for size in largest) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer seeds, smaller data")
    parser.add_argument("--data", type=Path, default=default_folder(), help="folder of mnist.npz and others")
    options = parser.parse_args()
    print(sizes_and_errors(options.data, 500 if options.quick else 1500, 4 if options.quick else 10))


if __name__ == "__main__":
    main()
