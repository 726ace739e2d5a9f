"""What is decided by a distance, measured: python -m benchmarks.decisions [--quick] [--only NAME] [--markdown FILE].

How often are two samples of one law called different, what does the test find beside others, does a drift gate keep its
promise? Shares are in per cent with one standard error. Texts are those of AG News
(`python -m experiments.lib.files ag_news`), and tables are CSV files in the folder "tables" of the data: without them
their lines are left out. With SOTDD_PROCESSES=12, the longest tables use as many processes.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import sotdd
from benchmarks.decision_causes import causes
from benchmarks.decision_columns import changed_columns, false_names
from benchmarks.decision_data import laws
from benchmarks.decision_drift import run_lengths, series, tables
from benchmarks.decision_gate import gates
from benchmarks.decision_power import powers, share
from benchmarks.decision_sharp import absent_classes, blind_spots, dependent_rows, levels, one_reference
from benchmarks.ordinary import halves, table
from sotdd.basics.errors import SotddError

# ------------------------------------------------------------------ noise floors


def floors(
    simulations: int, sizes: tuple[tuple[int, int], ...] = ((100, 100), (160, 40)), n_projections: int = 128
) -> list[list[str]]:
    """Two samples of one law: how often they are beyond noise, and how often that is borderline."""
    lines = [["law", *(f"{n} and {m}: {what}" for n, m in sizes for what in ("beyond noise", "borderline"))]]
    for name, source in laws().items():
        line = [name]
        for n, m in sizes:
            found = []
            for simulation in range(simulations):
                pair = source.pair(np.random.default_rng([simulation, n]), (n, m))
                found.append(sotdd.distance(*pair, n_projections=n_projections, noise_floor=True, seed=simulation))
            verdicts = [verdict(one) for one in found]
            line += [share([not one.within_noise for one in found]), share([one == "borderline" for one in verdicts])]
        lines.append(line)
        print(line, flush=True)
    return lines


def verdict(found: sotdd.results.Distance) -> str:
    """Which of three it is."""
    return (
        "borderline"
        if found.noise and found.noise.borderline
        else "within noise"
        if found.within_noise
        else "beyond noise"
    )


def stability(pairs: int, seeds: int = 6, moves: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4)) -> list[list[str]]:
    """Halves of iris, one of them moved, through other projections and splits; verdicts should agree."""
    lines = [["iris moved by", "within noise", "borderline", "beyond noise", "clear verdicts that disagree"]]
    for move in moves:
        counts: Counter[str] = Counter()
        against = 0
        for number in range(pairs):
            first, (features, labels) = halves(table("iris"), np.random.default_rng(number))
            moved = features + move, labels
            found = [verdict(sotdd.distance(first, moved, noise_floor=True, seed=seed)) for seed in range(seeds)]
            counts.update(found)
            against += min(found.count("within noise"), found.count("beyond noise"))
        shown = (f"{counts[name]}" for name in ("within noise", "borderline", "beyond noise"))
        lines.append([f"{move:g} cm", *shown, f"{against} of {pairs * seeds}"])
        print(lines[-1], flush=True)
    return lines


# ------------------------------------------------------------------ time


def speed(sizes: tuple[int, ...] = (200, 1000, 4000), turns: int = 3) -> list[list[str]]:
    """What decisions cost in units of one distance with 1,000 projections; 50 features, 10 classes."""
    lines = [["points", "with a noise floor", "test, 999 shuffles", "reference, 499 shuffles", "a distance"]]
    for n in sizes:
        rng = np.random.default_rng(0)
        a, b = ((rng.normal(size=(n, 50)), rng.integers(10, size=n)) for _ in range(2))
        batch = a[0][: n // 10], a[1][: n // 10]
        reference = sotdd.DriftReference.fit(b)
        measure = partial(sotdd.distance, a, b)
        calls: list[Callable[[], object]] = [measure, partial(measure, noise_floor=True)]
        alone, floor = np.median([[seconds(call) for call in calls] for _ in range(turns + 1)][1:], axis=0)
        whole, kept = seconds(partial(sotdd.test, a, b)), seconds(partial(reference.test, batch))
        times = [f"{value / alone:.1f} ×" for value in (floor, whole, kept)]
        lines.append([f"{n:,} and {n:,}, batch of {n // 10:,}", *times, f"{1000 * alone:.0f} ms"])
        print(lines[-1], flush=True)
    return lines


def seconds(function: Callable[[], object]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


# ------------------------------------------------------------------ all of it


def markdown(lines: list[list[str]]) -> str:
    """Lines as a table; the first is the header."""
    rows = [" | ".join(line) for line in lines]
    return "\n".join(f"| {row} |" for row in [rows[0], " | ".join("---" for _ in lines[0]), *rows[1:]])


def main() -> None:
    """Run all, or one by name, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the simulations")
    parser.add_argument("--only", choices=RUNS, help="one of the tables")
    parser.add_argument("--markdown", type=Path, help="write the tables here as well")
    asked = parser.parse_args()
    share_of_all = 10 if asked.quick else 1
    told = []
    for name, run in RUNS.items():
        if asked.only in (None, name):
            began = time.perf_counter()
            told.append(f"## {name}\n\n{markdown(run(share_of_all))}")
            print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
            if asked.markdown:
                asked.markdown.write_text("\n\n".join(told) + "\n", encoding="utf-8")
    print("\n\n".join(told))


RUNS: dict[str, Callable[[int], list[list[str]]]] = {
    "floors": lambda part: floors(120 // part),
    "stability": lambda part: stability(10 // part),
    "gates": lambda part: gates(200 // part),
    "tables": lambda part: tables(400 // part),
    "series": lambda part: series(16 // part),
    "run lengths": lambda part: run_lengths(16 // part),
    "speed": lambda part: speed() if part == 1 else speed((200,)),
    "causes": lambda part: causes(16 // part),
    "columns": lambda part: false_names(400 // part),
    "changed columns": lambda part: changed_columns(100 // part),
    "tests": lambda part: powers(80 // part),
    "blind spots": lambda part: blind_spots(200 // part),
    "levels": lambda part: levels(400 // part),
    "dependent rows": lambda part: dependent_rows(400 // part),
    "absent classes": lambda part: absent_classes(200 // part),
    "one reference": lambda part: one_reference(24 // part),
}


if __name__ == "__main__":
    try:
        main()
    except SotddError as error:
        raise SystemExit(f"decisions: {error}") from None
