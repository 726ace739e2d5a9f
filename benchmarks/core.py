"""The CPU engine against its promises: python -m benchmarks.core [--quick] [--only NAMES] [--json FILE].

Every line compares two things measured in the same run, turn by turn, since machines are noisy.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import product as product_of
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl
import torch
from numpy.typing import NDArray

import sotdd
from benchmarks import plain_torch
from benchmarks.history import Run
from sotdd.drift.gate import Gate

Labelled = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class Line:
    """One promise and what was measured."""

    what: str
    measured: str
    promised: str
    kept: bool


def labelled(n: int, d: int, classes: int = 10, seed: int = 0) -> Labelled:
    """Gaussian features, random labels."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d), dtype=np.float32), rng.integers(0, classes, size=n)


def turn_by_turn(*functions: Callable[[], object], turns: int) -> list[float]:
    """Median seconds of each function, measured in turns after one warm-up each."""
    for function in functions:
        function()
    seconds: list[list[float]] = [[] for _ in functions]
    for _ in range(turns):
        for function, kept in zip(functions, seconds, strict=True):
            time.sleep(0.1)  # BLAS threads spin for some 25 ms after a product; nobody pays for another's
            began = time.perf_counter()
            function()
            kept.append(time.perf_counter() - began)
    return [float(np.median(kept)) for kept in seconds]


def product(turns: int, n: int = 10_000, d: int = 784, count: int = 1000, most: float = 1.0) -> list[Line]:
    """The whole distance, by both laws of directions, against its bare matrix products at once with all threads."""
    a, b = labelled(n, d), labelled(n, d, seed=1)
    theta = labelled(count, d)[0]
    bare, structured, sphere = turn_by_turn(
        lambda: (theta @ a[0].T, theta @ b[0].T),
        lambda: sotdd.distance(a, b, n_projections=count, estimator="plain", directions=sotdd.projections.Hadamard()),
        lambda: sotdd.distance(a, b, n_projections=count, estimator="plain", directions=sotdd.projections.Sphere()),
        turns=turns,
    )
    size = f"n = m = {n:,}, d = {d:,}, L = {count:,}"
    lines = [
        Line(
            f"whole distance / bare products, structured directions ({size})",
            f"{structured / bare:.2f} ×",
            f"≤ {most:.1f} ×",
            structured <= most * bare,
        ),
        Line(f"the same, directions of the sphere ({size})", f"{sphere / bare:.2f} ×", "≤ 2.0 ×", sphere <= 2 * bare),
    ]
    if d <= 784:
        rest = (sphere - bare) / (2 * n * count) * 1e9
        lines.append(Line("time outside matrix multiplication, per value", f"{rest:.1f} ns", "≤ 10 ns", rest <= 10))
    return lines


def default_call(turns: int, n: int = 10_000, d: int = 784) -> list[Line]:
    """The default estimator against the plain one, and fitting against the whole."""
    pair = labelled(n, d), labelled(n, d, seed=1)
    default, plain, fitting = turn_by_turn(
        lambda: sotdd.distance(*pair),
        lambda: sotdd.distance(*pair, estimator="plain"),
        lambda: sotdd.Projections.fit(pair),
        turns=turns,
    )
    return [
        Line(
            f"default / plain estimator (n = m = {n:,}, d = {d:,})",
            f"{default / plain:.2f} × ({default:.3f} s against {plain:.3f} s)",
            "≤ 1.15 ×",
            default <= 1.15 * plain,
        ),
        Line("`Projections.fit` / the plain call", f"{fitting / plain:.2f} ×", "≤ 0.25 ×", fitting <= 0.25 * plain),
    ]


def fitting(turns: int, n: int = 60_000, d: int = 784) -> list[Line]:
    """Opening and fitting large arrays: what of it one core does alone, and against the whole."""
    pair = labelled(n, d), labelled(n, d, seed=1)
    whole, fit = turn_by_turn(lambda: sotdd.distance(*pair), lambda: sotdd.Projections.fit(pair), turns=turns)
    shares = []
    for _ in range(turns):
        alone, everyone = time.thread_time(), time.process_time()
        sotdd.Projections.fit(pair)
        shares.append((time.thread_time() - alone) / (time.process_time() - everyone))
    share = float(np.median(shares))
    return [
        Line(
            f"`Projections.fit` / the default call (n = m = {n:,})",
            f"{fit / whole:.2f} ×",
            "≤ 0.25 ×",
            fit <= whole / 4,
        ),
        Line("what one core does alone, of all processor time of the fit", f"{share:.0%}", "≤ 30 %", share <= 0.3),
    ]


def against_torch(turns: int, n: int = 10_000, d: int = 784, count: int = 1000) -> list[Line]:
    """The whole distance against the plain PyTorch reading, through the same projections."""
    lines = []
    rng = np.random.default_rng(2)
    theta, psi = (rng.standard_normal((count, width), dtype=np.float32) for width in (d, 6))
    theta /= np.linalg.norm(theta, axis=1, keepdims=True)
    psi /= np.linalg.norm(psi, axis=1, keepdims=True)
    orders = sotdd.projections.ZeroTruncatedPoisson().orders(rng.random((count, 5)))
    projections = sotdd.Projections.from_arrays(theta=theta, psi=psi, orders=orders)
    drawn = [torch.tensor(array) for array in (theta, psi, orders)]
    for m, least in ((n, 4), (n - n // 5, 7)):
        a, b = labelled(n, d), labelled(m, d, seed=1)
        tensors = [tuple(torch.tensor(array) for array in data) for data in (a, b)]
        theirs = plain_torch.per_projection(*tensors, *drawn).numpy()
        ours = sotdd.distance(a, b, projections=projections).per_projection
        np.testing.assert_allclose(ours, theirs, rtol=2e-3)
        slow, fast = turn_by_turn(
            lambda tensors=tensors: plain_torch.per_projection(*tensors, *drawn),
            lambda a=a, b=b: sotdd.distance(a, b, projections=projections),
            turns=max(2, turns // 2),
        )
        per_value = 1e9 / ((n + m) * count)
        lines.append(
            Line(
                f"plain PyTorch / whole distance (n = {n:,}, m = {m:,})",
                f"{slow / fast:.1f} × ({slow * per_value:.0f} ns against {fast * per_value:.0f} ns per value)",
                f"≥ {least} ×",
                slow >= least * fast,
            )
        )
    return lines


def classes(turns: int, n: int = 20_000, d: int = 784, count: int = 512) -> list[Line]:
    """Many classes against few."""
    few = [labelled(n, d, 10, seed) for seed in (0, 1)]
    many = [labelled(n, d, 1000, seed) for seed in (0, 1)]
    ten, thousand = turn_by_turn(
        lambda: sotdd.distance(*few, n_projections=count, estimator="plain"),
        lambda: sotdd.distance(*many, n_projections=count, estimator="plain"),
        turns=turns,
    )
    return [
        Line(f"1,000 classes / 10 classes (n = {n:,})", f"{thousand / ten:.2f} ×", "≤ 1.2 ×", thousand <= 1.2 * ten)
    ]


def growth(turns: int, n: int = 10_000, d: int = 784, count: int = 1024) -> list[Line]:
    """Twice the points, the projections, the features."""
    once = labelled(n, d), labelled(n, d, seed=1)
    twice_n = labelled(2 * n, d), labelled(2 * n, d, seed=1)
    twice_d = labelled(n, 2 * d), labelled(n, 2 * d, seed=1)
    base, points, projections, features = turn_by_turn(
        lambda: sotdd.distance(*once, n_projections=count, estimator="plain"),
        lambda: sotdd.distance(*twice_n, n_projections=count, estimator="plain"),
        lambda: sotdd.distance(*once, n_projections=2 * count, estimator="plain"),
        lambda: sotdd.distance(*twice_d, n_projections=count, estimator="plain"),
        turns=turns,
    )
    return [
        Line(f"twice the {what} / once", f"{seconds / base:.2f} ×", "≤ 2.3 ×", seconds <= 2.3 * base)
        for what, seconds in (("points", points), ("projections", projections), ("features", features))
    ]


def cores(turns: int, n: int = 10_000, d: int = 784) -> list[Line]:
    """One core against more, as many as there are: a distance, one with its noise floor, and a matrix."""
    pair = labelled(n, d), labelled(n, d, seed=1)
    sets = {str(number): labelled(2000, 64, seed=number) for number in range(20)}
    calls: dict[str, Callable[[], object]] = {
        f"a distance (n = m = {n:,}, d = {d})": lambda: sotdd.distance(*pair, device="cpu"),
        "the same with its noise floor": lambda: sotdd.distance(*pair, noise_floor=True, device="cpu"),
        "`pairwise` of 20 × 2,000 × 64": lambda: sotdd.pairwise(sets, device="cpu"),
    }
    counts = [count for count in (1, 2, 4, 8, 16) if count <= len(os.sched_getaffinity(0))]

    def limit(count: int, call: Callable[[], object]) -> None:
        with threadpoolctl.threadpool_limits(count, user_api="blas"):
            call()

    lines = []
    for what, call in calls.items():
        one, *more = turn_by_turn(*(lambda count=count, call=call: limit(count, call) for count in counts), turns=turns)
        ratios = ", ".join(f"{one / seconds:.1f} × on {count}" for count, seconds in zip(counts[1:], more, strict=True))
        measured = f"{ratios} ({one:.2f} s → {more[-1]:.3f} s)"
        lines.append(Line(f"one core / more: {what}", measured, "≥ half", one >= counts[-1] / 2 * more[-1]))
    return lines


def noise_floor(turns: int, n: int = 60_000, d: int = 784) -> list[Line]:
    """A distance with its noise floor against the distance alone, on all cores."""
    pair = labelled(n, d), labelled(n, d, seed=1)
    with_floor, alone = turn_by_turn(
        lambda: sotdd.distance(*pair, noise_floor=True, device="cpu"),
        lambda: sotdd.distance(*pair, device="cpu"),
        turns=turns,
    )
    measured = f"{with_floor / alone:.1f} × ({with_floor:.2f} s against {alone:.2f} s)"
    return [Line(f"with its noise floor / alone (n = m = {n:,})", measured, "≤ 0.8 s", with_floor <= 0.8)]


def cold_start() -> list[Line]:
    """Processor time of the first calls of an installation, against the same calls once they are compiled."""
    code = """
import sys, time, numpy as np, sotdd
rng = np.random.default_rng(0)
for n, d in zip(*[map(int, sys.argv[1:])] * 2):
    pair = [(rng.normal(size=(n, d)), rng.integers(2, size=n)) for _ in range(2)]
    began = time.process_time()
    sotdd.distance(*pair, device="cpu")
    print(time.process_time() - began)
"""
    lines = []
    for sizes, dimensions in (("200 5", "5"), ("2000 784", "784"), ("200 5 2000 784", "5, then 784")):
        command = [sys.executable, "-c", code, *sizes.split()]
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "OPENBLAS_NUM_THREADS": "1"}
            runs = [
                subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(2)
            ]
        first, again = (sum(map(float, run.stdout.split())) for run in runs)
        measured = f"{first / again:.1f} × ({first:.1f} s of processor time)"
        lines.append(
            Line(f"first distance of an installation, d = {dimensions} / of a process", measured, "≤ 5 s", first <= 5)
        )
        lines.append(Line(f"first distance of a process, d = {dimensions}", f"{again:.2f} s", "≤ 0.8 s", again <= 0.8))
    return lines


def small_call(turns: int) -> list[Line]:
    """Two hundred points in five features, against a plain call."""
    pair = labelled(200, 5, 2), labelled(200, 5, 2, seed=1)
    default, plain = turn_by_turn(
        lambda: sotdd.distance(*pair), lambda: sotdd.distance(*pair, estimator="plain"), turns=3 * turns
    )
    measured = f"{default / plain:.2f} × ({1000 * default:.1f} ms)"
    return [Line("a small call (n = m = 200, d = 5), default / plain", measured, "≤ 6 ms", default <= 0.006)]


def gate(turns: int) -> list[Line]:
    """What `sotdd check` does with a batch and a reference, against the distance of the two: as it was, and moved."""
    lines = []
    sizes = (300, 4000, 10, 1.0), (2000, 20_000, 10, 4.0), (300, 4000, 200, 4.0)
    for (rows, kept, classes, most), moved in product_of(sizes, (0.0, 0.2)):
        (x, y), reference = labelled(rows, 16, classes, seed=1), labelled(kept, 16, classes)
        batch = x + np.float32(moved), y
        drift = sotdd.DriftReference.fit(reference)
        known, opened = Gate("reference", drift), drift.open_batch(batch)
        seconds, distance = turn_by_turn(
            lambda known=known, opened=opened: known.judge(opened, "batch"),
            lambda reference=reference, batch=batch: sotdd.distance(reference, batch),
            turns=turns,
        )
        how = "moved, " if moved else ""
        what = f"the gate: {rows:,} rows against {kept:,}, {how}{classes} classes / their distance"
        lines.append(Line(what, f"{seconds / distance:.0f} × ({seconds:.2f} s)", f"≤ {most:g} s", seconds <= most))
    return lines


def memory(n: int = 60_000, d: int = 784, count: int = 10_000) -> list[Line]:
    """Peak memory beyond the inputs, in a process of its own (as Linux counts it)."""
    code = f"""
import re, numpy as np, sotdd
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
rng = np.random.default_rng(0)
data = [(rng.standard_normal(({n}, {d}), dtype=np.float32), rng.integers(0, 10, size={n})) for _ in range(2)]
sotdd.distance((data[0][0][:2000], data[0][1][:2000]), (data[1][0][:1500], data[1][1][:1500]), n_projections=64)
open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
before = peak()
r = sotdd.distance(*data, n_projections={count}, device="cpu")  # "auto" may load torch, to ask for a GPU
print(peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    peak = float(done.stdout)
    what = f"peak memory beyond inputs and libraries (n = m = {n:,}, L = {count:,})"
    return [Line(what, f"{peak:.0f} MB", "≤ 600 MB", peak <= 600)]


def command_line(turns: int) -> list[Line]:
    """How long a person waits for the help and for the demonstration, warm."""
    lines = []
    for command, most in (("--help", 0.5), ("demo", 20.0)):
        call = [sys.executable, "-m", "sotdd", command]
        (seconds,) = turn_by_turn(lambda call=call: subprocess.run(call, capture_output=True, check=True), turns=turns)
        lines.append(Line(f"`sotdd {command}`", f"{seconds:.2f} s", f"≤ {most:g} s", seconds <= most))
    return lines


def table(lines: list[Line]) -> str:
    """The lines as a Markdown table."""
    rows = [
        f"| {line.what} | {line.measured} | {line.promised} | {'yes' if line.kept else '**no**'} |" for line in lines
    ]
    return "\n".join(["| what | measured | promised | kept |", "|---|---|---|---|", *rows])


def machine() -> str:
    """What the numbers were measured on."""
    libraries = [library for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"]
    blas = ", ".join(sorted({f"{library['internal_api']} {library['version']}" for library in libraries}))
    cores = len(os.sched_getaffinity(0))
    return f"{platform.machine()}, {cores} cores, NumPy {np.__version__}, {blas}, torch {torch.__version__}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer turns, smaller memory test")
    parser.add_argument("--only", help="names of sections, with commas between")
    parser.add_argument("--json", type=Path, help="also write what was measured to this file, after each section")
    parser.add_argument("--markdown", type=Path, help="also write the table to this file")
    parser.add_argument("--history", action="store_true", help="also keep the run: see benchmarks/history.py")
    options = parser.parse_args()
    turns = 3 if options.quick else 9
    print(machine())
    lines: list[Line] = []
    sections: dict[str, Callable[[], list[Line]]] = {
        "product": lambda: product(turns),
        "product_wide": lambda: product(max(2, turns // 3), d=3072, most=0.5),
        "default_call": lambda: default_call(turns),
        "fitting": lambda: fitting(max(2, turns // 3)),
        "against_torch": lambda: against_torch(turns),
        "classes": lambda: classes(turns),
        "growth": lambda: growth(turns),
        "cores": lambda: cores(max(2, turns // 3)),
        "noise_floor": lambda: noise_floor(max(2, turns // 3)),
        "cold_start": cold_start,
        "small_call": lambda: small_call(turns),
        "gate": lambda: gate(max(2, turns // 3)),
        "command_line": lambda: command_line(turns),
        "memory": lambda: memory(count=1000 if options.quick else 10_000),
    }
    for name in options.only.split(",") if options.only else sections:
        for line in sections[name]():
            print(
                f"{line.what}: {line.measured} (promised {line.promised}: {'kept' if line.kept else 'NOT KEPT'})",
                flush=True,
            )
            lines.append(line)
        if options.json:
            found = {"machine": machine(), "lines": [asdict(line) for line in lines]}
            options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if options.markdown:
        heading = f"# Benchmarks\n\nMeasured on {machine()}; `python -m benchmarks.core`."
        options.markdown.write_text(f"{heading}\n\n{table(lines)}\n", encoding="utf-8")
    if options.history:
        Run.of(lines, machine()).append()


if __name__ == "__main__":
    main()
