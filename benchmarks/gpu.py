"""The torch engine on a GPU, with its goals: python -m benchmarks.gpu [--quick] [--markdown FILE] [--json FILE].

Inputs are on the card and everything is warm; times are medians of whole calls. Needs a CUDA device with torch;
nothing else of the benchmarks' extras. With cuda-core installed rows are sorted by the kernel of our own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import sotdd
from benchmarks import plain_torch
from sotdd import LabelledData
from sotdd.compute.comparison import compare
from sotdd.compute.torch import fused
from sotdd.compute.torch import rows as engine_verbs

# The first call of a process, with torch loaded and the data on the card.
_FIRST_CALL = """
import time, torch, sotdd
from benchmarks.gpu import labelled
data = [labelled({n}, 784, 0), labelled({n}, 784, 1)]
torch.cuda.synchronize()
began = time.perf_counter()
sotdd.distance(*data, device="cuda")
print(time.perf_counter() - began)
"""


def milliseconds(function: Callable[[], object], turns: int) -> float:
    """Median wall time, after one warm-up."""
    function()
    times = []
    for _ in range(turns):
        torch.cuda.synchronize()
        began = time.perf_counter()
        function()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return 1e3 * float(np.median(times))


def labelled(n: int, d: int, seed: int) -> LabelledData:
    """Gaussian features on the card, ten classes."""
    generator = torch.Generator("cuda").manual_seed(seed)
    labels = torch.randint(10, (n,), device="cuda", generator=generator)
    return LabelledData.of((torch.randn(n, d, device="cuda", generator=generator), labels), f"set {seed}")


class Table:
    """Lines of what was measured, with goals, printed as they come, and written as JSON where that is asked for."""

    def __init__(self, path: Path | None = None) -> None:
        self.lines = ["| what | measured | goal | kept |", "|---|---|---|---|"]
        self._path, self._found = path, []
        print("\n".join(self.lines), flush=True)

    def add(self, what: str, measured: float, goal: float | None, unit: str, *, most: bool = True) -> None:
        """One line; the goal is at most, or at least, that."""
        kept = "" if goal is None else "yes" if (measured <= goal) == most else "**no**"
        wanted = "" if goal is None else f"{'≤' if most else '≥'} {goal:g} {unit}"
        self.lines.append(f"| {what} | {measured:.3g} {unit} | {wanted} | {kept} |")
        print(self.lines[-1], flush=True)
        if self._path is not None:
            self._found.append({"what": what, "measured": measured, "unit": unit, "goal": goal, "kept": kept})
            told = {"machine": torch.cuda.get_device_name(), "torch": torch.__version__, "lines": self._found}
            self._path.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


LAWS = {"structured": sotdd.projections.Hadamard(), "sphere": sotdd.projections.Sphere()}
# Milliseconds of a plain call, the same with draws, and default calls of many and of 1,000 projections.
GOALS = {"structured": (45, 50, 85, 20), "sphere": (80, 80, 160, 40)}


def whole_calls(table: Table, n: int, count: int, turns: int) -> None:
    """Plain and default calls, by both laws of directions."""
    data = [labelled(n, 784, seed) for seed in (0, 1)]
    for name, law in LAWS.items():
        goals = GOALS[name]
        recipe = sotdd.Projections.fit(data, n_projections=count, directions=law, tilt=False)
        given = partial(compare, data, [(0, 1)], recipe, 2, device="cuda")
        table.add(f"plain, L = {count:,}, projections given ({name})", milliseconds(given, turns), goals[0], "ms")

        def fresh(law: Any = law) -> object:  # noqa: ANN401
            drawn = sotdd.Projections.fit(data, n_projections=count, directions=law, scale=recipe.scaler, tilt=False)  # noqa: B023
            return compare(data, [(0, 1)], drawn, 2, device="cuda")

        table.add(f"the same, drawn in the call ({name})", milliseconds(fresh, turns), goals[1], "ms")
        for some, goal in ((count, goals[2]), (1000, goals[3])):
            call = partial(sotdd.distance, *data, n_projections=some, directions=law, device="cuda")
            table.add(f"default call, L = {some:,} ({name})", milliseconds(call, turns), goal, "ms")


def agreement(table: Table) -> None:
    """The same projections on the processor and on the card."""
    for name, law in LAWS.items():
        data = [labelled(3000, 784, seed) for seed in (0, 1)]
        recipe = sotdd.Projections.fit(data, n_projections=512, directions=law, tilt=True)
        card, host = (
            compare(data, [(0, 1)], recipe, 2, estimator="controlled", device=device)[0, 1]
            for device in ("cuda", "cpu")
        )
        apart = max(
            float(np.abs(card.per_projection / host.per_projection - 1).max()),  # type: ignore[operator]
            abs(card.value / host.value - 1),
        )
        table.add(f"both engines apart, relative ({name})", apart, 1e-4, "")


def matrices(table: Table, turns: int) -> None:
    """Every two of many datasets."""
    for count, n, goals in ((20, 5000, (0.3, None)), (75, 1800, (2.0, 1.5))):
        sets = {str(seed): labelled(n, 784, seed) for seed in range(count)}
        for estimator, goal in zip(("controlled", "plain"), goals, strict=True):
            call = partial(sotdd.pairwise, sets, estimator=estimator, device="cuda")
            table.add(f"`pairwise` of {count} × {n:,} points, {estimator}", milliseconds(call, turns) / 1e3, goal, "s")


def queued(function: Callable[[], object], turns: int, together: int = 10) -> float:
    """Milliseconds of a call of which the device has several to do, so that it never waits for Python."""
    return milliseconds(lambda: [function() for _ in range(together)], turns) / together


def sorting(table: Table, turns: int) -> None:
    """Rows sorted by the engine and by torch, values per second."""
    for shape in ((512, 60_000), (2048, 60_000), (6144, 5000)):
        values = torch.randn(shape, device="cuda")
        rows = values.clone()
        copying = queued(lambda: rows.copy_(values), turns)  # noqa: B023
        ours = queued(lambda: engine_verbs.sort(rows.copy_(values)), turns) - copying  # noqa: B023
        theirs = queued(lambda: torch.sort(values, dim=1), turns)  # noqa: B023
        by = "own kernel" if fused.sort_in_place(rows.copy_(values)) else "torch"
        size = f"{shape[0]:,} × {shape[1]:,}"
        table.add(f"sort of {size} ({by})", values.numel() / ours / 1e6, 45, "G/s", most=False)
        table.add(f"the same by `torch.sort` ({size})", values.numel() / theirs / 1e6, None, "G/s")


def pictures(table: Table, n: int = 5000, count: int = 500_000) -> None:
    """The paper's largest case: 224-pixel images, structured directions, no span."""
    generator = torch.Generator("cuda").manual_seed(0)
    draw = partial(torch.randint, dtype=torch.uint8, device="cuda", generator=generator)
    data = [LabelledData.of((draw(256, (n, 3, 224, 224)), np.arange(n) % 20), name) for name in ("one", "other")]
    recipe = sotdd.Projections.fit(data, n_projections=count, directions=sotdd.projections.Hadamard(), tilt=False)
    torch.cuda.synchronize()
    began = time.perf_counter()
    compare(data, [(0, 1)], recipe, 2, device="cuda")
    torch.cuda.synchronize()
    spent = time.perf_counter() - began
    table.add(f"224 × 224 × 3 images, n = m = {n:,}, L = {count:,}, plain", spent, 10, "s")


def plain_reading(n: int, d: int, count: int, turns: int) -> float:
    """Milliseconds of the plain PyTorch reading, 500 projections at a time."""
    generator = torch.Generator("cuda").manual_seed(0)
    draw = partial(torch.randint, device="cuda", generator=generator)
    sides = [(torch.randn(n, d, device="cuda", generator=generator), draw(10, (n,))) for _ in range(2)]
    theta, psi = (torch.randn(count, width, device="cuda", generator=generator) for width in (d, 6))
    theta, psi = theta / theta.norm(dim=1, keepdim=True), psi / psi.norm(dim=1, keepdim=True)
    orders = draw(1, 9, (count, 5))

    def work() -> None:
        for start in range(0, count, 500):
            part = slice(start, start + 500)
            plain_torch.per_projection(*sides, theta[part], psi[part], orders[part])  # type: ignore[arg-type]

    return milliseconds(work, turns)


def first_call(n: int) -> float:
    """Seconds of the first call of a process, after another process compiled the kernels."""
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", _FIRST_CALL.format(n=n)], capture_output=True, text=True, check=True
        )
    return float(done.stdout)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    parser.add_argument("--markdown", type=Path, help="also write the table to this file")
    parser.add_argument("--json", type=Path, help="also write what was measured so far to this file, after each line")
    options = parser.parse_args()
    n, count, turns = (6000, 1000, 3) if options.quick else (60_000, 10_000, 7)
    table = Table(options.json)
    whole_calls(table, n, count, turns)
    agreement(table)
    matrices(table, 3)
    sorting(table, turns)
    table.add(f"the plain PyTorch reading, L = {count:,}", plain_reading(n, 784, count, 2), None, "ms")
    if not options.quick:
        pictures(table)
    table.add("first call of a process, default, L = 1,000", first_call(n), 3, "s")
    if options.markdown:
        heading = (
            f"# Benchmarks on a GPU\n\nMeasured on one {torch.cuda.get_device_name()}, torch {torch.__version__}, "
            f"n = m = {n:,} and d = 784 where nothing else is said; `python -m benchmarks.gpu`.\n\n"
        )
        options.markdown.write_text(heading + "\n".join(table.lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
