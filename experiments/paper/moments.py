"""How many moments: s-OTDD with k = 1, …, 6 against the gaps of the *NIST transfer."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.lib.correlate import choice, pearson, spearman
from experiments.lib.methods import AUTHORS_SCALE, SOTDD, Method, measure
from experiments.lib.options import Options, parse
from experiments.lib.store import Row, Unit, complete, read, write
from experiments.paper import figures, nist_training, nist_transfer

MOMENTS = (1, 2, 3, 4, 5, 6)
SCALES = {"pooled": "pooled", "authors": AUTHORS_SCALE}


def main() -> None:
    """Measure and draw."""
    run(parse(__doc__))


def run(options: Options) -> None:
    """Measure distances for every k; the gaps are those that the transfer has written."""
    sizes = nist_transfer.SIZES[options.size]
    sets = {name: nist_training.pictures(name, options, sizes)[0] for name in sizes.sets}
    datasets = {name: (part.x, part.y) for name, part in sets.items()}

    def work(unit: Unit) -> Sequence[Row]:
        method = Method(SOTDD, sizes.n_projections, int(str(unit["moments"])), scale=SCALES[str(unit["scale"])])
        found = measure(method, datasets, seed=int(str(unit["seed"])), device=options.device)
        return [{"a": a, "b": b, "distance": far} for (a, b), far in found.values.items()]

    units = [
        {"moments": count, "scale": scale, "seed": seed}
        for seed in range(min(3, sizes.seeds))
        for count in MOMENTS
        for scale in SCALES
    ]
    complete(options.results / "moments_distances.csv", units, work, title="moments")
    if not (options.results / "nist_training.csv").exists():
        nist_training.train(options)
    if options.draw:
        summarise(options)
        figures.moments(options.results)


def summarise(options: Options) -> None:
    """Correlation with the accuracy gap for every k."""
    rows = read(options.results / "moments_distances.csv")
    gap = nist_transfer.gaps(options.results, "accuracy", "all")
    pairs = list(gap)
    table = []
    for count in MOMENTS:
        for scale in SCALES:
            chosen = [row for row in rows if (row["moments"], row["scale"]) == (str(count), scale)]
            far = nist_transfer.both_ways(chosen)
            rho, r = (c([far[pair] for pair in pairs], [gap[pair] for pair in pairs]) for c in (spearman, pearson))
            table.append({
                "moments": count, "scale": scale, "rho": rho.value, "rho_low": rho.low, "rho_high": rho.high,
                "r": r.value, "r_low": r.low, "r_high": r.high, "rho_within": choice(far, gap).rho,
            })  # fmt: skip
    write(options.results / "moments_correlations.csv", table)


if __name__ == "__main__":
    main()
