"""What changed in a column, in the words and units of whoever reads it, and as bars to draw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sotdd.basics.text import say_count, show
from sotdd.inputs.schema import MISSING
from sotdd.measure.columns import Column, rank_column, score_numbers
from sotdd.measure.scores import Doubles

# An aspect of a column, such as its location, and the value or code that it is about.
Aspect = tuple[str, float]

# Standard errors between spreads of a column that also moved.
_CLEARLY = 4.0

# Bars of a histogram, and values of a category that are shown.
_BARS, _MOST_BARS = 16, 8


@dataclass(frozen=True)
class Bars:
    """How a column is spread over bins or values: shares of either dataset, one for each name."""

    names: tuple[str, ...]
    reference: tuple[float, ...]
    batch: tuple[float, ...]
    are_values: bool


NO_BARS = Bars((), (), (), True)


# ------------------------------------------------------------------ words


def describe_change(one: Column, aspects: Mapping[Aspect, float]) -> tuple[str, str]:
    """What changed, and by how much: of the aspects that did, the clearest first, with their deviations.

    Aspects that follow from others are left out.
    """
    if not aspects:
        return "", say_mean(one) if one.is_number else "values too many or too few to tell apart"
    sizes = {aspect: size for (aspect, _), size in aspects.items()}
    most, ends = max(sizes.values()), {"low", "high"} & set(sizes)
    hidden = {"shape"} if sizes.get("shape", 0.0) < most else set()
    if sizes.get("location", 0.0) > most / 2 or (len(ends) == 2 and "spread" in sizes):
        hidden |= ends
    elif ends:  # far values on one side alone make it wide
        hidden.add("spread")
    if {"location", "spread"} <= set(sizes) and not _is_spread_apart(one):
        hidden.add("spread")
    if one.is_number and not all(map(len, one.sides)):  # a side without values has no place and no shape
        hidden |= {"location", "spread", "shape"}
    said = [_describe_aspect(one, *aspect) for aspect in aspects if aspect[0] not in hidden]
    what = list(dict.fromkeys(word for word, _ in said))[:2]
    details = list(dict.fromkeys(text for word, text in said if word in what))
    return ", ".join(what), "; ".join(details[:3])


def _describe_aspect(one: Column, aspect: str, value: float) -> tuple[str, str]:
    """What one aspect of a column says, and by how much it changed.

    Spreads are standard deviations, or the range of most rows where few far values make deviations go the other way.
    The word follows the numbers that stand beside it: a column in other units is narrower if its numbers are.
    """
    if aspect == "location":
        return "moved", say_mean(one)
    if aspect == "shape":
        return "other shape", f"middle half {_say_ranges(one, (0.25, 0.75))}"
    if aspect != "spread":
        return _say_share(one, aspect, value)
    unit = float(np.nanmax(np.abs(one.values))) or 1.0  # however large values are
    first, second = (unit * float(np.std(side / unit)) for side in one.sides)
    ranks = score_numbers(one.values.astype(np.float64), one.known)["spread"]
    if (second > first) == (one.split(ranks)[1].mean() > 0):
        return "wider" if second > first else "narrower", f"spread {' → '.join(_say_all((first, second)))}"
    widths = [float(np.diff(np.quantile(side, (0.05, 0.95)))[0]) for side in one.sides]
    return "wider" if widths[1] > widths[0] else "narrower", f"90 % within {_say_ranges(one, (0.05, 0.95))}"


def _say_ranges(one: Column, levels: tuple[float, float]) -> str:
    """Between two quantiles, on both sides."""
    ranges = [np.quantile(side, levels).tolist() for side in one.sides]
    return " → ".join(" to ".join(_say_all(ends)) for ends in ranges)


def _is_spread_apart(one: Column) -> bool:
    """Whether one side lies farther from its own median, by ranks: values that only moved lie farther out among all."""
    sides = [np.abs(side - np.nanmedian(side)) for side in one.split(one.values.astype(np.float64))]
    first, second = one.split(rank_column(np.concatenate(sides)))
    return abs(float(first.mean() - second.mean())) > _CLEARLY * math.sqrt(1 / len(first) + 1 / len(second))


def _say_share(one: Column, aspect: str, value: float) -> tuple[str, str]:
    """How many rows have a gap, a value that may be new, gone or all there is, or values from there on."""
    first, second = one.share(one.mark(aspect, value))
    word, shares = "more" if second > first else "fewer", f"{say_percent(first)} → {say_percent(second)}"
    if aspect == "gaps":
        return "no value left" if second == 1 else f"{word} gaps", f"gaps {shares}"
    if aspect in ("low", "high"):
        where = "from" if aspect == "high" else "up to"
        return f"{word} {aspect} values", f"{where} {say_number(value)}: {shares} of rows"
    if one.is_number:
        before, rows = one.sides[0], len(one.split(one.values)[1])
        if first == 0 < len(before) and second < 0.5 and not before.min() <= value <= before.max():
            return "a placeholder?", f"{say_number(value)} in {round(second * rows):,} of {say_count(rows, 'row')}"
        word = "constant" if second == 1 else "stuck at one value" if second > 0.5 > 2 * first else "other shares"
        return word, f"{say_number(value)} in {shares} of rows"
    noun = "class" if one.kind == "label" else "category"
    words = {"constant": second == 1, f"new {noun}": first == 0, f"{noun} gone": second == 0, "other shares": True}
    return next(word for word, fits in words.items() if fits), f"{show(one.texts[int(value)], 30)!r} {shares}"


def say_farthest(one: Column) -> str:
    """The largest or smallest value of the second dataset, where it lies far beyond those of the first; or nothing."""
    if not one.is_number or not all(map(len, one.sides)):
        return ""
    (low, high), (least, most) = ((float(side.min()), float(side.max())) for side in one.sides)
    with np.errstate(over="ignore"):
        if most > high + 2 * (high - low):
            return f"largest value {say_number(most)} against {say_number(high)}"
        return f"smallest value {say_number(least)} against {say_number(low)}" if least < low - 2 * (high - low) else ""


def say_mean(one: Column) -> str:
    """Means on both sides; medians where means go the other way than ranks."""
    if not all(map(len, one.sides)):
        return "no values to compare"
    means, medians = ([float(measure(side)) for side in one.sides] for measure in (np.mean, np.median))
    against = (means[1] - means[0]) * (medians[1] - medians[0]) < 0
    name, ends = ("median", medians) if against else ("mean", means)
    return f"{name} {' → '.join(_say_all(ends))}"


def _say_all(values: Sequence[float]) -> list[str]:
    """Numbers with three digits of the largest, or more if that would not tell two apart."""
    largest = max(map(abs, values))
    if largest and not 1e-4 <= largest < 1e9:
        return [f"{value:.4g}" for value in values]
    decimals = 0 if all(value == round(value) for value in values) else max(0, 2 - math.floor(math.log10(largest)))
    while len({round(value, decimals) for value in values}) < len(set(values)) and decimals < 6:
        decimals += 1
    return [f"{value:,.{decimals}f}" for value in values]


def say_number(value: float) -> str:
    """One number, large ones with commas."""
    return _say_all([value])[0]


def say_percent(share: float) -> str:
    """A share in per cent, with two digits where it is small."""
    return f"{100 * share:.0f} %" if share >= 0.0995 or share == 0 else f"{100 * share:.2g} %"


# ------------------------------------------------------------------ pictures


def draw_bars(one: Column) -> Bars:
    """Shares of rows on both sides: by value where there are few, by range where there are many."""
    known = one.known
    if one.is_number:
        distinct = np.unique(one.values[known])
        if len(distinct) > _MOST_BARS:
            return _draw_histogram(one, one.values[known].astype(np.float64))
        said = _say_all(distinct.tolist() or [0.0])
        marks = {name: one.values == value for name, value in zip(said, distinct.tolist(), strict=False)}
    else:
        codes, counts = np.unique(one.values[known], return_counts=True)
        most = codes[np.argsort(-counts, kind="stable")][:_MOST_BARS].tolist()
        marks = {one.texts[code]: one.values == code for code in most}
        rest = ~np.isin(one.values, [*most, MISSING])
        marks = {**marks, "other values": rest} if rest.any() else marks
    marks = marks if known.all() else {**marks, "missing": ~known}
    first, second = zip(*map(one.share, marks.values()), strict=True) if marks else ((), ())
    return Bars(tuple(marks), first, second, True)


def _draw_histogram(one: Column, numbers: Doubles) -> Bars:
    low, high = (float(end) for end in np.quantile(numbers, [0.005, 0.995]))
    low, high = (low, high) if high > low else (float(numbers.min()), float(numbers.max()))
    edges = np.linspace(low, high, _BARS + 1)
    first, second = (
        tuple((np.histogram(np.clip(side[~np.isnan(side)], low, high), edges)[0] / len(side)).tolist())
        for side in one.split(one.values)
    )
    ends = _say_all(edges.tolist())
    return Bars(tuple(f"{a} to {b}" for a, b in pairwise(ends)), first, second, False)
