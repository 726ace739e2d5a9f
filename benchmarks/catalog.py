"""Searches of catalogs against exact ranking: python -m benchmarks.catalog [--entries N] [--data FOLDER].

Datasets are those of `benchmarks.populations`; half of the queries are new samples of sources in the catalog, half are
of new sources. The exact ranking is by the full vectors of all entries, less what chance gives, and the 200 nearest of
these are ranked by `Sketch.distance`, which is what `nearest` orders by.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sotdd
from benchmarks.populations import Alike, Images, Population, Tables, source_of
from sotdd.compute.matrix import find_limits
from sotdd.sketches.uncertainty import find_floor

_BATCH = 1000
_RANKED = 200
_NEW = 10**6  # numbers of sources and datasets that are not in the catalog


def make_sketches(
    population: Population, entries: int, queries: int = 60, n_projections: int = 128, n_quantiles: int = 64
) -> tuple[list[sotdd.Sketch], list[sotdd.Sketch]]:
    """Sketches for a catalog, and queries."""
    first = [population.member(source, 0) for source in range(60)]
    projections = sotdd.Projections.fit(first, n_projections=n_projections).evenly()
    known = np.random.default_rng(5).choice(source_of(entries - 1), queries // 2).tolist()
    sources = [*known, *range(_NEW, _NEW + queries - queries // 2)]
    members = [(source_of(i), i) for i in range(entries)] + [(source, _NEW + i) for i, source in enumerate(sources)]
    made = [sotdd.sketch(population.member(*one), projections, n_quantiles=n_quantiles) for one in members]
    return made[:entries], made[entries:]


def measure(folder: Path, sketches: list[sotdd.Sketch], asked: list[sotdd.Sketch]) -> dict[str, Any]:
    """Fill a catalog, search it, and compare with the exact ranking."""
    catalog = sotdd.Catalog(folder)
    for start in range(0, len(sketches), _BATCH):
        part = sketches[start : start + _BATCH]
        catalog.add_many({str(start + i): one for i, one in enumerate(part)})
    exact = _exact(asked, sketches, catalog.levels.count)
    catalog.nearest(asked[0])
    right, seconds, filtered = 0, [], []
    for query, best in zip(asked, exact, strict=True):
        began = time.perf_counter()
        found = catalog.nearest(query, k=10)
        seconds.append(time.perf_counter() - began)
        right += len({int(name) for name in found.names} & best)
    for query in asked[:10]:
        began = time.perf_counter()
        catalog.nearest(query, k=10, where="n_points > 1000")
        filtered.append(time.perf_counter() - began)
    return {
        "entries": len(sketches),
        "queries": len(asked),
        "sketch": f"{asked[0].n_projections} x {catalog.levels.count}",
        "recall at 10": round(right / (10 * len(asked)), 4),
        "milliseconds, median": round(1e3 * float(np.median(seconds))),
        "milliseconds, 95 % of queries": round(1e3 * float(np.quantile(seconds, 0.95))),
        "milliseconds with a condition": round(1e3 * float(np.median(filtered))),
    }


def _exact(asked: list[sotdd.Sketch], sketches: list[sotdd.Sketch], n_quantiles: int) -> list[set[int]]:
    """The places of the ten nearest of each query."""
    vectors = np.array([query.vector(n_quantiles=n_quantiles) for query in asked], np.float64)
    squared = np.hstack(
        [
            _squared(vectors, [one.vector(n_quantiles=n_quantiles) for one in sketches[start : start + _BATCH]])
            for start in range(0, len(sketches), _BATCH)
        ]
    )
    sizes = np.array([one.n_points for one in sketches])
    noises = np.array([_find_noise(one) for one in sketches])
    best = []
    for query, near in zip(asked, squared, strict=True):
        floors = (1 / query.n_points + 1 / sizes) * (_find_noise(query) + noises) / 2
        listed = np.argsort(near - floors)[:_RANKED]
        ranked = np.argsort(find_limits([query.distance(sketches[i], estimator="plain") for i in listed]))
        best.append(set(listed[ranked[:10]].tolist()))
    return best


def _find_noise(sketch: sotdd.Sketch) -> float:
    """What noise adds to a squared distance, times 1/n + 1/m."""
    floor = find_floor([(sketch.n_points, sketch.halves)], 2, (2, 2))
    assert floor is not None
    return floor.power


def _squared(asked: NDArray[np.float64], vectors: Iterable[NDArray[np.float32]]) -> NDArray[np.float64]:
    block = np.array(list(vectors), np.float64)
    squares: NDArray[np.float64] = (asked**2).sum(axis=1)[:, None] + (block**2).sum(axis=1) - 2 * asked @ block.T
    return squares


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=20_000, help="size of each catalog")
    parser.add_argument("--data", type=Path, help="folder of real images (.npz), for catalogs of these too")
    asked = parser.parse_args()
    populations: list[Population] = [*([Images.of(asked.data)] if asked.data else []), Tables(), Alike()]
    with tempfile.TemporaryDirectory() as folder:
        found = {one.name: measure(Path(folder) / one.name, *make_sketches(one, asked.entries)) for one in populations}
    print(f"| LanceDB {version('lancedb')} | {' | '.join(found)} |\n|---{'|---' * len(found)}|")
    for what in next(iter(found.values())):
        print(f"| {what} | {' | '.join(str(of[what]) for of in found.values())} |")


if __name__ == "__main__":
    main()
