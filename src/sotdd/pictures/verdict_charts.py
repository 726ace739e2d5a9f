"""Charts of a verdict as drawings within the page: batches in the order they came, and one distance beside chance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from sotdd.measure.drift_gate import Verdict

# Each chart is drawn for a wide page, for a narrower one and for a phone; the style shows one of them.
_WIDTHS = {"wide": 1040, "middle": 620, "narrow": 330}
_HEIGHT = 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 14, 26, 34


@dataclass(frozen=True)
class Point:
    """A batch on the line: its distance, what chance gives, and the verdict; None where it is not known."""

    name: str
    verdict: Verdict
    value: float | None
    chance: tuple[float, float] | None = None


def history_chart(points: Sequence[Point], limit: float | None, label: str) -> str:
    """Distances in the order of the batches, with what chance gives as a band and the limit as a line."""
    return "".join(
        f'<div class="{kind}">{_history(points, limit, width, label)}</div>' for kind, width in _WIDTHS.items()
    )


def chance_chart(value: float, chance: tuple[float, float], label: str) -> str:
    """One distance beside the range of distances that chance gives."""
    return "".join(
        f'<div class="{kind}">{_chance(value, chance, width, label)}</div>' for kind, width in _WIDTHS.items()
    )


def _history(points: Sequence[Point], limit: float | None, width: int, label: str) -> str:
    known = [value for point in points for value in (point.value, *(point.chance or ())) if value is not None]
    top = _nice_top(max([*known, limit or 0.0, 1e-12]))
    inner = width - _LEFT - _RIGHT
    step = inner / max(1, len(points) - 1)
    across = [_LEFT + inner / 2 if len(points) == 1 else _LEFT + step * place for place in range(len(points))]

    def height(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - min(value, top) / top)

    drawn = [_grid(top, width, height)]
    drawn += [_band([(x, point.chance) for x, point in zip(across, points, strict=True)], height)]
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
        drawn.append(_dot(x, height(point.value if point.value is not None else 0.0), point))
        if (number - 1) % every == 0 or point.verdict == "drift":
            drawn.append(f'<text x="{x:.1f}" y="{_HEIGHT - 14}" text-anchor="middle">{number}</text>')
    drawn.append(f'<text x="{_LEFT}" y="14" class="strong">distance from the reference</text>')
    return _svg(width, _HEIGHT, drawn, label)


def _dot(x: float, y: float, point: Point) -> str:
    value = "not measured" if point.value is None else f"{point.value:.4g}"
    title = f"<title>{escape(point.name)}: {value}, {point.verdict}</title>"
    if point.verdict == "drift":
        return f'<path class="bad-dot" d="M{x:.1f} {y - 8:.1f} l8 8 l-8 8 l-8 -8 z">{title}</path>'
    kind = "good-dot" if point.verdict == "passed" else "open-dot"
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="5.5">{title}</circle>'


def _band(ranges: Sequence[tuple[float, tuple[float, float] | None]], height: Callable[[float], float]) -> str:
    """What chance gives, from batch to batch; a batch without it ends one piece."""
    pieces: list[str] = []
    run: list[tuple[float, tuple[float, float]]] = []
    for x, chance in [*ranges, (0.0, None)]:
        if chance is not None:
            run.append((x, chance))
            continue
        if run:
            near = 14 if len(run) == 1 else 0  # a single batch has a width too
            first = [(run[0][0] - near, run[0][1])] if near else []
            last = [(run[-1][0] + near, run[-1][1])] if near else []
            whole = [*first, *run, *last]
            upper = [f"{x:.1f},{height(high):.1f}" for x, (_, high) in whole]
            lower = [f"{x:.1f},{height(low):.1f}" for x, (low, _) in reversed(whole)]
            pieces.append(f'<polygon class="band" points="{" ".join(upper + lower)}"/>')
        run = []
    return "".join(pieces)


def _grid(top: float, width: int, height: Callable[[float], float]) -> str:
    drawn = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = height(share * top)
        drawn.append(f'<line class="rule" x1="{_LEFT}" x2="{width - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{share * top:.3g}</text>')
    return "".join(drawn)


def _chance(value: float, chance: tuple[float, float], width: int, label: str) -> str:
    top = _nice_top(max(value, chance[1], 1e-12))
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
    drawn.append(_dot(x, 44, Point("the distance", "drift" if beyond else "passed", value)))
    anchor = "end" if x > width - 90 else "start" if x < 90 else "middle"
    drawn.append(f'<text class="strong" x="{x:.1f}" y="20" text-anchor="{anchor}">{value:.3g}</text>')
    return _svg(width, 84, drawn, label)


def _svg(width: int, height: int, drawn: Sequence[str], label: str) -> str:
    box = f'class="chart-svg" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{"".join(drawn)}</svg>'


def _nice_top(largest: float) -> float:
    """A round number a little above."""
    power = 10.0 ** math.floor(math.log10(largest * 1.08))
    for factor in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6, 8, 10):
        if factor * power >= largest * 1.08:
            return factor * power
    return 10 * power
