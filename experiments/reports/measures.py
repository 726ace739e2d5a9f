"""The sections on the distances themselves: agreement, cost, projections, moments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from experiments import correlation, nist_transfer, projections, runtime
from experiments.methods import CHSW, GAUSSIAN, SOTDD, WTE
from experiments.page import Line, Section, coefficient, one, remarks, said
from experiments.store import read

_NAMES = {"mnist": "MNIST", "cifar10": "CIFAR-10"}
_KINDS = {"classes": "in their classes", "dataset": "in their dataset", "augmentation": "by an augmentation"}
_GROUPS = {"random": "random subsets", "different": "pairs that differ"}


def correlations(results: Path, size: str = "full") -> Section:
    """Correlation with OTDD (exact)."""
    rows = read(results / "correlation_summary.csv")
    lines, sizes = [], []
    for name in dict.fromkeys(row["data"] for row in rows):
        most = max(int(row["projections"]) for row in rows if row["data"] == name)
        for group, what in _GROUPS.items():
            for method in (SOTDD, correlation.LINEAR, GAUSSIAN, WTE, CHSW):
                count = most if method in (SOTDD, correlation.LINEAR, CHSW) else 0
                row = one(rows, data=name, pairs=group, method=method, projections=count)
                if row is not None:
                    here = _agreement(row, group)
                    lines.append(Line(f"{_NAMES[name]}, {what}: {method}", said("correlation", "rho"), here))
        for kind, what in _KINDS.items():
            row = one(rows, data=name, pairs=kind, method=SOTDD, projections=most)
            if row is not None:
                title = f"{_NAMES[name]}, pairs that differ {what} alone: {SOTDD}"
                lines.append(Line(title, "–", _agreement(row, kind)))
        pairs = read(results / f"correlation_{name}.csv")
        random = [row for row in pairs if row["kind"] == "random"]
        points = [int(row["size"]) for row in random]
        others = {f"{int(row['size']):,}" for row in pairs if row["kind"] != "random"}
        sizes.append(
            f"{_NAMES[name]}: random subsets of {min(points):,} to {max(points):,} points, "
            f"{len({row['repeat'] for row in random})} repeats; pairs that differ, {', '.join(others)} points a side"
        )
    drawn = f"; {most:,} projections, drawn anew for each pair."
    return Section(
        "Correlation with OTDD (exact)", "correlation", "; ".join(sizes) + drawn, lines, remarks("correlation")
    )


def _agreement(row: Mapping[str, str], group: str) -> str:
    here = f"ρ {coefficient(row, 'rho')}, r {coefficient(row, 'r')}"
    if group == "random":
        within = {part: float(row[f"rho_within_{part}"]) for part in ("repeat", "size")}
        here += f"; ρ within a repeat {within['repeat']:.2f}, within a size {within['size']:.2f}"
    return f"{here} ({row['count']} pairs)"


def runtimes(results: Path, size: str = "full") -> Section:
    """Seconds and memory."""
    lines = []
    for path in sorted(results.glob("runtime_*.csv"), reverse=True):
        rows = read(path)
        for key in dict.fromkeys((row["method"], row["projections"], row["device"]) for row in rows):
            chosen = [row for row in rows if (row["method"], row["projections"], row["device"]) == key]
            name = key[0] + (f", {int(key[1]):,} projections" if key[1] != "0" else "")
            name += ", GPU" if key[2] != "cpu" else ""
            here = "; ".join(map(_cost, chosen))
            lines.append(Line(f"{_NAMES[rows[0]['data']]}: {name}", said("runtime", "seconds"), here))
    sizes = (
        "two disjoint random subsets of this many points each, one run each, given up after "
        f"{runtime.SIZES[size].patience:.0f} s for all sizes of a method."
    )
    return Section("Runtime and memory", "runtime", sizes, lines, remarks("runtime"))


def _cost(row: Mapping[str, str]) -> str:
    if not row["seconds"]:
        return f"{int(row['size']):,}: {row['remark']}"
    return f"{int(row['size']):,}: {float(row['seconds']):.2g} s, {max(0.0, float(row['megabytes'])):,.0f} MB"


def projection_counts(results: Path, size: str = "full") -> Section:
    """How many projections."""
    rows = read(results / "projections_summary.csv")
    lines = [*_settling(rows), *_against_exact(read(results / "correlation_summary.csv"))]
    points: dict[str, list[str]] = {}
    for name, count in dict.fromkeys((row["data"], row["size"]) for row in rows):
        points.setdefault(_NAMES[name], []).append(f"{int(count):,}")
    used = "; ".join(f"{name} {', '.join(sizes)}" for name, sizes in points.items())
    sizes = f"points of each subset: {used}; {rows[0]['pairs']} random pairs of each size; ranges are over sizes."
    return Section("Number of projections", "projections", sizes, lines, remarks("projections"))


def _settling(rows: Sequence[Mapping[str, str]]) -> Iterator[Line]:
    for name in dict.fromkeys(row["data"] for row in rows):
        for draws, what in projections.DRAWS.items():
            mine = [row for row in rows if (row["data"], row["draws"]) == (name, draws)]
            cells = []
            for count in sorted({int(row["projections"]) for row in mine}):
                found = [float(row["r"]) for row in mine if row["projections"] == str(count)]
                cells.append(f"{count:,}: {min(found):.2f} to {max(found):.2f}")
            yield Line(f"{_NAMES[name]}, {what}: r", said("projections", "r"), "; ".join(cells))


def _against_exact(rows: Sequence[Mapping[str, str]]) -> Iterator[Line]:
    for name in dict.fromkeys(row["data"] for row in rows):
        for method in (SOTDD, CHSW):
            for group, what in _GROUPS.items():
                mine = [row for row in rows if (row["data"], row["method"], row["pairs"]) == (name, method, group)]
                here = "; ".join(f"{int(row['projections']):,}: {float(row['rho']):.2f}" for row in mine)
                title = f"{_NAMES[name]}, {method} with OTDD (exact), {what}: ρ"
                yield Line(title, said("projections", "rho"), here)


def moment_counts(results: Path, size: str = "full") -> Section:
    """How many moments."""
    lines = []
    for row in sorted(read(results / "moments_correlations.csv"), key=lambda row: row["scale"]):
        here = f"ρ {coefficient(row, 'rho')}, r {coefficient(row, 'r')}; within a target {float(row['rho_within']):.2f}"
        lines.append(Line(f"k = {row['moments']}, {row['scale']} scale", said("moments", "rho"), here))
    count = nist_transfer.SIZES[size].n_projections
    seeds = len({row["seed"] for row in read(results / "moments_distances.csv")})
    sizes = f"as in the *NIST transfer: whole sets in pixels, {count:,} linear projections, {seeds} seeds averaged."
    return Section("Number of moments", "moments", sizes, lines, remarks("moments"))
