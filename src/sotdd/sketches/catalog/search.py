"""The search of a catalog, and what it finds: entries with their distances, in order, as values and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, overload

from sotdd.basics.text import aligned, one_line, with_error
from sotdd.results.distance import Distance
from sotdd.results.ranking import unequal_sizes
from sotdd.sketches.catalog.entries import Metadata
from sotdd.sketches.catalog.recipe import CatalogRecipe
from sotdd.sketches.catalog.store import Store
from sotdd.sketches.file import from_bytes
from sotdd.sketches.sketch import Sketch

RankBy: TypeAlias = Literal["excess", "distance"]

# What a table says of a hit that is within noise, beyond it, or does not know.
_IN_WORDS = {True: "within", False: "beyond", None: ""}


def nearest(store: Store, recipe: CatalogRecipe, query: Sketch, k: int, where: str | None, rank_by: RankBy) -> Hits:
    """The k entries nearest to a sketch, by the full sketches of the 2 k + 10 that are nearest by their vectors.

    For ten that is thirty, which hold 0.99 or more of the ten nearest of 20,000 (`benchmarks/catalog.json`).
    """
    vector = recipe.query_vector(query, by_excess=rank_by == "excess")
    hits = []
    for entry, content in store.closest(vector, 2 * k + 10, where):
        stored = from_bytes(content, entry.name, recipe.sketch.projections)
        # Plain means over the projections, which are the same for all, as vectors have them.
        hits.append(Hit(entry.name, query.distance(stored, estimator="plain"), entry.metadata, rank_by))
    if any(hit.distance.excess is None for hit in hits):
        hits = [replace(hit, ranked_by="distance") for hit in hits]
    hits.sort(key=lambda hit: (getattr(hit.distance, "value" if hit.ranked_by == "distance" else "excess"), hit.name))
    return Hits(tuple(hits[:k]), len(hits))


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

        It follows from halvings of each dataset; `sotdd.distance` of the data permutes the points of both.
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
    """

    hits: tuple[Hit, ...]
    compared: int

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
        return "; ".join(remarks)

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
        }
