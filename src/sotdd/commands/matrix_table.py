"""A matrix of distances as a table that fits the terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sotdd.basics.text import shown
from sotdd.commands.terminal import print_table

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from sotdd.results.matrix import DistanceMatrix

# Marks distances that are no larger than chance gives; and what legends say about it.
NOISE_MARK = " ~"
WITHIN_NOISE = "~ within noise, as near as two samples of the same data"


def print_matrix(matrix: DistanceMatrix, *, errors: bool) -> bool:
    """Print the first layout that fits: with errors or without, columns by name or by number.

    Returns whether errors are shown.
    """
    layouts = [(named, shown) for shown in ([True, False] if errors else [False]) for named in (True, False)]
    return layouts[print_table(*(matrix_table(matrix, errors=shown, named=named) for named, shown in layouts))][1]


def matrix_table(matrix: DistanceMatrix, *, errors: bool, named: bool) -> Table:
    """Distances, with near ones standing out; columns are named, or numbered like the rows."""
    from rich.table import Table
    from rich.text import Text

    size = range(len(matrix))
    cells, itself = _cells(matrix, errors), Text("·", style="dim")
    names = [shown(name) for name in matrix.names]
    rows = names if named else [f"{number}  {name}" for number, name in enumerate(names, 1)]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("", no_wrap=True)
    for number, name in enumerate(names, 1):
        table.add_column(Text(name if named else str(number)), justify="right", no_wrap=True)
    for i in size:
        table.add_row(Text(rows[i]), *(itself if i == j else cells[min(i, j), max(i, j)] for j in size))
    return table


def legend(matrix: DistanceMatrix, errors: bool) -> str:
    """One line that says how to read the table."""
    first = next(iter(matrix.distances.values()))
    text = first.how
    largest = max(distance.stderr for distance in matrix.distances.values())
    if math.isfinite(largest):
        text += f"; {'±' if errors else f'± up to {largest:.2g},'} one standard error over the choice of projections"
    if any(distance.within_noise for distance in matrix.distances.values()):
        text += f"; {WITHIN_NOISE}"
    return text


def _cells(matrix: DistanceMatrix, errors: bool) -> dict[tuple[int, int], Text]:
    """The text of every pair (i, j) with i < j."""
    from rich.text import Text

    from sotdd.basics.text import with_error

    largest = max(distance.value for distance in matrix.distances.values()) or 1.0
    room = " " * len(NOISE_MARK) if any(distance.within_noise for distance in matrix.distances.values()) else ""
    form = ".3f" if 0.1 <= largest < 1000 else ".3g"
    cells = {}
    for pair, distance in matrix.distances.items():
        text = with_error(distance.value, distance.stderr) if errors else f"{distance.value:{form}}"
        mark = NOISE_MARK if distance.within_noise else room
        cells[pair] = Text(text + mark, style=_shade(distance.value / largest))
    return cells


def _shade(share: float) -> str:
    return "bold green" if share < 0.1 else "green" if share < 0.3 else "" if share < 0.6 else "dim"
