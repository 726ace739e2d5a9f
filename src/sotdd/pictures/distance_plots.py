"""Plots of one distance: how projections differ, and how the value converges as more are used."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.basics.text import with_error
from sotdd.pictures import style
from sotdd.pictures.words import unit_of
from sotdd.results.distance import Distance

# An interval from fewer projections says too little to draw.
_FIRST = 10


def draw_distance(distance: Distance, axes: Sequence[Axes] | None = None) -> tuple[Axes, Axes]:
    """Draw the distribution of W_p over projections, and the running value with its 95 % interval."""
    if distance.per_projection is None or len(distance.per_projection) < 2 * _FIRST:
        raise SotddError(f"this {distance.method} has fewer than {2 * _FIRST} projections: there is nothing to draw.")
    if axes is None:
        _, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    left, right = _two(axes)
    _distribution(left, distance, distance.per_projection)
    _convergence(right, distance, distance.per_projection if distance.contributions is None else distance.contributions)
    return left, right


def _two(axes: object) -> tuple[Axes, Axes]:
    """The axes of both plots, or an error where these are not two."""
    given = axes.ravel().tolist() if isinstance(axes, np.ndarray) else axes
    if not isinstance(given, (list, tuple)) or not all(isinstance(ax, Axes) for ax in given):
        raise SotddError(f"axes is {described(axes)}: expected a list of two of matplotlib's axes, or None.")
    if len(given) != 2:
        raise SotddError(f"axes has length {len(given)}: expected two, for the distribution and for the convergence.")
    return given[0], given[1]


def _distribution(ax: Axes, distance: Distance, costs: NDArray[np.float64]) -> None:
    rooted = costs ** (1 / distance.p)
    ax.hist(rooted, bins=min(60, max(10, len(rooted) // 20)), color=style.ACCENT, edgecolor="white", linewidth=0.4)
    ax.axvline(distance.value, color=style.WARM, linewidth=1.6)
    ax.annotate(
        f"distance {style.number_of(distance.value)}", (distance.value, 1), (5, -4), ("data", "axes fraction"),
        textcoords="offset points", va="top", fontsize=8.5, color=style.WARM,
    )  # fmt: skip
    ax.set_xlabel(f"$W_p$ under one projection, {unit_of(distance)}")
    ax.set_ylabel("projections")
    style.quiet(ax)
    style.titled(
        ax, "How projections differ", f"{len(costs):,} of them; the distance is the $p$-th root of the mean of $W_p^p$"
    )


def _convergence(ax: Axes, distance: Distance, costs: NDArray[np.float64]) -> None:
    from scipy.special import stdtrit

    count = np.arange(1, len(costs) + 1)
    unit = float(np.abs(costs).max()) or 1.0
    mean = np.cumsum(costs / unit) / count
    stderr = np.sqrt(np.maximum(np.cumsum((costs / unit) ** 2) / count - mean**2, 0.0) / np.maximum(count - 1, 1))
    shown = slice(_FIRST - 1, None)
    reach = stdtrit(np.maximum(count - 1, 1), 0.975) * stderr
    low, high, middle = (
        (unit * np.maximum(part, 0.0)[shown]) ** (1 / distance.p) for part in (mean - reach, mean + reach, mean)
    )
    ax.fill_between(count[shown], low, high, color=style.ACCENT, alpha=0.18, linewidth=0, label="95 % interval")
    ax.plot(count[shown], middle, color=style.ACCENT, linewidth=1.6, label="running value")
    ax.axhline(distance.value, color=style.WARM, linewidth=1, linestyle=(0, (4, 3)))
    ax.set_xscale("log")
    ax.set_xlim(_FIRST, len(costs))
    ax.set_xlabel("projections used")
    ax.set_ylabel(f"distance, {unit_of(distance)}")
    ax.legend(frameon=False, fontsize=8.5, labelcolor=style.INK, loc="best")
    ax.grid(color=style.RULE, linewidth=0.6)
    style.quiet(ax)
    style.titled(
        ax,
        "How the value converges",
        f"{with_error(distance.value, distance.stderr)} ({distance.method}, p = {distance.p:g})",
    )
