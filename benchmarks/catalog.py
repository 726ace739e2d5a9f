"""Catalogs against their promises: python -m benchmarks.catalog [--entries N] [--large N] [--data FOLDER].

Datasets come in families, as the shards, years and crops of real ones do, so that the nearest mean something. A
query is another member of a family. Brute force compares the query with every sketch in memory.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import sotdd
from benchmarks.catalog_search import large
from benchmarks.core import Line, table
from benchmarks.populations import Images, Population, Tables
from sotdd.sketches.catalog.recipe import DIM

_FEATURES = 8
_BATCH = 500


class Families:
    """Datasets with a mean, a spread and classes that members of a family nearly share."""

    def __init__(self, count: int, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.means = self.rng.normal(size=(count, _FEATURES))
        self.spreads = self.rng.uniform(0.5, 1.5, size=(count, _FEATURES))
        self.classes = self.rng.normal(size=(count, 4, _FEATURES)) * 0.5

    def member(self, family: int, n: int = 400) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """A dataset of one family."""
        labels = self.rng.integers(4, size=n)
        mean = self.means[family] + 0.1 * self.rng.normal(size=_FEATURES)
        spread = self.spreads[family] * self.rng.uniform(0.9, 1.1, size=_FEATURES)
        points = mean + spread * self.rng.normal(size=(n, _FEATURES)) + self.classes[family, labels]
        return points, labels


def timed(function: Callable[[], object]) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def batches(
    families: Families, count: int, per_family: int, projections: sotdd.Projections, n_quantiles: int
) -> Iterator[dict[str, sotdd.Sketch]]:
    """Sketches by name, a batch at a time."""
    for start in range(0, count, _BATCH):
        yield {
            f"{i // per_family} {i % per_family}": sotdd.sketch(
                families.member(i // per_family), projections, n_quantiles=n_quantiles
            )
            for i in range(start, min(start + _BATCH, count))
        }


def searches(
    folder: Path,
    entries: int = 10_000,
    per_family: int = 20,
    queries: int = 50,
    n_projections: int = 200,
    n_quantiles: int = 64,
) -> list[Line]:
    """Search a large catalog of small sketches, and compare with brute force."""
    families = Families(-(-entries // per_family))
    projections = sotdd.Projections.fit(
        [families.member(i) for i in range(min(50, len(families.means)))], n_projections=n_projections
    )
    catalog = sotdd.Catalog(folder / f"many {per_family}")
    names: list[str] = []
    vectors = np.empty((entries, n_projections * n_quantiles), np.float32)  # whose Euclidean distance is s-OTDD
    adding = 0.0
    for part in batches(families, entries, per_family, projections, n_quantiles):
        vectors[len(names) : len(names) + len(part)] = [one.vector(n_quantiles=n_quantiles) for one in part.values()]
        names += part
        adding += timed(lambda part=part: catalog.add_many(part))
    catalog.tidy()
    asked = [
        sotdd.sketch(families.member(i % len(families.means)), projections, n_quantiles=n_quantiles)
        for i in range(queries)
    ]
    catalog.nearest(asked[0])
    seconds, work, brute, right, compared = [], [], [], 0, []
    for query in asked:
        began, worked = time.perf_counter(), time.process_time()
        hits = catalog.nearest(query, k=10, rank_by="distance")
        seconds.append(time.perf_counter() - began)
        work.append(time.process_time() - worked)
        began = time.perf_counter()
        squared = np.concatenate(
            [
                ((part - query.vector(n_quantiles=n_quantiles)) ** 2).sum(axis=1)
                for part in np.array_split(vectors, -(-entries // 1000))
            ]
        )
        best = np.argpartition(squared, 9)[:10]
        brute.append(time.perf_counter() - began)
        right += len(set(hits.names) & {names[i] for i in best})
        compared.append(hits.compared)
    filtered = [timed(lambda query=query: catalog.nearest(query, where="n_points > 10")) for query in asked[:10]]
    single = [timed(lambda i=i: catalog.add(f"one {i}", asked[i])) for i in range(min(10, queries))]
    median, recall = float(np.median(seconds)), right / (10 * queries)
    slow, one = float(np.quantile(seconds, 0.95)), float(np.median(single))
    content = entries * 4 * (n_projections * n_quantiles + DIM)
    size = sum(file.stat().st_size for file in (folder / f"many {per_family}").rglob("*") if file.is_file())
    what = f"`nearest`, k = 10, of {entries:,} sketches of {n_projections} × {n_quantiles}, {per_family:,} a family"
    said = f"{median * 1e3:.0f} ms ({np.median(work) * 1e3:.0f} ms of one core; 95 % of queries: {slow * 1e3:.0f} ms)"
    return [
        Line(what, said, "≤ 100 ms", median <= 0.1),
        Line("share of the ten nearest by brute force that it finds", f"{recall:.3f}", "≥ 0.95", recall >= 0.95),
        Line("full sketches compared for a query", f"{np.mean(compared):.0f}", "≤ 200", max(compared) <= 200),
        Line("brute force in memory / `nearest` from disk", f"{np.median(brute) / median:.1f} ×", "–", True),
        Line("`nearest` with a condition / without", f"{np.median(filtered) / median:.1f} ×", "–", True),
        Line("`add` of one / `nearest`", f"{one / median:.1f} ×", "–", True),
        Line("`add_many`, per sketch / `add` of one", f"{adding / entries / one:.3f} ×", "–", True),
        Line("size on disk / its sketches and vectors", f"{size / content:.2f} ×", "–", True),
    ]


def full_size(
    folder: Path,
    entries: int = 200,
    per_family: int = 20,
    queries: int = 10,
    n_projections: int = 1000,
    n_quantiles: int = 512,
) -> list[Line]:
    """What it costs to compare sketches of the default size."""
    families = Families(-(-entries // per_family), seed=1)
    projections = sotdd.Projections.fit([families.member(0, 1000)], n_projections=n_projections)
    catalog = sotdd.Catalog(folder / "full")
    for i in range(entries):
        made = sotdd.sketch(families.member(i // per_family, 1000), projections, n_quantiles=n_quantiles)
        catalog.add(f"{i}", made)
    asked = [
        sotdd.sketch(families.member(i % len(families.means), 1000), projections, n_quantiles=n_quantiles)
        for i in range(queries)
    ]
    catalog.nearest(asked[0])
    seconds = [timed(lambda query=query: catalog.nearest(query, k=10)) for query in asked]
    more = [timed(lambda query=query: catalog.nearest(query, k=min(100, entries))) for query in asked]
    compared = [catalog.nearest(query, k=10).compared for query in asked]
    most = [catalog.nearest(query, k=min(100, entries)).compared for query in asked]
    each = (np.median(more) - np.median(seconds)) / max(1.0, float(np.mean(most) - np.mean(compared)))
    stored = [catalog.get(str(i)) for i in range(min(10, entries))]
    bare = np.median(
        [
            timed(lambda one=one, query=query: query.distance(one, estimator="plain"))
            for one in stored
            for query in asked
        ]
    )
    what = f"`nearest`, k = 10, of {entries} sketches of {n_projections:,} × {n_quantiles}"
    said = f"{np.median(seconds) * 1e3:.0f} ms, {np.mean(compared):.0f} compared in full"
    more_said = f"{each / bare:.1f} × ({each * 1e3:.1f} ms)"
    return [
        Line(what, said, "–", True),
        Line("one more sketch read, checked and compared / its distance alone", more_said, "–", True),
    ]


def vector_errors(data: Path, count: int = 2000, n_projections: int = 1000) -> str:
    """How far distances of short vectors are from s-OTDD, on pairs of real datasets: a Markdown table."""
    rows = ["| length of the vector | expected spread | root mean square error | largest error |", "|---|---|---|---|"]
    sets = {}
    for name in ("mnist", "fashion_mnist", "kmnist", "emnist_letters"):
        with np.load(data / f"{name}.npz") as arrays:
            x, y = arrays["X_train"], arrays["y_train"]
        for part in range(2):
            chosen = np.random.default_rng(part).permutation(len(x))[:count]
            sets[f"{name} {part}"] = x[chosen].reshape(count, -1), y[chosen]
    projections = sotdd.Projections.fit(sets, n_projections=n_projections)
    sketches = [sotdd.sketch(one, projections) for one in sets.values()]
    pairs = list(combinations(range(len(sketches)), 2))
    exact = np.array([sketches[i].distance(sketches[j], estimator="plain").value for i, j in pairs])
    for dim in (256, 1024, 4096):
        errors = []
        for seed in range(5):
            vectors = [one.vector(dim, seed=seed) for one in sketches]
            found = np.array([np.linalg.norm(vectors[i] - vectors[j]) for i, j in pairs])
            errors.append(found / exact - 1)
        off = np.concatenate(errors)
        rows.append(
            f"| {dim:,} | {np.sqrt(1 / (2 * dim)):.2%} | {np.sqrt(np.mean(off**2)):.2%} | {np.abs(off).max():.2%} |"
        )
    return "\n".join([*rows, "", f"{len(pairs)} pairs of {len(sets)} sets of {count:,} images, 5 seeds each."])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=10_000, help="size of the large catalog")
    parser.add_argument("--large", type=int, help="size of the largest catalogs, which take some 20 minutes at 100000")
    parser.add_argument("--kept", type=Path, help="where to keep the largest catalogs, some 5 GB each, for another run")
    parser.add_argument("--data", type=Path, help="folder of real datasets (.npz), for the errors of vectors")
    parser.add_argument("--folder", type=Path, help="where to make catalogs, some 2 GB; a temporary one by default")
    asked = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, LanceDB {version('lancedb')}\n")
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        place = Path(folder)
        alike = searches(place, asked.entries // 5, per_family=asked.entries // 5)[:3]  # no entry stands out
        print(table([*searches(place, asked.entries), *alike, *full_size(place)]))
        if asked.large:
            populations: list[Population] = [*([Images.of(asked.data)] if asked.data else []), Tables()]
            for population in populations:
                print(f"\n{table(large(asked.kept or place, population, asked.large))}")
    if asked.data:
        print(f"\n{vector_errors(asked.data)}")


if __name__ == "__main__":
    main()
