"""What changed in a column, in the words and units of whoever reads it, and as bars to draw."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sotdd.basics.text import say_count, show
from sotdd.drift.columns import GAP, UNTOLD, Aspect, Sides
from sotdd.measure.columns import Bools, Doubles, score_numbers

# Standard errors between spreads of a column that also moved.
_CLEARLY = 4.0

# Bars of a histogram, and values of a category that are shown.
_BARS, _MOST_BARS = 16, 8


@dataclass(frozen=True)
class Bars:
    """How a column is spread over bins or values: shares of the reference and of the batch, one for each name."""

    names: tuple[str, ...]
    reference: tuple[float, ...]
    batch: tuple[float, ...]
    are_values: bool


# ------------------------------------------------------------------ words


def describe_change(one: Sides, aspects: Mapping[Aspect, float]) -> tuple[str, str]:
    """What changed, and by how much: of the aspects that did, the clearest first, with their deviations.

    If none did, how the column is on both sides.
    """
    if not aspects:
        return "", say_mean(one) if one.column.is_number else _say_largest(one)
    said = [_SAY[aspect](one, code) for aspect, code in _choose_aspects(one, aspects)]
    what = list(dict.fromkeys(word for word, _ in said))[:2]
    details = list(dict.fromkeys(text for word, text in said if word in what))
    return ", ".join(what), "; ".join(details[:3])


def _choose_aspects(one: Sides, aspects: Mapping[Aspect, float]) -> list[Aspect]:
    """Those worth saying, of what follows from each other."""
    sizes = {aspect: size for (aspect, _), size in aspects.items()}
    ends, hidden = {"low", "high"} & set(sizes), set[str]()
    if sizes.get("shape", 0.0) < max(sizes.values()):
        hidden.add("shape")
    if sizes.get("location", 0.0) > max(sizes.values()) / 2 or len(ends) == 2:
        hidden |= ends if {"location", "spread"} & set(sizes) else set()
    elif ends:  # far values on one side alone make it wide
        hidden.add("spread")
    if {"location", "spread"} <= set(sizes) and not _is_spread_apart(one):
        hidden.add("spread")
    return [aspect for aspect in aspects if aspect[0] not in hidden]


def _say_spread(one: Sides, code: int) -> tuple[str, str]:
    """Standard deviations; where few far values make them go the other way than ranks, the range of most rows."""
    first, second = map(_find_spread, one.split(one.numbers))
    ranks = score_numbers(one.codes.astype(np.float64), one.known)["spread"]
    is_wider = one.split(ranks)[1].mean() > 0
    word = "wider" if is_wider else "narrower"
    if (second > first) == is_wider:
        return word, _say_pair("spread", (first, second))
    return word, f"90 % within {_say_ranges(one, (0.05, 0.95))}"


def _say_ranges(one: Sides, levels: tuple[float, float]) -> str:
    """Between two quantiles, on both sides."""
    ranges = [np.nanquantile(side, levels).tolist() for side in one.split(one.numbers)]
    return " → ".join(" to ".join(_say_all(ends)) for ends in ranges)


def _find_spread(values: Doubles) -> float:
    """The standard deviation of the values that are there, however large they are."""
    present = values[~np.isnan(values)]
    unit = float(np.abs(present).max(initial=0.0)) or 1.0
    return unit * float(np.std(present / unit)) if len(present) else 0.0


def _is_spread_apart(one: Sides) -> bool:
    """Whether standard deviations differ clearly: values that moved lie farther out among all, and that is all."""
    first, second = map(_find_spread, one.split(one.numbers))
    if not (first > 0 and second > 0):
        return first != second
    sizes = [np.count_nonzero(side) for side in one.split(one.known)]
    return abs(math.log(second / first)) > _CLEARLY * math.sqrt(sum(1 / (2 * size) for size in sizes))


def _say_end(one: Sides, code: int) -> tuple[str, str]:
    """How many rows are at one end: codes from there on."""
    is_high = code > len(one.column.steps) // 2
    marks = one.known & (one.codes >= code if is_high else one.codes <= code)
    first, second = one.share(marks)
    inside = one.column.steps[min(max(code, 1), len(one.column.steps)) - 1]
    end = _say_all([float(inside)])[0]
    word = f"{'more' if second > first else 'fewer'} {'high' if is_high else 'low'} values"
    where = "from" if is_high else "up to"
    return word, f"{where} {end}: {say_percent(first)} → {say_percent(second)} of rows"


def _say_stuck(one: Sides, code: int) -> tuple[str, str]:
    """One value is more frequent than any is in the reference."""
    second = one.split(one.numbers)[1]
    values, counts = np.unique(second[~np.isnan(second)], return_counts=True)
    value = _say_all([float(values[counts.argmax()])])[0]
    often = f"{value} in {counts.max():,} of {say_count(len(second), 'row')}, more than any value of the reference"
    return "constant" if len(values) == 1 else "stuck at one value", often


def _say_value(one: Sides, code: int) -> tuple[str, str]:
    first, second = one.share(one.codes == code)
    noun = "class" if one.column.kind == "label" else "category"
    if one.column.is_number:
        value = _say_all([float(one.column.steps[min(max(code, 1), len(one.column.steps)) - 1])])[0]
        return "other shares", f"{value} in {say_percent(first)} → {say_percent(second)} of rows"
    word = f"new {noun}" if code >= len(one.column.values) or first == 0 else f"{noun} gone" if second == 0 else ""
    return word or "other shares", f"{show(one.values[code], 30)!r} {say_percent(first)} → {say_percent(second)}"


def _say_gaps(one: Sides, code: int) -> tuple[str, str]:
    first, second = one.share(~one.known)
    word = "no value left" if second == 1 else "more gaps" if second > first else "fewer gaps"
    return word, f"gaps {say_percent(first)} → {say_percent(second)}"


_SAY: dict[str, Callable[[Sides, int], tuple[str, str]]] = {
    "location": lambda one, code: ("moved", say_mean(one)),
    "spread": _say_spread,
    "shape": lambda one, code: ("other shape", f"middle half {_say_ranges(one, (0.25, 0.75))}"),
    "commonest": _say_value,
    "low": _say_end,
    "high": _say_end,
    "value": _say_value,
    "gaps": _say_gaps,
    "stuck": _say_stuck,
}


def say_mean(one: Sides, rows: Bools | None = None) -> str:
    """Means on both sides; medians where means go the other way than ranks."""
    numbers = one.numbers if rows is None else np.where(rows, one.numbers, np.nan)
    sides = [side[~np.isnan(side)] for side in one.split(numbers)]
    if not all(map(len, sides)):
        return "no values to compare"
    means = (one.column.mean if rows is None else float(sides[0].mean())), float(sides[1].mean())
    medians = float(np.median(sides[0])), float(np.median(sides[1]))
    against = (means[1] - means[0]) * (medians[1] - medians[0]) < 0
    return _say_pair("median" if against else "mean", medians if against else means)


def _say_largest(one: Sides) -> str:
    """The value that most rows have, and how many."""
    codes = one.codes[one.codes < UNTOLD]
    return _say_value(one, int(np.bincount(codes).argmax()))[1] if len(codes) else "values too many to tell apart"


def _say_pair(name: str, ends: tuple[float, float]) -> str:
    first, second = _say_all(ends)
    return f"{name} {first} → {second}"


def _say_all(values: Sequence[float]) -> list[str]:
    """Numbers with three digits of the largest, or more if that would not tell two apart."""
    largest = max(map(abs, values))
    if largest and not 1e-4 <= largest < 1e9:
        return [f"{value:.4g}" for value in values]
    decimals = 0 if all(value == round(value) for value in values) else max(0, 2 - math.floor(math.log10(largest)))
    while len({round(value, decimals) for value in values}) < len(set(values)) and decimals < 6:
        decimals += 1
    return [f"{value:,.{decimals}f}" for value in values]


def say_percent(share: float) -> str:
    """A share in per cent, with two digits where it is small."""
    return f"{100 * share:.0f} %" if share >= 0.0995 or share == 0 else f"{100 * share:.2g} %"


# ------------------------------------------------------------------ pictures


def draw_bars(one: Sides) -> Bars:
    """Shares of rows on both sides: by value where there are few, by range where there are many."""
    if one.column.is_number:
        numbers = one.numbers[one.known]
        distinct = np.unique(numbers)
        if len(distinct) > _MOST_BARS:
            return _draw_histogram(one, numbers)
        said = _say_all(distinct.tolist() or [0.0])
        marks = {name: one.numbers == value for name, value in zip(said, distinct.tolist(), strict=False)}
    else:
        codes, counts = np.unique(one.codes[one.codes < UNTOLD], return_counts=True)
        most = codes[np.argsort(-counts, kind="stable")][:_MOST_BARS].tolist()
        marks = {one.values[code]: one.codes == code for code in most}
        rest = ~np.isin(one.codes, [*most, GAP])
        marks = {**marks, "other values": rest} if rest.any() else marks
    marks = marks if one.known.all() else {**marks, "missing": ~one.known}
    first, second = zip(*map(one.share, marks.values()), strict=True) if marks else ((), ())
    return Bars(tuple(marks), first, second, True)


def _draw_histogram(one: Sides, numbers: Doubles) -> Bars:
    low, high = (float(end) for end in np.quantile(numbers, [0.005, 0.995]))
    low, high = (low, high) if high > low else (float(numbers.min()), float(numbers.max()))
    edges = np.linspace(low, high, _BARS + 1)
    first, second = (
        tuple((np.histogram(np.clip(side[~np.isnan(side)], low, high), edges)[0] / len(side)).tolist())
        for side in one.split(one.numbers)
    )
    ends = _say_all(edges.tolist())
    return Bars(tuple(f"{a} to {b}" for a, b in pairwise(ends)), first, second, False)
