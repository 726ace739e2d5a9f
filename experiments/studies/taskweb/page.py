"""The page on TaskWeb, written from the CSV files alone: python -m experiments.studies.taskweb --steps page."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from experiments.lib.options import HERE, ROOT
from experiments.lib.store import read
from experiments.studies.taskweb.report import ALL, BASE, RULES

PAGE = ROOT / "docs" / "taskweb.md"
_WORDS = HERE / "studies" / "taskweb" / "words.md"

Rows = list[dict[str, str]]


def generate(results: Path, output: Path) -> None:
    """Put the tables where the words ask for them."""
    pictures = Path(os.path.relpath(results.resolve(), output.resolve().parent)).as_posix()
    text = _WORDS.read_text(encoding="utf-8").replace("{picture}", f"{pictures}/taskweb.png")
    for name, table in (("short", _short), ("sizes", _sizes)):
        text = text.replace("{" + name + "}", table(results))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")


def _written(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rows])


def _summary(results: Path, setting: str = ALL) -> dict[str, dict[str, str]]:
    return {row["method"]: row for row in read(results / "taskweb_summary.csv") if row["setting"] == setting}


def interval(row: Mapping[str, str], name: str = "rho") -> str:
    """A value with its 95 % interval."""
    value, low, high = (float(row[column]) for column in (name, f"{name}_low", f"{name}_high"))
    return f"{value:.2f} [{low:.2f},\u00a0{high:.2f}]"


def _line(name: str, row: Mapping[str, str]) -> list[str]:
    return [name, interval(row), f"{float(row['p']):.3f}", f"{100 * float(row['saved']):.0f} %"]


_HEAD = ("", "ρ", "p", "of a random loss avoided")


def _short(results: Path) -> str:
    found = _summary(results)
    best = max((name for name in found if name not in RULES), key=lambda name: float(found[name]["rho"]))
    shown = [BASE, "whole: sliced Wasserstein", "whole: cosine of means", "whole: OTDD"]
    shown = [*dict.fromkeys([*shown, best]), *RULES[-2:]]
    rows = [_line(name + (" (the largest ρ)" if name == best else ""), found[name]) for name in shown]
    table = _written(_HEAD, rows)
    setting = next(row for row in read(results / "taskweb_settings.csv") if row["setting"] == ALL)
    return (
        f"{table}\n\nThe largest of {setting['methods']} methods by chance: p {float(setting['p_of_the_best']):.3f}. "
        f"A source at random loses {float(found[BASE]['regret_blind']):.1f} points; the ceiling of ρ is "
        f"{float(found[BASE]['ceiling']):.2f}."
    )


def _sizes(results: Path) -> str:
    tasks = read(results / "taskweb_tasks.csv")
    setting = read(results / "taskweb_settings.csv")[0]
    counts = [int(row["texts"]) for row in tasks]
    return (
        f"{len(tasks)} tasks, {setting['pairs']} ordered pairs, {setting['seeds']} seeds; {min(counts)} to "
        f"{max(counts)} texts of each task. The best source of a target reaches {float(setting['best']):.1f} on "
        f"average, the mean source {float(setting['mean']):.1f} (scores in per cent, mean over the settings)."
    )
