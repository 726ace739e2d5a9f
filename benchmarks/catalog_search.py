"""Searches of large catalogs against exact ranking; `benchmarks.catalog` prints them.

The exact ranking compares full sketches. All entries are ranked by their full vectors of thousands of numbers, and the
thousand nearest of these by `Sketch.distance`; for two queries all entries are ranked by `Sketch.distance`, to see that
the thousand were enough.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import sotdd
from benchmarks.core import Line
from benchmarks.populations import Population, source_of
from sotdd.sketches.catalog.learned import LEARNED, chance_of
from sotdd.sketches.file import from_bytes

_BATCH = 1000
_SHORTLIST = 1000
_NEW = 10**6  # numbers of sources and datasets that are not in the catalog


def filled(
    folder: Path, population: Population, entries: int, n_projections: int, n_quantiles: int
) -> tuple[sotdd.Catalog, float]:
    """A catalog of so many datasets under their numbers, and the seconds of adding; what is there is kept."""
    catalog = sotdd.Catalog(folder / f"{population.name}_cat")
    if not len(catalog):
        projections = sotdd.Projections.fit(
            [population.member(source, 0) for source in range(60)], n_projections=n_projections
        )
    else:
        projections = catalog.projections
    adding = 0.0
    for start in range(len(catalog), entries, _BATCH):
        made = {
            str(i): sotdd.sketch(population.member(source_of(i), i), projections, n_quantiles=n_quantiles)
            for i in range(start, min(start + _BATCH, entries))
        }
        began = time.perf_counter()
        catalog.add_many(made)
        adding += time.perf_counter() - began
    return catalog, adding


@dataclass
class Exact:
    """All sketches of a catalog in memory, and queries ranked against them."""

    names: list[str]
    sketches: list[sotdd.Sketch]
    queries: list[sotdd.Sketch]
    squared: NDArray[np.float64]  # (queries, entries) by full vectors
    projected: NDArray[np.float64]  # the same of some entries, by random projections to 256 numbers
    sizes: NDArray[np.int64]
    chances: NDArray[np.float64]

    @classmethod
    def of(cls, catalog: sotdd.Catalog, queries: list[sotdd.Sketch]) -> Exact:
        """Read all sketches once."""
        asked = np.array([query.vector(n_quantiles=catalog.n_quantiles) for query in queries], np.float64)
        short = np.array([query.vector(256, n_quantiles=catalog.n_quantiles) for query in queries], np.float64)
        names, sketches, squared, projected = [], [], [], []
        for name, sketch in _all_sketches(catalog):
            names.append(name)
            sketches.append(sketch)
        for start in range(0, len(sketches), _BATCH):
            part = sketches[start : start + _BATCH]
            squared.append(_squared(asked, [one.vector(n_quantiles=catalog.n_quantiles) for one in part]))
            if start < 20 * _BATCH:  # a random projection is slow to make, and as good or bad on fewer
                projected.append(_squared(short, [one.vector(256, n_quantiles=catalog.n_quantiles) for one in part]))
        sizes, chances = np.array([one.n_points for one in sketches]), np.array([chance_of(one) for one in sketches])
        return cls(names, sketches, queries, np.hstack(squared), np.hstack(projected), sizes, chances)

    def floors(self, query: sotdd.Sketch) -> NDArray[np.float64]:
        """What chance gives of the squared distance to each entry."""
        return (1 / query.n_points + 1 / self.sizes) * (chance_of(query) + self.chances) / 2

    def best(self, number: int, rank_by: str, count: int = 10, shortlist: int = _SHORTLIST) -> list[str]:
        """The names of the nearest, by the distances of full sketches."""
        query = self.queries[number]
        by_excess = rank_by == "excess"
        near = self.squared[number] - (self.floors(query) if by_excess else 0.0)
        listed = np.argsort(near)[:shortlist]
        distances = [query.distance(self.sketches[i], estimator="plain") for i in listed]
        keys = [one.excess if by_excess else one.value for one in distances]
        return [self.names[listed[i]] for i in np.argsort(keys)[:count]]


def _all_sketches(catalog: sotdd.Catalog) -> Iterator[tuple[str, sotdd.Sketch]]:
    snapshot = catalog._store.snapshot()
    assert snapshot is not None
    listing = snapshot.listing(["name"])
    rows, names = listing["_rowid"].to_numpy(), listing["name"].to_pylist()
    for start in range(0, len(rows), _BATCH):
        contents = snapshot.contents(rows[start : start + _BATCH].tolist())
        for name, content in zip(names[start : start + _BATCH], contents, strict=True):
            yield name, from_bytes(content, name, catalog.projections)


def _squared(asked: NDArray[np.float64], vectors: list[NDArray[np.float32]]) -> NDArray[np.float64]:
    block = np.array(vectors, np.float64)
    return (asked**2).sum(axis=1)[:, None] + (block**2).sum(axis=1) - 2 * asked @ block.T


def large(
    folder: Path,
    population: Population,
    entries: int = 100_000,
    queries: int = 60,
    n_projections: int = 128,
    n_quantiles: int = 64,
    verified: int = 2,
) -> list[Line]:
    """Search a large catalog, and compare with exact ranking: half of the queries are of new sources."""
    catalog, _ = filled(folder, population, entries, n_projections, n_quantiles)
    if catalog._store.open(LEARNED) is not None:
        catalog._store.connection.drop_table(LEARNED)
    began, worked = time.perf_counter(), time.process_time()
    catalog.tidy()
    building, work = time.perf_counter() - began, time.process_time() - worked
    rng = np.random.default_rng(5)
    sources = [*rng.choice(source_of(entries - 1), queries // 2).tolist(), *range(_NEW, _NEW + queries - queries // 2)]
    asked = [catalog.sketch(population.member(source, _NEW + i)) for i, source in enumerate(sources)]
    first = sotdd.Catalog(catalog.path)
    began = time.perf_counter()
    first.nearest(asked[0])
    cold = time.perf_counter() - began
    found, seconds, works, compared, unsure = {}, [], [], [], 0
    for rank_by in ("excess", "distance"):
        for number, query in enumerate(asked):
            began, worked = time.perf_counter(), time.process_time()
            hits = first.nearest(query, k=10, rank_by=rank_by)
            seconds.append(time.perf_counter() - began)
            works.append(time.process_time() - worked)
            compared.append(hits.compared)
            unsure += not hits.sure
            found[rank_by, number] = set(hits.names)
    chosen = []
    for query in asked[:10]:
        began = time.perf_counter()
        first.nearest(query, k=10, where="n_points > 1000")
        chosen.append(time.perf_counter() - began)
    table = catalog._store.open(LEARNED)
    width = 0 if table is None else table.schema.field("vector").type.list_size
    exact = Exact.of(catalog, asked)
    recall = {
        rank_by: float(np.mean([len(found[rank_by, i] & set(exact.best(i, rank_by))) / 10 for i in range(queries)]))
        for rank_by in ("excess", "distance")
    }
    few = exact.projected.shape[1]
    alone = np.mean(
        [
            len({*np.argsort(exact.projected[i])[:10]} & {*np.argsort(exact.squared[i, :few])[:10]}) / 10
            for i in range(queries)
        ]
    )
    same = all(
        exact.best(i, "distance") == exact.best(i, "distance", shortlist=entries) for i in range(min(verified, queries))
    )
    median, slow = np.median(seconds) * 1e3, np.quantile(seconds, 0.95) * 1e3
    said = f"{median:.0f} ms ({np.median(works) * 1e3:.0f} ms of processor time; 95 % of queries: {slow:.0f} ms)"
    name = f"{population.name}, {entries:,} sketches of {n_projections} × {n_quantiles}"
    return [
        Line(f"{name}: `nearest`, k = 10, warm", said, "≤ 20 ms", bool(median <= 20)),
        Line("… share of the ten nearest by excess that it finds", f"{recall['excess']:.4f}", "≥ 0.99",
             recall["excess"] >= 0.99),
        Line("… share of the ten nearest by distance that it finds", f"{recall['distance']:.4f}", "≥ 0.99",
             recall["distance"] >= 0.99),
        Line("… numbers in a vector", f"{width}", "≤ 256", 0 < width <= 256),
        Line("… full sketches compared for a query, mean and most", f"{np.mean(compared):.1f}, {max(compared)}",
             "≤ 200", max(compared) <= 200),
        Line("… searches that were not sure", f"{unsure} of {2 * queries}", "–", True),
        Line("… basis found and all entries brought to it",
             f"{building:.0f} s ({work:.0f} s of processor time)", "minutes", building <= 600),
        Line("… first search of a process", f"{cold * 1e3:.0f} ms", "–", True),
        Line("… with a condition / without", f"{np.median(chosen) * 1e3 / median:.1f} ×", "–", True),
        Line(f"… the ten nearest of {few:,} by 256 random sums alone, without comparing", f"{alone:.2f}", "–", True),
        Line(f"… the exact ranking is that of all sketches ({min(verified, queries)} queries)", "yes" if same else "no",
             "yes", same),
    ]  # fmt: skip
