"""What the paper claims, what was found here, and a word on both; intervals are by dataset, not by pair.

Verdicts need no assumption about the paper's own sampling error: they ask only what our interval holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from experiments import nist_transfer, split_tiny_imagenet, text_transfer
from experiments.correlate import Correlation, jackknife, leave_out, mean_by
from experiments.methods import CHSW, EXACT, GAUSSIAN, SOTDD, WTE
from experiments.store import read

WORDS = {
    "confirmed": "the interval lies on the claim's side of 0 and holds the paper's number, where it gives one",
    "weaker": "the interval lies on the claim's side of 0, but the paper's number is farther from 0 than it reaches",
    "undecided": "the interval holds 0, or only some of the sizes agree",
    "not confirmed": "the claim is about an order or a threshold, and it is not what was found",
    "not contradicted": "the claim is that nothing changes, and no change was shown",
    "opposite": "the interval lies on the other side of 0",
}
Pairs: TypeAlias = Mapping[tuple[str, str], float]
_NAMES = {"mnist": "MNIST", "cifar10": "CIFAR-10"}
_ENOUGH = 0.9  # the r with the most projections that counts as settled


@dataclass(frozen=True)
class Claim:
    """One line of the table."""

    figure: str
    paper: str
    here: str
    verdict: str


def judge(here: Correlation, paper: float | None = None, sign: float = 1.0) -> str:
    """What our interval says of a claim that a correlation has this sign, or this value."""
    low, high = sorted((sign * here.low, sign * here.high))
    if low <= 0 <= high:
        return "undecided"
    if high < 0:
        return "opposite"
    return "weaker" if paper is not None and abs(paper) > high else "confirmed"


def collect(results: Path) -> list[Claim]:
    """All claims, in the order of the paper's figures."""
    makers = (_agreement, _speed, _projections, _nist, _texts, _tiny, _augmentation, _more_projections)
    return [claim for make in makers for claim in make(results)]


def _subsets(results: Path, name: str) -> list[dict[str, str]]:
    """Random subsets at the paper's own sizes if they were measured, else smaller ones."""
    rows = read(results / "paper" / f"correlation_{name}.csv") or read(results / f"correlation_{name}.csv")
    return [row for row in rows if row["kind"] == "random"]


def _against_exact(rows: Sequence[Mapping[str, str]], method: str, count: int) -> tuple[Correlation, str]:
    exact = {(row["size"], row["repeat"]): float(row["distance"]) for row in rows if row["method"] == EXACT}
    mine = [row for row in rows if row["method"] == method and row["projections"] == str(count)]
    mine = [row for row in mine if (row["size"], row["repeat"]) in exact]
    far, reference = [float(row["distance"]) for row in mine], [exact[row["size"], row["repeat"]] for row in mine]
    found = leave_out(far, reference, [(row["repeat"],) for row in mine])
    sizes = sorted({int(row["size"]) for row in mine})
    inner = [
        leave_out([far[i] for i in same], [reference[i] for i in same], [(str(i),) for i in same]).value
        for size in sizes
        if len(same := [i for i, row in enumerate(mine) if int(row["size"]) == size]) > 3
    ]
    repeats = len({row["repeat"] for row in mine})
    points = f"{sizes[0]:,} to {sizes[-1]:,} points, {len(mine)} pairs in {repeats} repeats"
    return found, f"{points}; within one size {np.mean(inner):.2f}" if inner else points


def _agreement(results: Path) -> Iterator[Claim]:
    for name, title in _NAMES.items():
        rows = _subsets(results, name)
        found, sizes = _against_exact(rows, SOTDD, max(int(row["projections"]) for row in rows))
        what = f"s-OTDD correlates with OTDD on random subsets of {title}"
        yield Claim("1", what, f"ρ {found}; {sizes}", judge(found))


def _speed(results: Path) -> Iterator[Claim]:
    for name, title in _NAMES.items():
        rows = [row for row in read(results / f"runtime_{name}.csv") if row["device"] == "cpu" and row["seconds"]]
        most = str(max(int(row["projections"]) for row in rows if row["method"] == SOTDD))
        ours, exact = (
            {int(row["size"]): float(row["seconds"]) for row in rows if (row["method"], row["projections"]) == wanted}
            for wanted in ((SOTDD, most), (EXACT, "0"))
        )
        size = max(ours.keys() & exact.keys())
        here = f"{exact[size] / ours[size]:.0f} times at {size:,} points ({exact[size]:.0f} s and {ours[size]:.1f} s)"
        verdict = "confirmed" if exact[size] > ours[size] else "opposite"
        yield Claim("2", f"OTDD takes much longer, {title}", here, verdict)


def _projections(results: Path) -> Iterator[Claim]:
    rows = [row for row in read(results / "projections_summary.csv") if row["draws"] == "own"]
    for name, title in _NAMES.items():
        mine = [float(row["r"]) for row in rows if row["data"] == name and row["projections"] == "10000"]
        verdict = "confirmed" if min(mine) >= _ENOUGH else "undecided" if max(mine) >= _ENOUGH else "not confirmed"
        here = f"r {min(mine):.2f} to {max(mine):.2f} over sizes (settled: at least {_ENOUGH})"
        yield Claim("3", f"few projections are enough: 10,000 order pairs of {title} as 50,000 do", here, verdict)


def _nist(results: Path) -> Iterator[Claim]:
    gap = nist_transfer.gaps(results, "accuracy", "all")
    rows = [row for row in read(results / "nist_distances.csv") if row["space"] == "pixels"]
    paper = {nist_transfer.AUTHORS_SEVEN: 0.40, SOTDD: 0.40, EXACT: 0.40, GAUSSIAN: 0.40, WTE: 0.37, CHSW: 0.16}
    for method, number in paper.items():
        far = nist_transfer.both_ways([row for row in rows if row["method"] == method])
        found = _pairs(far, gap)
        yield Claim("4, 11", f"ρ of {method} with the gap in *NIST is {number:.2f}", f"ρ {found}", judge(found, number))


def _pairs(far: Pairs, gap: Pairs, *, ranks: bool = True) -> Correlation:
    """Over ordered pairs; the full and the polarity form of a set of reviews are one dataset."""
    names = [tuple(name.removesuffix("_full").removesuffix("_polarity") for name in pair) for pair in gap]
    return leave_out([far[pair] for pair in gap], list(gap.values()), names, ranks=ranks)


def _texts(results: Path) -> Iterator[Claim]:
    rows = read(results / "text_distances.csv")
    for what, baseline in (("", None), (" to as few examples without a source", "none")):
        gap = text_transfer.gaps(results, baseline)
        for method in (SOTDD, EXACT):
            far = nist_transfer.both_ways([row for row in rows if row["method"] == method])
            found = _pairs(far, gap, ranks=False)
            yield Claim(
                "5", f"r of {method} with the gap{what} between texts is 0.48", f"r {found}", judge(found, 0.48)
            )
    seconds = {row["method"]: float(row["seconds"]) for row in read(results / "text_correlations.csv")}
    times = seconds[EXACT] / seconds[SOTDD]
    yield Claim("5", "s-OTDD takes a tenth of OTDD's time", f"1/{times:.0f}", "confirmed" if times >= 10 else "weaker")


def _tiny(results: Path) -> Iterator[Claim]:
    rows = [row for row in read(results / "tiny_distances.csv") if row["method"] == SOTDD]
    far = nist_transfer.both_ways(rows)
    for baseline, column, what in (
        ("trained", "accuracy", "over a network trained on the target, on pictures not seen"),
        ("untrained", "train_accuracy", "over a last layer on an untrained network, on those trained on"),
    ):
        found = _pairs(far, split_tiny_imagenet.gains(results, baseline, column))
        claim = f"s-OTDD correlates strongly with the gain in Split Tiny-ImageNet {what}"
        yield Claim("6", claim, f"ρ {found}", judge(found, sign=-1))


def _augmentation(results: Path) -> Iterator[Claim]:
    reached = mean_by(read(results / "augmentation_training.csv"), ("augmentation",), "accuracy")
    rows = read(results / "augmentation_distances.csv")
    for method, number in ((SOTDD, -0.74), (EXACT, -0.70)):
        mine = [row for row in rows if row["method"] == method]
        accuracy = [reached[row["augmentation"],] for row in mine]
        found = leave_out([float(row["distance"]) for row in mine], accuracy, [(row["augmentation"],) for row in mine])
        what = f"ρ of {method} with accuracy over augmentations is {number:.2f}"
        yield Claim("8", what, f"ρ {found}", judge(found, number, sign=-1))
    given = {row["method"]: row for row in read(results / "augmentation_correlations.csv")}
    left = " and ".join(f"{float(given[name]['rho_given']):.2f}" for name in (SOTDD, EXACT))
    plain = {name: float(given[name]["rho"]) for name in (SOTDD, EXACT)}
    strong = abs(plain[SOTDD]) > abs(plain[EXACT])
    here = f"{plain[SOTDD]:.2f} and {plain[EXACT]:.2f}; given the brightness {left}"
    yield Claim("8", "s-OTDD correlates better than OTDD", here, "confirmed" if strong else "not confirmed")


def _more_projections(results: Path) -> Iterator[Claim]:
    for figure, method, grows in (("9", SOTDD, True), ("10", CHSW, False)):
        for name, title in _NAMES.items():
            rows = [row for row in read(results / f"correlation_{name}.csv") if row["kind"] == "random"]
            rows = _subsets(results, name) if method == SOTDD else rows
            counts = sorted({int(row["projections"]) for row in rows if row["method"] == method})
            found = [_against_exact(rows, method, count)[0].value for count in counts]
            gain = _gain(rows, method, counts)
            said = ", ".join(f"{rho:.2f} ({count:,})" for count, rho in zip(counts, found, strict=True))
            does = "grows" if grows else "does not grow"
            what = f"the correlation of {method} with OTDD {does} with projections, {title}"
            verdict = judge(gain) if grows else "not contradicted" if gain.low <= 0 else "opposite"
            yield Claim(figure, what, f"{said}; gain {gain}", verdict)


def _gain(rows: Sequence[Mapping[str, str]], method: str, counts: Sequence[int]) -> Correlation:
    """ρ with the most projections less that with the fewest, one repeat left out at a time."""

    def gain(part: Sequence[Mapping[str, str]]) -> float:
        first, last = (_against_exact(part, method, count)[0].value for count in (counts[0], counts[-1]))
        return last - first

    repeats = sorted({row["repeat"] for row in rows})
    return jackknife(gain(rows), [gain([row for row in rows if row["repeat"] != one]) for one in repeats])


def compare_projections(results: Path) -> str:
    """Figure 12: linear projections and convolutions at the paper's sizes, ρ with the gap in *NIST."""
    gap = nist_transfer.gaps(results, "accuracy", "all")
    rows = read(results / "paper" / "nist_distances.csv")
    said = []
    for method, title in ((nist_transfer.AUTHORS, "linear"), (nist_transfer.CONVOLUTION, "convolutions")):
        mine = [row for row in rows if row["method"] == method]
        if mine:
            said.append(f"{title} ρ {_pairs(nist_transfer.both_ways(mine), gap)}")
    return "; ".join(said) or "not measured"


def compare_different(results: Path) -> str:
    """Pairs that differ for real, which the paper does not have."""
    rows = read(results / "correlation_summary.csv")
    said = []
    for name, title in _NAMES.items():
        mine = [r for r in rows if (r["data"], r["pairs"], r["method"]) == (name, "different", SOTDD)]
        most = max(int(row["projections"]) for row in mine)
        for row in mine:
            if int(row["projections"]) == most and row["reference"] in (EXACT, "OTDD (debiased, squares)"):
                floor = "" if row["reference"] == EXACT else " without its sampling floor"
                said.append(f"{float(row['rho']):.2f} with OTDD{floor} ({row['count']} pairs of {title})")
    return "ρ is " + ", ".join(said)
