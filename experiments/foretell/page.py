"""Fill the tables of the guide "choosing a source" from the CSV files: python -m experiments.foretell.page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from experiments.foretell.design import FAMILIES
from experiments.foretell.distances import DEFAULT
from experiments.foretell.report import DIRECTED, ON_OTHERS
from experiments.options import ROOT, Options
from experiments.store import read

PAGE = ROOT / "docs" / "guides" / "choosing.md"
ENOUGH = 0.05  # by how much ρ must be larger for a setting to count as better

Rows: TypeAlias = list[dict[str, str]]
_SHOWN = (
    DEFAULT, "s-OTDD, convolutions", "sliced Wasserstein", "Fréchet", "OTDD", "OTDD, debiased", "LogME", "LEEP",
    "label entropy, nearest", ON_OTHERS,
)  # fmt: skip
_SETTINGS = {"tuned10": "tuned, 10", "tuned40": "tuned, 40", "frozen10": "frozen, 10", "frozen40": "frozen, 40"}


def filled(text: str, results: Path) -> str:
    """The page with what stands between its marks made anew."""

    def table(found: re.Match[str]) -> str:
        return f"<!-- {found[1]} -->\n\n{_TABLES[found[1]](results)}\n\n<!-- end -->"

    return re.sub(r"<!-- (\w+) -->.*?<!-- end -->", table, text, flags=re.DOTALL)


def _written(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _by_family(rows: Rows, setting: str = "tuned10") -> dict[tuple[str, str], dict[str, str]]:
    return {(row["family"], row["method"]): row for row in rows if row.get("setting", setting) == setting}


def _summary(results: Path, setting: str = "tuned10") -> dict[tuple[str, str], dict[str, str]]:
    return _by_family(read(results / "foretell_summary.csv"), setting)


def _methods(found: Mapping[tuple[str, str], object], *, directed: bool = False) -> list[str]:
    names = dict.fromkeys(method for _, method in found)
    return [name for name in names if ("tuned on" in name) == directed]


def _cells(
    found: Mapping[tuple[str, str], dict[str, str]], name: str, show: Callable[[dict[str, str]], str]
) -> list[str]:
    return [show(found[family, name]) if (family, name) in found else "–" for family in FAMILIES]


def _interval(row: Mapping[str, str], name: str = "rho") -> str:
    low, high = (float(row[f"{name}_{end}"]) for end in ("low", "high"))
    return f"{float(row[name]):.2f} [{low:.2f}, {high:.2f}]"


def _sizes(results: Path) -> str:
    rows = read(results / "foretell_sizes.csv")
    head = (
        "family",
        "sources",
        "targets",
        "seeds",
        "transfers",
        "accuracy: best source",
        "mean",
        "no source",
        "ceiling of ρ",
    )
    ceilings = {family: row["ceiling"] for (family, _), row in _summary(results).items()}
    body = [
        [
            row["family"], row["sources"], row["targets"], row["seeds"], f"{int(row['transfers']):,}",
            *(f"{float(row[name]):.1f} %" for name in ("best", "mean", "untrained")),
            f"{float(ceilings[row['family']]):.2f}",
        ]
        for row in rows
    ]  # fmt: skip
    return _written(head, body)


def _headline(results: Path) -> str:
    found = _summary(results)
    blind = {family: float(found[family, DEFAULT]["regret_blind"]) for family in FAMILIES if (family, DEFAULT) in found}
    lost = "; ".join(f"{family} {value:.1f}" for family, value in blind.items())
    rows = [
        [
            name,
            *_cells(found, name, _interval),
            ", ".join(_cells(found, name, lambda row: f"{float(row['regret']):.1f}")),
        ]
        for name in _methods(found)
    ]
    head = ("", *(f"ρ, {family}" for family in FAMILIES), "points lost by taking its first")
    return _written(head, rows) + f"\n\nA source at random loses, in points of accuracy: {lost}."


def _settings(results: Path) -> str:
    rows = []
    by_setting = {setting: _summary(results, setting) for setting in _SETTINGS}
    for name in _SHOWN:
        cells = [
            ", ".join(_cells(found, name, lambda row: f"{float(row['rho']):.2f}")) for found in by_setting.values()
        ]
        rows.append([name, *cells])
    return _written((f"ρ, {', '.join(FAMILIES)}", *_SETTINGS.values()), rows)


def _beyond(results: Path) -> str:
    found = _summary(results)
    rows = [
        [
            name,
            ", ".join(_cells(found, name, lambda row: f"{float(row['other_bases']):.2f}")),
            *_cells(found, name, lambda row: _interval(row, "partial")),
        ]
        for name in _SHOWN
    ]
    return _written(("", "ρ without sources of the target's base", *(f"partial ρ, {f}" for f in FAMILIES)), rows)


def wins(results: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """The families in which a method beats the default by enough, with an interval without zero."""
    found = _by_family(read(results / "foretell_differences.csv"))
    return {
        name: [
            family
            for family in FAMILIES
            if (family, name) in found
            and float(found[family, name]["difference"]) >= ENOUGH
            and float(found[family, name]["low"]) > 0
        ]
        for name in names
    }


def _difference(row: Mapping[str, str]) -> str:
    return f"{float(row['difference']):+.2f} [{float(row['low']):+.2f}, {float(row['high']):+.2f}]"


def _differences(results: Path) -> str:
    found = _by_family(read(results / "foretell_differences.csv"))
    names = [name for name in _methods(found) if name.startswith(DEFAULT)]
    won = wins(results, names)
    rows = [[name, *_cells(found, name, _difference), ", ".join(won[name]) or "none"] for name in names]
    return _written(("ρ less the default's", *FAMILIES, "better by the rule in"), rows)


def _labels(results: Path) -> str:
    rows = read(results / "foretell_labels.csv")
    found = {(row["family"], row["method"]): row for row in rows}
    gains = {row["family"]: row for row in rows if row["method"] == DEFAULT}
    first = [
        f"{float(gains[family]['gain']):.1f} ({float(gains[family]['gain_same_base']):.1f})" if family in gains else "–"
        for family in FAMILIES
    ]
    body = [["**points of accuracy that right labels add**", *first]]
    shown = (*_SHOWN[:-1], "s-OTDD, quantiles", "s-OTDD, quantiles × 3", "WTE", "separation of its classes")
    for name in shown:
        cells = _cells(
            found,
            name,
            lambda row: f"{100 * float(row['right_first']):.0f} % ({100 * float(row['right_first_same_base']):.0f} %)",
        )
        body.append([name, *cells])
    return _written(("", *FAMILIES), body)


def _directed(results: Path) -> str:
    found = _by_family(read(results / "foretell_differences.csv"))
    names = _methods(found, directed=True)
    won = wins(results, names)
    rows = [[name, *_cells(found, name, _difference), ", ".join(won[name]) or "none"] for name in sorted(names)]
    weights = read(results / "foretell_weights.csv")
    said = "; ".join(
        f"tuned on {family}: " + ", ".join(
            f"{row['part']} {float(row['weight']):+.2f}" for row in weights
            if (row["tuned_on"], row["score"]) == (family, next(iter(DIRECTED)))
        )
        for family in dict.fromkeys(row["tuned_on"] for row in weights)
    )  # fmt: skip
    return (
        _written(("ρ less the default's", *FAMILIES, "better by the rule in"), rows)
        + f"\n\nWeights of the first: {said}."
    )


def _short(results: Path) -> str:
    found = _summary(results)

    def cell(row: Mapping[str, str]) -> str:
        return f"{float(row['rho']):.2f}; {100 * float(row['saved']):.0f} %"

    rows = [
        [name, *_cells(found, name, cell)]
        for name in (DEFAULT, "s-OTDD, excess", "sliced Wasserstein", "OTDD", "LogME")
    ]
    chance = _cells(found, DEFAULT, lambda row: f"p {float(row['p']):.3f}")
    rows.insert(1, ["its ρ by chance", *chance])
    return _written(("ρ; part of a random choice's loss avoided", *FAMILIES), rows)


_TABLES: Mapping[str, Callable[[Path], str]] = {
    "short": _short,
    "sizes": _sizes,
    "headline": _headline,
    "settings": _settings,
    "beyond": _beyond,
    "differences": _differences,
    "labels": _labels,
    "directed": _directed,
}


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), Options.results), encoding="utf-8")
