"""The page on TaskWeb, written from the CSV files alone: python -m experiments.taskweb --steps page."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from experiments.options import HERE, ROOT
from experiments.store import read
from experiments.taskweb.measures import DEFAULT, MEASURES
from experiments.taskweb.report import ALL, BASE, ON_OTHERS, RULES

PAGE = ROOT / "docs" / "taskweb.md"
ENOUGH = 0.05  # by how much ρ must be larger for a method to count as better
_WORDS = HERE / "taskweb" / "words.md"

Rows = list[dict[str, str]]


def generate(results: Path, output: Path) -> None:
    """Put the tables where the words ask for them."""
    pictures = Path(os.path.relpath(results.resolve(), output.resolve().parent)).as_posix()
    text = _WORDS.read_text(encoding="utf-8").replace("{picture}", f"{pictures}/taskweb.png")
    for name, table in (
        ("short", _short), ("features", _features), ("rules", _rules), ("differences", _differences),
        ("settings", _settings), ("sizes", _sizes),
    ):  # fmt: skip
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
    return [
        name, interval(row), f"{float(row['p']):.3f}", f"{float(row['other_bases']):.2f}", interval(row, "partial"),
        f"{float(row['regret']):.1f}", f"{100 * float(row['saved']):.0f} %",
    ]  # fmt: skip


_HEAD = ("", "ρ", "p", "ρ, other kinds", "partial ρ", "points lost", "of a random loss avoided")


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


def _features(results: Path) -> str:
    found = _summary(results)
    features = list(dict.fromkeys(name.partition(": ")[0] for name in found if ": " in name))
    rows = []
    for method in MEASURES:
        cells = [found.get(f"{feature}: {method}") for feature in features]
        rows.append([method, *("–" if row is None else _starred(row) for row in cells)])
    return _written(("ρ", *features), rows)


def _starred(row: Mapping[str, str]) -> str:
    """ρ, in bold where shuffled names seldom reach it."""
    value = f"{float(row['rho']):.2f}"
    return f"**{value}**" if float(row["p"]) < 0.05 else value


def _rules(results: Path) -> str:
    found = _summary(results)
    return _written(_HEAD, [_line(name, found[name]) for name in RULES])


def better(results: Path) -> list[dict[str, str]]:
    """The methods that beat s-OTDD of whole texts by enough, with an interval without zero."""
    rows = [row for row in read(results / "taskweb_differences.csv") if row["less"] == "default"]
    return [row for row in rows if float(row["difference"]) >= ENOUGH and float(row["low"]) > 0]


def _differences(results: Path) -> str:
    rows = read(results / "taskweb_differences.csv")
    won = better(results)
    lines = [[row["method"], _signed(row)] for row in won if row["method"] not in RULES]
    table = _written(("better than s-OTDD of whole texts", "ρ less its ρ"), lines) if lines else (
        "No method is better than s-OTDD of whole texts by the rule."
    )  # fmt: skip
    labels = [[row["method"].partition(": ")[0], _signed(row)] for row in rows if row["less"] == "without labels"]
    return f"{table}\n\n{_written(('feature', f'ρ of {DEFAULT} less ρ of sliced Wasserstein'), labels)}"


def _signed(row: Mapping[str, str]) -> str:
    value, low, high = (float(row[column]) for column in ("difference", "low", "high"))
    return f"{value:+.2f} [{low:+.2f},\u00a0{high:+.2f}]"


def _settings(results: Path) -> str:
    settings = read(results / "taskweb_settings.csv")
    headline = _summary(results)
    best = max((name for name in headline if name not in RULES), key=lambda name: float(headline[name]["rho"]))
    shown = [*dict.fromkeys((BASE, "whole: cosine of means", best)), ON_OTHERS]
    rows = []
    for setting in settings:
        found = _summary(results, setting["setting"])
        rows.append([
            setting["setting"], *(interval(found[name]) for name in shown), f"{float(setting['p_of_the_best']):.3f}",
            f"{float(found[BASE]['ceiling']):.2f}",
        ])  # fmt: skip
    return _written(("ρ", *shown, "p of the largest", "ceiling"), rows)


def _sizes(results: Path) -> str:
    tasks = read(results / "taskweb_tasks.csv")
    setting = read(results / "taskweb_settings.csv")[0]
    counts = [int(row["texts"]) for row in tasks]
    return (
        f"{len(tasks)} tasks, {setting['pairs']} ordered pairs, {setting['seeds']} seeds; {min(counts)} to "
        f"{max(counts)} texts of each task. The best source of a target reaches {float(setting['best']):.1f} on "
        f"average, the mean source {float(setting['mean']):.1f} (scores in per cent, mean over the settings)."
    )
