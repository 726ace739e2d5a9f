"""Sketches of large data against their promises: python -m benchmarks.scale [--quick] [--markdown FILE].

Parquet files are written to a temporary folder, which takes 1.3 GB at the full size and is removed
afterwards. Every line compares two things measured in the same run, turn by turn.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import dask
import dask.dataframe
import numpy as np
import pyarrow as pa
from distributed import Client, LocalCluster
from pyarrow import parquet

import sotdd
import sotdd.sketches.cluster
from benchmarks.core import Line, table

FEATURES = 64
CLASSES = 10
FILE_ROWS = 250_000

_STREAM = """
import pyarrow.dataset, re, sys, time, sotdd
count, *paths = sys.argv[1:]
rows = pyarrow.dataset.dataset(paths)
first = rows.head(65536)
projections = sotdd.Projections.fit([first], n_projections=int(count))
sotdd.sketch_stream([first], projections)  # loads the compiled loops
began = time.perf_counter()
batches = rows.to_batches(batch_size=65536, batch_readahead=1, fragment_readahead=1)
assert sotdd.sketch_stream(batches, projections).n_points == rows.count_rows()
seconds = time.perf_counter() - began
print(seconds, int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024)
"""


def write(folder: Path, files: int, rows: int = FILE_ROWS) -> list[Path]:
    """Files of Gaussian features in columns, and labels that move them."""
    paths = []
    for place in range(files):
        rng = np.random.default_rng(place)
        labels = rng.integers(CLASSES, size=rows)
        points = rng.standard_normal((FEATURES, rows), dtype=np.float32) + (0.1 * labels).astype(np.float32)
        columns = {f"x{k}": column for k, column in enumerate(points)}
        paths.append(folder / f"part-{place:03}.parquet")
        parquet.write_table(pa.table({**columns, "label": labels}), paths[-1], compression=None, use_dictionary=False)
    return paths


def stream(paths: Sequence[Path], count: int) -> tuple[float, float]:
    """Seconds and peak memory in MB of a process that streams files (as Linux counts it)."""
    call = [sys.executable, "-c", _STREAM, str(count), *map(str, paths)]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    seconds, peak = map(float, done.stdout.split())
    return seconds, peak


def one_process(paths: Sequence[Path], turns: int, count: int = 256, count_for_memory: int = 1000) -> list[Line]:
    """A fifth of the rows against all of them; peak memory with all."""
    few = paths[: len(paths) // 5]
    short, long = (
        min(runs) for runs in zip(*((stream(few, count), stream(paths, count)) for _ in range(turns)), strict=True)
    )
    ratio = long[0] / short[0]
    rows = FILE_ROWS * len(paths)
    seconds, peak = stream(paths, count_for_memory)
    return [
        Line(
            f"five times the rows / once ({rows:,} rows × {FEATURES}, L = {count})",
            f"{ratio:.2f} × ({long[0]:.1f} s)",
            "4.25 to 5.75 ×",
            4.25 <= ratio <= 5.75,
        ),
        Line(f"peak memory of the process (L = {count})", f"{long[1]:.0f} MB", "≤ 1,000 MB", long[1] <= 1000),
        Line(
            f"peak memory of the process (L = {count_for_memory:,})",
            f"{peak:.0f} MB ({seconds:.0f} s)",
            "≤ 1,000 MB",
            peak <= 1000,
        ),
    ]


def on_cluster(paths: Sequence[Path], client: Client, count: int) -> tuple[float, float]:
    """Seconds that the workers of a client take, and the most processor time that one of them takes."""
    rows = dask.dataframe.read_parquet([str(path) for path in paths])
    projections = sotdd.Projections.fit([rows.get_partition(0).compute()], n_projections=count)
    before = client.run(time.process_time)
    began = time.perf_counter()
    sotdd.sketches.cluster.sketch(rows, projections, client)
    seconds = time.perf_counter() - began
    after = client.run(time.process_time)
    return seconds, max(after[worker] - before[worker] for worker in after)


def workers(number: int) -> LocalCluster:
    """So many workers in processes of their own, with one thread and one core each."""
    made = LocalCluster(n_workers=number, threads_per_worker=1, dashboard_address=":0")
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))

        def pin(core: int) -> None:
            for thread in os.listdir("/proc/self/task"):
                os.sched_setaffinity(int(thread), {core})

        with Client(made, set_as_default=False) as client:
            for core, address in zip(cores, client.scheduler_info(n_workers=-1)["workers"], strict=False):
                client.run(pin, core, workers=[address])
    return made


def two_workers(paths: Sequence[Path], turns: int, count: int = 256) -> list[Line]:
    """One worker against two, each on a core of its own."""
    with (
        workers(1) as single,
        workers(2) as pair,
        Client(single, set_as_default=False) as one,
        Client(pair, set_as_default=False) as two,
    ):
        for client in (one, two):
            on_cluster(paths[:2], client, 64)
        runs = [[on_cluster(paths, client, count) for client in (one, two)] for _ in range(turns)]
    (slow, busy), (fast, busy_each) = (
        [min(kind) for kind in zip(*each, strict=True)] for each in zip(*runs, strict=True)
    )
    size = f"{FILE_ROWS * len(paths):,} rows, L = {count}"
    return [
        Line(
            f"one worker / two workers ({size})",
            f"{slow / fast:.2f} × ({slow:.1f} s, {fast:.1f} s)",
            "≥ 1.6 ×",
            slow >= 1.6 * fast,
        ),
        Line(
            "the same in processor time of the busiest worker",
            f"{busy / busy_each:.2f} × ({busy:.1f} s, {busy_each:.1f} s)",
            "≥ 1.6 ×",
            busy >= 1.6 * busy_each,
        ),
    ]


def machine() -> str:
    """What the numbers were measured on."""
    return (
        f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores, NumPy {np.__version__}, Dask {dask.__version__}"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, once")
    parser.add_argument("--markdown", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    print(machine())
    turns = 1 if options.quick else 3
    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder), 5 if options.quick else 20, FILE_ROWS)
        lines = [*two_workers(paths[:8], turns + 2), *one_process(paths, turns)]
    print(table(lines))
    if options.markdown:
        text = f"Measured on {machine()}; `python -m benchmarks.scale`.\n\n{table(lines)}\n"
        options.markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
