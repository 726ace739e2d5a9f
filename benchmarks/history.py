"""What was measured when, kept: python -m benchmarks.core --history adds a run, and the benchmarks page shows it.

A run is one line of JSON in ``benchmarks/history.jsonl``: when, which version and commit, on what machine, and what was
measured of every promise. Lines are added and never changed. Ratios of one run bear comparison over the years; seconds
only on one machine.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import sotdd

ROOT = Path(__file__).parents[1]
FILE = ROOT / "benchmarks" / "history.jsonl"


class Measured(Protocol):
    """A line of a benchmark, as `benchmarks.core.Line` is."""

    what: str
    measured: str
    promised: str
    kept: bool


@dataclass(frozen=True)
class Run:
    """One run: when, of what, on what, and what was measured and promised by name."""

    when: str
    version: str
    commit: str
    machine: str
    measured: dict[str, tuple[str, str, bool]]

    @classmethod
    def of(cls, lines: Iterable[Measured], machine: str) -> Run:
        """The run that was just made."""
        asked = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        now = datetime.now(UTC).isoformat(timespec="minutes")
        found = {line.what: (line.measured, line.promised, line.kept) for line in lines}
        return cls(now, sotdd.__version__, asked.stdout.strip() or "not a checkout", machine, found)

    def append(self, path: Path = FILE) -> None:
        """Add it to the others."""
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(self), ensure_ascii=False) + "\n")


def read(path: Path = FILE) -> list[Run]:
    """All runs, the oldest first."""
    kept = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    runs = [Run(**{**each, "measured": {k: tuple(v) for k, v in each["measured"].items()}}) for each in kept]
    return sorted(runs, key=lambda run: run.when)


def show(runs: list[Run]) -> dict[str, Any]:
    """The newest run as a result, as `benchmarks.status` has them."""
    last = runs[-1]
    rows = [
        [what, found, promised, "yes" if kept else "**no**"] for what, (found, promised, kept) in last.measured.items()
    ]
    return {
        "command": "python -m benchmarks.core --history",
        "commit": last.commit,
        "machine": last.machine,
        "date": last.when[:10],
        "measures": ["src/sotdd/compute", "src/sotdd/projections"],
        "tables": {"": [["what", "measured", "promised", "kept"], *rows]},
    }
