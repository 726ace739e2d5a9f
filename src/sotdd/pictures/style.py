"""Colours and axes that all plots share. Importing this module imports matplotlib."""

from __future__ import annotations

from typing import Literal

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.basics.text import shown

INK = "#1d2733"
QUIET = "#5c6975"
RULE = "#d5dbe1"
ACCENT = "#1f5f99"
WARM = "#c05a12"

# One hue from dark (near) to light (far). Lightness alone carries the value, so the scale also works for
# colour-blind readers and in grey print.
NEAR_TO_FAR = ("#0b2f57", "#1f5f99", "#5b98c9", "#a8cbe6", "#dce9f4", "#f6f9fc")
NEAR_IS_DARK: LinearSegmentedColormap = LinearSegmentedColormap.from_list("sotdd_near_is_dark", NEAR_TO_FAR)


def fresh(
    ax: Axes | None, width: float, height: float, layout: Literal["constrained", "compressed"] = "constrained"
) -> Axes:
    """The axes that were passed, or those of a new figure of this size in inches."""
    if ax is None:
        _, ax = plt.subplots(figsize=(width, height), layout=layout)
    if not isinstance(ax, Axes):
        raise SotddError(f"ax is {described(ax)}: expected one of matplotlib's axes, or None for a new figure.")
    return ax


def quiet(ax: Axes, *, sides: tuple[str, ...] = ("left", "bottom")) -> None:
    """Keep only the sides that carry a scale, in a light colour."""
    for name, spine in ax.spines.items():
        spine.set_visible(name in sides)
        spine.set_color(RULE)
    ax.tick_params(colors=QUIET, labelcolor=INK, length=3)
    ax.xaxis.label.set_color(QUIET)
    ax.yaxis.label.set_color(QUIET)


def titled(ax: Axes, title: str, note: str = "") -> None:
    """Write a title at the left, with a quieter line under it."""
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK, pad=22 if note else 8)
    if note:
        ax.annotate(note, (0, 1), (0, 6), "axes fraction", textcoords="offset points", fontsize=8.5, color=QUIET)


def readable_on(share: float) -> str:
    """Dark or white text, whichever is easier to read on the colour of this share of the scale."""
    red, green, blue = to_rgb(NEAR_IS_DARK(share))
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.55 else "white"


def shortened(name: object, most: int = 24) -> str:
    """A name cut in the middle to fit beside an axis, with nothing in it that matplotlib would typeset."""
    return shown(" ".join(shown(name).split()), most).replace("$", r"\$")


def number_of(value: float) -> str:
    """About three digits, as cells show them."""
    return f"{value:.3g}" if value < 0.01 or value >= 1000 else f"{value:.2f}" if value < 10 else f"{value:.1f}"
