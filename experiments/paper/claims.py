"""What the paper claims, what was found here, and a word on both; intervals are by dataset, not by pair.

Verdicts need no assumption about the paper's own sampling error: they ask only what our interval holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TypeAlias

import numpy as np

from experiments.lib.correlate import Correlation, jackknife, leave_out, mean_by
from experiments.lib.methods import CHSW, EXACT, GAUSSIAN, SOTDD, SQUARES, WTE
from experiments.lib.store import read
from experiments.paper import nist_transfer, split_tiny_imagenet, text_transfer

WORDS = {
    "confirmed": "the interval lies on the claim's side of 0 and includes the paper's number, if there is one",
    "stronger": "the interval lies on the claim's side of 0, and beyond the paper's number",
    "weaker": "the interval lies on the claim's side of 0, but the paper's number is farther from 0 than it reaches, "
    "or the paper calls strong what is below 0.5",
    "undecided": "the interval includes 0, or only some of the cases agree",
    "not confirmed": "the claim is about an order or a threshold, which was not found",
    "not contradicted": "the claim is that two things are alike, and no difference was shown",
    "opposite": "the interval lies on the other side of 0",
}
Pairs: TypeAlias = Mapping[tuple[str, str], float]
Rows: TypeAlias = Sequence[Mapping[str, str]]
_NAMES = {"mnist": "MNIST", "cifar10": "CIFAR-10"}
_ENOUGH = 0.9  # the r with the most projections that counts as settled
_STRONG = 0.5  # the ρ that counts as strong


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
    if paper is None or low <= sign * paper <= high:
        return "confirmed"
    return "weaker" if sign * paper > high else "stronger"


def collect(results: Path) -> list[Claim]:
    """All claims, in the order of the paper's figures."""
    makers = (_agreement, _speed, _projections, _nist, _texts, _tiny, _augmentation, _more_projections, _kinds)
    return [claim for make in makers for claim in make(results)]


def read_subsets(results: Path, name: str, method: str = SOTDD) -> list[dict[str, str]]:
    """Random subsets at the paper's own sizes if the method was measured there, else smaller ones."""
    rows = read(results / "paper" / f"correlation_{name}.csv")
    if method not in {row["method"] for row in rows}:
        rows = read(results / f"correlation_{name}.csv")
    return [row for row in rows if row["kind"] == "random"]


def _match(rows: Rows, method: str, count: int) -> list[tuple[Mapping[str, str], float]]:
    """Rows of a method, each with the OTDD of its pair; pairs without one are left out."""
    exact = {(row["size"], row["repeat"]): float(row["distance"]) for row in rows if row["method"] == EXACT}
    mine = [row for row in rows if row["method"] == method and row["projections"] == str(count)]
    return [(row, exact[key]) for row in mine if (key := (row["size"], row["repeat"])) in exact]


def _against_exact(rows: Rows, method: str, count: int, *, ranks: bool = True) -> Correlation:
    matched = _match(rows, method, count)
    far, repeats = [float(row["distance"]) for row, _ in matched], [(row["repeat"],) for row, _ in matched]
    return leave_out(far, [exact for _, exact in matched], repeats, ranks=ranks)


def _within(rows: Rows, method: str, count: int) -> float:
    """The mean over sizes of ρ with OTDD among subsets of one size."""
    by_size = [[row for row in rows if row["size"] == size] for size in sorted({row["size"] for row in rows})]
    found = [_against_exact(part, method, count).value for part in by_size if len(_match(part, method, count)) > 3]
    return float(np.mean(found)) if found else np.nan


def _count(rows: Rows) -> str:
    exact = [row for row in rows if row["method"] == EXACT]
    sizes, repeats = sorted({int(row["size"]) for row in exact}), {row["repeat"] for row in exact}
    return f"{sizes[0]:,} to {sizes[-1]:,} points, {len(exact)} pairs in {len(repeats)} repeats"


def _vary(rows: Rows, measure: Callable[[Rows], float]) -> Correlation:
    """What is measured of random subsets, one repeat left out at a time."""
    repeats = sorted({row["repeat"] for row in rows})
    return jackknife(measure(rows), [measure([row for row in rows if row["repeat"] != one]) for one in repeats])


def _agreement(results: Path) -> Iterator[Claim]:
    for name, title in _NAMES.items():
        rows = read_subsets(results, name)
        most = max(int(row["projections"]) for row in rows)
        found = _against_exact(rows, SOTDD, most)
        here = f"ρ {found}; {_count(rows)}; within one size {_within(rows, SOTDD, most):.2f}"
        yield Claim("1", f"s-OTDD correlates with OTDD on random subsets of {title}", here, judge(found))
        there = [{(row["size"], row["repeat"]) for row in rows if row["method"] == other} for other in (GAUSSIAN, WTE)]
        both = [row for row in rows if (row["size"], row["repeat"]) in there[0] & there[1]]
        if both:
            yield _compare(both, most, title)


def _compare(rows: Rows, count: int, title: str) -> Claim:
    def lead(part: Rows, other: str) -> float:
        return _against_exact(part, SOTDD, count).value - _against_exact(part, other, 0).value

    found = [_vary(rows, partial(lead, other=other)) for other in (GAUSSIAN, WTE)]
    lower = [one.high < 0 for one in found]
    verdict = "not confirmed" if all(lower) else "undecided" if any(lower) else "not contradicted"
    here = f"ρ less theirs {found[0]} and {found[1]}; {_count(rows)}"
    return Claim("1", f"about as well as OTDD (Gaussian) and WTE, {title}", here, verdict)


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
    rows = read(results / "paper" / "tiny_distances.csv") or read(results / "tiny_distances.csv")
    far = nist_transfer.both_ways([row for row in rows if row["method"] == SOTDD])
    found = {
        (baseline, column): _pairs(far, split_tiny_imagenet.gains(results, baseline, column))
        for baseline, column in product(split_tiny_imagenet.BASELINES, ("accuracy", "train_accuracy"))
    }
    every = sorted(rho.value for rho in found.values())
    for gain, what in (
        (("trained", "accuracy"), "over a network trained on the target, on pictures not seen"),
        (("untrained", "train_accuracy"), "over a last layer on an untrained network, on those trained on"),
    ):
        verdict, here = judge(found[gain], sign=-1), f"ρ {found[gain]}"
        if verdict == "confirmed":
            one_sign = every[-1] < 0  # the claim does not say which gain is meant
            verdict = "undecided" if not one_sign else verdict if abs(found[gain].value) >= _STRONG else "weaker"
            here += f", which depends on this gain: over all four gains {every[0]:.2f} to {every[-1]:.2f}"
        claim = f"s-OTDD correlates strongly with the gain in Split Tiny-ImageNet {what}"
        yield Claim("6", claim, here, verdict)


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
            rows = read_subsets(results, name, method)
            counts = sorted({int(row["projections"]) for row in rows if row["method"] == method})
            found = [_against_exact(rows, method, count).value for count in counts]
            said = ", ".join(f"{rho:.2f} ({count:,})" for count, rho in zip(counts, found, strict=True))
            gain, of_r, within = _gains(rows, method, counts)
            said += f"; gain {gain}"
            if grows and judge(gain) != "undecided":
                said += f", which depends on ranks over all sizes: for r {of_r}, within one size {within}"
            does = "grows" if grows else "does not grow"
            what = f"the correlation of {method} with OTDD {does} with projections, {title}"
            verdict = "not contradicted" if gain.low <= 0 else "opposite"
            if grows:  # the claim does not say which correlation is meant
                kinds = {judge(one) for one in (gain, of_r, within)}
                verdict = kinds.pop() if len(kinds) == 1 else "undecided"
            yield Claim(figure, what, said, verdict)


def _gains(rows: Rows, method: str, counts: Sequence[int]) -> list[Correlation]:
    """With the most projections less with the fewest: ρ, r, and ρ within one size."""
    kinds: list[Callable[[Rows, int], float]] = [
        lambda part, count: _against_exact(part, method, count).value,
        lambda part, count: _against_exact(part, method, count, ranks=False).value,
        lambda part, count: _within(part, method, count),
    ]
    return [_vary(rows, lambda part, kind=kind: kind(part, counts[-1]) - kind(part, counts[0])) for kind in kinds]


def _kinds(results: Path) -> Iterator[Claim]:
    gap = nist_transfer.gaps(results, "accuracy", "all")
    rows = read(results / "paper" / "nist_distances.csv")
    linear, convolution = (
        nist_transfer.both_ways([row for row in rows if row["method"] == method])
        for method in (nist_transfer.AUTHORS, nist_transfer.CONVOLUTION)
    )

    def difference(without: str | None = None) -> float:
        part = {pair: value for pair, value in gap.items() if without not in pair}
        return _pairs(convolution, part).value - _pairs(linear, part).value

    found = jackknife(difference(), [difference(name) for name in sorted({name for name, _ in gap})])
    here = f"ρ {_pairs(convolution, gap).value:.2f} and {_pairs(linear, gap).value:.2f}; difference {found}"
    yield Claim("12", "convolutions correlate better with the gap in *NIST than linear projections", here, judge(found))


def compare_different(results: Path) -> str:
    """Pairs that differ for real, which the paper does not have."""
    rows = read(results / "correlation_summary.csv")
    said = []
    for name, title in _NAMES.items():
        mine = [r for r in rows if (r["data"], r["pairs"], r["method"]) == (name, "different", SOTDD)]
        mine.sort(key=lambda row: int(row["projections"]))
        last = {row["reference"]: row for row in mine}  # by the most projections
        plain, less = (float(last[reference]["rho"]) for reference in (EXACT, SQUARES))
        said.append(f"{plain:.2f} ({less:.2f} without its sampling floor) on {last[EXACT]['count']} pairs of {title}")
    return "ρ with OTDD is " + " and ".join(said)
