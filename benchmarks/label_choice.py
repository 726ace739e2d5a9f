"""Which label term is the default: python -m benchmarks.label_choice [--quick] [--only SOURCE …] [--report].

Every term, through the same directions, on tables, pictures, texts, counts and heavy tails:

- how it orders graded changes: Spearman's ρ with the degree of the change;
- how it orders pairs: ρ with OTDD² above its own floor, within each source, the term's square above its floor as well;
- its relative error at equal processor time;
- how it orders sources for transfers among grey pictures: rows of an earlier benchmark's datasets, which are kept and
  not measured again.

What is measured is added to a table, `label_choice.csv.gz`, of which ``--report`` prints the summary.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from experiments.lib.store import read, write
from numpy.typing import NDArray
from scipy.stats import rankdata, spearmanr

import sotdd
from benchmarks.label_data import CHANGES, KEPT_BACK, REPORTED, SOURCES, TUNED_ON, Aside, Source
from benchmarks.ordinary import Dataset
from sotdd.projections import ClassQuantiles, Moments, Summaries

Doubles = NDArray[np.float64]
RESULTS = Path(__file__).with_name("label_choice.csv")


@dataclass(frozen=True)
class Fourier:
    """The mean over a class of Σ_i ψ_(i+1) a √2 cos(λ_i t + φ_i): bounded, and sums merge. λ_i = |N(0, s²)|."""

    s: float = 1.0
    a: float = 1.0
    count: int = 5

    def describe(self) -> Mapping[str, object]:
        """Name the law."""
        return {"law": "Fourier", "s": self.s, "a": self.a, "count": self.count}

    def draw(self, rng: np.random.Generator, n_projections: int) -> Summaries:
        """Draw ψ uniform on the sphere, frequencies and phases."""
        psi = rng.standard_normal((n_projections, self.count + 1))
        psi /= np.linalg.norm(psi, axis=1, keepdims=True)
        frequencies = np.abs(self.s * rng.standard_normal((n_projections, self.count)))
        phases = 2 * np.pi * rng.random((n_projections, self.count))
        return Summaries(psi[:, 0], np.concatenate([self.a * psi[:, 1:], frequencies, phases], axis=1), sum_waves)


def sum_waves(values: NDArray[np.float32], drawn: Doubles) -> Doubles:
    """The term of a class with these projected points (B, m)."""
    weights, frequencies, phases = np.split(drawn.astype(np.float32), 3, axis=1)
    found = np.zeros(len(values))
    for i in range(weights.shape[1]):
        angles = values * frequencies[:, i : i + 1] + phases[:, i : i + 1]
        found += weights[:, i] * np.sqrt(2) * np.cos(angles).mean(axis=1)
    return found


DEFAULT = "cut at 5"
TERMS: dict[str, Any] = {
    DEFAULT: Moments(),
    "cut at 4": Moments(cut=4.0),
    "cut at 3": Moments(cut=3.0),
    "cut at 2.5": Moments(cut=2.5),
    "cut at 2": Moments(cut=2.0),
    "Fourier (1, 1)": Fourier(),
    "Fourier (1, 2)": Fourier(1.0, 2.0),
    "quantiles": ClassQuantiles(),
}


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    repeats: int = 10
    points: int = 300
    projections: int = 1000
    pairs: int = 24
    few: int = 150


QUICK = Sizes(repeats=2, points=60, projections=128, pairs=4, few=30)


def measure(a: Dataset, b: Dataset, term: str, seed: int, n_projections: int) -> float:
    """The squared distance by plain projections; data are in spreads already."""
    settings: dict[str, Any] = {"label_law": TERMS[term], "seed": seed, "n_projections": n_projections}
    return float(sotdd.distance(a, b, estimator="plain", scale=None, device="cpu", **settings).value ** 2)


# ------------------------------------------------------------------ graded changes


def order_degrees(source: Source, change: str, sizes: Sizes, repeat: int) -> dict[str, float]:
    """Of every term ρ between the degree of a change and the distance; all degrees are in one scale."""
    apply, degrees = CHANGES[change]
    rng = np.random.default_rng([7, repeat])
    samples = source.samples(rng, sizes.points, 3, mixing=change == "domain mixing")
    first, second, other = source.scaled(samples)
    aside = Aside(other, rng.permutation(second[0].shape[1]))
    changed = [apply(second, degree, aside, rng) for degree in degrees]
    found = {}
    for term in TERMS:
        values = [measure(first, one, term, repeat, sizes.projections) for one in changed]
        found[term] = correlate(values, degrees)
    return found


# ------------------------------------------------------------------ against OTDD


def compare_pair(source: Source, sizes: Sizes, number: int) -> dict[str, dict[str, float]]:
    """OTDD² and every term's square of two datasets that differ by one change, and less what samples of one have."""
    rng = np.random.default_rng([8, number])
    change = list(CHANGES)[number % len(CHANGES)]
    apply, degrees = CHANGES[change]
    *four, other = source.scaled(source.samples(rng, sizes.few, 5, mixing=change == "domain mixing"))
    degree, order = rng.uniform(0, degrees[-1]), rng.permutation(other[0].shape[1])
    asides = [Aside((other[0][i::2], other[1][i::2]), order) for i in range(2)]
    second = [apply(one, degree, aside, rng) for one, aside in zip(four[2:], asides, strict=True)]
    pairs = [(four[0], second[0]), (four[0], four[1]), (second[0], second[1])]
    squares = {term: [measure(*pair, term, number, sizes.projections) for pair in pairs] for term in TERMS}
    squares["OTDD"] = [float(sotdd.peers.otdd(*pair).value ** 2) for pair in pairs]
    above = {name: across - sum(within) / 2 for name, (across, *within) in squares.items()}
    raw = {name: across for name, (across, *_) in squares.items()}
    return {"OTDD": above, "OTDD, floors left in": {**raw, "OTDD": above["OTDD"]}}


# ------------------------------------------------------------------ error


def measure_error(source: Source, term: str, sizes: Sizes) -> tuple[float, float]:
    """The median relative error of the default estimator, and the processor time that it took."""
    errors, seconds = [], 0.0
    for repeat in range(sizes.repeats):
        rng = np.random.default_rng([9, repeat])
        first, second, other = source.scaled(source.samples(rng, sizes.points, 3, mixing=False))
        changed = CHANGES["label flips"][0](second, 0.3, Aside(other, np.arange(second[0].shape[1])), rng)
        began = time.process_time()
        found = sotdd.distance(first, changed, label_law=TERMS[term], scale=None, seed=repeat, device="cpu")
        if repeat:  # the first may compile
            seconds += time.process_time() - began
            errors.append(found.stderr / found.value)
    return float(np.median(errors)), seconds


def compare_errors(source: Source, sizes: Sizes) -> dict[str, float]:
    """Of every term its error over that of the default, had both taken as long."""
    found = {term: measure_error(source, term, sizes) for term in TERMS}
    base, base_seconds = found[DEFAULT]
    return {term: error / base * math.sqrt(seconds / base_seconds) for term, (error, seconds) in found.items()}


# ------------------------------------------------------------------ all of it

Row = dict[str, str]


def correlate(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's ρ; zero where one of the two is the same everywhere."""
    return float(spearmanr(a, b).statistic) if np.ptp(a) and np.ptp(b) else 0.0


def _make_row(measure: str, source: str, kind: str, number: int, values: Mapping[str, float]) -> dict[str, Any]:
    shown = {term: f"{value:.4g}" for term, value in values.items()}
    return {"measure": measure, "source": source, "kind": kind, "number": number, **shown}


def judge(name: str, sizes: Sizes) -> Iterator[dict[str, Any]]:
    """Every measure of one source: one row for each repeat or pair, one column for each term."""
    source = SOURCES[name]
    for change in CHANGES:
        for repeat in range(sizes.repeats):
            yield _make_row(change, name, source.kind, repeat, order_degrees(source, change, sizes, repeat))
    for number in range(sizes.pairs):
        for measure, values in compare_pair(source, sizes, number).items():
            yield _make_row(measure, name, source.kind, number, values)
    yield _make_row("error at equal time", name, source.kind, 0, compare_errors(source, sizes))


# ------------------------------------------------------------------ the report


def group_rows(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by kind of source; tables in three parts, as they were used."""
    used = {**dict.fromkeys(TUNED_ON, "tables, tuned on"), **dict.fromkeys(REPORTED, "tables, reported")}
    used |= dict.fromkeys(KEPT_BACK, "tables, kept back")
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(used.get(row["source"], row["kind"]), []).append(row)
    return groups


def summarise(rows: Sequence[Row], measure: str, draws: int = 1000) -> dict[str, tuple[float, float, float]]:
    """Of every term the mean over sources, and a 95 % interval of its gain over the default, by bootstrap."""
    rng, by_source = np.random.default_rng(0), {}
    for row in rows:
        by_source.setdefault(row["source"], []).append([float(row[term]) for term in (*TERMS, *_also(measure))])
    whole, drawn = [], []
    for found in by_source.values():
        values = np.array(found)  # (repeats or pairs, terms)
        picked = values[rng.integers(len(values), size=(draws, len(values)))]
        whole.append(_condense(values[None], measure)[0])
        drawn.append(_condense(picked, measure))
    gains = np.mean(drawn, axis=0) - np.mean(drawn, axis=0)[:, [list(TERMS).index(DEFAULT)]]
    low, high = np.quantile(gains, [0.025, 0.975], axis=0)
    return {term: (float(np.mean(whole, axis=0)[i]), float(low[i]), float(high[i])) for i, term in enumerate(TERMS)}


def _also(measure: str) -> tuple[str, ...]:
    """What a measure has beside the terms."""
    return ("OTDD",) if measure.startswith("OTDD") else ()


def _condense(values: Doubles, measure: str) -> Doubles:
    """From (draws, numbers, terms) to (draws, terms): ρ with OTDD, which is the last column, or the mean."""
    if not _also(measure):
        return np.asarray(values.mean(axis=1))
    ranks = rankdata(values, axis=1)
    ranks -= ranks.mean(axis=1, keepdims=True)
    lengths = np.sqrt((ranks**2).sum(axis=1))
    products = (ranks * ranks[:, :, -1:]).sum(axis=1)
    return np.asarray((products / np.maximum(lengths * lengths[:, -1:], 1e-12))[:, :-1])


def report(rows: Sequence[Row]) -> Iterator[str]:
    """One table for each measure, all graded changes first: kinds of data down, terms across."""
    measures = {"all graded changes": tuple(CHANGES), **{row["measure"]: (row["measure"],) for row in rows}}
    for title, parts in measures.items():
        yield f"\n**{title[0].upper()}{title[1:]}**\n"
        yield f"| data | {' | '.join(TERMS)} |\n|---{'|---' * len(TERMS)}|"
        for group, found in group_rows([row for row in rows if row["measure"] in parts]).items():
            several = any(row["number"] != "0" for row in found)
            cells = [
                f"{mean:.2f} ({low:+.2f} to {high:+.2f})" if several and term != DEFAULT else f"{mean:.2f}"
                for term, (mean, low, high) in summarise(found, title).items()
            ]
            yield f"| {group} | {' | '.join(cells)} |".replace("-0", "−0")


def main() -> None:
    """Measure, or print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few pairs, points and projections")
    parser.add_argument("--only", nargs="*", help="measure these sources alone")
    parser.add_argument("--report", action="store_true", help="print the summary of what was measured")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    if not options.report:
        sizes = QUICK if options.quick else Sizes()
        measured = [row for name in (SOURCES if options.only is None else options.only) for row in judge(name, sizes)]
        write(options.results, [*read(options.results), *measured])
    print("\n".join(report(read(options.results))))


if __name__ == "__main__":
    main()
