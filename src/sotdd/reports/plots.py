"""The plots that results draw, by name. Importing this module imports matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, describe
from sotdd.basics.text import say_count, show, with_error
from sotdd.compute.distance import Distance
from sotdd.compute.matrix import DistanceMatrix, Ranking
from sotdd.measure.changes import Changes, TwoSampleTest
from sotdd.measure.explanation import Explanation
from sotdd.measure.mix import Mixture
from sotdd.reports.datasets import Groups, ScalingMap, limit_colours, say_unit

__all__ = [
    "draw_dendrogram", "draw_distance", "draw_explanation", "draw_features", "draw_map", "draw_matrix",
    "draw_mixture", "draw_ranking", "draw_test",
]  # fmt: skip

_INK = "#1d2733"
_QUIET = "#5c6975"
_RULE = "#d5dbe1"
_ACCENT = "#1f5f99"
_WARM = "#c05a12"

# One hue from dark (near) to light (far). Lightness alone carries the value, so the scale also works for
# colour-blind readers and in grey print.
_NEAR_TO_FAR = ("#0b2f57", "#1f5f99", "#5b98c9", "#a8cbe6", "#dce9f4", "#f6f9fc")
_NEAR_IS_DARK: LinearSegmentedColormap = LinearSegmentedColormap.from_list("sotdd_near_is_dark", _NEAR_TO_FAR)
# Shares below zero are warm, above cool, and none is white.
_SHARES = LinearSegmentedColormap.from_list("sotdd_shares", (_WARM, "#f3d9c6", "#ffffff", "#a8cbe6", "#0b2f57"))

# Bars that are drawn, those that matter first.
_BARS = 15
# With more rows or columns than this, numbers in the cells would be too small to read.
_MOST_NUMBERS = 16
# With more than this, only every second, third, … name is written.
_MOST_NAMES = 60


def draw_matrix(matrix: DistanceMatrix, ax: Axes | None = None) -> Axes:
    """Draw the distances as a heat map, with near datasets side by side."""
    order = Groups.of(matrix.values).order
    names = [matrix.names[index] for index in order]
    size = min(3.0 + 0.48 * len(names), 16.0)
    ax = _take_axes(ax, size + 1.2, size, "compressed")
    values = matrix.values[np.ix_(order, order)]
    np.fill_diagonal(values, np.nan)
    first = next(iter(matrix.distances.values()), None)
    unit = "" if first is None else f", {say_unit(first)}"
    _draw_cells(ax, values, names, names, f"distance{unit}")
    note = "" if first is None else f"{first.method}, p = {first.p:g}; darker is nearer; ordered by average linkage"
    _write_title(ax, "How far apart the datasets are", note)
    return ax


def draw_explanation(why: Explanation, ax: Axes | None = None) -> Axes:
    """Draw the class distances as a heat map, with frames around counterparts."""
    rows, columns = why.classes
    counterparts = list(why.counterparts.items())
    ax = _take_axes(ax, min(3.4 + 0.5 * len(columns), 18.0), min(2.2 + 0.5 * len(rows), 18.0), "compressed")
    _draw_cells(ax, why.by_class.distances.copy(), rows, columns, f"class distance, {say_unit(why.distance)}")
    for i, j in counterparts:
        ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, edgecolor=_WARM, linewidth=2, zorder=5))
    ax.set_ylabel(f"class of {_shorten(why.names[0])}")
    ax.set_xlabel(f"class of {_shorten(why.names[1])}")
    value = f"{_shorten(why.names[0])} and {_shorten(why.names[1])}"
    framed = "frames mark counterparts" if counterparts else "no class has a counterpart"
    shares = f"features {why.features:.0%}, labels {why.labels:.0%}"
    parts = shares if why.parts.whole_beyond else "nothing beyond noise"
    _write_title(ax, f"Classes of {value}", f"{parts}; darker is nearer; {framed}")
    return ax


def _draw_cells(
    ax: Axes, values: NDArray[np.float64], rows: Sequence[object], columns: Sequence[object], label: str
) -> None:
    """Draw cells shaded by value, with numbers in them if there is room; NaN stays empty."""
    shown = np.ma.masked_invalid(values)
    largest = limit_colours(values)
    image = ax.imshow(shown, cmap=_NEAR_IS_DARK, vmin=0, vmax=largest)
    _write_names(ax, rows, columns)
    _quieten(ax, sides=())
    ax.tick_params(length=0)
    ax.set_xticks(np.arange(1, len(columns)) - 0.5, minor=True)
    ax.set_yticks(np.arange(1, len(rows)) - 0.5, minor=True)
    if max(values.shape) <= _MOST_NAMES:
        ax.grid(which="minor", color="white", linewidth=1.2)
    ax.tick_params(which="minor", length=0)
    if max(values.shape) <= _MOST_NUMBERS:
        for (i, j), value in np.ndenumerate(values):
            if np.isfinite(value):
                colour = _choose_ink(min(float(value) / largest, 1.0))
                ax.text(j, i, _write_number(value), ha="center", va="center", color=colour, fontsize=8)
    figure = ax.figure
    beyond = "max" if shown.count() and shown.max() > largest else "neither"
    bar = figure.colorbar(image, ax=ax, fraction=0.04, pad=0.02, aspect=28, extend=beyond)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=_QUIET, length=2, labelsize=8)
    bar.set_label(label, color=_QUIET, fontsize=8.5)


def _write_names(ax: Axes, rows: Sequence[object], columns: Sequence[object]) -> None:
    """Write the names along both axes; long ones are slanted, and of too many only some are written."""
    for axis, labels in ((ax.yaxis, rows), (ax.xaxis, columns)):
        step = -(-len(labels) // _MOST_NAMES)
        shown = range(0, len(labels), step)
        axis.set_ticks(list(shown), [_shorten(labels[index]) for index in shown])
    small = 9 if max(len(rows), len(columns)) <= 30 else 7
    ax.tick_params(labelsize=small)
    if max(len(_shorten(name)) for name in columns) > 4:
        for text in ax.get_xticklabels():
            text.set(rotation=40, ha="right", rotation_mode="anchor")


def draw_map(matrix: DistanceMatrix, ax: Axes | None = None) -> Axes:
    """Draw the datasets as points whose distances approximate the measured ones; the stress says how well."""
    scaling = ScalingMap.of(matrix.values)
    ax = _take_axes(ax, 7.0, 5.6)
    x, y = scaling.points.T
    ax.scatter(x, y, s=46, color=_ACCENT, edgecolor="white", linewidth=0.8, zorder=3)
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.22)
    ax.grid(color=_RULE, linewidth=0.6)
    _quieten(ax)
    for place, index in enumerate(np.argsort(y)):  # names of neighbours go to opposite sides of their points
        side, align = (7, "left") if place % 2 == 0 else (-7, "right")
        at, text = scaling.points[index], _shorten(matrix.names[index])
        ax.annotate(
            text, tuple(at), (side, 0), textcoords="offset points", ha=align, va="center", fontsize=9, color=_INK
        )
    first = next(iter(matrix.distances.values()), None)
    if first is not None:
        ax.set_xlabel(say_unit(first))
    _write_title(
        ax, "A map of the datasets", f"multidimensional scaling, stress {scaling.stress:.3f}: {scaling.faithfulness}"
    )
    return ax


def draw_dendrogram(matrix: DistanceMatrix, ax: Axes | None = None) -> Axes:
    """Draw groups of datasets, joined at the average distance between their members."""
    if len(matrix) < 2:
        raise SotddError("there is only one dataset: a dendrogram needs at least two.")
    groups = Groups.of(matrix.values)
    ax = _take_axes(ax, 7.0, min(1.6 + 0.34 * len(matrix), 18.0))
    for along, height in groups.branches:
        ax.plot(height, along, color=_ACCENT, linewidth=1.6, solid_joinstyle="round", solid_capstyle="round")
    small = 9 if len(matrix) <= 30 else 7
    ax.set_yticks(range(len(matrix)), [_shorten(matrix.names[i]) for i in groups.order], fontsize=small)
    ax.set_xlim(left=0)
    ax.set_ylim(len(matrix) - 0.5, -0.5)
    ax.grid(axis="x", color=_RULE, linewidth=0.6)
    ax.set_axisbelow(True)
    _quieten(ax, sides=("bottom",))
    first = next(iter(matrix.distances.values()))
    ax.set_xlabel(f"average distance at which groups join, {say_unit(first)}")
    _write_title(ax, "Groups of datasets")
    return ax


def draw_ranking(ranking: Ranking, ax: Axes | None = None) -> Axes:
    """Draw distances as bars, the nearest on top; those within noise are pale."""
    if not len(ranking):
        raise SotddError("this ranking has no candidates: there is nothing to draw.")
    shown = ranking.lines[:_MOST_NAMES]
    names = [f"{_shorten(one.name)}  {one.rank}{'=' if one.tied else ''}" for one in shown]
    found = [one.distance for one in shown]
    bars = [(name, one.value, one.stderr, one.within_noise) for name, one in zip(names, found, strict=True)]
    ax = _draw_bars(ax, bars, f"distance, {say_unit(shown[0].distance)}")
    more = f"; the first {len(shown)} of {len(ranking):,}" if len(shown) < len(ranking) else ""
    _write_title(
        ax,
        f"Nearest to {_shorten(ranking.target)}",
        f"= not significantly different; pale: within noise; lines: standard errors{more}",
    )
    return ax


def draw_mixture(mixture: Mixture, ax: Axes | None = None) -> Axes:
    """Draw weights as bars, the largest on top; those whose interval begins at 0 are pale."""
    low = mixture.interval()[:, 0]
    bars = [
        (_shorten(mixture.names[i]), mixture.weights[i], mixture.stderr[i], bool(low[i] <= 0)) for i in mixture.order
    ]
    ax = _draw_bars(ax, bars[:_MOST_NAMES], "weight")
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(lambda value, _place: f"{value:.0%}")
    _write_title(ax, f"What {_shorten(mixture.target)} is made of", f"{mixture.left_over}; lines: standard errors")
    return ax


def draw_test(test: TwoSampleTest, ax: Axes | None = None) -> Axes:
    """Draw the statistic of what chance gave as a histogram, and that of the data as a line."""
    combined = "whatever stands out most, in its standard deviations"
    ax = _draw_histogram(ax, test.null, test.statistic, "the data")
    ax.set_xlabel(combined if test.judged_by == "combined" else "distance")
    ax.set_ylabel("permutations")
    most = f", most by {test.strongest}" if test.strongest else ""
    _write_title(
        ax, "Do the two come from one source?", f"p = {test.p_value:.3g}{most}; {len(test.null):,} permutations"
    )
    return ax


def draw_distance(distance: Distance, ax: Axes | None = None) -> Axes:
    """Draw a distance as a line beside what splits of the data give or, without a floor, what each projection gives."""
    noise, by_projection = distance.noise, distance.per_projection
    if noise is None and by_projection is None:
        raise SotddError("this distance has no projections and no noise floor: there is nothing to draw beside it.")
    around = np.asarray(by_projection) ** (1 / distance.p) if noise is None else noise.distances
    ax = _draw_histogram(ax, around, distance.value, with_error(distance.value, distance.stderr))
    ax.set_xlabel(f"distance, {say_unit(distance)}")
    ax.set_ylabel("projections" if noise is None else "random splits of the two together")
    said = "" if noise is None else f", by itself {'within' if noise.within else 'beyond'} noise"
    _write_title(ax, "How far apart the two are", distance.how + said)
    return ax


def _draw_histogram(ax: Axes | None, values: NDArray[np.float64], mark: float, name: str) -> Axes:
    """Draw numbers as a histogram, and one to compare with as a line with its name."""
    ax = _take_axes(ax, 5.5, 3.8)
    ax.hist(values, bins=min(60, max(10, len(values) // 10)), color=_ACCENT, edgecolor="white", linewidth=0.4)
    ax.axvline(mark, color=_WARM, linewidth=1.6)
    ax.annotate(
        name, (mark, 1), (5, -4), ("data", "axes fraction"),
        textcoords="offset points", va="top", fontsize=8.5, color=_WARM,
    )  # fmt: skip
    _quieten(ax)
    return ax


def draw_features(features: Changes, ax: Axes | None = None) -> Axes:
    """Draw the share of every pixel where points are images; else bars of the features that matter most."""
    return _draw_pixels(features, ax) if features.shape is not None else _draw_shares(features, ax)


def _draw_shares(features: Changes, ax: Axes | None) -> Axes:
    shares, shown = features.list_shares(), [one for one in features if not np.isnan(one.raw_share)][:_BARS]
    bars = [(_shorten(one.column), shares[one.column], one.stderr or 0.0, not one.changed) for one in shown]
    if (rest := features.together) is not None and len(features) > 1:
        bars.append((f"{features.noun}s together", shares[rest.column], rest.stderr or 0.0, not rest.changed))
    ax = _draw_bars(ax, bars, _say_share_unit(features))
    ax.axvline(0, color=_RULE, linewidth=1)
    ax.xaxis.set_major_formatter(lambda value, _place: f"{value:.0%}")
    more = f"; the first {_BARS} of {len(features):,}" if len(features) > _BARS else ""
    _write_title(ax, f"Which {features.noun}s make the distance", f"blue: beyond noise; lines: standard errors{more}")
    return ax


def _draw_bars(ax: Axes | None, bars: Sequence[tuple[str, float, float, bool | None]], unit: str) -> Axes:
    """Draw bars from names, values, standard errors, and whether they are pale, the first on top."""
    names, values, errors, pale = zip(*bars, strict=True)
    places, colours = range(len(names)), [_RULE if one else _ACCENT for one in pale]
    ax = _take_axes(ax, 6.4, 1.4 + 0.3 * len(names))
    lines = {"ecolor": _QUIET, "elinewidth": 1}
    ax.barh(places, values, xerr=np.nan_to_num(errors), color=colours, error_kw=lines, height=0.7)
    ax.set_yticks(places, names)
    ax.invert_yaxis()
    ax.set_xlabel(unit)
    _quieten(ax, sides=("bottom",))
    return ax


def _draw_pixels(features: Changes, ax: Axes | None) -> Axes:
    ax = _take_axes(ax, 4.8, 4.4, "compressed")
    pixels = features.pixels
    most = float(np.abs(pixels).max()) or 1.0
    image = ax.imshow(pixels, cmap=_SHARES, vmin=-most, vmax=most)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.04, pad=0.02, format=lambda value, _place: f"{value:.1%}")
    bar.outline.set_visible(False)
    bar.set_label(_say_share_unit(features), color=_QUIET, fontsize=8)
    ax.set_xticks([])
    ax.set_yticks([])
    _quieten(ax, sides=())
    beyond = len(features.changed)
    _write_title(
        ax, "Which pixels make the distance", f"{beyond:,} of {say_count(len(features), 'pixel')} beyond noise"
    )
    return ax


def _say_share_unit(features: Changes) -> str:
    found = any(one.share is not None for one in (*features, *filter(None, [features.together])))
    return "share of what is beyond noise" if found else "share of the distance, less that of chance"


def _take_axes(
    ax: Axes | None, width: float, height: float, layout: Literal["constrained", "compressed"] = "constrained"
) -> Axes:
    """The axes that were passed, or those of a new figure of this size in inches."""
    if ax is None:
        _, ax = plt.subplots(figsize=(width, height), layout=layout)
    if not isinstance(ax, Axes):
        raise SotddError(f"is {describe(ax)}: expected axes of matplotlib, or None for a new figure.", setting="ax")
    return ax


def _quieten(ax: Axes, *, sides: tuple[str, ...] = ("left", "bottom")) -> None:
    """Keep only the sides that carry a scale, in a light colour."""
    for name, spine in ax.spines.items():
        spine.set_visible(name in sides)
        spine.set_color(_RULE)
    ax.tick_params(colors=_QUIET, labelcolor=_INK, length=3)
    if "left" not in sides:
        ax.tick_params(axis="y", length=0)
    ax.xaxis.label.set_color(_QUIET)
    ax.yaxis.label.set_color(_QUIET)


def _write_title(ax: Axes, title: str, note: str = "") -> None:
    """Write a title at the left, with a quieter line under it."""
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold", color=_INK, pad=22 if note else 8)
    if note:
        ax.annotate(note, (0, 1), (0, 6), "axes fraction", textcoords="offset points", fontsize=8.5, color=_QUIET)


def _choose_ink(share: float) -> str:
    """Dark or white text, whichever is easier to read on the colour of this share of the scale."""
    red, green, blue = to_rgb(_NEAR_IS_DARK(share))
    return _INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.55 else "white"


def _shorten(name: object, most: int = 24) -> str:
    """A name cut in the middle to fit beside an axis, with nothing in it that matplotlib would typeset."""
    return show(" ".join(show(name).split()), most).replace("$", r"\$")


def _write_number(value: float) -> str:
    """About three digits, as cells show them."""
    return f"{value:.3g}" if value < 0.01 or value >= 1000 else f"{value:.2f}" if value < 10 else f"{value:.1f}"
