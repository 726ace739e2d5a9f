"""Results that are older than the code they measure: python -m benchmarks.status, with --record or --confirm.

A result is a JSON file with the command, commit, machine and date of a run, and the paths that its numbers depend on
(``measures``). ``--record NAME PATHS COMMAND...`` runs a command and keeps the Markdown tables that it prints in
``benchmarks/results``, from where the directive ``{result}`` puts them into pages. Where later changes are known to
leave the numbers alone, ``--confirm FILE HOW`` says so in the file, up to the present commit.
"""

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import history

ROOT = Path(__file__).parents[1]
_PLACES = ("benchmarks/*.json", "benchmarks/results/*.json", "experiments/results/*.json")


def ask_git(*arguments: str) -> str:
    """What git answers; nothing where it fails."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def read_tables(text: str) -> dict[str, list[list[str]]]:
    r"""The Markdown tables in a text, by the line above each.

    Examples
    --------
    >>> read_tables("**Times**\n\n| n | ms |\n|---|---|\n| 10 | 3 |\nDone.")
    {'Times': [['n', 'ms'], ['10', '3']]}
    """
    tables: dict[str, list[list[str]]] = {}
    above, rows = "", None
    for line in filter(None, map(str.strip, text.splitlines())):
        if not line.startswith("|"):
            above, rows = line.strip("*#: "), None
        elif rows is None:
            rows = tables[above if above not in tables else f"{above} {len(tables) + 1}"] = []
        if rows is not None and not re.fullmatch(r"[|:\- ]+", line):
            rows.append([cell.strip() for cell in line[1:-1].split("|")])
    return tables


def record(path: Path, measures: list[str], command: list[str]) -> None:
    """Run a command and keep the tables that it prints."""
    run = subprocess.run([sys.executable, *command[1:]], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    content = {
        "command": " ".join(command),
        "commit": ask_git("rev-parse", "--short", "HEAD"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "measures": measures,
        "tables": read_tables(run.stdout),
    }
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def confirm(path: Path, how: str) -> None:
    """Say in a result that its numbers are those of the present commit, and how that is known."""
    result = json.loads(path.read_bytes())
    result["confirmed"] = {"commit": ask_git("rev-parse", "--short", "HEAD"), "how": how}
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def find_newer(result: dict[str, Any]) -> list[str]:
    """The commits after a result's own that changed what it measures; a commit that is not known counts by its date."""
    last = (result.get("confirmed") or result)["commit"]
    known = ask_git("cat-file", "-t", last) == "commit"
    since = f"{last}..HEAD" if known else f"--since={result['date']}T23:59:59"
    paths = result.get("measures", ["src/sotdd"])
    return ask_git("log", "--no-merges", "--format=%h %s", since, "--", *paths).splitlines()


def list_old() -> Iterator[str]:
    """A line for every result that is older than its code."""
    found = {path.name: json.loads(path.read_bytes()) for place in _PLACES for path in ROOT.glob(place)}
    for name, result in sorted({**found, history.FILE.name: history.show(history.read())}.items()):
        if "commit" not in result:
            yield f"{name}: it does not say which commit it measured"
        elif newer := find_newer(result):
            yield f"{name} ({result['date']}, {result['commit']}): {len(newer)} later changes, the last: {newer[0]}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        name, paths, *asked = sys.argv[2:]
        record(ROOT / "benchmarks" / "results" / f"{name}.json", paths.split(","), asked)
    elif sys.argv[1:2] == ["--confirm"]:
        confirm(Path(sys.argv[2]), sys.argv[3])
    else:
        print("\n".join(list_old()) or "No result is older than the code it measures.")
