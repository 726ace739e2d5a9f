"""A result beside the paper's, in a word; the paper's numbers come from samples of pairs, as ours do."""

from __future__ import annotations

import math
from collections.abc import Mapping

from experiments.correlate import Correlation
from experiments.options import HERE
from experiments.store import read

WORDS = {
    "confirmed": "the interval has no 0 and lies on the paper's side of it; where the paper gives a number, both agree "
    "within their sampling errors",
    "undecided": "agrees with the paper's number within both sampling errors, and with 0 as well",
    "weaker": "nearer to 0 than the paper's number, or beyond it, by more than both sampling errors explain",
    "stronger": "farther from 0 than the paper's number by more than that",
    "not shown": "the paper gives no number, and the interval here holds 0",
    "opposite": "the interval lies on the other side of 0",
}
_ASSUMED = 20  # pairs, where the paper does not say: the fewest that it has elsewhere
_SURE = 1.96  # standard errors: 95 %
_LARGEST = 0.995  # coefficients of few resampled pairs may be 1, which has no Fisher transform


def reported(experiment: str, quantity: str) -> tuple[float, float] | None:
    """The paper's number, as the range that its pages give; None where it only draws it."""
    row = _entry(experiment, quantity)
    return (float(row["low"]), float(row["high"])) if row["low"] else None


def pairs_of(experiment: str, quantity: str) -> int | None:
    """How many pairs the paper's number is taken over; None where it does not say."""
    count = _entry(experiment, quantity)["pairs"]
    return int(count) if count else None


def number(experiment: str, quantity: str) -> str:
    """The paper's number, a dash where it only draws it."""
    found = reported(experiment, quantity)
    if found is None:
        return "–"
    low, high = (f"{value:,.2f}" if abs(value) < 10 else f"{value:,.0f}" for value in found)
    return low if low == high else f"{low} to {high}"


def said(experiment: str, quantity: str) -> str:
    """The same with where it stands."""
    found = number(experiment, quantity)
    return found if found == "–" else f"{found} ({_entry(experiment, quantity)['where']})"


def drawn(experiment: str) -> list[str]:
    """The figures that show what the paper gives no numbers of."""
    rows = [row for row in read(HERE / "paper.csv") if row["experiment"] == experiment and not row["low"]]
    return [row["where"] for row in rows]


def _entry(experiment: str, quantity: str) -> Mapping[str, str]:
    rows = [row for row in read(HERE / "paper.csv") if (row["experiment"], row["quantity"]) == (experiment, quantity)]
    if len(rows) != 1:
        raise ValueError(f"paper.csv has {len(rows)} lines for {experiment}, {quantity}: expected one.")
    return rows[0]


def beside_paper(experiment: str, quantity: str, here: Correlation) -> str:
    """A word on a correlation that the paper has a number of."""
    paper = reported(experiment, quantity)
    if paper is None:
        return on_its_own(here)
    return beside(here, paper, pairs_of(experiment, quantity))


def beside(here: Correlation, paper: tuple[float, float], pairs: int | None) -> str:
    """Compare on Fisher's scale, where the paper's error is that of so many independent pairs."""
    near = min(paper, key=lambda value: abs(value - here.value))
    near = here.value if paper[0] <= here.value <= paper[1] else near
    error = (_fisher(here.high) - _fisher(here.low)) / (2 * _SURE)
    theirs = math.sqrt(1.06 / ((pairs or _ASSUMED) - 3))  # 1.06: of ranks
    apart = (_fisher(here.value) - _fisher(near)) * math.copysign(1, near)
    if abs(apart) <= _SURE * math.hypot(error, theirs):
        return "undecided" if here.low <= 0 <= here.high else on_its_own(here, near)
    return "weaker" if apart < 0 else "stronger"


def on_its_own(here: Correlation, sign: float = 1.0) -> str:
    """A word on a correlation that should have this sign and has no number to be compared with."""
    if here.low <= 0 <= here.high:
        return "not shown"
    return "confirmed" if here.value * sign > 0 else "opposite"


def _fisher(value: float) -> float:
    return math.atanh(max(-_LARGEST, min(_LARGEST, value)))
