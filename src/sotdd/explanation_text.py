"""An explanation in words and tables, plain and for a terminal."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from sotdd.result import Distance, json_label, json_number, with_error

if TYPE_CHECKING:
    from rich.console import Group

_HEADER = ("class", "points", "share", "nearest", "distance", "counterpart")


@dataclass(frozen=True)
class Line:
    """One class: its size, what is nearest to it on the other side, and its share of the distance."""

    label: Hashable
    n_points: int
    nearest: Hashable
    distance: float
    stderr: float
    share: float
    has_counterpart: bool

    def cells(self) -> tuple[str, ...]:
        """As text, under the header of the table."""
        return (
            str(self.label),
            f"{self.n_points:,}",
            f"{self.share:.0%}",
            str(self.nearest),
            with_error(self.distance, self.stderr),
            "yes" if self.has_counterpart else "none",
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "label": json_label(self.label),
            "n_points": self.n_points,
            "share": self.share,
            "nearest": json_label(self.nearest),
            "distance": self.distance,
            "stderr": json_number(self.stderr),
            "has_counterpart": self.has_counterpart,
        }


class Explained(Protocol):
    """What these texts read of an explanation."""

    @property
    def names(self) -> tuple[str, str]: ...  # noqa: D102
    @property
    def distance(self) -> Distance: ...  # noqa: D102
    @property
    def features(self) -> float: ...  # noqa: D102
    @property
    def labels(self) -> float: ...  # noqa: D102
    @property
    def share_stderr(self) -> float: ...  # noqa: D102
    @property
    def without_counterpart(self) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]: ...  # noqa: D102
    def lines(self, side: int) -> list[Line]: ...  # noqa: D102


def parts_in_words(why: Explained) -> str:
    """How much is features and how much labels."""
    if why.distance.value == 0:
        return "nothing tells them apart"
    error = "" if math.isnan(why.share_stderr) else f" (± {100 * why.share_stderr:.0f})"
    if why.labels < 0:
        return f"features alone would make {why.features:.0%} of it{error}: labels bring the two nearer"
    return f"features {why.features:.0%}, labels {why.labels:.0%}{error}"


def lost_in_words(why: Explained, side: int) -> str:
    """Which classes of one side have no counterpart."""
    lost = [str(label) for label in why.without_counterpart[side]]
    if not lost:
        return f"every class of {why.names[side]} has a counterpart"
    shown = ", ".join(lost[:8]) + (f" and {len(lost) - 8:,} more" if len(lost) > 8 else "")
    return f"without a counterpart in {why.names[1 - side]}: {shown}"


def as_text(why: Explained, limit: int | None) -> str:
    """The distance, its parts, and a table of classes for each side."""
    blocks = [f"{why.names[0]} and {why.names[1]}: {why.distance!r}\n{parts_in_words(why)}"]
    for side in (0, 1):
        lines = why.lines(side)
        shown = lines[:limit]
        table = _aligned([_header(why, side), *(line.cells() for line in shown)])
        rest = [f"… and {len(lines) - len(shown):,} more"] if len(shown) < len(lines) else []
        blocks.append("\n".join([*table, *rest, lost_in_words(why, side)]))
    return "\n\n".join(blocks)


def as_rich(why: Explained, limit: int | None) -> Group:
    """The same, for a terminal."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    first = Text(f"{why.names[0]} and {why.names[1]}: ").append(repr(why.distance), style="bold")
    blocks: list[Text | Table] = [first, Text(parts_in_words(why))]
    for side in (0, 1):
        table = Table(box=None, pad_edge=False)
        for name, right in zip(_header(why, side), (False, True, True, False, True, False), strict=True):
            table.add_column(Text(name), justify="right" if right else "left")
        lines = why.lines(side)
        for line in lines[:limit]:
            table.add_row(*(Text(cell) for cell in line.cells()), style="" if line.has_counterpart else "yellow")
        more = "" if limit is None or len(lines) <= limit else f"… and {len(lines) - limit:,} more; "
        blocks += [Text(), table, Text(more + lost_in_words(why, side), style="dim")]
    return Group(*blocks)


def _header(why: Explained, side: int) -> tuple[str, ...]:
    one, other = why.names[side], why.names[1 - side]
    return f"class of {one}", *_HEADER[1:3], f"nearest in {other}", *_HEADER[4:]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns of one width; numbers of points and shares to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    return [
        "  ".join(
            cell.rjust(width) if column in (1, 2) else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
