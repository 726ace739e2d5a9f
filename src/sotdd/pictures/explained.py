"""What drives a distance, as cards of a page: which classes, and what else an explanation knows."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from sotdd.basics.text import shown
from sotdd.pictures.html_parts import scrolling, stacking, table
from sotdd.pictures.verdict_page import Section
from sotdd.results.explanation import Explanation, changes_in_words, lost_in_words, parts_in_words
from sotdd.results.features import FeatureShares, header, lines, rest_in_words, sentences

# Classes of each side that are shown, those with the largest shares first.
_MOST_CLASSES = 40

# Features that are shown, those with the largest shares first; and squares along the side of an image.
_MOST_FEATURES, _MOST_SQUARES = 20, 32
_BLUE, _ORANGE = "#1f5f99", "#c05a12"

_HEADER = ("share", "by chance", "points", "nearest", "distance", "counterpart")


def drivers(why: Explanation, about: str = "") -> list[Section]:
    """The cards that say what a distance comes from, the most telling first; further ones are added here."""
    return [*_of_features(why, about), _of_classes(why, about)]


def sentence(text: str) -> str:
    """Words as a sentence."""
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def said_of(why: Explanation) -> list[str]:
    """What an explanation says in words."""
    lost = [lost_in_words(why, side) for side in (0, 1)]
    said = (parts_in_words(why), *sentences(why.by_feature), *changes_in_words(why), *lost)
    return [sentence(text) for text in said]


def _of_features(why: Explanation, about: str) -> list[Section]:
    """The columns that differ beyond noise, or a picture of the pixels; nothing where none does."""
    features = why.by_feature
    rows = lines(features, _MOST_FEATURES)
    if not rows:
        return []
    note = (
        f"The share of each {features.noun} in what is beyond noise between the points, labels aside; shares and what "
        f"{features.noun}s are together add up to 100 %. The middle half lies between the quartiles."
    )
    title = f"Which {features.noun}s it comes from"
    if features.shape is not None:
        return [Section(title, _pixels(features), f"{about}Blue pixels make the distance, orange ones take from it.")]
    rest = rest_in_words(features, _MOST_FEATURES)
    more = f'<p class="note">{escape(sentence(rest))}</p>' if rest else ""
    titles = (*header(features)[:2], *(f"middle half of {shown(name)}" for name in why.names))
    body = f"{stacking(table(titles, rows, numbers=(1,)), title)}{more}"
    return [Section(title, body, f"{about}{note}")]


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


def _of_classes(why: Explanation, about: str) -> Section:
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
        shown_rows = table(("class", *_HEADER), rows, numbers=(1, 2, 3), marks=marks)
        tables.append(f"<div><h3>{escape(shown(title))}</h3>{scrolling(shown_rows, title)}{more}</div>")
    note = (
        "The share of a class is what moving its points adds to the distance; shares of each dataset add up to 100 %. "
        "A class has a counterpart if its match is within noise, or nearer than every other class of its own dataset."
    )
    return Section("Which classes it comes from", f'<div class="two">{"".join(tables)}</div>', f"{about}{note}")


def class_sizes(names: Sequence[str], counts: Sequence[dict[str, int]]) -> Section | None:
    """How often each class occurs on both sides; None where there is one class only."""
    labels = list(dict.fromkeys(label for side in counts for label in side))
    if len(labels) < 2:
        return None
    totals = [max(1, sum(side.values())) for side in counts]
    share = [
        {label: side.get(label, 0) / total for label in labels} for side, total in zip(counts, totals, strict=True)
    ]
    labels.sort(key=lambda label: -abs(share[0][label] - share[1][label]))
    rows = [
        (
            shown(label, 60),
            *(f"{side.get(label, 0):,}" for side in counts),
            *(f"{100 * of[label]:.3g} %" for of in share),
        )
        for label in labels[:_MOST_CLASSES]
    ]
    header = ("class", *(f"points of {name}" for name in names), *(f"share of {name}" for name in names))
    body = scrolling(table(header, rows, numbers=(1, 2, 3, 4)), "Sizes of classes")
    rest = len(labels) - len(rows)
    note = "Those whose share differs most come first." + (f" {rest:,} more are not shown." if rest > 0 else "")
    return Section("How large the classes are", body, note)
