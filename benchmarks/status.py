"""Results that are older than the code they measure: python -m benchmarks.status, or with --record.

A result is a JSON file with the command, commit, machine and date of a run, and the paths that its numbers depend on
(``measures``). ``--record NAME PATHS COMMAND...`` runs a command and keeps the Markdown tables that it prints in
``benchmarks/results``, from where the directive ``{result}`` puts them into pages. A release measures anew.
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


def ask_git(*arguments: str) -> str:
    """What git answers, or why it does not."""
    asked = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return (asked.stdout or asked.stderr).strip()


def read_tables(text: str) -> dict[str, list[list[str]]]:
    r"""The Markdown tables in a text, by the line above each.

    Examples
    --------
    >>> read_tables("**Times**\n\n| n | ms |\n|---|---|\n| 10 | 3 |\nDone.")
    {'Times': [['n', 'ms'], ['10', '3']]}
    """
    tables: dict[str, list[list[str]]] = {}
    for title, rows in re.findall(r"(?:^([^|\n].*)\n\s*)?((?:^\|.*\n?)+)", text, re.MULTILINE):
        lines = [line for line in rows.splitlines() if line.strip("|:- ")]
        tables[title.strip("*#: ")] = [re.findall(r"\| *(.*?) *(?=\|)", line) for line in lines]
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


def read_results() -> dict[str, dict[str, Any]]:
    """Every result by the name of its file, and the last run of the history."""
    places = ("benchmarks/results/*.json", "experiments/results/*.json", "tests/attack/*.json")
    found = {path.stem: json.loads(path.read_bytes()) for place in places for path in ROOT.glob(place)}
    return {**found, "history": history.show(history.read())}


def list_old() -> Iterator[str]:
    """A line for every result that is older than its code, with the last change to that code."""
    for name, result in sorted(read_results().items()):
        last = result.get("commit")
        if new := ask_git("log", "--no-merges", "--format=%h %s", f"{last}..", "--", *result.get("measures", ["src"])):
            yield f"{name} ({last}): {new.splitlines()[0]}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        name, paths, *asked = sys.argv[2:]
        record(ROOT / "benchmarks" / "results" / f"{name}.json", paths.split(","), asked)
    else:
        print("\n".join(list_old()) or "No result is older than the code it measures.")
