"""What a search finds: entries with their distances, in order, as values and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from sotdd.basics.text import aligned, counted, one_line, with_error
from sotdd.results.distance import Distance
from sotdd.results.ranking import unequal_sizes
from sotdd.sketches.catalog.entries import Metadata

# What a table says of a hit that is within noise, beyond it, or does not know.
_IN_WORDS = {True: "within", False: "beyond", None: ""}


@dataclass(frozen=True, eq=False)
class Hit:
    """An entry of a catalog, and how far it is from the dataset that was searched for.

    Attributes
    ----------
    name
        The name of the entry.
    distance
        s-OTDD with p = 2, from the full sketches.
    metadata
        The metadata of the entry.
    ranked_by
        "excess", ``distance.excess``: what remains beyond the noise of the sizes; or "distance" itself.
    """

    name: str
    distance: Distance
    metadata: Metadata
    ranked_by: str = "distance"

    @property
    def within_noise(self) -> bool | None:
        """Whether samples of one source would often be as far apart; None where neither sketch knows its noise.

        It follows from halvings of each dataset; `sotdd.distance` of the data deals the points of both out anew.
        """
        return self.distance.within_noise

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {
            "name": self.name,
            "distance": self.distance.to_dict(),
            "ranked_by": self.ranked_by,
            "within_noise": self.within_noise,
            "metadata": dict(self.metadata),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Hits(Sequence[Hit]):
    """The nearest entries, nearest first; a sequence of `Hit` that prints as a table.

    Attributes
    ----------
    hits
        The nearest entries.
    compared
        How many full sketches were compared to find them.
    sure
        Whether an entry that was not compared is unlikely to be among the nearest. It is False where too many
        entries are about equally near, and the search stopped at its limit.
    """

    hits: tuple[Hit, ...]
    compared: int
    sure: bool

    @property
    def ranked_by(self) -> str:
        """What the hits are ordered by: "excess", beyond the noise of the sizes; or "distance"."""
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
    def __getitem__(self, index: int) -> Hit: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...

    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]

    def rows(self) -> list[list[str]]:
        """Cells of a table with a header: rank, name, distance, excess and noise where known, sizes, metadata."""
        keys = list(dict.fromkeys(key for hit in self.hits for key in hit.metadata))
        known = any(hit.distance.excess is not None for hit in self.hits)
        table = [["", "name", "distance", *(["excess", "noise"] if known else []), "points", "classes", *keys]]
        for rank, hit in enumerate(self.hits, 1):
            apart = hit.distance
            sizes = [f"{apart.n_points[1]:,}", f"{len(apart.classes[1]):,}"]
            values = ["" if hit.metadata.get(key) is None else str(hit.metadata[key]) for key in keys]
            excess = ["" if apart.excess is None else f"{apart.excess:.2g}", _IN_WORDS[hit.within_noise]]
            beyond = excess if known else []
            table.append([str(rank), hit.name, with_error(apart.value, apart.stderr), *beyond, *sizes, *values])
        return table

    @property
    def remark(self) -> str:
        """What a reader should know; empty where there is nothing."""
        remarks = dict.fromkeys(remark for hit in self.hits for remark in hit.distance.remarks)
        unequal = unequal_sizes([hit.distance for hit in self.hits])
        if unequal is not None and self.ranked_by == "excess":
            remarks[unequal] = None
        limit = f"others may be about as near: the search stopped after {counted(self.compared, 'comparison')}"
        return "; ".join([*remarks, *([] if self.sure else [limit])])

    def __repr__(self) -> str:
        """A table for people."""
        if not self.hits:
            return "no entry matches"
        return "\n".join([*aligned(self.rows()), *([one_line(self.remark)] if self.remark else [])])

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {
            "hits": [hit.to_dict() for hit in self.hits],
            "ranked_by": self.ranked_by,
            "compared": self.compared,
            "sure": self.sure,
        }
