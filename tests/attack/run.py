"""An attack on the whole package: python -m attack, in the folder tests.

Four parts, each of numbered cases, so that ``--seed NUMBER --calls 1`` repeats one (``--help`` has the options):

- calls: public calls with odd arguments;
- files: files of every kind, altered;
- kills: commands that write, killed at a random time or at a random byte of a file, then run again;
- numbers: distances beside a brute force in float64.

A case may give a plausible result or refuse in one line. Anything else is a finding: another exception, a warning, NaN,
a changed random state, half a file, the end of the process, more than a minute or more than 2 GB. What needs a library
that is not installed is skipped and counted as such. ``report.json`` has the counts of the last whole run.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np

import sotdd
from attack import calls, files

_MOST_SECONDS, _MOST_BYTES = 60, 2e9
_LIBRARIES = (
    "numpy",
    "scipy",
    "numba",
    "safetensors",
    "torch",
    "pandas",
    "polars",
    "pyarrow",
    "lancedb",
    "dask",
    "POT",
)
Case = tuple[str, Any]  # the part and the number; of a call also its line

# ------------------------------------------------------------------ commands that are killed

# A limit on the size of files ends the process in the middle of a write, as a kill there does.
_PROGRAM = """
import resource, signal, sys
limit = int(sys.argv.pop(1))
if limit:
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
from sotdd.cli import main
main()
"""
COMMANDS = {
    "sketch": "sketch data.npz -o data.sotdd",
    "reference": "reference data.npz -o data.ref",
    "check": "check data.ref data.npz --log gate.log --report gate.html",
    "matrix": "matrix data.npz more.npz --report matrix.html",
    "catalog": "catalog add catalog entry data.npz --overwrite",
    "distance": "distance data.npz more.npz --json",
}


def run_command(name: str, folder: Path, limit: int = 0, seconds: float | None = None) -> int:
    """The exit code of a command, with its output in a file; negative where it was killed."""
    arguments = [sys.executable, "-c", _PROGRAM, str(limit), *COMMANDS[name].split()]
    with (folder / "output.json").open("wb") as output:
        process = subprocess.Popen(arguments, cwd=folder, stdout=output, stderr=subprocess.DEVNULL)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


def prepare_commands(folder: Path) -> dict[str, float]:
    """Run every command to its end, on data that the killed ones do not have; returns how long each took."""
    rng = np.random.default_rng(0)
    took = {}
    for name in ("data", "more"):
        np.savez(folder / f"{name}.npz", X=rng.normal(size=(200, 4)), y=rng.integers(3, size=200))
    for name, line in COMMANDS.items():
        if name == "catalog" and find_spec("lancedb") is None:
            continue
        begin = time.perf_counter()
        if run_command(name, folder) not in (0, 1):
            raise RuntimeError(f"sotdd {line} failed")
        took[name] = time.perf_counter() - begin
    check_files(folder)
    return took


def check_files(folder: Path) -> None:
    """Raise where a file in the folder of the commands is not whole."""
    for path in folder.iterdir():
        if path.suffix == ".sotdd":
            sotdd.Sketch.load(path)
        elif path.suffix == ".ref":
            sotdd.DriftReference.load(path)
        elif path.suffix == ".html":
            assert path.read_text(encoding="utf-8").rstrip().endswith("</html>"), path.name
        elif path.name == "catalog" and (path / "sketches.lance").exists():
            catalog = sotdd.Catalog(path)
            assert all(catalog.get(name) for name in catalog.names)
        elif path.name == "gate.log":  # the last line may be cut, and is left out by who reads it
            assert all(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[:-1])


def run_kill(number: int, whole: Path, took: dict[str, float]) -> tuple[str, str]:
    """Kill a command at a random time or write, look at its files, and run it again."""
    rng = random.Random(number)
    name = tuple(COMMANDS)[number % len(COMMANDS)]
    if name not in took:
        return name, "skipped"
    folder = Path(tempfile.mkdtemp(dir=Path.cwd()))
    shutil.copytree(whole, folder, dirs_exist_ok=True)
    shutil.copy(folder / "more.npz", folder / "data.npz")
    if rng.random() < 0.5:  # what is written is not there before
        for path in {"sketch": ["data.sotdd"], "reference": ["data.ref"], "check": ["gate.log", "gate.html"]}.get(
            name, []
        ):
            (folder / path).unlink()
    by_time = name == "distance" or rng.random() < 0.5
    manner = {"seconds": rng.uniform(0.2, 1.1) * took[name]} if by_time else {"limit": int(10 ** rng.uniform(0, 5.5))}
    code = run_command(name, folder, **manner)
    what = f"{name}: {manner} {code}"
    try:
        check_files(folder)
        again = run_command(name, folder)
        check_files(folder)
        assert again in (0, 1), f"the second run ended with {again}"
        if name == "distance":
            json.loads((folder / "output.json").read_bytes())
    except Exception as error:  # noqa: BLE001  # whatever a half file raises
        return what, f"{type(error).__name__}: {error}"
    shutil.rmtree(folder)
    return what, "killed" if code < 0 else "finished before"


# ------------------------------------------------------------------ one case, and many in processes


def run_case(case: Case, whole: Path, took: dict[str, float]) -> tuple[str, str]:
    """What was tried, and its outcome."""
    part, number = case
    if part == "calls":
        line = _name(case)
        return line, calls.run_line(line)
    if part == "files":
        return files.run_file(number, Path.cwd())
    if part == "kills":
        return run_kill(number, whole, took)
    from project import brute_force

    return f"brute_force.wrong({number})", brute_force.wrong(number) or "agrees"


OUTCOMES = ("result", "refused", "skipped", "killed", "finished before", "agrees")


def _work(pipe: Connection, folder: Path, took: dict[str, float]) -> None:
    """Run the cases that arrive, one after another, in a folder of this process."""
    os.setsid()  # so that what it started is killed with it
    for stream in (1, 2):  # libraries that panic print without Python
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    own = Path(tempfile.mkdtemp(dir=folder))
    os.chdir(own)
    calls.write_files()
    pipe.send(("ready", "result"))
    while case := pipe.recv():
        with suppress(OSError):  # forget the largest memory so far
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        what, outcome = run_case(case, folder / "whole", took)
        if outcome in OUTCOMES and (peak := _find_peak()) > _MOST_BYTES:
            outcome = f"took {peak / 1e9:.1f} GB"
        pipe.send((what, outcome))


def _find_peak() -> float:
    with suppress(OSError):
        return 1024 * int(re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))[0])
    return 0


@dataclass
class Worker:
    """A process, and the case that it is at."""

    folder: Path
    took: dict[str, float]
    case: Case | None = None
    since: float = 0

    def __post_init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, self.folder, self.took), daemon=False)
        self.process.start()
        theirs.close()

    def begin(self, case: Case | None) -> None:
        """Hand over the next case, or None to end."""
        self.case, self.since = case, time.monotonic()
        self.pipe.send(case)

    def answer(self) -> tuple[str, str] | None:
        """What came of its case; None while it is at it."""
        late = self.case is not None and time.monotonic() - self.since > _MOST_SECONDS
        if not late and not self.pipe.poll():
            return None
        with suppress(EOFError, OSError):
            if self.pipe.poll():
                return self.pipe.recv()
        if late:
            os.killpg(self.process.pid or 0, signal.SIGKILL)
        self.process.join()
        return _name(self.case), f"took more than {_MOST_SECONDS} s" if late else f"ended: {self.process.exitcode}"


def _name(case: Case | None) -> str:
    """What a case tries, as far as it can be told from outside."""
    if case is None:
        raise RuntimeError("a process ended before its first case")
    part, number = case
    if part == "files":
        return files.KINDS[number % len(files.KINDS)]
    if part == "calls" and isinstance(number, int):
        with suppress(sotdd.SotddError):  # a library that is not installed
            return calls.draw(number)
    return str(number)


@dataclass
class Tally:
    """Outcomes by part, and the findings."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)

    def add(self, case: Case, what: str, outcome: str) -> None:
        """Count a case."""
        part, number = case
        known = outcome in OUTCOMES
        self.counts.setdefault(part, Counter())[outcome if known else "findings"] += 1
        if not known:
            self.findings.append({"part": part, "number": number, "what": what, "outcome": outcome})
            print(f"{part} {number}: {what}: {outcome}"[:600], flush=True)


def run_all(cases: Iterator[Case], processes: int, seconds: float, folder: Path, took: dict[str, float]) -> Tally:
    """Run cases until there are no more, or the time is over; a process that ended is replaced."""
    tally, end = Tally(), time.monotonic() + seconds
    workers = [Worker(folder, took) for _ in range(processes)]
    while workers:
        wait([worker.pipe for worker in workers], timeout=1)
        for place, worker in enumerate(workers):
            answer = worker.answer()
            if answer is None:
                continue
            if worker.case is not None:
                tally.add(worker.case, *answer)
            if not worker.process.is_alive():
                workers[place] = Worker(folder, took)
                continue
            worker.begin(next(cases, None) if time.monotonic() < end else None)
        for worker in workers:
            if worker.since and worker.case is None:
                worker.process.join()
        workers = [worker for worker in workers if not worker.since or worker.case is not None]
    return tally


def spread_cases(wanted: dict[str, int], seed: int) -> Iterator[Case]:
    """Every part from its beginning to its end at the same pace, so that a time limit leaves some of each."""
    shares = ((i / count, part, seed + i) for part, count in wanted.items() for i in range(count))
    return ((part, number) for _, part, number in sorted(shares))


def describe_run(arguments: Sequence[str]) -> dict[str, Any]:
    """What was attacked, when and where; libraries that are missing are missing here."""
    asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    found = {"sotdd": sotdd.__version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return {
        "command": shlex.join(["python", "-m", "attack", *arguments]),
        "commit": asked.stdout.strip() or "not a checkout",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": found,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Attack, print the counts and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for part, count in {"calls": 100_000, "files": 10_000, "kills": 200, "numbers": 1000}.items():
        parser.add_argument(f"--{part}", type=int, default=count)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first case of each part")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no case after this time")
    parser.add_argument("--json", type=Path, help="where to write the counts")
    asked = parser.parse_args(arguments)
    wanted = {part: getattr(asked, part) for part in ("calls", "files", "kills", "numbers")}
    begin = time.monotonic()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # of each process
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        whole = Path(name) / "whole"
        whole.mkdir()
        took = prepare_commands(whole) if asked.kills else {}
        tally = run_all(spread_cases(wanted, asked.seed), asked.processes, asked.seconds, Path(name), took)
    for part, counts in tally.counts.items():
        print(f"{part}: {counts.total():,} cases: " + ", ".join(f"{n:,} {said}" for said, n in counts.most_common()))
    if asked.json is not None:
        content = {
            **describe_run(sys.argv[1:] if arguments is None else arguments),
            "seconds": round(time.monotonic() - begin),
            "counts": tally.counts,
            "findings": tally.findings,
        }
        asked.json.write_text(json.dumps(content, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
