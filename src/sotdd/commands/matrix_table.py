"""A matrix of distances as a table that fits the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sotdd.commands.terminal import console, print_table

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from sotdd.matrix import DistanceMatrix

# Beside distances that are no larger than chance gives.
NOISE_MARK = "~"


def print_matrix(matrix: DistanceMatrix, *, errors: bool) -> None:
    """Print the largest of several layouts that fits: with errors or without, columns by name or by number."""
    place = console()
    layouts = [(named, shown) for shown in ([True, False] if errors else [False]) for named in (True, False)]
    for named, shown in layouts:
        table = matrix_table(matrix, errors=shown, named=named)
        if place.measure(table).maximum <= place.width:
            break
    print_table(table)


def matrix_table(matrix: DistanceMatrix, *, errors: bool, named: bool) -> Table:
    """Distances, near ones standing out; columns are named, or numbered as the rows are."""
    from rich.table import Table
    from rich.text import Text

    places = range(len(matrix))
    rows = list(matrix.names) if named else [f"{place + 1}  {name}" for place, name in enumerate(matrix.names)]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("", no_wrap=True)
    for place, name in enumerate(matrix.names):
        table.add_column(Text(name if named else str(place + 1)), justify="right", no_wrap=True)
    for i in places:
        table.add_row(Text(rows[i]), *(_cell(matrix, i, j, errors) for j in places))
    return table


def legend(matrix: DistanceMatrix) -> str:
    """How to read the table, in one line."""
    first = next(iter(matrix.distances.values()))
    through = "" if first.n_projections is None else f", {first.n_projections:,} projections"
    said = f"{first.method}, p={first.p:g}{through}"
    if first.stderr == first.stderr:  # not NaN
        said += "; ± one standard error over the choice of projections"
    if any(found.within_noise for found in matrix.distances.values()):
        said += f"; {NOISE_MARK} within noise, as near as two samples of the same data"
    return said


def _cell(matrix: DistanceMatrix, i: int, j: int, errors: bool) -> Text:
    from rich.text import Text

    from sotdd.result import with_error

    if i == j:
        return Text("·", style="dim")
    found = matrix.distances[min(i, j), max(i, j)]
    text = with_error(found.value, found.stderr) if errors else f"{found.value:.3f}"
    mark = f" {NOISE_MARK}" if found.within_noise else "  " if matrix.within_noise.sum() > len(matrix) else ""
    largest = max(other.value for other in matrix.distances.values()) or 1.0
    return Text(text + mark, style=_shade(found.value / largest))


def _shade(share: float) -> str:
    return "bold green" if share < 0.1 else "green" if share < 0.3 else "" if share < 0.6 else "dim"
