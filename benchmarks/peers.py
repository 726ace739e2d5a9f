"""Time and memory of every method: python -m benchmarks.peers [--quick].

The paper's runtime figure, on pictures of 784 pixels like digits, in ten classes: seconds of processor time, which
other work on the machine hardly changes, and peak memory beyond the inputs.

Each measurement runs in a process of its own, so that its peak memory is its own. Methods that
do not finish in time or do not fit are marked, and larger sizes are not tried.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

import numpy as np
from numpy.typing import NDArray

SIZES = (1000, 2000, 5000, 10_000)

# Method and settings, in the order of the table.
METHODS: dict[str, tuple[str, dict[str, object]]] = {
    "s-OTDD, 1,000 projections": ("sotdd", {"n_projections": 1000}),
    "s-OTDD, 10,000 projections": ("sotdd", {"n_projections": 10_000}),
    "OTDD, exact labels": ("otdd", {}),
    "OTDD, Gaussian labels": ("otdd-gaussian", {}),
    "WTE": ("wte", {}),
    "CHSW, 1,000 projections": ("chsw", {"n_projections": 1000}),
    "sliced Wasserstein, 1,000 projections": ("sw", {"n_projections": 1000}),
    "Fréchet": ("frechet", {}),
    "MMD": ("mmd", {}),
}

_CHILD = """
import ctypes, json, re, sys, time
import numpy as np, sotdd
from benchmarks.peers import digits
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
method, settings, n = json.loads(sys.argv[1])
small = [digits(300, seed) for seed in (0, 1)]
sotdd.pairwise(small, method=method, **settings)  # compiled, imported
data = [digits(n, seed) for seed in (0, 1)]
ctypes.CDLL(None).malloc_trim(0)  # what was freed does not count
open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
before, began = peak(), time.process_time()
sotdd.pairwise(data, method=method, **settings)
print(json.dumps([time.process_time() - began, peak() - before]))
"""


def digits(n: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Pictures like digits: 784 pixels, most of them black, ten classes that overlap."""
    shapes = np.random.default_rng(99).normal(size=(10, 12, 784))
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, size=n)
    strokes = np.einsum(
        "nk,nkd->nd", rng.normal(1, 1, size=(n, 12)).astype(np.float32), shapes.astype(np.float32)[labels]
    )
    return np.clip(60 * strokes - 40, 0, 255).astype(np.uint8), labels


def measure(method: str, settings: dict[str, object], n: int, patience: float) -> str:
    """Seconds and megabytes beyond the inputs, or why there are none."""
    command = [sys.executable, "-c", _CHILD, json.dumps([method, settings, n])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=patience)
    except subprocess.TimeoutExpired:
        return f"over {patience:.0f} s"
    except subprocess.CalledProcessError as error:
        return "does not fit" if "memory" in error.stderr else "failed"
    seconds, megabytes = json.loads(done.stdout)
    return f"{seconds:.2g} s, {megabytes:,.0f} MB"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two small sizes")
    options = parser.parse_args()
    sizes = (300, 600) if options.quick else SIZES
    patience = 30.0 if options.quick else 400.0
    lines = ["| method | " + " | ".join(f"n = m = {n:,}" for n in sizes) + " |", "|---" * (len(sizes) + 1) + "|"]
    for name, (method, settings) in METHODS.items():
        cells: list[str] = []
        for n in sizes:
            gone = cells and not cells[-1].endswith("MB")
            cells.append("–" if gone else measure(method, settings, n, patience))
            print(f"{name}, n = {n:,}: {cells[-1]}", flush=True)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    print("\n".join(["", "**Processor time and peak memory**", "", *lines]))


if __name__ == "__main__":
    main()
