"""One distance: how projections differ, and how the value settles as they become more."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.text import with_error
from sotdd.pictures import style
from sotdd.results.distance import Distance

# The first projections say too little to draw an interval from.
_FIRST = 10


def draw_distance(found: Distance, axes: Sequence[Axes] | None = None) -> tuple[Axes, Axes]:
    """The distribution of W_p over projections, and the running value with its 95 % interval."""
    if found.per_projection is None or len(found.per_projection) < 2 * _FIRST:
        raise SotddError(f"this {found.method} has fewer than {2 * _FIRST} projections: there is nothing to draw.")
    if axes is None:
        _, both = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
        axes = list(both)
    if len(axes) != 2:
        raise SotddError(f"axes holds {len(axes)}: expected two, for the distribution and for the convergence.")
    _distribution(axes[0], found, found.per_projection)
    _convergence(axes[1], found, found.per_projection if found.contributions is None else found.contributions)
    return axes[0], axes[1]


def _distribution(ax: Axes, found: Distance, costs: NDArray[np.float64]) -> None:
    rooted = costs ** (1 / found.p)
    ax.hist(rooted, bins=min(60, max(10, len(rooted) // 20)), color=style.ACCENT, edgecolor="white", linewidth=0.4)
    ax.axvline(found.value, color=style.WARM, linewidth=1.6)
    ax.annotate(
        f"the distance, {style.number_of(found.value)}", (found.value, 1), (5, -4), ("data", "axes fraction"),
        textcoords="offset points", va="top", fontsize=8.5, color=style.WARM,
    )  # fmt: skip
    ax.set_xlabel(f"$W_p$ under one projection, {style.unit_of(found)}")
    ax.set_ylabel("projections")
    style.quiet(ax)
    style.titled(ax, "Projections differ", f"{len(costs):,} of them; the distance is the root of the mean of $W_p^p$")


def _convergence(ax: Axes, found: Distance, costs: NDArray[np.float64]) -> None:
    from scipy.special import stdtrit

    count = np.arange(1, len(costs) + 1)
    unit = float(np.abs(costs).max()) or 1.0
    mean = np.cumsum(costs / unit) / count
    spread = np.sqrt(np.maximum(np.cumsum((costs / unit) ** 2) / count - mean**2, 0.0) / np.maximum(count - 1, 1))
    shown = slice(_FIRST - 1, None)
    reach = stdtrit(np.maximum(count - 1, 1), 0.975) * spread
    low, high, middle = (
        (unit * np.maximum(part, 0.0)[shown]) ** (1 / found.p) for part in (mean - reach, mean + reach, mean)
    )
    ax.fill_between(count[shown], low, high, color=style.ACCENT, alpha=0.18, linewidth=0, label="95 % interval")
    ax.plot(count[shown], middle, color=style.ACCENT, linewidth=1.6, label="running value")
    ax.axhline(found.value, color=style.WARM, linewidth=1, linestyle=(0, (4, 3)))
    ax.set_xscale("log")
    ax.set_xlim(_FIRST, len(costs))
    ax.set_xlabel("projections used")
    ax.set_ylabel(f"distance, {style.unit_of(found)}")
    ax.legend(frameon=False, fontsize=8.5, labelcolor=style.INK, loc="best")
    ax.grid(color=style.RULE, linewidth=0.6)
    style.quiet(ax)
    style.titled(ax, "The value settles", f"{with_error(found.value, found.stderr)} ({found.method}, p = {found.p:g})")
