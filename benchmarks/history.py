"""What was measured when, kept: python -m benchmarks.core --history, then python -m benchmarks.history for the page.

A run is one line of JSON in ``benchmarks/history.jsonl``: when, which version and commit, on what machine, and what was
measured of every promise. Lines are added and never changed. Ratios of one run bear comparison over the years; seconds
only on one machine.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import sotdd

ROOT = Path(__file__).parents[1]
FILE = ROOT / "benchmarks" / "history.jsonl"
PAGE = ROOT / "docs" / "benchmarks-history.md"
_SHOWN = 6  # runs in the table: the newest

_ABOVE = """# Benchmarks over time

Every run of `python -m benchmarks.core --history` adds a line to `benchmarks/history.jsonl`; this page is made of them
by `python -m benchmarks.history`. Numbers with × are ratios of one run, and bear comparison; seconds and memory do so
on one machine only. [Benchmarks](benchmarks.md) has the newest run in full.

The first four runs, up to `df27d20`, were not recorded that way: they were copied from earlier versions of that page.
Their date and commit are those of the page, so the code that was measured may be a little older, and nobody noted how
busy the machine was.

```{eval-rst}
.. plot:: history.py
   :alt: For every promise that is a ratio, what was measured in each run, as a share of what is promised
```

"""


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


def share_of_promise(measured: str, promised: str) -> float | None:
    """What was measured as a share of what is promised, at most 1 where it is kept; None unless both are ratios."""
    found = re.match(r"([\d.]+) ×", measured)
    bound = re.match(r"([≤≥]) ([\d.]+) ×", promised)
    if found is None or bound is None:
        return None
    share = float(found[1]) / float(bound[2])
    return share if bound[1] == "≤" else 1 / share


def page(runs: Sequence[Run]) -> str:
    """The page: the promises of the newest run, and what was measured of them in the runs before."""
    shown = runs[-_SHOWN:]
    head = "| what | promised | " + " | ".join(f"{run.when[:10]}, `{run.commit}`" for run in shown) + " |"
    rows = [head, "|---|---|" + "---|" * len(shown)]
    for what, (_, promised, _) in shown[-1].measured.items():
        cells = (_cell(run.measured.get(what)) for run in shown)
        rows.append(f"| {what} | {promised} | {' | '.join(cells)} |")
    machines = "\n".join(f"- {run.when[:10]}, `{run.commit}`, version {run.version}: {run.machine}" for run in shown)
    return f"{_ABOVE}{chr(10).join(rows)}\n\nBold is a promise that was not kept. Measured on:\n\n{machines}\n"


def _cell(found: tuple[str, str, bool] | None) -> str:
    if found is None:
        return "–"
    short = found[0].partition(" (")[0]
    return short if found[2] else f"**{short}**"


def main() -> None:
    """Write the page."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    PAGE.write_text(page(read()), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(read())} runs")


if __name__ == "__main__":
    main()
