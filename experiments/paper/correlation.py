"""Correlation with OTDD (exact), on random subsets as in the paper and on pairs that differ for real.

All pairs of a dataset are measured in one unit: s-OTDD is scaled by the dataset that pairs are drawn from, since OTDD
is in pixels throughout; for comparison there is s-OTDD scaled anew for every pair. OTDD between two samples of one
source is already large in this many dimensions, so methods are compared with OTDD without this sampling floor, too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product

import sotdd
from experiments.lib.correlate import pearson, spearman
from experiments.lib.methods import (
    CHSW,
    DIFFERENCE,
    EXACT,
    GAUSSIAN,
    SOTDD,
    SQUARES,
    WTE,
    Dataset,
    Method,
    by_projections,
    measure,
)
from experiments.lib.options import Options, parse
from experiments.lib.store import Row, Unit, complete, read, write
from experiments.paper import figures, pairs

LINEAR = "s-OTDD (linear)"
OWN = "s-OTDD (each pair in its own unit)"
SLICED = (SOTDD, LINEAR, OWN)
REFERENCES = (EXACT, DIFFERENCE, SQUARES)
_DIFFERENT_ONLY = (LINEAR, OWN, DIFFERENCE, SQUARES)  # between random subsets nothing is left without the floor
DATASETS = ("mnist", "cifar10")


@dataclass(frozen=True)
class Sizes:
    """How much is done, by dataset where they differ."""

    split: Mapping[str, tuple[int, ...]]  # sizes of the random subsets
    repeats: Mapping[str, int]
    different: Mapping[str, int]  # pairs of each kind
    points: Mapping[str, int]  # of each side of those
    projections: Mapping[str, tuple[int, ...]]


_both = partial(dict.fromkeys, DATASETS)

SIZES = {
    "full": Sizes(
        {"mnist": (500, 750, 1000, 1250, 1500), "cifar10": (300, 400, 500, 600)},
        {"mnist": 6, "cifar10": 5},
        {"mnist": 8, "cifar10": 5},
        {"mnist": 1500, "cifar10": 600},
        {"mnist": (500, 1000, 5000, 10_000), "cifar10": (500, 1000, 2000)},
    ),
    # The paper's own sizes, as far as two subsets without a point in common fit into the pictures at hand.
    "paper": Sizes(
        {"mnist": (5000, 6000, 7000, 8000, 9000, 10_000), "cifar10": (5000, 6000, 7000, 8000)},
        _both(10), _both(0), _both(0), _both((500, 1000, 5000, 10_000)),
    ),
    "quick": Sizes(
        _both((200, 300, 400, 500)), _both(2), _both(3), _both(300), _both((50, 100, 500, 1000)),
    ),
    "smallest": Sizes({"mnist": (40, 60, 80)}, _both(1), _both(1), _both(60), _both((16, 64))),
}  # fmt: skip


def main() -> None:
    """Measure and draw."""
    run(parse(__doc__))


def run(options: Options, datasets: Sequence[str] | None = None) -> None:
    """Measure every pair by every method; one row per pair, method and number of projections."""
    sizes = SIZES[options.size]
    for name in datasets or sizes.split:
        measure_pairs(options, sizes, name)
    if options.draw and options.size != "paper":  # the page reads the distances at these sizes themselves
        summarise(options)
        figures.correlation(options.results)


def measure_pairs(options: Options, sizes: Sizes, name: str) -> None:
    """All pairs of one dataset; the methods on the processor run several at a time."""
    source, others = pairs.sources(name, options.data, others=bool(sizes.different[name]))
    unit_of_all = sotdd.Scaler.fit([source.x.reshape(len(source.y), -1)], "pooled")
    known = methods(name, sizes, unit_of_all)

    @cache
    def pair(kind: str, size: int, repeat: int) -> tuple[Dataset, Dataset]:
        if kind == "random":
            return pairs.disjoint(source, size, seed=1000 * repeat + size)
        return pairs.different(source, others, kind, size, seed=repeat)

    def work(unit: Unit) -> Sequence[Row]:
        method = known[str(unit["method"])]
        repeat, size = int(str(unit["repeat"])), int(str(unit["size"]))
        began = time.perf_counter()
        if method.name in (DIFFERENCE, SQUARES):  # two samples of each side, as large as those of the others
            a, b = pair(str(unit["kind"]), 2 * size, repeat)
            method = replace(method, max_points=size)
        else:
            a, b = pair(str(unit["kind"]), size, repeat)
        if method.name in (SOTDD, CHSW):
            device = options.device if method.name == SOTDD else "cpu"
            # A seed of its own for each pair, as when nothing is seeded.
            found = by_projections(method, a, b, sizes.projections[name], seed=1000 * repeat + size, device=device)
        else:
            found = {0: measure(method, {"a": a, "b": b}, seed=repeat).values["a", "b"]}
        seconds = time.perf_counter() - began
        return [{"projections": count, "distance": far, "seconds": seconds} for count, far in found.items()]

    path = options.results / f"correlation_{name}.csv"
    slow = (EXACT, CHSW, WTE, GAUSSIAN) if options.size == "paper" else (CHSW, WTE, *REFERENCES, GAUSSIAN)
    for turn, workers in ((SLICED, 1), (slow, options.workers)):
        here = [method for method in turn if method in known]
        units = [
            {**one, "method": method}
            for one in _pairs(sizes, name)
            for method in here
            if method not in _DIFFERENT_ONLY or one["kind"] != "random"
        ]
        complete(path, units, work, title=f"{name}: {', '.join(here)}", workers=workers)


def _pairs(sizes: Sizes, name: str) -> list[dict[str, object]]:
    """Pairs that differ first: fewer of the others still give an answer."""
    real = [
        {"kind": kind, "size": sizes.points[name], "repeat": repeat}
        for repeat in range(sizes.different[name])
        for kind in pairs.KINDS
    ]
    random = [
        {"kind": "random", "size": size, "repeat": repeat}
        for repeat in range(sizes.repeats[name])
        for size in sizes.split[name]
    ]
    return real + random


def methods(name: str, sizes: Sizes, unit: sotdd.Scaler) -> dict[str, Method]:
    """Convolution projections for CIFAR-10, as in the paper, and linear ones beside them."""
    count = max(sizes.projections[name])
    found = {other: Method(other, n_projections=count) for other in (GAUSSIAN, WTE, CHSW, *REFERENCES)}
    plain = Method(SOTDD, count, scale=unit)
    if name == "mnist":
        return {SOTDD: plain, OWN: replace(plain, scale="pooled"), **found}
    first = replace(plain, image_shape=(32, 32, 3))
    return {SOTDD: first, LINEAR: plain, OWN: replace(first, scale="pooled"), **found}


# --------------------------------------------------------------------------- summary


def summarise(options: Options) -> None:
    """Correlations with every form of OTDD, for every dataset, group of pairs, method and number of projections."""
    table = []
    for name, reference in product(DATASETS, REFERENCES):
        rows = read(options.results / f"correlation_{name}.csv")
        exact = {_place(row): float(row["distance"]) for row in rows if row["method"] == reference}
        for group in ("random", "different", *pairs.KINDS):
            for method, count in sorted({(row["method"], int(row["projections"])) for row in rows}):
                if method in (reference, *REFERENCES[1:]):
                    continue
                far = {
                    _place(row): float(row["distance"])
                    for row in rows
                    if (row["method"], int(row["projections"])) == (method, count)
                    and row["kind"] in (pairs.KINDS if group == "different" else (group,))
                    and _place(row) in exact
                }
                if len(far) > 2:
                    line = {"data": name, "pairs": group, "reference": reference, "method": method}
                    both = list(far.values()), [exact[place] for place in far]
                    line |= {"projections": count, "count": len(far)}
                    table.append({**line, "rho": spearman(*both).value, "r": pearson(*both).value})
    write(options.results / "correlation_summary.csv", table)


def _place(row: Mapping[str, str]) -> tuple[str, ...]:
    return row["kind"], row["size"], row["repeat"]


if __name__ == "__main__":
    main()
