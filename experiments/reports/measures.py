"""The sections on the distances themselves: agreement, cost, projections, moments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from experiments import correlation, nist_transfer, projections, runtime
from experiments.methods import CHSW, DIFFERENCE, EXACT, GAUSSIAN, SOTDD, SQUARES, WTE
from experiments.page import Line, Section, coefficient, one, remarks, seeds
from experiments.store import read
from experiments.verdicts import on_its_own

_NAMES = {"mnist": "MNIST", "cifar10": "CIFAR-10"}
_KINDS = {"classes": "in their classes", "dataset": "in their dataset", "augmentation": "by an augmentation"}
_GROUPS = {"random": "random subsets", "different": "pairs that differ"}
_REFERENCES = {EXACT: "OTDD", DIFFERENCE: "OTDD less its floor", SQUARES: "OTDD, squares less their floor"}
_ENOUGH = 0.9  # the r with the most projections that counts as settled


def correlations(results: Path, size: str = "full") -> Section:
    """Correlation with OTDD (exact)."""
    rows = read(results / "correlation_summary.csv")
    lines: list[Line] = []
    claims: list[Line] = []
    sizes = []
    for name in dict.fromkeys(row["data"] for row in rows):
        most = max(int(row["projections"]) for row in rows if row["data"] == name)
        lines += _agreements(rows, name, most)
        claims += _follows(rows, name, most)
        pairs = read(results / f"correlation_{name}.csv")
        random = [row for row in pairs if row["kind"] == "random"]
        points = [int(row["size"]) for row in random]
        others = {f"{int(row['size']):,}" for row in pairs if row["kind"] != "random"}
        sizes.append(
            f"{_NAMES[name]}: random subsets of {min(points):,} to {max(points):,} points, "
            f"{len({row['repeat'] for row in random})} repeats; pairs that differ, {', '.join(others)} points a side; "
            f"{most:,} projections"
        )
    drawn = ", drawn anew for each pair."
    return Section(
        "Correlation with OTDD (exact)", "correlation", "; ".join(sizes) + drawn, claims, lines, remarks("correlation")
    )


def _agreements(rows: Sequence[Mapping[str, str]], name: str, most: int) -> Iterator[Line]:
    for group, what in {
        **_GROUPS,
        **{kind: f"pairs that differ {text} alone" for kind, text in _KINDS.items()},
    }.items():
        for method in (SOTDD, correlation.LINEAR, correlation.OWN, EXACT, GAUSSIAN, WTE, CHSW):
            if group in _KINDS and method != SOTDD:
                continue
            count = most if method in (*correlation.SLICED, CHSW) else 0
            found = {
                said: one(rows, data=name, pairs=group, method=method, projections=count, reference=reference)
                for reference, said in _REFERENCES.items()
            }
            cells = [f"with {said} {_agreement(row)}" for said, row in found.items() if row is not None]
            known = next((row for row in found.values() if row is not None), None)
            if known is not None:
                here = "; ".join(cells) + _inside(known, group)
                yield Line(f"{_NAMES[name]}, {what}: ρ of {method}", "–", here)


def _follows(rows: Sequence[Mapping[str, str]], name: str, most: int) -> Iterator[Line]:
    """The claim of the paper, on random subsets; and what it is meant for, on pairs that differ."""
    for group, what, paper in (
        ("random", "random subsets of {}, s-OTDD with OTDD", "strong (Figure 2)"),
        ("different", "pairs of {} that differ, s-OTDD with OTDD", "–"),
    ):
        for reference, said in {EXACT: "", SQUARES: " without its sampling floor"}.items():
            row = one(rows, data=name, pairs=group, method=SOTDD, projections=most, reference=reference)
            if row is not None and (group, reference) != ("random", SQUARES):
                rho = coefficient(row, "rho")
                here = f"ρ {rho}, {row['count']} pairs"
                yield Line(what.format(_NAMES[name]) + said, paper, here, on_its_own(rho))


def _agreement(row: Mapping[str, str]) -> str:
    return f"{coefficient(row, 'rho')} (r {float(row['r']):.2f})"


def _inside(row: Mapping[str, str], group: str) -> str:
    """How much of a correlation over random subsets is left where the size is the same."""
    if group != "random":
        return f"; {row['count']} pairs"
    within = {part: float(row[f"rho_within_{part}"]) for part in ("repeat", "size")}
    said = f"within a repeat {within['repeat']:.2f}, within a size {within['size']:.2f}"
    return f"; with OTDD {said}; {row['count']} pairs"


def runtimes(results: Path, size: str = "full") -> Section:
    """Seconds and memory."""
    lines, claims = [], []
    for path in sorted(results.glob("runtime_*.csv"), reverse=True):
        rows = read(path)
        claims += _faster(rows)
        for key in dict.fromkeys((row["method"], row["projections"], row["device"]) for row in rows):
            chosen = [row for row in rows if (row["method"], row["projections"], row["device"]) == key]
            name = key[0] + (f", {int(key[1]):,} projections" if key[1] != "0" else "")
            name += ", GPU" if key[2] != "cpu" else ""
            here = "; ".join(map(_cost, chosen))
            lines.append(Line(f"{_NAMES[rows[0]['data']]}: {name}", "–", here))
    sizes = (
        "two disjoint random subsets of this many points each, one run each, given up after "
        f"{runtime.SIZES[size].patience:.0f} s for all sizes of a method."
    )
    return Section("Runtime and memory", "runtime", sizes, claims, lines, remarks("runtime"))


def _faster(rows: Sequence[Mapping[str, str]]) -> Iterator[Line]:
    """How many times as long OTDD (exact) takes, at the largest size that both did on the processor."""
    most = max(int(row["projections"]) for row in rows)
    done = {
        method: {int(row["size"]): float(row["seconds"]) for row in rows if _finished(row, method, count)}
        for method, count in ((SOTDD, most), (EXACT, 0))
    }
    both = sorted(done[SOTDD].keys() & done[EXACT].keys())
    if both:
        times = done[EXACT][both[-1]] / done[SOTDD][both[-1]]
        here = f"{times:,.0f} times ({done[EXACT][both[-1]]:.2g} s and {done[SOTDD][both[-1]]:.2g} s)"
        what = f"OTDD takes longer, {both[-1]:,} points of {_NAMES[rows[0]['data']]}"
        yield Line(what, "much longer (Figure 3)", here, "confirmed" if times > 1 else "opposite")


def _finished(row: Mapping[str, str], method: str, count: int) -> bool:
    return (row["method"], row["projections"], row["device"]) == (method, str(count), "cpu") and bool(row["seconds"])


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
    return Section("Number of projections", "projections", sizes, _settled(rows), lines, remarks("projections"))


def _settled(rows: Sequence[Mapping[str, str]]) -> list[Line]:
    """Whether the paper's 10,000, or the most below the reference, order pairs as the reference does."""
    found = []
    for name in dict.fromkeys(row["data"] for row in rows):
        mine = [row for row in rows if (row["data"], row["draws"]) == (name, "own")]
        counts = sorted({int(row["projections"]) for row in mine})
        count = 10_000 if 10_000 in counts else counts[0]
        r = [float(row["r"]) for row in mine if row["projections"] == str(count)]
        verdict = "confirmed" if min(r) >= _ENOUGH else "weaker" if max(r) < _ENOUGH else "undecided"
        what = f"{_NAMES[name]}, {count:,} projections against {counts[-1]:,}"
        found.append(Line(what, "settled (Figure 4)", f"r {_range(r)}", verdict))
    return found


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def _settling(rows: Sequence[Mapping[str, str]]) -> Iterator[Line]:
    for name in dict.fromkeys(row["data"] for row in rows):
        for draws, what in projections.DRAWS.items():
            mine = [row for row in rows if (row["data"], row["draws"]) == (name, draws)]
            cells = []
            for count in sorted({int(row["projections"]) for row in mine}):
                found = [float(row["r"]) for row in mine if row["projections"] == str(count)]
                cells.append(f"{count:,}: {_range(found)}")
            yield Line(f"{_NAMES[name]}, {what}: r", "–", "; ".join(cells))


def _against_exact(rows: Sequence[Mapping[str, str]]) -> Iterator[Line]:
    exact = [row for row in rows if row["reference"] == EXACT]
    for name in dict.fromkeys(row["data"] for row in exact):
        for method in (SOTDD, CHSW):
            for group, what in _GROUPS.items():
                mine = [row for row in exact if (row["data"], row["method"], row["pairs"]) == (name, method, group)]
                here = "; ".join(f"{int(row['projections']):,}: {float(row['rho']):.2f}" for row in mine)
                yield Line(f"{_NAMES[name]}, {method} with OTDD (exact), {what}: ρ", "–", here)


def moment_counts(results: Path, size: str = "full") -> Section:
    """How many moments."""
    lines = []
    rows = sorted(read(results / "moments_correlations.csv"), key=lambda row: row["scale"])
    for row in rows:
        here = f"ρ {coefficient(row, 'rho')}, r {coefficient(row, 'r')}; within a target {float(row['rho_within']):.2f}"
        lines.append(Line(f"k = {row['moments']}, {row['scale']} scale", "–", here))
    authors = sorted((row for row in rows if row["scale"] == "authors"), key=lambda row: int(row["moments"]))
    few, many = (coefficient(row, "rho") for row in (authors[0], authors[-1]))
    more = "confirmed" if many.low > few.high else "opposite" if many.high < few.low else "not shown"
    what = f"a larger ρ with more moments, k = {authors[0]['moments']} and {authors[-1]['moments']}"
    claims = [Line(what, "as many as possible (Figure 7)", f"{few} and {many}", more)]
    count = nist_transfer.SIZES[size].n_projections
    found = seeds(read(results / "moments_distances.csv"), "scale", "moments", "a", "b")
    sizes = f"as in the *NIST transfer: whole sets in pixels, {count:,} linear projections, {found} seeds averaged."
    return Section("Number of moments", "moments", sizes, claims, lines, remarks("moments"))
