"""The picture: what every method is worth on every feature, from the summary alone."""

from __future__ import annotations

from pathlib import Path

from experiments.lib.pictures import make_axes, save_figure
from experiments.lib.store import read


def draw(results: Path) -> None:
    """Mean ρ within a target with its interval: methods by colour, features below each other, rules at the end."""
    rows = read(results / "taskweb_summary.csv")
    rows = [row for row in rows if row["setting"] == rows[0]["setting"]]
    methods = list(dict.fromkeys(row["method"].partition(": ")[2] for row in rows if ": " in row["method"]))
    features = list(dict.fromkeys(row["method"].partition(": ")[0] for row in rows if ": " in row["method"]))
    rules = [row for row in rows if ": " not in row["method"]]
    figure, axes = make_axes(2, (len(features) + 2) // 2, 2.1, 0.2 * len(methods) + 0.9)
    panels = {feature: [row for row in rows if row["method"].startswith(f"{feature}: ")] for feature in features}
    for axis, (title, shown) in zip(axes, [*panels.items(), ("rules", rules)], strict=False):
        names = methods if title != "rules" else [row["method"] for row in rules]
        for row in shown:
            place = names.index(row["method"].removeprefix(f"{title}: "))
            value, low, high = (float(row[name]) for name in ("rho", "rho_low", "rho_high"))
            ink = "#d1495b" if names[place].startswith("s-OTDD") else "#1b6ca8" if title != "rules" else "#555555"
            axis.plot([low, high], [place, place], color=ink, lw=1)
            axis.plot([value], [place], "o", ms=4, color=ink)
        axis.axvline(0, color="#999999", lw=0.8)
        axis.axvline(float(rows[0]["ceiling"]), color="#66a182", lw=1)
        axis.set(title=title, ylim=(len(names) - 0.4, -0.6), xlim=(-0.6, 1.05))
        first = axis is axes[0] or axis is axes[(len(features) + 2) // 2] or title == "rules"
        axis.set_yticks(range(len(names)), names if first else [""] * len(names), fontsize=7)
    for axis in axes[len(panels) + 1 :]:
        axis.set_axis_off()
    save_figure(figure, results / "taskweb.png")
