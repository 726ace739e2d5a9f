"""Fill the table of the guide "choosing a source" and draw its picture: python -m experiments.studies.choosing.page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.lib.options import ROOT, Options
from experiments.lib.pictures import make_axes, save_figure
from experiments.lib.store import read
from experiments.studies.choosing.design import DOMAINS
from experiments.studies.choosing.distances import DEFAULT, EXCESS
from experiments.studies.choosing.report import ALL_LOGME, COMBINED, KEEP_ALL, PRIMARY, RULES, at_random, shortlisted

PAGE = ROOT / "docs" / "guides" / "choosing.md"
_TITLES = {"frozen10": "frozen", "tuned10": "tuned"}
_SHOWN = {
    DEFAULT: "nearest by s-OTDD",
    EXCESS: "first of `sotdd.rank`",
    "sliced Wasserstein": "nearest by sliced Wasserstein (no labels)",
    "OTDD, debiased": "nearest by OTDD, debiased",
    "most points": "the largest source",
    COMBINED: f"`{COMBINED}`",
    at_random(5): "5 at random, then LogME (5 trainings)",
    shortlisted(3): "3 nearest, then LogME (3 trainings)",
    shortlisted(5): "**5 nearest, then LogME** (5 trainings)",
    shortlisted(10): "10 nearest, then LogME (10 trainings)",
    ALL_LOGME: "LogME on all (20 or 34 trainings)",
    "transfer 5 at random, keep the best": "transfer 5 at random, keep the best",
    "transfer the 5 nearest, keep the best": "**transfer the 5 nearest, keep the best**",
}


def _rows(folder: Path) -> dict[tuple[str, ...], dict[str, str]]:
    keys = ("method", "domain", "setting", "own_base")
    return {tuple(row[key] for key in keys): row for row in read(folder / "summary.csv")}


def fill(text: str, folder: Path) -> str:
    """The page with what stands between its marks made anew."""
    made = f"<!-- table -->\n\n{_table(folder)}\n\n<!-- end -->"
    return re.sub(r"<!-- table -->.*?<!-- end -->", lambda _: made, text, flags=re.DOTALL)


def _table(folder: Path) -> str:
    rows = _rows(folder)
    columns = [(domain, setting) for domain in DOMAINS for setting in PRIMARY]
    lines: list[Sequence[str]] = [["saved, %", *(f"{domain}, {_TITLES[setting]}" for domain, setting in columns)]]
    lines.append(["---"] * (1 + len(columns)))
    for method, title in _SHOWN.items():
        lines.append([title, *(_cell(rows, method, *column) for column in columns)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(rows: Mapping[tuple[str, ...], Mapping[str, str]], method: str, domain: str, setting: str) -> str:
    """Saved without sources of the target's own base and its interval; with them after the bar."""
    away, own = (rows[method, domain, setting, base] for base in ("without", "with"))
    value, low, high = (100 * float(away[name]) for name in ("saved", "saved_low", "saved_high"))
    return f"{value:.0f} [{low:.0f},\u00a0{high:.0f}]; {100 * float(own['saved']):.0f}"


def draw(folder: Path) -> None:
    """Saved by every way of choosing with its interval, without sources of the target's own base."""
    rows = _rows(folder)
    methods = [*_SHOWN, "LEEP", "H-score", *tuple(RULES)[1:], "Fréchet", "MMD", KEEP_ALL]
    figure, axes = make_axes(1, len(DOMAINS), 3.2, 0.24 * len(methods) + 1)
    for axis, domain in zip(axes, DOMAINS, strict=True):
        axis.axvline(0, color="#999999", lw=0.8)
        for place, method in enumerate(methods):
            for setting, ink, shift in (("frozen10", "#1b6ca8", -0.15), ("tuned10", "#d1495b", 0.15)):
                row = rows[method, domain, setting, "without"]
                value, low, high = (100 * float(row[name]) for name in ("saved", "saved_low", "saved_high"))
                axis.plot([low, high], [place + shift] * 2, color=ink, lw=1)
                axis.plot([value], [place + shift], "o", ms=4, color=ink, label=_TITLES[setting] if not place else None)
        names = methods if axis is axes[0] else [""] * len(methods)
        axis.set(title=domain, xlabel="saved, %", ylim=(len(methods) - 0.4, -0.6), xlim=(-100, 105))
        axis.set_yticks(range(len(methods)), names, fontsize=8)
    axes[0].legend(fontsize=8, loc="lower left")
    save_figure(figure, folder.parent / "choosing.png")


if __name__ == "__main__":
    found = Options.results / "choosing"
    draw(found)
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
