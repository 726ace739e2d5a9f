"""Results as small pieces of HTML, which notebooks show in place of text.

Nothing has a colour of its own but a transparent blue, so they read on light and on dark pages. Every name is escaped:
it comes with the data.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sotdd.basics.text import counted, shown, with_error
from sotdd.results import explanation_text, feature_text

if TYPE_CHECKING:
    from sotdd.results.distance import Distance
    from sotdd.results.explanation import Explanation
    from sotdd.results.feature_shares import FeatureShares
    from sotdd.results.matrix import DistanceMatrix
    from sotdd.results.ranking import Ranking
    from sotdd.results.two_sample import TwoSampleTest

_QUIET = "opacity:.7"
_CELL = "padding:.15em .7em;border:0;background:none;color:inherit;white-space:nowrap"
# Rows, columns and remarks that are shown.
_MOST_NAMES = 24
_MOST_REMARKS = 5
# The opacity of blue behind the nearest of a matrix.
_NEAREST = 0.55


def distance_html(distance: Distance) -> str:
    """A number, its error and its noise floor, and in small how it was measured."""
    from sotdd.results.distance import remarks_of

    value, _, error = with_error(distance.value, distance.stderr).partition(" ± ")
    said = f"<b>{value}</b>" + (f" ± {error}" if error else "")
    if distance.noise is not None:
        where = "within" if distance.within_noise else "beyond"
        said += f", {where} noise <span style='{_QUIET}'>(floor {distance.noise.value:.3g})</span>"
    return _block(f"{said} <span style='{_QUIET}'>{_text(distance.how)}</span>", *_remarks(remarks_of([distance])))


def matrix_html(matrix: DistanceMatrix) -> str:
    """A table of distances, the nearest darkest."""
    from sotdd.results.distance import remarks_of

    names = matrix.names[:_MOST_NAMES]
    apart = [distance.value for distance in matrix.distances.values()]
    most = max(apart, default=0.0) or 1.0
    rows = []
    for i, name in enumerate(names):
        cells = [_head(name)]
        for j in range(len(names)):
            if i == j:
                cells.append(_cell("0"))
                continue
            distance = matrix.distances[min(i, j), max(i, j)]
            shade = _NEAREST * max(0.0, 1 - distance.value / most)
            mark = " ~" if distance.within_noise else ""
            tip = with_error(distance.value, distance.stderr)
            cells.append(_cell(f"{distance.value:.3g}{mark}", f"background:rgba(31,95,153,{shade:.2f})", tip))
        rows.append("".join(cells))
    more = [f"… and {len(matrix.names) - len(names):,} more"] if len(names) < len(matrix.names) else []
    if any(distance.within_noise for distance in matrix.distances.values()):
        more.append("~ within noise: no farther apart than two samples of the two together")
    head = _head("") + "".join(_head(name) for name in names)
    return _block(_rows([head, *rows]), *_remarks([*more, *remarks_of(matrix.distances.values())]))


def ranking_html(ranking: Ranking) -> str:
    """A table of candidates, the nearest first."""
    rows = [_head("rank") + _head(f"nearest to {shown(ranking.target)}") + _head("distance")]
    for line in ranking.lines[:_MOST_NAMES]:
        value = with_error(line.distance.value, line.distance.stderr) + (" ~" if line.distance.within_noise else "")
        rows.append(
            _cell(f"{line.rank}{'=' if line.tied else ''}") + _cell(line.name, "text-align:left") + _cell(value)
        )
    left = len(ranking) - _MOST_NAMES
    notes = [f"… and {left:,} more"] if left > 0 else []
    if any(line.tied for line in ranking.lines):
        notes.append("= tied: noise does not tell them apart")
    return _block(_rows(rows), *_remarks([*notes, *ranking.remarks]))


def test_html(test: TwoSampleTest) -> str:
    """The p-value, and the distance beside what chance gives."""
    low, high = test.quantiles((0.05, 0.95)).values()
    most = _text(test.most_by) if test.rejects(0.05) else ""
    draws = f"{counted(len(test.null), 'draw')}, {counted(test.n_projections, 'projection')}"
    return _block(
        f"<b>p = {test.p_value:.3g}</b>{most}: distance {test.distance:.3g}, by chance {low:.3g} to {high:.3g} "
        f"<span style='{_QUIET}'>{draws}</span>",
        *_remarks(test.remarks),
    )


def features_html(features: FeatureShares) -> str:
    """Which features make the distance, with bars."""
    said = [
        _text(line) for line in (feature_text.in_words(features), feature_text.directions_in_words(features)) if line
    ]
    lines = feature_text.lines(features, 12) if features.noun != "pixel" else []
    if not lines:
        return _block(*said)
    shares = [one.share for one in features.beyond_noise[:12]]
    shares += [features.together.share] if features.together.beyond_noise else []
    rows = ["".join(map(_head, feature_text.header(features)))]
    for (name, share, *middle), width in zip(lines, shares, strict=True):
        bar = f"background:linear-gradient(to right,rgba(31,95,153,.4) {_percent(width)},transparent {_percent(width)})"
        rows.append(_cell(name, "text-align:left") + _cell(share, bar) + "".join(map(_cell, middle)))
    rest = feature_text.rest_in_words(features, 12)
    return _block(*said, _rows(rows), *_remarks([rest] if rest else []))


def explanation_html(why: Explanation) -> str:
    """The distance, its parts, its features and its classes."""
    pair = " and ".join(_text(name) for name in why.names)
    words = [explanation_text.parts_in_words(why), *explanation_text.changes_in_words(why)]
    blocks = [
        f"<b>{pair}</b>",
        distance_html(why.distance),
        *map(_text, words),
        features_html(why.by_feature),
    ]
    for side in (0, 1):
        lines = why.lines(side)
        rows = ["".join(map(_head, explanation_text.header(why, side)))]
        rows += ["".join(_cell(cell, "text-align:left") for cell in line.cells()) for line in lines[:8]]
        more = [f"… and {len(lines) - 8:,} more"] if len(lines) > 8 else []
        blocks.append(
            f"<details><summary>classes of {_text(why.names[side])}: {_text(explanation_text.lost_in_words(why, side))}"
            f"</summary>{_rows(rows)}{''.join(_remarks(more))}</details>"
        )
    return _block(*blocks)


def _text(value: object) -> str:
    return html.escape(shown(value), quote=True)


def _head(value: object) -> str:
    return f"<th style='{_CELL};text-align:left'>{_text(value)}</th>"


def _cell(value: object, style: str = "", tip: str = "") -> str:
    title = f" title='{_text(tip)}'" if tip else ""
    return f"<td style='{_CELL};text-align:right;{style}'{title}>{_text(value)}</td>"


def _rows(rows: Sequence[str]) -> str:
    return f"<table style='border-collapse:collapse'>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _remarks(said: Sequence[str]) -> list[str]:
    kept = [*said[:_MOST_REMARKS], *(["…"] if len(said) > _MOST_REMARKS else [])]
    return [f"<span style='{_QUIET};font-size:.9em'>{_text(remark)}</span>" for remark in kept]


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.0f}%" if share == share else "0%"  # noqa: PLR0124  # NaN


def _block(*parts: str) -> str:
    return "<div>" + "".join(f"<div>{part}</div>" for part in parts if part) + "</div>"
