"""Seconds and peak memory of every method against the size of two halves of a dataset.

Each method runs in a process of its own, whose peak memory begins anew for every size. Methods that do not finish in
time or do not fit are marked, and larger sizes are not tried.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from experiments.lib.methods import CHSW, EXACT, GAUSSIAN, SOTDD, WTE, Method
from experiments.lib.options import ROOT, Options, parse
from experiments.lib.store import Row, Unit, complete
from experiments.paper import figures

_CHILD = """
import ctypes, json, pathlib, re, sys
from experiments.lib import data
from experiments.paper import pairs
from experiments.lib.methods import Method, measure
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
settings, name, sizes, folder, device = json.loads(sys.argv[1])
method = Method(**settings)
source = data.images(name, pathlib.Path(folder))[0]
measure(method, dict(zip("ab", pairs.disjoint(source, 100, 0))), device=device)  # compiled, imported
for size in sizes:
    both = dict(zip("ab", pairs.disjoint(source, size, 0)))
    ctypes.CDLL(None).malloc_trim(0)  # what was freed does not count
    open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
    before = peak()
    measured = measure(method, both, device=device)
    print(json.dumps([measured.seconds, peak() - before]), flush=True)
"""


@dataclass(frozen=True)
class Sizes:
    """How much is done."""

    points: Mapping[str, tuple[int, ...]]
    projections: tuple[int, ...]
    patience: float
    others: tuple[str, ...] = (EXACT, GAUSSIAN, WTE)


SIZES = {
    "full": Sizes(
        {"mnist": (1000, 3000, 10_000, 30_000), "cifar10": (1000, 2000, 4000, 8000)},
        (1000, 5000, 10_000), 240.0,
    ),
    "quick": Sizes({"mnist": (500, 1000), "cifar10": (500,)}, (1000,), 120.0),
    "smallest": Sizes({"mnist": (60,)}, (64,), 120.0, (GAUSSIAN,)),
}  # fmt: skip


def main() -> None:
    """Measure and draw."""
    run(parse(__doc__))


def run(options: Options, datasets: Sequence[str] | None = None) -> None:
    """One row per dataset, method, number of projections, device and size."""
    sizes = SIZES[options.size]
    for name in datasets or sizes.points:
        _measure(options, sizes, name)
    if options.draw:
        figures.runtime(options.results)


def _measure(options: Options, sizes: Sizes, name: str) -> None:
    path = options.results / f"runtime_{name}.csv"
    shape = None if name == "mnist" else (32, 32, 3)
    sliced = [Method(SOTDD, count, image_shape=shape) for count in sizes.projections]
    slow = [Method(other, 0) for other in sizes.others]
    slow += [Method(CHSW, count) for count in sizes.projections]

    def work(unit: Unit) -> Sequence[Row]:
        method = next(m for m in (*sliced, *slow) if (m.name, m.n_projections) == (unit["method"], unit["projections"]))
        return measured(method, str(unit["device"]), name, sizes, options)

    # Those that use every core come one after another; the others, which use one for most of the time, together.
    turns = [(sliced, "cpu", 1), (slow, "cpu", options.workers)]
    if options.device != "cpu":
        turns.append((sliced, options.device, 1))
    for methods, device, workers in turns:
        units = [
            {"data": name, "method": method.name, "projections": method.n_projections, "device": device}
            for method in methods
        ]
        complete(path, units, work, title=f"runtime, {name}", workers=workers)


def measured(method: Method, device: str, name: str, sizes: Sizes, options: Options) -> list[dict[str, object]]:
    """Seconds and megabytes beyond the inputs for every size, or a remark why there are none."""
    points = sizes.points[name]
    asked = json.dumps([asdict(method), name, points, str(options.data.resolve()), device])
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", _CHILD, asked]
    remark = "does not fit"
    try:
        done = subprocess.run(
            command, capture_output=True, check=False, timeout=sizes.patience, env={**os.environ, "PYTHONPATH": path}
        )
        told = done.stdout
        if done.returncode and b"memory" not in done.stderr.lower():
            raise RuntimeError(f"{method.name} failed on {name}: {done.stderr.decode()[-400:]}")
    except subprocess.TimeoutExpired as late:
        told, remark = late.stdout or b"", f"over {sizes.patience:.0f} s"
    found = [json.loads(line) for line in told.decode().splitlines() if line.startswith("[") and line.endswith("]")]
    rows: list[dict[str, object]] = []
    for place, size in enumerate(points):
        if place < len(found):
            rows.append({"size": size, "seconds": found[place][0], "megabytes": found[place][1], "remark": ""})
        else:
            rows.append({"size": size, "seconds": "", "megabytes": "", "remark": remark})
            remark = "not tried"
    return rows


if __name__ == "__main__":
    main()
