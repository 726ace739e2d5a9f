"""Level and power of `sotdd.test` beside other tests, each with the same shuffles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import sotdd
from benchmarks.decision_data import CHANGES, Source, changed_pair, sources
from benchmarks.decision_peers import PEERS, p_values
from benchmarks.ordinary import Pair

Outcomes = dict[str, NDArray[np.bool_]]

LEVEL = 0.05

# A gap to the best peer counts if it is larger than this and a standard error of it.
_TOLERATED = 0.05


def share(outcomes: Sequence[bool] | NDArray[np.bool_]) -> str:
    """A share in per cent with its standard error."""
    mean = float(np.mean(outcomes))
    return f"{100 * mean:.0f} ± {100 * np.sqrt(mean * (1 - mean) / len(outcomes)):.1f}"


def powers(simulations: int, n: int = 120, n_permutations: int = 99, n_projections: int = 128) -> list[list[str]]:
    """All sources and changes; twice as many simulations where nothing differs."""
    lines = [["data", "what differs", "combined", "names matched", *PEERS]]
    for name, source in sources().items():
        for change in CHANGES:
            count = simulations * (2 if change == "nothing" else 1)
            found = rejections(source, change, count, n, n_permutations, n_projections)
            lines.append([name, change, *cells(found, change)])
            print(lines[-1], flush=True)
    return lines


def rejections(source: Source, change: str, count: int, n: int, n_permutations: int, n_projections: int) -> Outcomes:
    """Of every test, in which of the simulations it ruled one law out."""
    found: list[dict[str, float]] = []
    for simulation in range(count):
        rng = np.random.default_rng([simulation, CHANGES.index(change)])
        pair = changed_pair(source, change, rng, n)
        ours = by_us(pair, n_permutations, n_projections, simulation)
        found.append(ours | p_values(pair, len(source.shares), n_permutations, rng))
    return {name: np.array([one[name] <= LEVEL for one in found]) for name in found[0]}


def by_us(pair: Pair, n_permutations: int, n_projections: int, seed: int) -> dict[str, float]:
    """The p-values of `sotdd.test`, names ignored and matched."""
    settings = {"n_permutations": n_permutations, "n_projections": n_projections, "seed": seed, "device": "cpu"}
    blind, named = (sotdd.test(*pair, label_names=names, **settings).p_value for names in ("ignore", "match"))
    return {"combined": blind, "names matched": named}


def cells(found: Outcomes, change: str) -> list[str]:
    """A line of the table: ours with marks, then each peer on features and with labels."""
    blind, named = list(PEERS), [f"{name} with labels" for name in PEERS]
    marks = {"combined": "", "names matched": ""}
    if change != "nothing":
        if falls_short(found, "combined", blind):
            marks["combined"] = " ▼"
        elif falls_short(found, "combined", named):
            marks["combined"] = " ▽"
        if falls_short(found, "names matched", [*blind, *named]):
            marks["names matched"] = " ▼"
    ours = [share(found[name]) + mark for name, mark in marks.items()]
    percent = {name: f"{100 * of.mean():.0f}" for name, of in found.items()}
    return [*ours, *(f"{percent[name]} / {percent[f'{name} with labels']}" for name in PEERS)]


def falls_short(found: Outcomes, ours: str, peers: list[str]) -> bool:
    """Whether the best of some peers is better by more than is tolerated and its error."""
    best = max(peers, key=lambda name: float(found[name].mean()))
    gaps = found[best].astype(float) - found[ours]
    return bool(gaps.mean() > _TOLERATED + gaps.std() / np.sqrt(len(gaps)))
