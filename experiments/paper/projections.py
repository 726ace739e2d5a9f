"""How many projections: s-OTDD against itself with the most, and s-OTDD and CHSW against OTDD (exact)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.lib import data
from experiments.lib.correlate import pearson, spearman
from experiments.lib.methods import SOTDD, Method, by_projections
from experiments.lib.options import Options, parse
from experiments.lib.store import Row, Unit, complete, read, write
from experiments.paper import correlation, figures, pairs

DRAWS = {"own": "draws of its own for each pair", "shared": "the same draws for all pairs"}


@dataclass(frozen=True)
class Sizes:
    """How much is done."""

    points: Mapping[str, tuple[int, ...]]  # of each subset
    pairs: int
    projections: Mapping[str, tuple[int, ...]]  # the last is what the others are compared with


_COUNTS = (1000, 2000, 5000, 10_000, 20_000, 50_000)
SIZES = {
    "full": Sizes(
        {"mnist": (1000, 5000, 10_000, 15_000, 20_000), "cifar10": (1000, 4000, 8000)},
        10, dict.fromkeys(("mnist", "cifar10"), _COUNTS),
    ),
    "quick": Sizes(
        {"mnist": (200, 1000), "cifar10": (200, 500)}, 6, dict.fromkeys(("mnist", "cifar10"), (100, 200, 500, 1000))
    ),
    "smallest": Sizes({"mnist": (50, 100)}, 3, {"mnist": (16, 64)}),
}  # fmt: skip


def main() -> None:
    """Measure and draw."""
    run(parse(__doc__))


def run(options: Options, datasets: Sequence[str] | None = None) -> None:
    """One row per dataset, size, pair, kind of draws and number of projections."""
    sizes = SIZES[options.size]
    for name in datasets or sizes.points:
        source = data.images(name, options.data)[0]
        counts = sizes.projections[name]
        method = Method(SOTDD, max(counts), image_shape=None if name == "mnist" else (32, 32, 3))

        def work(
            unit: Unit, source: data.Images = source, method: Method = method, counts: Sequence[int] = counts
        ) -> Sequence[Row]:
            place = int(str(unit["pair"]))
            a, b = pairs.disjoint(source, int(str(unit["size"])), seed=place)
            # Draws of its own for each pair, as in the paper, or the same draws for all pairs.
            first = 2 * place if unit["draws"] == "own" else 0
            runs = [by_projections(method, a, b, counts, seed=first + turn, device=options.device) for turn in range(2)]
            reference = runs[1][method.n_projections]  # by other projections than what is compared with it
            return [{"projections": count, "distance": far, "reference": reference} for count, far in runs[0].items()]

        units = [
            {"data": name, "size": size, "draws": draws, "pair": pair}
            for size in sizes.points[name]
            for draws in DRAWS
            for pair in range(sizes.pairs)
        ]
        complete(options.results / f"projections_{name}.csv", units, work, title=f"projections, {name}")
    if options.draw:
        summarise(options)
        if not (options.results / "correlation_summary.csv").exists():
            correlation.run(options)
        figures.projections(options.results)


def summarise(options: Options) -> None:
    """Correlation over pairs with the largest number of projections."""
    table = []
    for path in sorted(options.results.glob("projections_*.csv")):
        rows = [] if path.stem == "projections_summary" else read(path)
        for key in dict.fromkeys((row["data"], row["size"], row["draws"], row["projections"]) for row in rows):
            chosen = [row for row in rows if (row["data"], row["size"], row["draws"], row["projections"]) == key]
            columns = [[float(row[column]) for row in chosen] for column in ("distance", "reference")]
            r, rho = pearson(*columns), spearman(*columns)
            names = ("data", "size", "draws", "projections")
            table.append({
                **dict(zip(names, key, strict=True)), "pairs": len(chosen),
                "r": r.value, "r_low": r.low, "r_high": r.high, "rho": rho.value,
            })  # fmt: skip
    write(options.results / "projections_summary.csv", table)


if __name__ == "__main__":
    main()
