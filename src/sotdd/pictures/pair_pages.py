"""The pages of two datasets: whether they may be samples of one source, and why they are apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np

from sotdd.basics.text import counted, shown, with_error
from sotdd.pictures.code import pair_code
from sotdd.pictures.dataset_facts import Facts, class_sizes, data_section
from sotdd.pictures.parts import (
    Section,
    VerdictPage,
    aspects_section,
    reliability,
    scrolling,
    sentence,
    short_names,
    stacking,
    table,
)
from sotdd.pictures.verdict_charts import chance_chart
from sotdd.results.explanation import Explanation, changes_in_words, lost_in_words, parts_in_words
from sotdd.results.features import FeatureShares, header, lines, rest_in_words, sentences
from sotdd.results.two_sample import TwoSampleTest

# The sources of both datasets and the settings of the call, where they are known.
Asked = tuple[Sequence[str], Mapping[str, Any]]

# The level that verdicts of a test are stated at.
_LEVEL = 0.05

# Classes of each side and features that are shown, those with the largest shares first; squares along an image.
_MOST_CLASSES, _MOST_FEATURES, _MOST_SQUARES = 40, 20, 32
_BLUE, _ORANGE = "#1f5f99", "#c05a12"
_HEADER = ("class", "share", "by chance", "points", "nearest", "distance", "counterpart")


def test_page(
    test: TwoSampleTest, names: Sequence[str], facts: Sequence[Facts], title: str | None, asked: Asked | None
) -> VerdictPage:
    """Whether two datasets may be samples of one source."""
    one, other = short_names(names)
    rejected = test.rejects(_LEVEL)
    low, high = test.quantiles((0.05, 0.95)).values()
    details = [
        f"p = {test.p_value:.3g} by {len(test.null):,} permutations, judged at a level of 5 %"
        f"{test.most_by if rejected else ''}.",
        f"They are {test.distance:.3g} apart; by chance, 90 % of permutations are {low:.3g} to {high:.3g} apart.",
    ]
    chart = chance_chart(test.distance, (low, high), f"Distance {test.distance:.3g}, by chance {low:.3g} to {high:.3g}")
    note = "The band is where 90 % of distances lie after the points are permuted between the two datasets."
    sections = [Section("The distance beside chance", chart, note), *aspects_section(test.aspects)]
    if facts:
        sections += [*class_sizes((one, other), facts), data_section(facts, (one, other))]
    settings = {
        "statistic": test.judged_by,
        "permutations": f"{len(test.null):,}",
        "projections": f"{test.n_projections:,}",
        "order of transport": f"p = {test.p:g}",
        "fingerprint": test.fingerprint,
        **_remarks(test.remarks),
    }
    return VerdictPage(
        title or f"Are {one} and {other} of one source?",
        _sizes(test.n_points, (one, other)),
        "bad" if rejected else "good",
        f"{one} and {other} {'are not' if rejected else 'may be'} samples of one source.",
        details,
        sections,
        settings,
        "" if asked is None else pair_code("result = sotdd.test", *asked, "print(result.p_value, result.distance)"),
        {"a": names[0], "b": names[1], **test.to_dict()},
    )


def explanation_page(
    why: Explanation, names: Sequence[str], facts: Sequence[Facts], title: str | None, asked: Asked | None
) -> VerdictPage:
    """Why two datasets are apart."""
    one, other = short_names(names)
    why = replace(why, names=(one, other))
    distance = why.distance
    differ = "do not differ" if why.within_noise else "differ"
    settings = {"distance": distance.how, "estimator": distance.estimator, **_remarks(distance.remarks)}
    if distance.fingerprint is not None:
        settings["fingerprint"] = distance.fingerprint
    return VerdictPage(
        title or f"Why are {one} and {other} apart?",
        _sizes(distance.n_points, (one, other)),
        "good" if why.within_noise else "plain",
        f"{one} and {other} {differ} beyond noise: they are {with_error(distance.value, distance.stderr)} apart.",
        [*say_why(why), *map(sentence, reliability(distance))],
        [*drivers(why), *([data_section(facts, (one, other))] if facts else [])],
        settings,
        "" if asked is None else pair_code("why = sotdd.explain", *asked, "print(why)"),
        {"a": names[0], "b": names[1], **_numbers(why)},
    )


def say_why(why: Explanation) -> list[str]:
    """What an explanation says in words."""
    lost = [lost_in_words(why, side) for side in (0, 1)]
    said = (parts_in_words(why), *sentences(why.by_feature), *changes_in_words(why), *lost)
    return [sentence(text) for text in said]


def drivers(why: Explanation, about: str = "") -> list[Section]:
    """The cards that say what a distance comes from: features where some differ beyond noise, and classes."""
    return [*_features_section(why, about), _classes_section(why, about)]


def _features_section(why: Explanation, about: str) -> list[Section]:
    """The columns that differ beyond noise, or a picture of the pixels; nothing where none does."""
    features = why.by_feature
    rows = lines(features, _MOST_FEATURES)
    if not rows:
        return []
    title = f"Which {features.noun}s it comes from"
    if features.shape is not None:
        return [Section(title, _pixels(features), f"{about}Blue pixels make the distance, orange ones take from it.")]
    note = (
        f"The share of each {features.noun} in what is beyond noise between the points, labels aside; shares and what "
        f"{features.noun}s are together add up to 100 %. The middle half lies between the quartiles."
    )
    rest = rest_in_words(features, _MOST_FEATURES)
    more = f'<p class="note">{escape(sentence(rest))}</p>' if rest else ""
    titles = (*header(features)[:2], *(f"middle half of {shown(name)}" for name in why.names))
    return [Section(title, f"{stacking(table(titles, rows, numbers=(1,)), title)}{more}", f"{about}{note}")]


def _pixels(features: FeatureShares) -> str:
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


def _classes_section(why: Explanation, about: str) -> Section:
    tables = []
    for side in (0, 1):
        of_side = why.lines(side)
        title = f"Classes of {why.names[side]}, and the nearest in {why.names[1 - side]}"
        rows, marks = [], []
        for line in of_side[:_MOST_CLASSES]:
            label, points, share, by_chance, nearest, distance, counterpart = line.cells()
            rows.append((label, share, by_chance, points, nearest, distance, counterpart))
            marks.append("bad-row" if line.is_named else "")
        rest = len(of_side) - len(rows)
        more = f'<p class="note">{rest:,} more classes have smaller shares.</p>' if rest > 0 else ""
        shown_rows = table(_HEADER, rows, numbers=(1, 2, 3), marks=marks)
        tables.append(f"<div><h3>{escape(shown(title))}</h3>{scrolling(shown_rows, title)}{more}</div>")
    note = (
        "The share of a class is what moving its points adds to the distance; shares of each dataset add up to 100 %. "
        "A class has a counterpart if its match is within noise, or nearer than every other class of its own dataset."
    )
    return Section("Which classes it comes from", f'<div class="two">{"".join(tables)}</div>', f"{about}{note}")


def _sizes(n_points: Sequence[int], names: Sequence[str]) -> str:
    return ", ".join(f"{counted(count, 'point')} of {name}" for count, name in zip(n_points, names, strict=True))


def _remarks(remarks: Sequence[str]) -> dict[str, str]:
    return {"remarks": "; ".join(remarks)} if remarks else {}


def _numbers(why: Explanation) -> dict[str, Any]:
    """The numbers of an explanation without its matrices, which can be large."""
    whole = why.to_dict()
    kept = ("within_noise", "features", "labels", "counterparts", "moved", "renamed", "swapped", "without_counterpart")
    return {
        "distance": why.distance.value,
        "stderr": whole["distance"]["stderr"],
        **{name: whole[name] for name in kept},
    }
