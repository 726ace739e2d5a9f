"""Real tables and series of batches: false alarms, what is found, and after how many batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import sotdd
from benchmarks.decision_data import frames, laws, spread
from benchmarks.decision_peers import EnergyReference
from benchmarks.decision_power import LEVEL, share
from benchmarks.ordinary import Dataset
from sotdd.drift.monitor import ALLOWANCE, USUAL_SHIFT, DriftMonitor, find_limit, score

# Runs without an alarm end after this many times the run length that was asked for.
_PATIENCE = 20


def tables(simulations: int, n: int = 150, m: int = 100) -> list[list[str]]:
    """How often two samples of one real table, read as tables are by default, are called different at 5 %."""
    lines = [["table", "features", "test, %", "reference, %"]]
    for name, (whole, label) in frames().items():
        tested, checked, widths = [], [], []
        for simulation in range(simulations):
            rows = np.random.default_rng(simulation).permutation(len(whole))
            first = min(n, len(whole) * 3 // 5)
            a, b = whole.iloc[rows[:first]], whole.iloc[rows[first : first + m]]
            settings: dict[str, Any] = {"label": label, "n_projections": 64, "seed": simulation, "device": "cpu"}
            tested.append(sotdd.test(a, b, n_permutations=99, **settings).rejects(LEVEL))
            reference = sotdd.DriftReference.fit(a, **settings)
            checked.append(reference.test(b, n_permutations=99).rejects(LEVEL))
            widths.append(reference.projections.n_features)
        lines.append([name, f"{np.median(widths):.0f}", share(tested), share(checked)])
        print(lines[-1], flush=True)
    return lines


# ------------------------------------------------------------------ series


def series(runs: int, n: int = 200, m: int = 25, run_lengths: tuple[int, ...] = (20,)) -> list[list[str]]:
    """Batches to the first alarm, by our test and by the energy distance of features."""
    lines = [["what drifts", "asked for", "ours", "energy"]]
    for run_length in run_lengths:
        lines.append(["nothing", str(run_length), *delays(runs, n, m, run_length, lambda batch: batch)])
        print(lines[-1], flush=True)
    for name, drift in DRIFTS.items():
        lines.append([name, str(run_lengths[-1]), *delays(runs, n, m, run_lengths[-1], drift)])
        print(lines[-1], flush=True)
    return lines


def moved(by: float) -> Callable[[Dataset], Dataset]:
    """All features moved."""
    return lambda batch: (batch[0] + by, batch[1])


def class_moved(batch: Dataset) -> Dataset:
    """One class moved by half a standard deviation of its noise."""
    features, labels = batch
    return features + 0.5 * (labels == 0)[:, None], labels


def two_classes_mixed(batch: Dataset) -> Dataset:
    """Labels of two classes that no longer tell them apart."""
    features, labels = batch
    return features, np.where(labels < 2, np.arange(len(labels)) % 2, labels)


DRIFTS: dict[str, Callable[[Dataset], Dataset]] = {
    "all features + 0.3": moved(0.3),
    "all features + 0.2": moved(0.2),
    "one class of four + 0.5": class_moved,
    "labels of two classes mixed": two_classes_mixed,
}


def delays(runs: int, n: int, m: int, run_length: int, drift: Callable[[Dataset], Dataset]) -> list[str]:
    """Mean batches to an alarm with standard errors, through ours and through energy; new references in every run."""
    found: list[list[int]] = [[], []]
    for run in range(runs):
        rng = np.random.default_rng([run, run_length])
        data = laws()["Gaussian classes"].sample(rng, n)
        by: tuple[Any, ...] = (sotdd.DriftReference.fit(data, n_projections=32, seed=run), EnergyReference(data))
        for kept, reference in zip(found, by, strict=True):
            monitor = DriftMonitor(reference, run_length, find_limit(run_length))
            kept.append(batches_to_alarm(monitor, np.random.default_rng([run, 1]), m, drift))
    return [f"{np.mean(kept):.1f} ± {np.std(kept, ddof=min(1, runs - 1)) / np.sqrt(runs):.1f}" for kept in found]


def batches_to_alarm(
    monitor: DriftMonitor, rng: np.random.Generator, m: int, drift: Callable[[Dataset], Dataset]
) -> int:
    """How many batches it takes."""
    while not monitor.alarm and monitor.n_batches < _PATIENCE * monitor.run_length:
        monitor = monitor.after(drift(laws()["Gaussian classes"].sample(rng, m)), n_permutations=99)
    return monitor.n_batches


def run_lengths(count: int, n: int = 500, m: int = 25, batches: int = 80, n_permutations: int = 99) -> list[list[str]]:
    """Batches per false alarm of `sotdd monitor` over ``count`` references, and the middle half of single references.

    Batches of one reference are as good in any order, so their scores are drawn again and again.
    """
    asked = (20, 50, 200)
    lines = [["law", *(f"{length} asked for" for length in asked)]]
    for name in ("Gaussian classes", "t₃", "log-normal", "50 classes"):
        items = [(name, n, m, batches, n_permutations, number) for number in range(count)]
        scores = np.array(spread(score_batches, items))
        lines.append([name, *(per_alarm(scores, find_limit(length, USUAL_SHIFT), 100 * length) for length in asked)])
        print(lines[-1], flush=True)
    return lines


def score_batches(item: tuple[str, int, int, int, int, int]) -> list[float]:
    """The scores of batches by one reference."""
    name, n, m, batches, n_permutations, number = item
    rng, found = np.random.default_rng([number, 77]), []
    monitor = sotdd.DriftReference.fit(laws()[name].sample(rng, n), n_projections=32, seed=number).monitor()
    for _ in range(batches):
        monitor = monitor.after(laws()[name].sample(rng, m), n_permutations=n_permutations)
        assert monitor.last is not None
        found.append(score(monitor.last))
    return found


def per_alarm(scores: np.ndarray, limit: float, length: int) -> str:
    """Batches per alarm where each row of scores is drawn from this often: over all rows, and quartiles of rows."""
    rng, totals, alarms = np.random.default_rng(0), np.zeros(len(scores)), np.zeros(len(scores))
    for _ in range(length):
        drawn = np.take_along_axis(scores, rng.integers(scores.shape[1], size=(len(scores), 1)), axis=1)[:, 0]
        totals = np.maximum(0.0, totals + drawn - ALLOWANCE)
        alarms += totals > limit
        totals[totals > limit] = 0.0
    low, high = np.quantile(length / np.maximum(alarms, 1), [0.25, 0.75])
    return f"{length * len(scores) / max(1, alarms.sum()):.0f} ({low:.0f} to {high:.0f})"
