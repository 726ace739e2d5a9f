"""A cluster of processes from 10⁶ rows to 10⁸, workers killed on the way: python -m benchmarks.cluster_growth.

The rows are made by the tasks that need them and never lie anywhere. The largest run is made twice, the second time
with two kills (SIGKILL), at a third and at two thirds of it, each of the worker that holds most; the cluster starts new
ones. Processor time and peaks of memory are those of all worker processes, also of the killed ones (as Linux counts
them, read twice a second).
"""

from __future__ import annotations

import argparse
import logging
import os
import platform
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import dask
import numpy as np
import psutil
from distributed import Client, LocalCluster

import sotdd
import sotdd.sketches.cluster

FEATURES, CLASSES, PROJECTIONS = 8, 10, 32
BATCH_ROWS = 250_000


def labels_of(place: int, rows: int) -> tuple[np.ndarray, np.random.Generator]:
    """The labels of a batch, and the generator that then draws its features."""
    rng = np.random.default_rng(place)
    return rng.integers(CLASSES, size=rows), rng


def batch(place: int, rows: int, features: int, tally: str) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian features, moved a little by their labels, the same each time; a byte in a file for each time."""
    with Path(tally).open("ab") as file:
        file.write(b".")
    labels, rng = labels_of(place, rows)
    points = rng.standard_normal((rows, features), dtype=np.float32)
    points += (0.1 * labels[:, None]).astype(np.float32)
    return points, labels


@dataclass
class Watched:
    """The processes of a cluster, seen from outside while they work.

    Attributes
    ----------
    processor
        Seconds of processor time, by process.
    peak
        The most memory in MB that each process had at once.
    """

    processor: dict[int, float] = field(default_factory=dict)
    peak: dict[int, float] = field(default_factory=dict)

    def look(self) -> None:
        """Read what every process below this one has used so far."""
        for process in psutil.Process().children(recursive=True):
            try:
                times = process.cpu_times()
                status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
            except (psutil.Error, OSError):  # it has just died
                continue
            self.processor[process.pid] = times.user + times.system
            if found := re.search(r"VmHWM:\s+(\d+)", status):
                self.peak[process.pid] = int(found[1]) / 1024

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look twice a second, until the block ends."""
        over = threading.Event()

        def look_again() -> None:
            while not over.wait(0.5):
                self.look()

        thread = threading.Thread(target=look_again, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self.look()


@dataclass(frozen=True)
class Run:
    """One sketch: its rows, seconds on the wall and of the processors, the peak of a worker, and what deaths cost."""

    rows: int
    seconds: float
    processor: float
    peak: float
    killed: int
    batches: int
    made_again: int
    sketch: sotdd.Sketch

    def line(self) -> str:
        """A row of the table."""
        per_row, busy = (1e6 * each / self.rows for each in (self.seconds, self.processor))
        again = f"{self.made_again} of {self.batches}" if self.killed else "–"
        return (
            f"| {self.rows:,} | {self.seconds:.0f} s | {per_row:.2f} µs | {busy:.2f} µs | {self.peak:.0f} MB "
            f"| {self.killed} | {again} |"
        )


def workers() -> LocalCluster:
    """Two workers in processes of their own, with one thread each."""
    return LocalCluster(
        n_workers=2, threads_per_worker=1, memory_limit="2GB", dashboard_address=":0", silence_logs=logging.CRITICAL
    )


def run(rows: int, kills: int = 0, features: int = FEATURES, count: int = PROJECTIONS, size: int = BATCH_ROWS) -> Run:
    """Sketch this many rows on a new cluster, killing workers on the way; check that every row was counted once."""
    sizes = [min(size, rows - start) for start in range(0, rows, size)]
    moments = [(turn + 1) * len(sizes) // (kills + 1) for turn in range(kills)]
    killed: list[int] = []
    with TemporaryDirectory() as folder, workers() as cluster, Client(cluster, set_as_default=False) as client:
        warm, tally = str(Path(folder) / "warm"), str(Path(folder) / "made")
        projections = sotdd.Projections.fit([batch(0, 20_000, features, warm)], n_projections=count)
        few = [dask.delayed(batch, pure=False)(place, 2000, features, warm) for place in range(4)]
        sotdd.sketches.cluster.sketch(few, projections, client)  # loads the compiled loops

        def kill(done: int, total: int) -> None:
            if len(killed) < len(moments) and done >= moments[len(killed)]:
                busiest = max(client.has_what().items(), key=lambda pair: len(pair[1]))[0]
                killed.extend(client.run(os.getpid, workers=[busiest]).values())
                os.kill(killed[-1], signal.SIGKILL)

        delayed = [dask.delayed(batch, pure=False)(place, n, features, tally) for place, n in enumerate(sizes)]
        before, watched = Watched(), Watched()
        before.look()
        with watched.watching():
            began = time.perf_counter()
            sketch = sotdd.sketches.cluster.sketch(delayed, projections, client, progress=kill)
            seconds = time.perf_counter() - began
        made = Path(tally).stat().st_size
    counts = sum(np.bincount(labels_of(place, n)[0], minlength=CLASSES) for place, n in enumerate(sizes))
    if sketch.n_points != rows or sketch.counts.tolist() != counts.tolist():
        raise SystemExit("rows were lost, or counted twice")
    busy = sum(used - before.processor.get(process, 0.0) for process, used in watched.processor.items())
    peak = max(watched.peak.values())
    return Run(rows, seconds, busy, peak, len(killed), len(sizes), made - len(sizes), sketch)


def costs(features: int = FEATURES, few: int = 32, many: int = 128, rows: int = 10**6) -> tuple[float, float, float]:
    """Processor time in µs of making a row, of a row whatever L is, and of each projection of it; in one process."""
    with TemporaryDirectory() as folder:
        tally = str(Path(folder) / "made")
        began = time.process_time()
        parts = [batch(place, min(BATCH_ROWS, rows), features, tally) for place in range(max(1, rows // BATCH_ROWS))]
        making = time.process_time() - began
    used = []
    for count in (few, many):
        projections = sotdd.Projections.fit([(parts[0][0][:20_000], parts[0][1][:20_000])], n_projections=count)
        sotdd.sketch_stream(parts[:1], projections)  # loads the compiled loops
        began = time.process_time()
        sotdd.sketch_stream(parts, projections)
        used.append(time.process_time() - began)
    points = sum(len(labels) for _, labels in parts)
    each = (used[1] - used[0]) / (many - few)
    return tuple(1e6 * seconds / points for seconds in (making, used[0] - few * each, each))  # type: ignore[return-value]


COLUMNS = (
    "rows", "on the wall", "per row", "processor time per row", "peak of a worker", "workers killed",
    "batches made again",
)  # fmt: skip
HEAD = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|"


def machine() -> str:
    """What the numbers were measured on."""
    cores = len(os.sched_getaffinity(0))
    return f"{platform.machine()}, {cores} cores, NumPy {np.__version__}, Dask {dask.__version__}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**6, 10**7, 10**8])
    parser.add_argument("--kills", type=int, default=2, help="workers killed during the largest run")
    parser.add_argument("--features", type=int, default=FEATURES)
    parser.add_argument("--projections", type=int, default=PROJECTIONS)
    parser.add_argument("--costs", action="store_true", help="what a row and each of its projections cost, instead")
    options = parser.parse_args()
    if options.costs:
        making, row, value = costs(options.features)
        print(f"making a row {making:.2f} µs, a row {row:.2f} µs, each of its projections {1000 * value:.1f} ns")
        return
    print(f"{machine()}; {options.features} features, {CLASSES} classes, L = {options.projections}\n\n{HEAD}")
    for rows in sorted(options.rows):
        quiet = run(rows, 0, options.features, options.projections)
        print(quiet.line(), flush=True)
    if options.kills:
        hit = run(max(options.rows), options.kills, options.features, options.projections)
        print(hit.line())
        off = np.abs(hit.sketch.quantiles - quiet.sketch.quantiles).max() / np.abs(quiet.sketch.quantiles).max()
        print(f"\nThe sketches of the last two runs differ by {off:.1e} of their largest value.")


if __name__ == "__main__":
    main()
