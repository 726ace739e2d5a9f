"""Sketches against their promises: python -m benchmarks.sketches [--data DIR] [--quick].

Also the comparison that chose how streams are summarised: fine bins, KLL sketches, compressed sorted runs.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from experiments.lib.files import default_folder
from numpy.typing import NDArray

import sotdd
from benchmarks.core import Labelled, Line, labelled, machine, table, turn_by_turn
from sotdd.compute.cpu_engine import CpuEngine
from sotdd.compute.slices import slice_datasets
from sotdd.sketches.quantiles import QUANTILES as KEPT
from sotdd.sketches.quantiles import Histograms, Levels, find_quantiles

# Of the summaries that were compared to choose how streams are kept; sketches themselves keep ``KEPT``.
QUANTILES = 512
Rows = NDArray[np.float32]


def speed(turns: int, n: int = 10_000, d: int = 784, count: int = 1000) -> list[Line]:
    """Sketching against seeing the same data for a distance, and comparing sketches."""
    a, b = labelled(n, d), labelled(n, d, seed=1)
    projections = sotdd.Projections.fit([a, b], n_projections=count)
    known = [sotdd.LabelledData.of(data) for data in (a, b)]

    def only_see() -> None:
        with CpuEngine() as engine:
            for _ in slice_datasets(known, projections, engine):
                pass

    seen, sketched = turn_by_turn(only_see, lambda: [sotdd.sketch(data, projections) for data in known], turns=turns)
    one, two = (sotdd.sketch(data, projections) for data in known)
    (compared,) = turn_by_turn(lambda: one.distance(two), turns=10 * turns)
    size = f"L = {count:,}, Q = {one.n_quantiles}"
    return [
        Line(
            f"sketching / the projection work of `distance` (n = {n:,}, d = {d})",
            f"{sketched / seen:.2f} ×",
            "≤ 1.1 ×",
            sketched <= 1.1 * seen,
        ),
        Line(f"distance between two sketches ({size})", f"{compared * 1e3:.1f} ms", "≤ 5 ms", compared <= 5e-3),
    ]


def streaming(turns: int, n: int = 60_000, d: int = 784, count: int = 500, batch: int = 10_000) -> list[Line]:
    """Sketching a stream of batches against sketching the same rows at once, in processor time."""
    x, y = labelled(n, d)
    projections = sotdd.Projections.fit([(x, y)], n_projections=count)
    batches = [(x[start : start + batch], y[start : start + batch]) for start in range(0, n, batch)]
    seconds: list[list[float]] = [[], []]
    for _ in range(1 + turns):
        for call, spent in zip((sotdd.sketch, sotdd.sketch_stream), seconds, strict=True):
            began = time.process_time()
            call((x, y) if call is sotdd.sketch else batches, projections)
            spent.append(time.process_time() - began)
    once, streamed = (float(np.median(spent[1:])) for spent in seconds)  # the first call loads compiled loops
    what = f"`sketch_stream` / `sketch` (n = {n:,}, d = {d}, L = {count}, batches of {batch:,}), processor time"
    measured = f"{streamed / once:.2f} × ({streamed:.1f} s against {once:.1f} s)"
    return [Line(what, measured, "≤ 1.5 ×", streamed <= 1.5 * once)]


def mixing(turns: int, n: int = 5000, d: int = 64, count: int = 1000, sources: int = 50) -> list[Line]:
    """Which mixture of many sketches is most like another, beside one comparison of the target with each."""
    rng = np.random.default_rng(0)
    data = [rng.normal(rng.normal(size=d), 1, size=(n, d)) for _ in range(sources)]
    target = np.concatenate([data[0][: n // 2], data[1][: n // 3], data[2][: n // 6]])
    projections = sotdd.Projections.fit(data[:3], n_projections=count)
    first, *others = (sotdd.sketch(one, projections) for one in (target, *data))
    mixed, compared = turn_by_turn(
        lambda: sotdd.mix(first, others), lambda: [first.distance(other) for other in others], turns=turns
    )
    what = f"`mix` of {sources} sketches (L = {count:,}), {mixed / compared:.2f} × as long as {sources} distances"
    return [Line(what, f"{mixed:.2f} s", "≤ 0.3 s", mixed <= 0.3)]


def files(n: int = 2000, d: int = 784, count: int = 1000) -> list[Line]:
    """The size of a file."""
    a = labelled(n, d)
    projections = sotdd.Projections.fit([a], n_projections=count)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.sotdd"
        sotdd.sketch(a, projections).save(path)
        size = path.stat().st_size / 1e6
    return [Line("file of a sketch, 10 classes", f"{size:.2f} MB", "≤ 2.2 MB", size <= 2.2)]


# ------------------------------------------------------------------ summaries of a stream


def fine_bins(batches: list[Rows]) -> tuple[Rows, int]:
    """What the package does."""
    counted = Histograms.empty(len(batches[0]))
    everything = slice(0, len(batches[0]))
    for rows in batches:
        counted.count(everything, rows, 0, rows.shape[1])
    as_they_are = np.ones(len(batches[0])), np.zeros((len(batches[0]), 1))
    found, _ = find_quantiles([counted], everything, *as_they_are, Levels(QUANTILES, smooth=False))
    return found, counted.counts[0].nbytes


def kll(batches: list[Rows], k: int) -> tuple[Rows, int]:
    """Apache DataSketches: a vector of KLL sketches."""
    import datasketches

    summary = datasketches.vector_of_kll_floats_sketches(k, len(batches[0]))
    for rows in batches:
        summary.update(np.ascontiguousarray(rows.T))
    middles = (np.arange(QUANTILES) + 0.5) / QUANTILES
    found = np.asarray(summary.get_quantiles(middles), np.float32)
    return found, len(summary.serialize(0)[0])


def sorted_runs(batches: list[Rows], kept: int) -> tuple[Rows, int]:
    """Sorted batches, each reduced to equal parts; two of a size are merged and reduced again."""
    runs: list[tuple[int, Rows]] = []
    for rows in batches:
        runs.append((rows.shape[1], Levels(kept, smooth=False).means(np.sort(rows, axis=1))))
        while len(runs) > 1 and runs[-1][0] >= runs[-2][0]:
            (m, b), (n, a) = runs.pop(), runs.pop()
            runs.append((n + m, _merged(a, n, b, m, kept)))
    while len(runs) > 1:
        (m, b), (n, a) = runs.pop(), runs.pop()
        runs.append((n + m, _merged(a, n, b, m, kept)))
    return Levels(QUANTILES, smooth=False).means(runs[0][1]), kept * 4


def _merged(a: Rows, n: int, b: Rows, m: int, kept: int) -> Rows:
    copies = max(1, round(n / m)) if n >= m else 1
    return Levels(kept, smooth=False).means(np.sort(np.concatenate([*[a] * copies, b], axis=1), axis=1))


def summaries(n: int = 1_000_000, rows: int = 16, batch: int = 8192) -> str:
    """Accuracy, speed and memory of each on normal values, and on ones with a heavy tail."""
    rng = np.random.default_rng(0)
    lines = [
        "| summary | ns per value | bytes per row | normal: rms error | heavy tail: rms error |",
        "|---|---|---|---|---|",
    ]
    laws: dict[str, Callable[[], NDArray[Any]]] = {
        "normal": lambda: rng.standard_normal((rows, n)),
        "heavy": lambda: rng.standard_t(3, (rows, n)),
    }
    drawn = {name: law().astype(np.float32) for name, law in laws.items()}
    exact = {name: Levels(QUANTILES, smooth=False).means(np.sort(values, axis=1)) for name, values in drawn.items()}
    edges = [*range(0, n, batch), n]
    parts = {
        name: [np.ascontiguousarray(values[:, a:b]) for a, b in itertools.pairwise(edges)]
        for name, values in drawn.items()
    }
    ways: dict[str, Callable[[list[Rows]], tuple[Rows, int]]] = {
        "1,024 bins, even from -1 to 1, then by doublings": fine_bins,
        "KLL, k = 200": lambda batches: kll(batches, 200),
        "KLL, k = 4,096": lambda batches: kll(batches, 4096),
        "sorted runs of 1,024": lambda batches: sorted_runs(batches, 1024),
    }
    for name, way in ways.items():
        way(parts["normal"][:2])
        began = time.perf_counter()
        found, size = way(parts["normal"])
        each = (time.perf_counter() - began) / (rows * n) * 1e9
        off = [_rms(found - exact["normal"]), _rms(way(parts["heavy"])[0] - exact["heavy"])]
        lines.append(f"| {name} | {each:.1f} | {size:,} | {off[0]:.5f} | {off[1]:.5f} |")
    return "\n".join(lines)


def _rms(gap: NDArray[np.floating]) -> float:
    return float(np.sqrt(np.mean(np.square(gap, dtype=np.float64))))


# ------------------------------------------------------------------ real data


def real_sets(folder: Path, n: int) -> dict[str, Labelled]:
    """Sets of 28 × 28 images, two of them halves of one."""
    sets = {}
    for name in ("mnist", "fashion_mnist", "kmnist"):
        with np.load(folder / f"{name}.npz") as arrays:
            x, y = arrays["X_train"].reshape(-1, 784), arrays["y_train"]
        chosen = np.random.default_rng(0).permutation(len(x))[: 2 * n]
        sets[name] = x[chosen[:n]], y[chosen[:n]]
        if name == "mnist":
            sets["mnist, other half"] = x[chosen[n:]], y[chosen[n:]]
    return sets


def halves_and_tails() -> str:
    """What is lost where little differs, or few points matter: by equal parts, by those of today, and by vectors."""
    ways = [Levels(512, smooth=False), *(Levels(count) for count in (128, 256, 384, 512))]
    titles = ["512 equal parts", *(f"{levels.count} parts" for levels in ways[1:])]
    lines = [f"| pair | p | exact | {' | '.join(titles)} | vector of {KEPT} parts |", "|---" * (4 + len(ways)) + "|"]
    for name, make in _CASES.items():
        a, b = make(np.random.default_rng(0))
        projections = sotdd.Projections.fit([a, b], n_projections=256)
        whole = [sotdd.sketch(data, projections, n_quantiles=None) for data in (a, b)]
        for p in (1, 2):
            true = whole[0].distance(whole[1], p).value
            cells = []
            for levels in ways:
                found = whole[0].cut(levels).distance(whole[1].cut(levels), p)
                assert found.sketch_error is not None
                cells.append(f"{100 * (found.value / true - 1):+.2f} % (≤ {100 * found.sketch_error / true:.0f})")
            lines.append(f"| {name} | {p} | {true:.4f} | {' | '.join(cells)} | {_lost(*whole) if p == 2 else '–'} |")
    return "\n".join(lines)


def _lost(*whole: sotdd.Sketch) -> str:
    """How far the Euclidean distance of vectors, which is plain, is from the plain distance."""
    one, two = (sketch.cut(Levels(KEPT)).vector() for sketch in whole)
    return f"{100 * (np.linalg.norm(one - two) / whole[0].distance(whole[1], estimator='plain').value - 1):+.2f} %"


def _halves(x: NDArray[Any], y: NDArray[Any] | None = None) -> tuple[Any, Any]:
    middle = len(x) // 2
    return (x[:middle], x[middle:]) if y is None else ((x[:middle], y[:middle]), (x[middle:], y[middle:]))


def _far_classes(rng: np.random.Generator) -> tuple[Any, Any]:
    y = rng.choice(6, size=8000, p=[0.3, 0.25, 0.2, 0.15, 0.06, 0.04])
    return _halves(rng.normal(size=(8000, 5)) + 3 * rng.normal(size=(6, 5))[y], y)


def _outlier(rng: np.random.Generator) -> tuple[Any, Any]:
    x = rng.normal(size=(10_000, 4))
    x[3] = 1e3
    return x[:5000], x[5000:] + 0.5


def _near_copy(rng: np.random.Generator) -> tuple[Any, Any]:
    x, y = rng.normal(size=(5000, 6)), rng.integers(3, size=5000)
    return (x, y), (x + 0.05 * rng.normal(size=x.shape), y)


_CASES: dict[str, Callable[[np.random.Generator], tuple[Any, Any]]] = {
    "halves of a normal law": lambda rng: _halves(rng.normal(size=(20_000, 8)), rng.integers(3, size=20_000)),
    "halves, six classes far apart": _far_classes,
    "halves, 200 classes of counts": lambda rng: _halves(rng.integers(4, size=(4000, 8)), rng.integers(200, size=4000)),
    "halves, log-normal, one feature": lambda rng: _halves(np.exp(1.5 * rng.normal(size=(12_000, 1)))),
    "halves, two columns of three values": lambda rng: _halves(rng.integers(3, size=(40_000, 2))),
    "Student's t, 2 degrees, moved": lambda rng: (rng.standard_t(2, (5000, 4)), rng.standard_t(2, (5000, 4)) + 0.5),
    "one point at 1,000": _outlier,
    "a copy with a little noise": _near_copy,
}


def accuracy(folder: Path, n: int, count: int = 1000) -> str:
    """Each pair exactly, from reduced sketches, from streams, and by short vectors."""
    sets = real_sets(folder, n)
    projections = sotdd.Projections.fit(sets, n_projections=count)
    exact = sotdd.pairwise(sets, projections=projections)
    reduced = {name: sotdd.sketch(data, projections) for name, data in sets.items()}
    streamed = {
        name: sotdd.sketch_stream(
            [(x[start : start + 1000], y[start : start + 1000]) for start in range(0, n, 1000)], projections
        )
        for name, (x, y) in sets.items()
    }
    lines = [
        f"| pair | exact | {KEPT} quantiles | streamed | 256 dimensions | 1,024 | 4,096 |",
        "|---|---|---|---|---|---|---|",
    ]
    for one, two in itertools.combinations(sets, 2):
        true = exact[one, two].value
        found = [sketches[one].distance(sketches[two]).value for sketches in (reduced, streamed)]
        short = [
            _rms(np.array([_short(reduced[one], reduced[two], dim, seed) / found[0] - 1 for seed in range(20)]))
            for dim in (256, 1024, 4096)
        ]
        cells = [f"{100 * (value / true - 1):+.3f} %" for value in found] + [f"± {100 * off:.1f} %" for off in short]
        lines.append(f"| {one} – {two} | {true:.4f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _short(a: sotdd.Sketch, b: sotdd.Sketch, dim: int, seed: int) -> float:
    return float(np.linalg.norm(a.vector(dim, seed=seed) - b.vector(dim, seed=seed)))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer turns, smaller data")
    parser.add_argument("--data", type=Path, default=default_folder(), help="folder of mnist.npz and others")
    options = parser.parse_args()
    print(machine(), end="\n\n")
    print(
        "Promises",
        table([*speed(3 if options.quick else 9), *streaming(3 if options.quick else 9), *mixing(3), *files()]),
        sep="\n",
        end="\n\n",
    )
    print("Summaries", summaries(100_000 if options.quick else 1_000_000), sep="\n", end="\n\n")
    print("Losses", halves_and_tails(), sep="\n", end="\n\n")
    if options.data.is_dir():
        print("Pictures")
        print(accuracy(options.data, 2000 if options.quick else 10_000))
    else:
        print(f"no folder {options.data}: real data are left out")


if __name__ == "__main__":
    main()
