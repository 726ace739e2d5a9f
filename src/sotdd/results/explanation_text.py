"""An explanation in words and tables, plain and for a terminal."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sotdd.basics.errors import random_state_kept
from sotdd.basics.text import aligned, json_label, json_number, listed, shown, with_error
from sotdd.results import feature_text
from sotdd.results.explanation_parts import Parts

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from sotdd.results.explanation import Explanation

_HEADER = ("class", "points", "share", "by chance", "nearest", "distance", "counterpart")
_NUMBERS = (1, 2, 3)  # columns to the right


@dataclass(frozen=True)
class Line:
    """One class: its size, what is nearest to it on the other side, its share of the distance and that of chance."""

    label: Hashable
    n_points: int
    nearest: Hashable
    distance: float
    stderr: float
    share: float
    by_chance: float
    has_counterpart: bool
    moved: bool

    @property
    def is_named(self) -> bool:
        """Whether a reader should look at it: it has moved, or has no counterpart."""
        return self.moved or not self.has_counterpart

    def cells(self) -> tuple[str, ...]:
        """As text, under the header of the table."""
        return (
            shown(self.label),
            f"{self.n_points:,}",
            f"{self.share:.0%}",
            f"{self.by_chance:.0%}",
            shown(self.nearest),
            with_error(self.distance, self.stderr),
            "none" if not self.has_counterpart else "moved" if self.moved else "yes",
        )

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "label": json_label(self.label),
            "n_points": self.n_points,
            "share": self.share,
            "share_by_chance": self.by_chance,
            "nearest": json_label(self.nearest),
            "distance": self.distance,
            "stderr": json_number(self.stderr),
            "has_counterpart": self.has_counterpart,
            "moved": self.moved,
        }


def parts_in_words(why: Explanation) -> str:
    """How much of what is beyond noise is features and how much labels."""
    parts = why.parts
    if why.distance.value == 0:
        return "nothing tells them apart"
    if parts.whole_beyond:
        return _shares_in_words(parts)
    if parts.features_beyond:
        return "features alone differ beyond noise; with labels, which add noise of their own, the whole is within it"
    if why.by_feature.beyond_noise or why.by_feature.together.beyond_noise:
        return "the whole is within noise: two samples of one source are often as far apart; but see below"
    return "nothing beyond noise: two samples of one source are often as far apart"


def _shares_in_words(parts: Parts) -> str:
    """The same of a distance beyond noise."""
    features, labels = _share(parts.features, parts.features_interval), _share(parts.labels, parts.labels_interval)
    if parts.labels < 0:
        return f"features alone would make {parts.features:.0%} of what is beyond noise: labels bring the two nearer"
    if not parts.labels_beyond:
        return f"of what is beyond noise, features are {features}; labels add nothing beyond noise"
    if not parts.features_beyond:
        return f"of what is beyond noise, labels are {labels}; features alone are within noise"
    return f"of what is beyond noise, features are {features} and labels {labels}"


def shares_in_short(why: Explanation) -> str:
    """The same in a few words, for the title of a picture."""
    parts = why.parts
    if not parts.whole_beyond:
        return "nothing beyond noise"
    return f"features {parts.features:.0%}, labels {parts.labels:.0%}"


def _share(share: float, interval: tuple[float, float]) -> str:
    low, high = (min(max(end, 0.0), 1.0) for end in interval)
    if low == high:
        return f"{share:.0%}"
    return f"{share:.0%} ({low:.0%} to {high:.0%})"


def lost_in_words(why: Explanation, side: int) -> str:
    """Which classes of one side have no counterpart."""
    lost = why.without_counterpart[side]
    if not lost:
        return f"every class of {shown(why.names[side])} has a counterpart"
    return f"without a counterpart in {shown(why.names[1 - side])}: {listed(lost)}"


def changes_in_words(why: Explanation) -> list[str]:
    """Which classes have moved, and which names have changed, each in a sentence; none where there is nothing."""
    said = []
    if why.moved:
        names = [shown(one) if one == other else f"{shown(one)} ({shown(other)})" for one, other in why.moved]
        said.append(f"moved beyond noise: {'class' if len(names) == 1 else 'classes'} {listed(names)}")
    if why.swapped:
        said.append(listed([f"{shown(one)} and {shown(other)}" for one, other in why.swapped]) + " have changed places")
    exchanged = {*why.swapped, *((other, one) for one, other in why.swapped)}
    others = [f"{shown(one)} → {shown(other)}" for one, other in why.renamed if (one, other) not in exchanged]
    if others:
        said.append(f"classes have changed names: {listed(others)}")
    return said


def as_text(why: Explanation, limit: int | None) -> str:
    """The distance, its parts, and a table of classes for each side."""
    first = [f"{_pair(why)}: {why.distance!r}", parts_in_words(why), *changes_in_words(why)]
    blocks = ["\n".join(first), feature_text.as_text(why.by_feature, limit)]
    for side in (0, 1):
        lines = why.lines(side)
        first_lines = lines[:limit]
        table = aligned([header(why, side), *(line.cells() for line in first_lines)], to_the_right=_NUMBERS)
        rest = [f"… and {len(lines) - len(first_lines):,} more"] if len(first_lines) < len(lines) else []
        blocks.append("\n".join([*table, *rest, lost_in_words(why, side)]))
    return "\n\n".join(block for block in blocks if block)


def as_rich(why: Explanation, limit: int | None) -> Group:
    """The same, for a terminal."""
    with random_state_kept():
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

    first = Text(f"{_pair(why)}: ").append(repr(why.distance), style="bold")
    blocks: list[Text | Table] = [first, *(Text(line) for line in (parts_in_words(why), *changes_in_words(why)))]
    blocks += _rich_features(why, limit)
    for side in (0, 1):
        table = Table(box=None, pad_edge=False)
        for column, name in enumerate(header(why, side)):
            table.add_column(Text(name), justify="right" if column in (*_NUMBERS, 5) else "left")
        lines = why.lines(side)
        for line in lines[:limit]:
            table.add_row(*(Text(cell) for cell in line.cells()), style="yellow" if line.is_named else "")
        more = "" if limit is None or len(lines) <= limit else f"… and {len(lines) - limit:,} more; "
        blocks += [Text(), table, Text(more + lost_in_words(why, side), style="dim")]
    return Group(*blocks)


def _rich_features(why: Explanation, limit: int | None) -> list[Text | Table]:
    """Which features make the distance, for a terminal."""
    from rich.table import Table
    from rich.text import Text

    features = why.by_feature
    said = [line for line in (feature_text.in_words(features), feature_text.directions_in_words(features)) if line]
    blocks: list[Text | Table] = [Text("\n" + "\n".join(said))] if said else []
    lines = feature_text.lines(features, limit)
    if not lines or features.noun == "pixel":
        return blocks
    table = Table(box=None, pad_edge=False)
    for column, name in enumerate(feature_text.header(features)):
        table.add_column(Text(name), justify="right" if column == 1 else "left")
    for cells in lines:
        table.add_row(*(Text(cell) for cell in cells), style="yellow")
    rest = feature_text.rest_in_words(features, limit)
    return [*blocks, table, *([Text(rest, style="dim")] if rest else [])]


def header(why: Explanation, side: int) -> tuple[str, ...]:
    """The columns of the table of classes of one side."""
    one, other = shown(why.names[side]), shown(why.names[1 - side])
    return f"class of {one}", *_HEADER[1:4], f"nearest in {other}", *_HEADER[5:]


def _pair(why: Explanation) -> str:
    return " and ".join(map(shown, why.names))
