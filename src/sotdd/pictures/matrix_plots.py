"""A map and a dendrogram of several datasets."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.pictures import style
from sotdd.pictures.scaling_map import ScalingMap
from sotdd.pictures.tree import Tree
from sotdd.pictures.words import faithfulness, unit_of
from sotdd.results.matrix import DistanceMatrix

_Box = tuple[float, float, float, float]  # left, bottom, right, top


def draw_map(matrix: DistanceMatrix, ax: Axes | None = None) -> Axes:
    """Draw the datasets as points whose distances approximate the measured ones; the stress says how well."""
    scaling = ScalingMap.of(matrix.values)
    ax = style.fresh(ax, 7.0, 5.6)
    x, y = scaling.points.T
    ax.scatter(x, y, s=46, color=style.ACCENT, edgecolor="white", linewidth=0.8, zorder=3)
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.22)
    ax.grid(color=style.RULE, linewidth=0.6)
    style.quiet(ax)
    _write_names(ax, scaling.points, matrix.names)
    first = next(iter(matrix.distances.values()), None)
    if first is not None:
        ax.set_xlabel(unit_of(first))
    style.titled(
        ax, "A map of the datasets", f"multidimensional scaling, stress {scaling.stress:.3f}: {faithfulness(scaling)}"
    )
    return ax


def draw_dendrogram(matrix: DistanceMatrix, ax: Axes | None = None) -> Axes:
    """Draw groups of datasets, joined at the average distance between their members."""
    if len(matrix) < 2:
        raise SotddError("there is only one dataset: a dendrogram needs at least two.")
    tree = Tree.of(matrix.values)
    ax = style.fresh(ax, 7.0, min(1.6 + 0.34 * len(matrix), 18.0))
    for along, height in tree.branches():
        ax.plot(height, along, color=style.ACCENT, linewidth=1.6, solid_joinstyle="round", solid_capstyle="round")
    small = 9 if len(matrix) <= 30 else 7
    ax.set_yticks(range(len(matrix)), [style.shortened(matrix.names[i]) for i in tree.order], fontsize=small)
    ax.set_xlim(left=0)
    ax.set_ylim(len(matrix) - 0.5, -0.5)
    ax.grid(axis="x", color=style.RULE, linewidth=0.6)
    ax.set_axisbelow(True)
    style.quiet(ax, sides=("bottom",))
    ax.tick_params(axis="y", length=0)
    first = next(iter(matrix.distances.values()))
    ax.set_xlabel(f"average distance at which groups join, {unit_of(first)}")
    style.titled(ax, "Groups of datasets")
    return ax


def _write_names(ax: Axes, points: NDArray[np.float64], names: tuple[str, ...]) -> None:
    """Write names beside their points, on the side that has more room."""
    figure = ax.figure
    figure.canvas.draw()  # settles the limits
    pixels = ax.transData.transform(points)
    size = 9 if len(names) <= 30 else 7
    width = 0.62 * size * figure.dpi / 72  # of a letter, roughly
    edges = ax.get_window_extent()
    inside = edges.x0, edges.y0, edges.x1, edges.y1
    taken: list[_Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in pixels]
    for (x, y), point, name in zip(pixels, points, names, strict=True):
        text = style.shortened(name)
        long, high = width * len(text), 1.5 * size * figure.dpi / 72
        choices = {
            (7, 0, "left", "center"): (x + 7, y - high / 2, x + 7 + long, y + high / 2),
            (-7, 0, "right", "center"): (x - 7 - long, y - high / 2, x - 7, y + high / 2),
            (0, 7, "center", "bottom"): (x - long / 2, y + 7, x + long / 2, y + 7 + high),
            (0, -7, "center", "top"): (x - long / 2, y - 7 - high, x + long / 2, y - 7),
        }
        (dx, dy, ha, va), box = min(choices.items(), key=lambda choice: _cost(choice[1], taken, inside))
        taken.append(box)
        ax.annotate(
            text, tuple(point), (dx, dy), textcoords="offset points", ha=ha, va=va, fontsize=size, color=style.INK
        )


def _cost(box: _Box, taken: list[_Box], inside: _Box) -> float:
    """How much of a name overlaps others or lies outside the picture."""
    area = (box[2] - box[0]) * (box[3] - box[1])
    return sum(_overlap(box, other) for other in taken) + area - _overlap(box, inside)


def _overlap(one: _Box, other: _Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(width, 0.0) * max(height, 0.0)
