"""Heat maps of a matrix of distances, and of the classes of two datasets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from sotdd.pictures import style
from sotdd.pictures.tree import Tree
from sotdd.pictures.words import unit_of
from sotdd.results.explanation import Explanation, shares_in_short
from sotdd.results.matrix import DistanceMatrix

# With more rows or columns than this, numbers in the cells would be too small to read.
_MOST_NUMBERS = 16
# With more than this, only every second, third, … name is written.
_MOST_NAMES = 60


def draw_matrix(matrix: DistanceMatrix, ax: Axes | None = None) -> Axes:
    """Draw the distances as a heat map, with near datasets side by side."""
    order = Tree.of(matrix.values).order
    names = [matrix.names[index] for index in order]
    size = min(3.0 + 0.48 * len(names), 16.0)
    ax = style.fresh(ax, size + 1.2, size, "compressed")
    values = matrix.values[np.ix_(order, order)]
    np.fill_diagonal(values, np.nan)
    first = next(iter(matrix.distances.values()), None)
    unit = "" if first is None else f", {unit_of(first)}"
    _heat_map(ax, values, names, names, f"distance{unit}")
    note = "" if first is None else f"{first.method}, p = {first.p:g}; darker is nearer; ordered by average linkage"
    style.titled(ax, "How far apart the datasets are", note)
    return ax


def draw_explanation(why: Explanation, ax: Axes | None = None) -> Axes:
    """Draw the class distances as a heat map, with frames around counterparts."""
    rows, columns = why.classes
    counterparts = list(why.counterpart_places.items())
    ax = style.fresh(ax, min(3.4 + 0.5 * len(columns), 18.0), min(2.2 + 0.5 * len(rows), 18.0), "compressed")
    _heat_map(ax, why.class_distances.copy(), rows, columns, f"class distance, {unit_of(why.distance)}")
    for i, j in counterparts:
        ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, edgecolor=style.WARM, linewidth=2, zorder=5))
    ax.set_ylabel(f"class of {style.shortened(why.names[0])}")
    ax.set_xlabel(f"class of {style.shortened(why.names[1])}")
    value = f"{style.shortened(why.names[0])} and {style.shortened(why.names[1])}"
    framed = "frames mark counterparts" if counterparts else "no class has a counterpart"
    style.titled(ax, f"Classes of {value}", f"{shares_in_short(why)}; darker is nearer; {framed}")
    return ax


def _heat_map(
    ax: Axes, values: NDArray[np.float64], rows: Sequence[object], columns: Sequence[object], label: str
) -> None:
    """Draw cells shaded by value, with numbers in them if there is room; NaN stays empty."""
    shown = np.ma.masked_invalid(values)
    largest = (float(shown.max()) if shown.count() else 0.0) or 1.0
    image = ax.imshow(shown, cmap=style.NEAR_IS_DARK, vmin=0, vmax=largest)
    _names(ax, rows, columns)
    style.quiet(ax, sides=())
    ax.tick_params(length=0)
    ax.set_xticks(np.arange(1, len(columns)) - 0.5, minor=True)
    ax.set_yticks(np.arange(1, len(rows)) - 0.5, minor=True)
    if max(values.shape) <= _MOST_NAMES:
        ax.grid(which="minor", color="white", linewidth=1.2)
    ax.tick_params(which="minor", length=0)
    if max(values.shape) <= _MOST_NUMBERS:
        for (i, j), value in np.ndenumerate(values):
            if np.isfinite(value):
                colour = style.readable_on(float(value) / largest)
                ax.text(j, i, style.number_of(value), ha="center", va="center", color=colour, fontsize=8)
    figure = ax.figure
    bar = figure.colorbar(image, ax=ax, fraction=0.04, pad=0.02, aspect=28)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=style.QUIET, length=2, labelsize=8)
    bar.set_label(label, color=style.QUIET, fontsize=8.5)


def _names(ax: Axes, rows: Sequence[object], columns: Sequence[object]) -> None:
    """Write the names along both axes; long ones are slanted, and of too many only some are written."""
    for axis, labels in ((ax.yaxis, rows), (ax.xaxis, columns)):
        step = -(-len(labels) // _MOST_NAMES)
        shown = range(0, len(labels), step)
        axis.set_ticks(list(shown), [style.shortened(labels[index]) for index in shown])
    small = 9 if max(len(rows), len(columns)) <= 30 else 7
    ax.tick_params(labelsize=small)
    if max(len(style.shortened(name)) for name in columns) > 4:
        for text in ax.get_xticklabels():
            text.set(rotation=40, ha="right", rotation_mode="anchor")
