"""The gate as a newcomer runs it, measured: python -m benchmarks.gate [--quick].

How often does `sotdd check` cry wolf over batches of the reference's own law, one or several, and how often does it
pass a disaster? Shares are in per cent of commands, with one standard error; the reference has 300 points.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import sotdd
from benchmarks.decision_power import share
from benchmarks.decisions import markdown
from sotdd.basics.remarks import Verdict
from sotdd.drift.gate import Gate

Sample = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]

LAWS: dict[str, Sample] = {
    "normal, 5 features": lambda rng, n: (rng.normal(size=(n, 5)), rng.integers(3, size=n)),
    "t₃, one feature": lambda rng, n: (rng.standard_t(3, size=(n, 1)), rng.integers(2, size=n)),
    "log-normal, no labels": lambda rng, n: (np.exp(rng.normal(size=(n, 4))), np.zeros(n, int)),
    "200 classes": lambda rng, n: (rng.normal(size=(n, 4)), rng.integers(200, size=n)),
}


def _scaled(sample: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    x, y = sample
    return np.column_stack([x[:, :1] * 30, x[:, 1:]]), y


DISASTERS: dict[str, Callable[[tuple[np.ndarray, np.ndarray]], tuple[np.ndarray, np.ndarray]]] = {
    "all values + 3": lambda sample: (sample[0] + 3, sample[1]),
    "first feature × 30": _scaled,
    "first feature constant": lambda sample: (np.column_stack([0 * sample[0][:, :1], sample[0][:, 1:]]), sample[1]),
}


def verdict(gate: Gate, batches: list[tuple[np.ndarray, np.ndarray]], n_permutations: int = 99) -> str:
    """What one command says of some batches."""
    gate = replace(gate, n_batches=len(batches), n_permutations=n_permutations)
    assert gate.drift is not None
    opened = [gate.drift.open_batch(batch) for batch in batches]
    return Verdict.combine(gate.judge(batch, str(place)).verdict for place, batch in enumerate(opened))


def gate_of(data: tuple[np.ndarray, np.ndarray], seed: int) -> Gate:
    """A reference as ``sotdd reference`` makes it, but for the sketch, which does not decide."""
    return Gate("reference", sotdd.DriftReference.fit(data, n_projections=32, seed=seed))


def alarms(simulations: int, cases: tuple[tuple[int, int], ...]) -> list[list[str]]:
    """False alarms, by how many batches of how many points a command has."""
    lines = [["law", *(f"{k} × {m}" for k, m in cases)]]
    for name, sample in LAWS.items():
        line = [name]
        for k, m in cases:
            found = []
            for seed in range(simulations):
                rng = np.random.default_rng([seed, k, m])
                gate = gate_of(sample(rng, 300), seed)
                found.append(verdict(gate, [sample(rng, m) for _ in range(k)]) == "drift")
            line.append(share(found))
        lines.append(line)
        print(line, flush=True)
    return lines


def passed(simulations: int, sizes: tuple[int, ...]) -> list[list[str]]:
    """Disasters found, by size of the batch; a law of five features."""
    lines = [["disaster", *(f"{m} points: {what}" for m in sizes for what in ("drift", "passed"))]]
    sample = LAWS["normal, 5 features"]
    for name, change in DISASTERS.items():
        line = [name]
        for m in sizes:
            found = []
            for seed in range(simulations):
                rng = np.random.default_rng([seed, m])
                found.append(verdict(gate_of(sample(rng, 300), seed), [change(sample(rng, m))]))
            line += [share([one == "drift" for one in found]), share([one == "passed" for one in found])]
        lines.append(line)
        print(line, flush=True)
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    print(markdown(alarms(10 if quick else 80, ((1, 5), (1, 20), (1, 100), (5, 30)))))
    print(markdown(passed(10 if quick else 40, (5, 10, 20, 50))))
