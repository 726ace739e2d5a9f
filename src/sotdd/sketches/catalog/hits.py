"""What a catalog answers: its entries, and those nearest to a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, overload

from sotdd.basics.text import with_error
from sotdd.results.distance import Distance
from sotdd.results.ranking import unequal_sizes
from sotdd.sketches.catalog.metadata import Metadata


@dataclass(frozen=True)
class Entry:
    """One entry of a catalog, without its sketch.

    Attributes
    ----------
    name
        What it is called.
    n_points, n_classes
        The sizes of its dataset.
    added
        When it was added, in UTC.
    metadata
        What else was said of it.
    """

    name: str
    n_points: int
    n_classes: int
    added: datetime
    metadata: Metadata

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "name": self.name,
            "n_points": self.n_points,
            "n_classes": self.n_classes,
            "added": self.added.isoformat(timespec="seconds"),
            "metadata": dict(self.metadata),
        }


@dataclass(frozen=True, eq=False)
class Hit:
    """A dataset of a catalog and how far it is from the one that was asked for.

    Attributes
    ----------
    name
        Of the entry.
    distance
        s-OTDD with p = 2, from the full sketches.
    metadata
        What else was said of the entry.
    ranked_by
        "excess", what the sizes alone do not give, ``distance.excess``; or "distance" itself. An excess tells
        which is nearer, not whether anything is within noise: what it is taken off is rough.
    """

    name: str
    distance: Distance
    metadata: Metadata
    ranked_by: str = "distance"

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "name": self.name,
            "distance": self.distance.to_dict(),
            "ranked_by": self.ranked_by,
            "metadata": dict(self.metadata),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Hits(Sequence[Hit]):
    """The nearest entries, nearest first; a sequence of `Hit` that prints as a table.

    Attributes
    ----------
    hits
        The entries found.
    compared
        How many full sketches were compared to find them.
    sure
        Whether an entry that was not compared can hardly be among the nearest. Otherwise so many are
        about equally near that the search stopped at its limit.
    """

    hits: tuple[Hit, ...]
    compared: int
    sure: bool

    @property
    def ranked_by(self) -> str:
        """What the order is by: "excess", what the sizes alone do not give; or "distance"."""
        return self.hits[0].ranked_by if self.hits else "distance"

    @property
    def names(self) -> tuple[str, ...]:
        """The names, nearest first."""
        return tuple(hit.name for hit in self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    @overload
    def __getitem__(self, place: int) -> Hit: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Hit, ...]: ...

    def __getitem__(self, place: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[place]

    def rows(self) -> list[list[str]]:
        """Texts of a table with a header: place, name, distance, excess where it is ranked by, sizes, metadata."""
        keys = list(dict.fromkeys(key for hit in self.hits for key in hit.metadata))
        by_excess = self.ranked_by == "excess"
        table = [["", "name", "distance", *(["excess"] if by_excess else []), "points", "classes", *keys]]
        for place, hit in enumerate(self.hits, 1):
            found = hit.distance
            sizes = [f"{found.n_points[1]:,}", f"{len(found.classes[1]):,}"]
            said = ["" if hit.metadata.get(key) is None else str(hit.metadata[key]) for key in keys]
            beyond = [f"{found.excess:.2g}"] if by_excess and found.excess is not None else []
            table.append([str(place), hit.name, with_error(found.value, found.stderr), *beyond, *sizes, *said])
        return table

    @property
    def remark(self) -> str:
        """What a reader should know; empty where there is nothing."""
        said = dict.fromkeys(remark for hit in self.hits for remark in hit.distance.remarks)
        unequal = unequal_sizes([hit.distance for hit in self.hits])
        if unequal is not None and self.ranked_by == "excess":
            said[unequal] = None
        limit = f"others may be about as near: the search stopped after {self.compared:,} comparisons"
        return "; ".join([*said, *([] if self.sure else [limit])])

    def __repr__(self) -> str:
        """A table for people."""
        if not self.hits:
            return "no entry matches"
        table = self.rows()
        widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
        ]
        return "\n".join([*lines, *([self.remark] if self.remark else [])])

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "hits": [hit.to_dict() for hit in self.hits],
            "ranked_by": self.ranked_by,
            "compared": self.compared,
            "sure": self.sure,
        }
