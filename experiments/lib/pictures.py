"""Figures of matplotlib, as all pages draw them."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def make_axes(rows: int, columns: int, width: float = 3.4, height: float = 3.0) -> tuple[Any, list[Any]]:
    """Make a figure with this many axes, which takes no screen."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure, axes = pyplot.subplots(
            rows, columns, figsize=(width * columns, height * rows), squeeze=False, layout="constrained"
        )
    return figure, list(axes.flat)


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure to a file, and close it."""
    from matplotlib import pyplot

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
