"""The pages of two datasets: whether they may be samples of one source, why they are apart; and charts of verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby
from typing import Any

import numpy as np

from sotdd.basics.text import json_number, say_count, show, with_error
from sotdd.compute.distance import Distance
from sotdd.drift.gate import Verdict
from sotdd.measure.explanation.features import FeatureShares
from sotdd.measure.explanation.result import Explanation
from sotdd.measure.explanation.sentences import (
    list_cells,
    list_features,
    say_changes,
    say_features,
    say_lost_classes,
    say_parts,
    say_rest,
)
from sotdd.measure.two_sample import TwoSampleTest
from sotdd.reports.code import write_pair_code
from sotdd.reports.dataset_facts import Facts, make_class_sizes, make_data_section
from sotdd.reports.page import Page, Section, make_table, say_reliability, scroll, sentence, shorten_names

# The sources of both datasets and the settings of the call, where they are known.
Asked = tuple[Sequence[str], Mapping[str, Any]]

# The level that verdicts of a test are stated at.
_LEVEL = 0.05

# Classes of each side and features that are shown, those with the largest shares first; squares along an image.
_MOST_CLASSES, _MOST_FEATURES, _MOST_SQUARES = 40, 20, 32
_BLUE, _ORANGE = "#1f5f99", "#c05a12"
# Numbers of an explanation, without its matrices, which can be large.
_NUMBERS = ("within_noise", "features", "labels", "classes", "renamed")
_HEADER = ("class", "share", "by chance", "points", "nearest", "distance", "counterpart")

# Each chart is drawn for a wide page, for a narrower one and for a phone; the style shows one of them.
_WIDTHS = {"wide": 1040, "middle": 620, "narrow": 330}
_HEIGHT = 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 14, 26, 34


def make_pair_page(
    result: TwoSampleTest | Explanation,
    names: Sequence[str],
    facts: Sequence[Facts],
    title: str | None,
    asked: Asked | None,
) -> Page:
    """Whether two datasets may be samples of one source, or why they are apart."""
    short = shorten_names(names)
    tested = isinstance(result, TwoSampleTest)
    page = (
        _make_test_page(result, *short) if isinstance(result, TwoSampleTest) else _make_explanation_page(result, *short)
    )
    sizes = make_class_sizes(short, facts) if facts and tested else []
    about = [*sizes, make_data_section(facts, short)] if facts else []
    return replace(
        page,
        title=title or page.title,
        sections=[*page.sections, *about],
        code="" if asked is None else write_pair_code("test" if tested else "explain", *asked),
        data={"a": names[0], "b": names[1], **page.data},
    )


def _make_test_page(test: TwoSampleTest, one: str, other: str) -> Page:
    rejected = test.rejects(_LEVEL)
    low, high = test.quantiles((0.05, 0.95)).values()
    details = [
        f"p = {test.p_value:.3g} by {len(test.null):,} permutations, judged at a level of 5 %"
        f"{f', most by {test.strongest}' if rejected and test.strongest else ''}.",
        f"They are {test.distance:.3g} apart; by chance, 90 % of permutations are {low:.3g} to {high:.3g} apart.",
    ]
    chart = draw_chance(test.distance, (low, high), f"Distance {test.distance:.3g}, by chance {low:.3g} to {high:.3g}")
    note = "The band is where 90 % of distances lie after the points are permuted between the two datasets."
    settings = {
        "statistic": test.judged_by,
        "permutations": f"{len(test.null):,}",
        "projections": f"{test.n_projections:,}",
        "order of transport": f"p = {test.p:g}",
        "fingerprint": test.fingerprint,
        **_name_remarks(test),
    }
    return Page(
        f"Are {one} and {other} of one source?",
        _say_sizes(test.n_points, one, other),
        "bad" if rejected else "good",
        f"{one} and {other} {'are not' if rejected else 'may be'} samples of one source.",
        details,
        [Section("The distance beside chance", chart, note), *make_aspects(test.aspects)],
        settings,
        data=test.to_dict(),
    )


def _make_explanation_page(why: Explanation, one: str, other: str) -> Page:
    why = replace(why, names=(one, other))
    distance, whole = why.distance, why.to_dict()
    differ = "do not differ" if why.within_noise else "differ"
    settings = {"distance": distance.how, "estimator": distance.estimator, **_name_remarks(distance)}
    if distance.fingerprint is not None:
        settings["fingerprint"] = distance.fingerprint
    return Page(
        f"Why are {one} and {other} apart?",
        _say_sizes(distance.n_points, one, other),
        "good" if why.within_noise else "plain",
        f"{one} and {other} {differ} beyond noise: they are {with_error(distance.value, distance.stderr)} apart.",
        [*say_why(why), *map(sentence, say_reliability(distance))],
        make_drivers(why),
        settings,
        data={"distance": distance.value, "stderr": json_number(distance.stderr), **{n: whole[n] for n in _NUMBERS}},
    )


def make_aspects(aspects: Mapping[str, float], about: str = "") -> list[Section]:
    """What stands out in a test; nothing where it looks at one thing only."""
    if len(aspects) < 2:
        return []
    rows = [(name, f"{value:.3g}") for name, value in sorted(aspects.items(), key=lambda item: item[1])]
    note = (
        "Order 1 sees small shifts of everything, order 2 what few points do; labels are where classes lie. Single "
        "p-values are not corrected for there being several."
    )
    body = make_table(("what is compared", "p-value by itself"), rows, numbers=(1,))
    return [Section("What stands out", body, f"{about}{note}")]


def say_why(why: Explanation) -> list[str]:
    """What an explanation says in words."""
    lost = [say_lost_classes(why, side) for side in (0, 1)]
    said = (say_parts(why), say_features(why.by_feature), *say_changes(why), *lost)
    return [sentence(text) for text in said if text]


def make_drivers(why: Explanation, about: str = "") -> list[Section]:
    """The cards that say what a distance comes from: features where some differ beyond noise, and classes."""
    return [*_make_features(why, about), _make_classes(why, about)]


def _make_features(why: Explanation, about: str) -> list[Section]:
    """The columns that differ beyond noise, or a picture of the pixels; nothing where none does."""
    features = why.by_feature
    rows = list_features(features, _MOST_FEATURES)
    if not rows:
        return []
    title = f"Which {features.noun}s it comes from"
    if features.shape is not None:
        return [
            Section(title, _draw_pixels(features), f"{about}Blue pixels make the distance, orange ones take from it.")
        ]
    note = (
        f"The share of each {features.noun} in what is beyond noise between the points, labels aside; shares and what "
        f"{features.noun}s are together add up to 100 %. The middle half lies between the quartiles."
    )
    rest = say_rest(features, _MOST_FEATURES)
    more = f'<p class="note">{escape(sentence(rest))}</p>' if rest else ""
    titles = (f"{features.noun} beyond noise", "share", *(f"middle half of {show(name)}" for name in why.names))
    return [
        Section(title, f"{scroll(make_table(titles, rows, numbers=(1,)), title, stacks=True)}{more}", f"{about}{note}")
    ]


def _draw_pixels(features: FeatureShares) -> str:
    """Shares of pixels as squares, several together in a large image."""
    pixels = features.pixels
    step = -(-max(pixels.shape) // _MOST_SQUARES)
    height, width = (side // step for side in pixels.shape)
    squares = pixels[: height * step, : width * step].reshape(height, step, width, step).sum(axis=(1, 3))
    most = float(np.abs(squares).max()) or 1.0
    drawn = "".join(
        f'<rect x="{column}" y="{row}" width="1.02" height="1.02" fill="{_BLUE if share > 0 else _ORANGE}" '
        f'fill-opacity="{abs(share) / most:.2f}"/>'
        for (row, column), share in np.ndenumerate(squares)
        if abs(share) > 0.005 * most
    )
    label = f"Shares of {width} × {height} pixels"
    return (
        f'<svg class="pixels" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">'
        f'<rect width="{width}" height="{height}" fill="#fff" stroke="#ccc" stroke-width="0.1"/>{drawn}</svg>'
    )


def _make_classes(why: Explanation, about: str) -> Section:
    tables = []
    for side in (0, 1):
        of_side = why.lines(side)
        title = f"Classes of {why.names[side]}, and the nearest in {why.names[1 - side]}"
        cells = [list_cells(line) for line in of_side[:_MOST_CLASSES]]
        rows = [(label, share, chance, points, *rest) for label, points, share, chance, *rest in cells]
        marks = ["bad-row" if line.moved or line.counterpart is None else "" for line in of_side[:_MOST_CLASSES]]
        rest = len(of_side) - len(rows)
        more = f'<p class="note">{rest:,} more classes have smaller shares.</p>' if rest > 0 else ""
        shown_rows = make_table(_HEADER, rows, numbers=(1, 2, 3), marks=marks)
        tables.append(f"<div><h3>{escape(show(title))}</h3>{scroll(shown_rows, title)}{more}</div>")
    note = (
        "The share of a class is what moving its points adds to the distance; shares of each dataset add up to 100 %. "
        "A class has a counterpart if its match is within noise, or nearer than every other class of its own dataset."
    )
    return Section("Which classes it comes from", f'<div class="two">{"".join(tables)}</div>', f"{about}{note}")


def _say_sizes(n_points: Sequence[int], *names: str) -> str:
    return ", ".join(f"{say_count(count, 'point')} of {name}" for count, name in zip(n_points, names, strict=True))


def _name_remarks(result: TwoSampleTest | Distance) -> dict[str, str]:
    return {"remarks": "; ".join(map(str, result.remarks))} if result.remarks else {}


# ------------------------------------------------------------------ charts


@dataclass(frozen=True)
class Point:
    """A batch on the line: its distance, what chance gives, and the verdict; None where it is not known."""

    name: str
    verdict: Verdict
    value: float | None
    chance: tuple[float, float] | None = None


def draw_history(points: Sequence[Point], limit: float | None, label: str) -> str:
    """Distances in the order of the batches, with what chance gives as a band and the limit as a line."""
    return _draw_widths(lambda width: _draw_history(points, limit, width, label))


def draw_chance(value: float, chance: tuple[float, float], label: str) -> str:
    """One distance beside the range of distances that chance gives."""
    return _draw_widths(lambda width: _draw_chance(value, chance, width, label))


def _draw_widths(draw: Callable[[int], str]) -> str:
    return "".join(f'<div class="{kind}">{draw(width)}</div>' for kind, width in _WIDTHS.items())


def _draw_history(points: Sequence[Point], limit: float | None, width: int, label: str) -> str:
    known = [value for point in points for value in (point.value, *(point.chance or ())) if value is not None]
    top = _round_up(max([*known, limit or 0.0, 1e-12]))
    inner = width - _LEFT - _RIGHT
    step = inner / max(1, len(points) - 1)
    across = [_LEFT + inner / 2 if len(points) == 1 else _LEFT + step * place for place in range(len(points))]

    def height(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - min(value, top) / top)

    drawn = [_draw_grid(top, width, height)]
    drawn += [_draw_band([(x, point.chance) for x, point in zip(across, points, strict=True)], height)]
    if limit is not None:
        y = height(limit)
        drawn.append(f'<line class="limit" x1="{_LEFT}" x2="{width - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(
            f'<text class="limit-name" x="{width - _RIGHT}" y="{y - 5:.1f}" text-anchor="end">limit {limit:.3g}</text>'
        )
    line = " ".join(
        f"{x:.1f},{height(p.value):.1f}" for x, p in zip(across, points, strict=True) if p.value is not None
    )
    drawn.append(f'<polyline class="line" points="{line}"/>')
    every = max(1, math.ceil(18 / step)) if len(points) > 1 else 1
    for number, (x, point) in enumerate(zip(across, points, strict=True), 1):
        drawn.append(_draw_dot(x, height(point.value if point.value is not None else 0.0), point))
        if (number - 1) % every == 0 or point.verdict == "drift":
            drawn.append(f'<text x="{x:.1f}" y="{_HEIGHT - 14}" text-anchor="middle">{number}</text>')
    drawn.append(f'<text x="{_LEFT}" y="14" class="strong">distance from the reference</text>')
    return _write_svg(width, _HEIGHT, drawn, label)


def _draw_dot(x: float, y: float, point: Point) -> str:
    value = "not measured" if point.value is None else f"{point.value:.4g}"
    title = f"<title>{escape(point.name)}: {value}, {point.verdict}</title>"
    if point.verdict == "drift":
        return f'<path class="bad-dot" d="M{x:.1f} {y - 8:.1f} l8 8 l-8 8 l-8 -8 z">{title}</path>'
    kind = "good-dot" if point.verdict == "passed" else "open-dot"
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="5.5">{title}</circle>'


def _draw_band(ranges: Sequence[tuple[float, tuple[float, float] | None]], height: Callable[[float], float]) -> str:
    """What chance gives, from batch to batch; a batch without it ends one piece."""
    pieces = []
    for known, run in groupby(ranges, key=lambda one: one[1] is not None):
        ends = [(x, *chance) for x, chance in run if chance is not None]
        if len(ends) == 1:  # a single batch has a width too
            x, low, high = ends[0]
            ends = [(x - 14, low, high), (x, low, high), (x + 14, low, high)]
        upper = [f"{x:.1f},{height(high):.1f}" for x, _, high in ends]
        lower = [f"{x:.1f},{height(low):.1f}" for x, low, _ in reversed(ends)]
        pieces += [f'<polygon class="band" points="{" ".join(upper + lower)}"/>'] if known else []
    return "".join(pieces)


def _draw_grid(top: float, width: int, height: Callable[[float], float]) -> str:
    drawn = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = height(share * top)
        drawn.append(f'<line class="rule" x1="{_LEFT}" x2="{width - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{share * top:.3g}</text>')
    return "".join(drawn)


def _draw_chance(value: float, chance: tuple[float, float], width: int, label: str) -> str:
    top = _round_up(max(value, chance[1], 1e-12))
    inner = width - 2 * 24

    def across(number: float) -> float:
        return 24 + inner * min(number, top) / top

    low, high = (across(end) for end in chance)
    marks = [0.0, top / 2, top]
    drawn = [
        f'<line class="rule" x1="24" x2="{width - 24}" y1="44" y2="44"/>',
        f'<rect class="band" x="{low:.1f}" y="32" width="{max(2.0, high - low):.1f}" height="24"/>',
        *(f'<text x="{across(mark):.1f}" y="76" text-anchor="middle">{mark:.3g}</text>' for mark in marks),
    ]
    x = across(value)
    beyond = value > chance[1]
    drawn.append(_draw_dot(x, 44, Point("the distance", "drift" if beyond else "passed", value)))
    anchor = "end" if x > width - 90 else "start" if x < 90 else "middle"
    drawn.append(f'<text class="strong" x="{x:.1f}" y="20" text-anchor="{anchor}">{value:.3g}</text>')
    return _write_svg(width, 84, drawn, label)


def _write_svg(width: int, height: int, drawn: Sequence[str], label: str) -> str:
    box = f'class="chart-svg" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{"".join(drawn)}</svg>'


def _round_up(largest: float) -> float:
    """A round number a little above."""
    power = 10.0 ** math.floor(math.log10(largest * 1.08))
    for factor in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6, 8, 10):
        if factor * power >= largest * 1.08:
            return factor * power
    return 10 * power
