"""A matrix of distances as a table that fits the terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sotdd.commands.terminal import print_table

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from sotdd.results.matrix import DistanceMatrix

# Beside distances that are no larger than chance gives.
NOISE_MARK = " ~"


def print_matrix(matrix: DistanceMatrix, *, errors: bool) -> bool:
    """Print the largest of several layouts that fits: with errors or without, columns by name or by number.

    Returns whether errors are shown.
    """
    layouts = [(named, shown) for shown in ([True, False] if errors else [False]) for named in (True, False)]
    return layouts[print_table(*(matrix_table(matrix, errors=shown, named=named) for named, shown in layouts))][1]


def matrix_table(matrix: DistanceMatrix, *, errors: bool, named: bool) -> Table:
    """Distances, near ones standing out; columns are named, or numbered as the rows are."""
    from rich.table import Table
    from rich.text import Text

    places = range(len(matrix))
    cells, itself = _cells(matrix, errors), Text("·", style="dim")
    rows = list(matrix.names) if named else [f"{place + 1}  {name}" for place, name in enumerate(matrix.names)]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("", no_wrap=True)
    for place, name in enumerate(matrix.names):
        table.add_column(Text(name if named else str(place + 1)), justify="right", no_wrap=True)
    for i in places:
        table.add_row(Text(rows[i]), *(itself if i == j else cells[min(i, j), max(i, j)] for j in places))
    return table


def legend(matrix: DistanceMatrix, errors: bool) -> str:
    """How to read the table, with errors in it or not, in one line."""
    first = next(iter(matrix.distances.values()))
    said = first.how
    largest = max(found.stderr for found in matrix.distances.values())
    if math.isfinite(largest):
        said += f"; {'±' if errors else f'± up to {largest:.2g},'} one standard error over the choice of projections"
    if any(found.within_noise for found in matrix.distances.values()):
        said += f";{NOISE_MARK} within noise, as near as two samples of the same data"
    return said


def _cells(matrix: DistanceMatrix, errors: bool) -> dict[tuple[int, int], Text]:
    """The text of every pair of places (i, j) with i < j."""
    from rich.text import Text

    from sotdd.basics.text import with_error

    largest = max(found.value for found in matrix.distances.values()) or 1.0
    room = " " * len(NOISE_MARK) if any(found.within_noise for found in matrix.distances.values()) else ""
    form = ".3f" if 0.1 <= largest < 1000 else ".3g"
    cells = {}
    for pair, found in matrix.distances.items():
        text = with_error(found.value, found.stderr) if errors else f"{found.value:{form}}"
        mark = NOISE_MARK if found.within_noise else room
        cells[pair] = Text(text + mark, style=_shade(found.value / largest))
    return cells


def _shade(share: float) -> str:
    return "bold green" if share < 0.1 else "green" if share < 0.3 else "" if share < 0.6 else "dim"
