"""Noise floors, tests and drift, by simulation: python -m benchmarks.inference [--quick] [--markdown FILE].

Levels and powers are shares of simulations in which one source was ruled out at 5 %. Real data come
from the folder ../shared/data beside the checkout; without it only the digits of the package are used.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sotdd
from sotdd.demo import digits
from sotdd.errors import SotddError

Labelled = tuple[NDArray[Any], NDArray[Any]]
Source = Callable[[np.random.Generator, int], Labelled]

DATA = Path(__file__).parents[2] / "shared" / "data"
FEATURES = 10
LEVEL = 0.05
REAL_CHANGES = (
    "nothing",
    "classes renamed",
    "names exchanged",
    "feature noise",
    "wrong labels",
    "imbalance",
    "class replaced",
)


# ------------------------------------------------------------------ sources of samples


def blobs(
    rng: np.random.Generator,
    n: int,
    *,
    shift: float = 0.0,
    wrong_labels: float = 0.0,
    shares: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3),
    moved: float = 0.0,
    names: tuple[str, str, str] = ("a", "b", "c"),
) -> Labelled:
    """Three Gaussian classes in ten dimensions, with what may differ."""
    codes = rng.choice(3, size=n, p=shares)
    centres = 2 * np.eye(3, FEATURES)
    centres[2, 3] += moved
    features = rng.normal(size=(n, FEATURES)) + centres[codes]
    features[:, 4] += shift
    wrong = rng.random(n) < wrong_labels
    codes[wrong] = rng.integers(3, size=int(wrong.sum()))
    return features, np.array(names)[codes]


def rows_of(x: NDArray[Any], y: NDArray[Any], rows: NDArray[np.integer]) -> Labelled:
    """Some points as float64."""
    return x[rows].reshape(len(rows), -1).astype(np.float64), y[rows].copy()


def real_pair(x: NDArray[Any], y: NDArray[Any], rng: np.random.Generator, n: int, change: str) -> tuple[Labelled, ...]:
    """Two samples without a common point of classes 0 to 7, the second one changed."""
    order = rng.permutation(len(x))
    order, spare = order[y[order] < 8], order[y[order] == 9]
    a, (features, labels) = rows_of(x, y, order[:n]), rows_of(x, y, order[n : 2 * n])
    if change == "feature noise":
        features += rng.normal(0, 0.5 * x.std(), features.shape)
    elif change == "wrong labels":
        wrong = rng.random(n) < 0.3
        labels[wrong] = rng.integers(8, size=int(wrong.sum()))
    elif change == "imbalance":
        rest = order[n:]
        weights = np.where(y[rest] < 4, 3.0, 1.0)
        features, labels = rows_of(x, y, rng.choice(rest, n, replace=False, p=weights / weights.sum()))
    elif change == "class replaced":
        fours = np.flatnonzero(labels == 4)
        features[fours] = rows_of(x, y, spare[: len(fours)])[0]
    elif change == "classes renamed":
        labels += 100
    elif change == "names exchanged":
        labels = (labels + 1) % 8
    return a, (features, labels)


def real_sets() -> dict[str, Labelled]:
    """The digits of the package, and what is beside the checkout."""
    found = {"digits 8 × 8": digits()}
    for name in ("mnist", "fashion_mnist"):
        if (DATA / f"{name}.npz").is_file():
            with np.load(DATA / f"{name}.npz") as arrays:
                found[name] = arrays["X_train"], arrays["y_train"]
    return found


# ------------------------------------------------------------------ simulations


def share(outcomes: Iterable[bool]) -> str:
    """A share with its standard error."""
    values = np.array(list(outcomes), float)
    return f"{100 * values.mean():.1f} ± {100 * np.sqrt(values.mean() * (1 - values.mean()) / len(values)):.1f}"


def levels_and_powers(simulations: int, n: int = 150, n_permutations: int = 199) -> list[list[str]]:
    """Level and power of `sotdd.test`, by both statistics."""
    changes: dict[str, dict[str, Any]] = {
        "nothing": {},
        "classes renamed": {"names": ("x", "y", "z")},
        "names exchanged": {"names": ("b", "c", "a")},
        "feature shift": {"shift": 0.5},
        "wrong labels": {"wrong_labels": 0.5},
        "imbalance": {"shares": (0.5, 0.33, 0.17)},
        "class replaced": {"moved": 1.5},
    }
    made: dict[tuple[str, str], Callable[[np.random.Generator], tuple[Labelled, ...]]] = {
        ("Gaussian classes", name): lambda rng, change=change: (blobs(rng, n), blobs(rng, n, **change))  # type: ignore[misc]
        for name, change in changes.items()
    }
    for source, (x, y) in real_sets().items():
        for name in REAL_CHANGES:
            made[source, name] = lambda rng, x=x, y=y, name=name: real_pair(x, y, rng, n, name)  # type: ignore[misc]
    lines = [["data", "what differs", "balanced, %", "distance, %"]]
    for (source, name), make in made.items():
        found = []
        for simulation in range(simulations if name == "nothing" else max(1, simulations // 3)):
            a, b = make(np.random.default_rng(simulation))
            found.append(sotdd.test(a, b, n_permutations=n_permutations, seed=simulation))
        by_distance = [replace(r, statistic=r.distance, null=r.null_distances, judged_by="distance") for r in found]
        lines.append([source, name, *(share(r.rejects(LEVEL) for r in kept) for kept in (found, by_distance))])
        print(lines[-1], flush=True)
    return lines


def floors(
    simulations: int, sizes: tuple[tuple[int, int], ...] = ((100, 100), (400, 400), (800, 200))
) -> list[list[str]]:
    """Noise floors against distances of independent samples, through the same projections."""
    lines = [["data", "sizes", "samples of one source", "their floor", "ratio", "± per pair", "beyond noise, %"]]
    sources: dict[str, Source] = {"Gaussian classes": blobs}
    for name, (x, y) in real_sets().items():
        sources[name] = lambda rng, n, x=x, y=y: rows_of(x, y, rng.choice(len(x), n, replace=False))  # type: ignore[misc]
    for name, draw in sources.items():
        for n, m in sizes:
            found = []
            for simulation in range(simulations):
                features, labels = draw(np.random.default_rng(simulation), n + m)
                halves = (features[:n], labels[:n]), (features[n:], labels[n:])
                found.append(sotdd.distance(*halves, n_projections=200, noise_floor=True, seed=simulation))
            values, floor = (np.array([getattr(r, key) for r in found]) for key in ("value", "noise_floor"))
            lines.append(
                [
                    name,
                    f"{n} and {m}",
                    f"{values.mean():.4f}",
                    f"{floor.mean():.4f}",
                    f"{np.mean(values / floor):.3f}",
                    f"{np.std(values / floor):.3f}",
                    share(not r.within_noise for r in found),
                ]
            )
            print(lines[-1], flush=True)
    return lines


def drift(
    simulations: int, n_batches: int = 199, sizes: tuple[tuple[int, int], ...] = ((1000, 50), (400, 100), (200, 100))
) -> list[list[str]]:
    """Level and power of `DriftReference.test`: a new reference and a new batch every time."""
    lines = [["reference", "batch", "what differs", "ruled out, %"]]
    for n, m in sizes:
        for name, change in (("nothing", {}), ("feature shift", {"shift": 0.5}), ("class replaced", {"moved": 1.5})):
            rejected = []
            for simulation in range(simulations if name == "nothing" else max(1, simulations // 3)):
                rng = np.random.default_rng(simulation)
                reference = sotdd.DriftReference.fit(
                    blobs(rng, n), batch_size=m, n_batches=n_batches, n_projections=64, seed=simulation
                )
                rejected.append(reference.test(blobs(rng, m, **change)).rejects(LEVEL))  # type: ignore[arg-type]
            lines.append([f"{n}", f"{m}", name, share(rejected)])
            print(lines[-1], flush=True)
    return lines


def speed(sizes: tuple[int, ...] = (200, 1000, 10_000), n_projections: int = 1000) -> list[list[str]]:
    """A noise floor and a test in units of the plain distance, 100 features, measured turn by turn."""
    lines = [["points", "distance with noise floor / alone", "test with 128 projections / distance with 1,000"]]
    for n in sizes:
        rng = np.random.default_rng(0)
        a, b = ((rng.normal(size=(n, 100)).astype(np.float32), rng.integers(10, size=n)) for _ in range(2))
        measure = partial(sotdd.distance, a, b, n_projections=n_projections)
        turns = [(seconds(measure), seconds(partial(measure, noise_floor=8))) for _ in range(4)]
        alone, with_floor = np.median(turns[1:], axis=0)
        permutations = max(1, min(999, 2_000_000 // n))
        whole = seconds(partial(sotdd.test, a, b, n_permutations=permutations))
        lines.append([f"{n:,} and {n:,}", f"{with_floor / alone:.1f} ×", f"{whole / alone:.0f} × for {permutations}"])
        print(lines[-1], flush=True)
    return lines


def seconds(function: Callable[[], object]) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def table(lines: list[list[str]]) -> str:
    """Lines as Markdown; the first is the header."""
    rows = [" | ".join(line) for line in lines]
    return "\n".join(f"| {row} |" for row in [rows[0], " | ".join("---" for _ in lines[0]), *rows[1:]])


def main() -> None:
    """Run all, or one by name, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("tests", "floors", "drift", "speed"))
    parser.add_argument("--quick", action="store_true", help="fewer simulations")
    parser.add_argument("--markdown", type=Path, help="write the tables here as well")
    asked = parser.parse_args()
    simulations = 30 if asked.quick else 300
    runs: dict[str, Callable[[], list[list[str]]]] = {
        "tests": lambda: levels_and_powers(simulations),
        "floors": lambda: floors(max(1, simulations // 3)),
        "drift": lambda: drift(simulations),
        "speed": speed,
    }
    chosen = {asked.only: runs[asked.only]} if asked.only else runs
    text = "\n\n".join(f"## {name}\n\n{table(run())}" for name, run in chosen.items())
    print(text)
    if asked.markdown:
        asked.markdown.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except SotddError as error:
        raise SystemExit(f"inference: {error}") from None
