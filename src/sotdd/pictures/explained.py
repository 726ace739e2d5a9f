"""What drives a distance, as cards of a page: which classes, and what else an explanation knows."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sotdd.basics.text import shown
from sotdd.pictures.html_parts import scrolling, table
from sotdd.pictures.verdict_page import Section
from sotdd.results.explanation import Explanation
from sotdd.results.explanation_text import changes_in_words, lost_in_words, parts_in_words

# Classes of each side that are shown, those with the largest shares first.
_MOST_CLASSES = 40

_HEADER = ("share", "by chance", "points", "nearest", "distance", "counterpart")


def drivers(why: Explanation, about: str = "") -> list[Section]:
    """The cards that say what a distance comes from, the most telling first; further ones are added here."""
    return [_of_classes(why, about)]


def sentence(text: str) -> str:
    """Words as a sentence."""
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def said_of(why: Explanation) -> list[str]:
    """What an explanation says in words."""
    lost = [lost_in_words(why, side) for side in (0, 1)]
    return [sentence(text) for text in (parts_in_words(why), *changes_in_words(why), *lost)]


def _of_classes(why: Explanation, about: str) -> Section:
    tables = []
    for side in (0, 1):
        lines = why.lines(side)
        title = f"Classes of {why.names[side]}, and the nearest in {why.names[1 - side]}"
        rows, marks = [], []
        for line in lines[:_MOST_CLASSES]:
            label, points, share, by_chance, nearest, distance, counterpart = line.cells()
            rows.append((label, share, by_chance, points, nearest, distance, counterpart))
            marks.append("bad-row" if line.is_named else "")
        rest = len(lines) - len(rows)
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
