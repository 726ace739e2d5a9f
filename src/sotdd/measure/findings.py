"""What a test found, in the words and units of whoever reads it, and as bars to draw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sotdd.basics.text import say_count, show
from sotdd.inputs.schema import MISSING
from sotdd.measure.changes import ALL_CLASSES, Change, Changes, ClassChange, ColumnChange, CorrelationChange
from sotdd.measure.columns import NO_BARS, Bars, Column, rank_values, score_numbers, score_ranks
from sotdd.measure.relations import ALL, correlate
from sotdd.measure.statistics import CLASSES, NAMED, PAIRS, RARE, WITHIN, Doubles

if TYPE_CHECKING:
    from sotdd.measure.comparison import Permutations

# An aspect of a column, such as its location, and the value or code that it is about.
ColumnAspect = tuple[str, float]

# Standard errors between spreads of a column that also moved.
_CLEARLY = 4.0

# Bars of a histogram, and values of a category that are shown.
_BARS, _MOST_BARS = 16, 8

# Columns that did not change have something to draw only among so many of the clearest.
_MOST_DRAWN = 200


def find_changes(measured: Permutations, level: float, differ: bool) -> Changes:
    """Say what changed, by the permutations of a test; beyond chance only if it says that the datasets ``differ``."""
    limit = level if differ else 0.0
    columns, classes, pairs = _find_columns(measured, limit), _find_classes(measured, limit), []
    for (i, j), p_value in _list_clearest(measured, limit, PAIRS):
        correlations = measured.pairs.correlate(i, j, measured.columns[0].n_first)
        pairs.append(CorrelationChange((measured.pairs.names[i], measured.pairs.names[j]), correlations, p_value))
    found: list[Change] = [*columns[:1], *pairs[:1], *classes[:1]]
    nearest = min(found, key=lambda one: one.p_value, default=None)
    apart = [one for one in pairs if one.p_value <= limit and _are_apart(one.correlations, measured.plan.sizes)]
    clear = [one for one in classes if one.p_value <= limit]
    inside = [one for one in clear if one.label != ALL_CLASSES]
    if len(inside) == len(measured.within.members) and any(one.changed for one in columns):
        inside, clear = [], []  # columns changed, and all classes with them
    return Changes(tuple(columns), tuple(apart), tuple(inside or clear), level, nearest)


def _are_apart(correlations: tuple[float, float], sizes: tuple[int, int]) -> bool:
    """Whether two correlations differ by two standard errors of Fisher's transform, so that they are worth naming."""
    first, second = np.arctanh(np.clip(correlations, -0.999, 0.999))
    return bool(abs(first - second) > 2 * math.sqrt(sum(1 / max(size - 3, 1) for size in sizes)))


def _find_columns(measured: Permutations, level: float) -> list[ColumnChange]:
    """All columns, each by the scores that changed, or by the one that differs most; the clearest first."""
    differences, columns = measured.differences, measured.columns
    p_values = differences.find_p_values(NAMED, RARE).tolist()
    # Of every column the p-values and sizes of its aspects, the clearest first.
    scores: list[dict[ColumnAspect, tuple[float, float]]] = [{} for _ in columns]
    found = zip(p_values, differences.found, differences.keys, differences.families, strict=True)
    for p_value, size, key, families in sorted(found, key=lambda one: (one[0], -one[1])):
        if NAMED in families:
            place, aspect, value = key
            scores[place][aspect, value] = p_value, size
    changes: list[ColumnChange] = []
    clearest = [next(((p_value, -size) for p_value, size in own.values()), (1.0, 0.0)) for own in scores]
    for place in sorted(range(len(columns)), key=clearest.__getitem__):
        column, own, (least, _) = columns[place], scores[place], clearest[place]
        beyond = {aspect: size for aspect, (p_value, size) in own.items() if p_value <= level}
        what, detail = describe_change(column, beyond or {aspect: size for aspect, (_, size) in [*own.items()][:1]})
        detail = "; ".join(filter(None, (detail, say_farthest(column))))
        bars = draw_bars(column) if beyond or len(changes) < _MOST_DRAWN else NO_BARS
        changes.append(ColumnChange(column.name, column.kind, bool(beyond), what, detail, least, bars))
    return changes


def _find_classes(measured: Permutations, level: float) -> list[ClassChange]:
    """Classes that changed, each with the column that shows it most; or the nearest one."""
    label = next((one for one in measured.columns if one.kind == "label"), None)
    changes: dict[str, ClassChange] = {}
    if label is None:
        return []
    for (code, *places), p_value in _list_clearest(measured, level, WITHIN, CLASSES):
        rows = np.arange(len(label.values)) if code == ALL else measured.within.members[code]
        name = ALL_CLASSES if code == ALL else label.texts[int(label.values[rows[0]])]
        if name not in changes:
            some = [measured.columns[place].take(rows) for place in places]
            both, detail = " and ".join(one.name for one in some), ""
            if code != ALL and len(some) == 1:
                detail = say_mean(some[0])
            elif code != ALL:
                sides = zip(*(one.split(one.values) for one in some), strict=True)
                first, second = (correlate(*side) for side in sides)
                detail = f"correlation {first:.2f} → {second:.2f}"
            changes[name] = ClassChange(name, both, detail, p_value)
    return [*changes.values()]


def _list_clearest(measured: Permutations, level: float, *families: str) -> list[tuple[tuple[int, ...], float]]:
    """The scores of some families that are beyond chance, the clearest first; the nearest one if there are none."""
    differences = measured.differences
    p_values = differences.find_p_values(*families)
    own = [place for place, names in enumerate(differences.families) if {*families} & {*names}]
    own.sort(key=lambda place: (p_values[place], -differences.found[place]))
    chosen = [place for place in own if p_values[place] <= level] or own[:1]
    return [(differences.keys[place], float(p_values[place])) for place in chosen]


# ------------------------------------------------------------------ words


def describe_change(one: Column, aspects: Mapping[ColumnAspect, float]) -> tuple[str, str]:
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
    ranks = score_numbers(one.ranks)["spread"]
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
    first, second = one.split(score_ranks(rank_values(np.concatenate(sides))))
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
    return Bars(tuple(marks), first, second, True, list_statistics(one))


def _draw_histogram(one: Column, numbers: Doubles) -> Bars:
    low, high = (float(end) for end in np.quantile(numbers, [0.005, 0.995]))
    low, high = (low, high) if high > low else (float(numbers.min()), float(numbers.max()))
    edges = np.linspace(low, high, _BARS + 1)
    first, second = (
        tuple((np.histogram(np.clip(side[~np.isnan(side)], low, high), edges)[0] / len(side)).tolist())
        for side in one.split(one.values)
    )
    ends = _say_all(edges.tolist())
    return Bars(tuple(f"{a} to {b}" for a, b in pairwise(ends)), first, second, False, list_statistics(one))


def list_statistics(one: Column) -> tuple[tuple[str, str, str], ...]:
    """What people ask of a column: how many values, how many of them differ, what is missing, and where they lie."""
    sides = one.sides
    counts = [(f"{len(side):,}", f"{len(np.unique(side)):,}") for side in sides]
    found = dict(zip(("values", "distinct values"), zip(*counts, strict=True), strict=True))
    found["missing"] = tuple(map(say_percent, one.share(~one.known)))
    if not all(map(len, sides)):
        pass
    elif one.is_number:
        levels = {"smallest": 0.0, "5 % below": 0.05, "median": 0.5, "95 % below": 0.95, "largest": 1.0}
        ends = [np.quantile(side, list(levels.values())).tolist() for side in sides]
        with np.errstate(over="ignore", invalid="ignore"):
            found["mean"] = _say_pair([float(np.mean(side)) for side in sides])
            found["standard deviation"] = _say_pair([float(np.std(side)) for side in sides])
        found |= {name: _say_pair(pair) for name, pair in zip(levels, zip(*ends, strict=True), strict=True)}
    else:
        most = [np.bincount(side) for side in sides]
        found["most common"] = tuple(
            f"{show(one.texts[int(count.argmax())], 30)} ({say_percent(count.max() / count.sum())})" for count in most
        )
    return tuple((name, first, second) for name, (first, second) in found.items())


def _say_pair(values: Sequence[float]) -> tuple[str, ...]:
    return tuple(say_number(value) if math.isfinite(value) else "–" for value in values)
