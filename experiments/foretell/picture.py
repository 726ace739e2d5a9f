"""The picture: what every method is worth, family beside family, from the summary alone."""

from __future__ import annotations

from pathlib import Path

from experiments.figures import _axes, _save
from experiments.foretell.design import FAMILIES
from experiments.foretell.distances import DEFAULT
from experiments.store import read


def draw(results: Path) -> None:
    """Mean ρ within a target with its interval, the default of this package marked, in the headline's setting."""
    rows = read(results / "foretell_summary.csv")
    families = [family for family in FAMILIES if any(row["family"] == family for row in rows)]
    first = {family: next(row["setting"] for row in rows if row["family"] == family) for family in families}
    shown = [row for row in rows if row["setting"] == first[row["family"]] and "tuned on" not in row["method"]]
    methods = list(dict.fromkeys(row["method"] for row in shown))
    figure, axes = _axes(1, len(families), 3.2, 0.24 * len(methods) + 1)
    for axis, family in zip(axes, families, strict=True):
        mine = {row["method"]: row for row in shown if row["family"] == family}
        axis.axvline(0, color="#999999", lw=0.8)
        axis.axvline(float(mine[DEFAULT]["rho"]), color="#d1495b", lw=0.8, ls=":")
        for place, method in enumerate(methods):
            if method not in mine:
                continue
            value, low, high = (float(mine[method][name]) for name in ("rho", "rho_low", "rho_high"))
            ink = "#d1495b" if method == DEFAULT else "#1b6ca8" if method.startswith(DEFAULT) else "#555555"
            axis.plot([low, high], [place, place], color=ink, lw=1)
            axis.plot([value], [place], "o", ms=4, color=ink)
        axis.axvline(float(mine[DEFAULT]["ceiling"]), color="#66a182", lw=1)
        axis.set(title=family, xlabel="ρ within a target", ylim=(len(methods) - 0.4, -0.6), xlim=(-0.6, 1))
        axis.set_yticks(range(len(methods)), methods if axis is axes[0] else [""] * len(methods), fontsize=8)
    _save(figure, results / "foretell.png")
