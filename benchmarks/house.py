"""The house in numbers: python -m benchmarks.house [--markdown].

Rooms, layers, exceptions, files and lines of the source tree; and the walks: through how many files a call goes, how
many pairs of files call each other on the way, and how often a source is opened. The profiler of Python counts walks:
it sees every function of the package that runs, compiled loops included, on every thread.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import sys
import tempfile
import threading
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import sotdd

PACKAGE = Path(sotdd.__file__).parent
PROJECT = PACKAGE.parents[1] / "pyproject.toml"


# ------------------------------------------------------------------ the tree


def modules() -> dict[str, Path]:
    """Every module of the package by its name without ``sotdd.``."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def room_of(module: str) -> str:
    """The part of the top level that a module is in."""
    return module.partition(".")[0]


def rooms() -> list[str]:
    """The packages of the top level."""
    return sorted({room_of(module) for module, path in modules().items() if path.parent != PACKAGE})


def layers() -> list[list[str]]:
    """The layers that import-linter holds, the highest first."""
    contract = _contracts()[0]
    return [[name.strip() for name in layer.replace(":", "|").split("|")] for layer in contract["layers"]]


def exceptions() -> list[str]:
    """Imports that a contract lets pass."""
    return [entry for contract in _contracts() for entry in contract.get("ignore_imports", [])]


def imports() -> Counter[tuple[str, str]]:
    """How many modules of one room import something of another."""
    known = modules()
    between: Counter[tuple[str, str]] = Counter()
    for module, path in known.items():
        targets = {room_of(target) for target in _imported(path, known)}
        between.update((room_of(module), target) for target in targets if target != room_of(module))
    return between


def _imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or node.module is None or node.module.split(".")[0] != "sotdd":
            continue
        base = node.module.removeprefix("sotdd").removeprefix(".")
        for name in node.names:
            inner = f"{base}.{name.name}".removeprefix(".")
            if inner in known or base:
                yield inner if inner in known else base


def _contracts() -> list[dict[str, Any]]:
    settings: list[dict[str, Any]] = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    return settings


# ------------------------------------------------------------------ the walks


@dataclass(frozen=True)
class Walk:
    """Where a call goes.

    Attributes
    ----------
    files
        Every file in which a function ran, and how many calls there were.
    steps
        Which file called which other one.
    opened
        How often a source was opened.
    """

    files: dict[str, int]
    steps: set[tuple[str, str]]
    opened: int


def walk(call: Callable[[], object]) -> Walk:
    """Follow a call, after it ran once: what is only done the first time does not count."""
    call()
    root = str(PACKAGE) + "/"
    files: Counter[str] = Counter()
    steps: set[tuple[str, str]] = set()
    opened = 0

    def enter(frame: FrameType, event: str, _: object) -> None:
        nonlocal opened
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(root) or code.co_name.startswith("<"):
            return
        here = code.co_filename.removeprefix(root)
        files[here] += 1
        opened += code.co_name == "open_dataset"
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(root):
            caller = caller.f_back
        if caller is not None and caller.f_code.co_filename != code.co_filename:
            steps.add((caller.f_code.co_filename.removeprefix(root), here))

    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return Walk(dict(files), steps, opened)


@contextlib.contextmanager
def calls() -> Iterator[dict[str, Callable[[], object]]]:
    """The calls that are followed, by name."""
    from sotdd.commands import main

    rng = np.random.default_rng(0)
    a, b, c = ((rng.normal(size=(n, 4)), rng.integers(3, size=n)) for n in (200, 300, 250))
    projections = sotdd.Projections.fit([a, b])
    with tempfile.TemporaryDirectory() as folder:
        first, second = _written(a, Path(folder, "x.csv")), _written(b, Path(folder, "y.parquet"))

        def command() -> None:
            before, sys.argv = sys.argv, ["sotdd", "distance", first, second]
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                try:
                    main()
                except SystemExit as end:
                    assert not end.code  # noqa: PT017  # the program ends by this
                finally:
                    sys.argv = before

        yield {
            "distance(a, b)": lambda: sotdd.distance(a, b),
            "pairwise of three": lambda: sotdd.pairwise({"a": a, "b": b, "c": c}),
            "sketch(a).distance(sketch(b))": lambda: sotdd.sketch(a, projections).distance(
                sotdd.sketch(b, projections)
            ),
            "sotdd distance x.csv y.parquet": command,
        }


def _written(data: tuple[Any, Any], path: Path) -> str:
    import pandas as pd

    features, labels = data
    frame = pd.DataFrame(features, columns=[f"f{i}" for i in range(features.shape[1])]).assign(label=labels)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    return str(path)


# ------------------------------------------------------------------ the table


def table() -> list[tuple[str, str]]:
    """What is counted, and the counts."""
    paths = list(modules().values())
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
    beside = [path.name for path in paths if path.parent == PACKAGE and not path.name.startswith("__")]
    rows = [
        ("packages at top level", f"{len(rooms())}"),
        ("modules at top level", f"{len(beside)}"),
        ("layers", f"{len(layers())}"),
        ("exceptions to a contract", f"{len(exceptions())}"),
        ("files", f"{len(paths)}"),
        ("lines", f"{lines:,}"),
    ]
    with calls() as followed:
        for name, call in followed.items():
            went = walk(call)
            rows.append((f"`{name}`", f"{len(went.files)} files, {len(went.steps)} steps, {went.opened} opened"))
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true", help="as a table for a page")
    chosen = parser.parse_args()
    rows = table()
    if chosen.markdown:
        print("| counted | |\n|---|---:|")
        print("\n".join(f"| {name} | {count} |" for name, count in rows))
    else:
        print("\n".join(f"{name}: {count}" for name, count in rows))


if __name__ == "__main__":
    main()
