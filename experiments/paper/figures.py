"""The pictures, each drawn from the CSV files alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.lib.pictures import make_axes, save_figure
from experiments.lib.store import read

_INK = (
    "#1b6ca8",
    "#d1495b",
    "#66a182",
    "#8d6a9f",
    "#edae49",
    "#2e4057",
    "#7f7f7f",
    "#c26e3f",
    "#00798c",
    "#a3b18a",
    "#6d2e46",
)


def _scatter(
    axis: Any, x: Sequence[float], y: Sequence[float], groups: Sequence[str], marks: Mapping[str, str]
) -> None:
    for group, ink in marks.items():
        inside = [place for place, other in enumerate(groups) if other == group]
        axis.plot([x[p] for p in inside], [y[p] for p in inside], "o", ms=4, alpha=0.8, color=ink, label=group)


def _legend(figure: Any, axis: Any, title: str = "") -> None:
    """One legend for all panels, beside them."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, title=title, fontsize=7, frameon=False, loc="outside right upper")


def _line(axis: Any, x: Sequence[float], y: Sequence[float]) -> None:
    """The line of least squares, to guide the eye."""
    if len(set(x)) > 1:
        slope, height = np.polyfit(x, y, 1)
        ends = np.array([min(x), max(x)])
        axis.plot(ends, height + slope * ends, color="#999999", lw=1, zorder=0)


def _inks(groups: Sequence[str]) -> dict[str, str]:
    return {group: _INK[place % len(_INK)] for place, group in enumerate(dict.fromkeys(groups))}


def transfer(results: Path, name: str, methods: Sequence[str]) -> None:
    """Distance against gap (or gain), one panel per method, coloured by target."""
    from experiments.paper import nist_transfer, split_tiny_imagenet, text_transfer

    larger = read(results / "paper" / f"{name}_distances.csv")
    rows = [
        row for row in read(results / f"{name}_distances.csv") if row["method"] not in {r["method"] for r in larger}
    ]
    rows += larger
    change: Mapping[str, tuple[str, Callable[[], Mapping[tuple[str, str], float]]]] = {
        "nist": ("accuracy gap", lambda: nist_transfer.gaps(results, "accuracy", "all")),
        "text": ("accuracy gap", lambda: text_transfer.gaps(results)),
        "tiny": ("accuracy gain", lambda: split_tiny_imagenet.gains(results, "trained", "accuracy")),
    }
    title, found = change[name]
    gap = found()
    pairs = list(gap)
    spaces = list(dict.fromkeys(row.get("space", "") for row in rows))
    measured = {row["method"] for row in rows}
    methods = [method for method in methods if method in measured]
    figure, axes = make_axes(len(spaces), len(methods), 2.9)
    for place, axis in enumerate(axes):
        space, method = spaces[place // len(methods)], methods[place % len(methods)]
        far = nist_transfer.both_ways([row for row in rows if (row.get("space", ""), row["method"]) == (space, method)])
        if not far:  # not every method was run in every space
            axis.set_axis_off()
            continue
        x, y = [far[pair] for pair in pairs], [100 * gap[pair] for pair in pairs]
        targets = [target for _, target in pairs]
        _line(axis, x, y)
        _scatter(axis, x, y, targets, _inks(sorted(targets)))
        axis.locator_params(axis="x", nbins=4)
        axis.set_xlabel(f"{method}{', ' + space if space else ''}")
    axes[0].set_ylabel(f"{title}, points")
    _legend(figure, axes[0], "target")
    save_figure(figure, results / f"{name}.png")


def moments(results: Path) -> None:
    """Correlation with the gap against the number of moments."""
    rows = read(results / "moments_correlations.csv")
    figure, axes = make_axes(1, 2)
    for axis, column, title in zip(axes, ("rho", "r"), ("Spearman ρ", "Pearson r"), strict=True):
        for shift, (scale, ink) in enumerate(zip(("pooled", "authors"), _INK, strict=False)):
            chosen = [row for row in rows if row["scale"] == scale]
            x = [int(row["moments"]) + 0.12 * (shift - 0.5) for row in chosen]
            y = np.array([float(row[column]) for row in chosen])
            bars = [
                y - [float(row[f"{column}_low"]) for row in chosen],
                [float(row[f"{column}_high"]) for row in chosen] - y,
            ]
            axis.errorbar(x, y, np.maximum(bars, 0), fmt="o-", ms=4, lw=1, capsize=2, color=ink, label=f"{scale} scale")
        axis.axhline(0, color="#999999", lw=0.8)
        axis.set(xlabel="number of moments k", ylabel=f"{title} with the gap")
    _legend(figure, axes[0])
    save_figure(figure, results / "moments.png")


def correlation(results: Path) -> None:
    """Every method against OTDD (exact): random subsets above, pairs that differ below."""
    from experiments.lib.methods import CHSW, EXACT, GAUSSIAN, SOTDD, WTE
    from experiments.paper.claims import read_subsets
    from experiments.paper.correlation import DATASETS

    methods = (SOTDD, GAUSSIAN, WTE, CHSW)
    figure, axes = make_axes(2 * len(DATASETS), len(methods), 2.7, 2.4)
    for place, axis in enumerate(axes):
        line, method = divmod(place, len(methods))
        random, name = line % 2 == 0, DATASETS[line // 2]
        rows = read_subsets(results, name, methods[method]) if random else read(results / f"correlation_{name}.csv")
        most = max((int(row["projections"]) for row in rows), default=0)
        key = ("kind", "size", "repeat")
        exact = {tuple(row[k] for k in key): float(row["distance"]) for row in rows if row["method"] == EXACT}
        chosen = [
            row
            for row in rows
            if row["method"] == methods[method]
            and int(row["projections"]) in (0, most)
            and (row["kind"] == "random") == random
            and tuple(row[k] for k in key) in exact
        ]
        if not chosen:
            axis.set_axis_off()
            continue
        groups = [row["size" if random else "kind"] for row in chosen]
        x = [exact[tuple(row[k] for k in key)] for row in chosen]
        y = [float(row["distance"]) for row in chosen]
        _scatter(axis, x, y, groups, _inks(sorted(groups, key=lambda g: (len(g), g))))
        axis.set(xlabel="OTDD (exact)", ylabel=methods[method])
        if method == 0:
            axis.set_title(f"{name}, {'random subsets' if random else 'different'}", fontsize=9)
        if random or method == len(methods) - 1:  # sizes may differ from one method to the next
            axis.legend(fontsize=6, frameon=False)
    save_figure(figure, results / "correlation.png")


def projections(results: Path) -> None:
    """Correlation with 50,000 projections for each size; and with OTDD (exact) below."""
    rows = read(results / "projections_summary.csv")
    names = list(dict.fromkeys(row["data"] for row in rows))
    figure, axes = make_axes(2, 2 * len(names), 2.9)
    draws = {"own": "draws of its own", "shared": "shared draws"}
    for place, axis in enumerate(axes[: 2 * len(names)]):
        name, kind = names[place // 2], list(draws)[place % 2]
        inks = _inks([row["size"] for row in rows if row["data"] == name])
        for size, ink in inks.items():
            chosen = [row for row in rows if (row["data"], row["draws"], row["size"]) == (name, kind, size)]
            counts = [int(row["projections"]) for row in chosen]
            axis.plot(counts, [float(row["r"]) for row in chosen], "o-", ms=3, lw=1, color=ink, label=f"{int(size):,}")
        axis.set(xscale="log", xlabel="projections", ylabel="Pearson r with the most", title=f"{name}, {draws[kind]}")
        axis.legend(fontsize=6, frameon=False, title="points", title_fontsize=6)
    against = [row for row in read(results / "correlation_summary.csv") if row["reference"] == "OTDD (exact)"]
    for place, axis in enumerate(axes[2 * len(names) :]):
        name, group = names[place // 2], ("random", "different")[place % 2]
        for method, ink in zip(("s-OTDD", "CHSW"), _INK, strict=False):
            chosen = [row for row in against if (row["data"], row["pairs"], row["method"]) == (name, group, method)]
            counts = [int(row["projections"]) for row in chosen]
            axis.plot(counts, [float(row["rho"]) for row in chosen], "o-", ms=3, lw=1, color=ink, label=method)
        if not axis.lines[0].get_xdata().size:
            axis.set_axis_off()
            continue
        axis.set(
            xscale="log", xlabel="projections", ylabel="Spearman ρ with OTDD (exact)", title=f"{name}, {group} pairs"
        )
        axis.legend(fontsize=6, frameon=False)
    save_figure(figure, results / "projections.png")


def runtime(results: Path) -> None:
    """Seconds and megabytes against the number of points, for every method."""
    tables = {path.stem.removeprefix("runtime_"): read(path) for path in sorted(results.glob("runtime_*.csv"))[::-1]}
    figure, axes = make_axes(2, len(tables), 3.8, 3.0)
    inks = _inks([row["method"] + row["projections"] for rows in tables.values() for row in rows])
    for place, (name, rows) in enumerate(tables.items()):
        for line in dict.fromkeys((row["method"], row["projections"], row["device"]) for row in rows):
            chosen = [r for r in rows if (r["method"], r["projections"], r["device"]) == line and r["seconds"]]
            gpu = line[2] != "cpu"
            label = line[0] + (f", {int(line[1]):,}" if line[1] != "0" else "") + (", GPU" if gpu else "")
            if not chosen:  # a method that did not finish at any size has no line, and an empty axis no logarithm
                continue
            for axis, column in ((axes[place], "seconds"), (axes[place + len(tables)], "megabytes")):
                x, y = [int(r["size"]) for r in chosen], [max(float(r[column]), 0.01) for r in chosen]
                axis.plot(x, y, "o--" if gpu else "o-", ms=3, lw=1, color=inks[line[0] + line[1]], label=label)
                axis.set(xscale="log", yscale="log", xlabel="points of each half", ylabel=column)
                sizes = sorted({int(row["size"]) for row in rows})
                axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
                axis.xaxis.minorticks_off()
                axis.set_title(name, fontsize=9)
    _legend(figure, axes[0])
    save_figure(figure, results / "runtime.png")


def augmentation(results: Path) -> None:
    """Distance against accuracy, one panel per method."""
    from experiments.lib.correlate import mean_by
    from experiments.paper.augmentation import METHODS

    reached = mean_by(read(results / "augmentation_training.csv"), ("augmentation",), "accuracy")
    rows = read(results / "augmentation_distances.csv")
    figure, axes = make_axes(1, len(METHODS))
    for axis, method in zip(axes, METHODS, strict=True):
        chosen = [row for row in rows if row["method"] == method]
        x = [float(row["distance"]) for row in chosen]
        y = [100 * reached[row["augmentation"],] for row in chosen]
        _line(axis, x, y)
        axis.plot(x, y, "o", ms=4, color=_INK[0])
        axis.locator_params(axis="x", nbins=4)
        axis.set(xlabel=method, ylabel="accuracy on CIFAR-10, %")
    save_figure(figure, results / "augmentation.png")
