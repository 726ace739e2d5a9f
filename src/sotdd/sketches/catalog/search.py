"""The search of a catalog, by vectors first and then by the full sketches of the best, and what it finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

from sotdd.basics.text import aligned, counted, one_line, with_error
from sotdd.results.distance import Distance
from sotdd.results.ranking import unequal_sizes
from sotdd.sketches.catalog.entries import Metadata
from sotdd.sketches.catalog.recipe import CatalogRecipe
from sotdd.sketches.catalog.snapshot import Candidate, Snapshot
from sotdd.sketches.file import from_bytes
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.uncertainty import floor_of_sketches

# An entry that is not compared is nearer than the k-th with the chance of a normal deviate beyond this: 0.1 %.
_DEVIATIONS = 3.0
# This many full sketches are read at a time, which bounds memory.
_TOGETHER = 16
# This many times as many vectors are looked at as sketches may be compared: small datasets are far from
# everything, and may be nearer by excess than they are by distance.
_WIDER = 5


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
        "excess", ``distance.excess``: what remains beyond the noise of the sizes; or "distance" itself. An excess
        says which entry is nearer, not whether one is within noise: the noise floor it is measured from is rough.
    """

    name: str
    distance: Distance
    metadata: Metadata
    ranked_by: str = "distance"

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values."""
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
        """Cells of a table with a header: rank, name, distance, excess where ranked by it, sizes, metadata."""
        keys = list(dict.fromkeys(key for hit in self.hits for key in hit.metadata))
        by_excess = self.ranked_by == "excess"
        table = [["", "name", "distance", *(["excess"] if by_excess else []), "points", "classes", *keys]]
        for rank, hit in enumerate(self.hits, 1):
            apart = hit.distance
            sizes = [f"{apart.n_points[1]:,}", f"{len(apart.classes[1]):,}"]
            values = ["" if hit.metadata.get(key) is None else str(hit.metadata[key]) for key in keys]
            excess = [f"{apart.excess:.2g}"] if by_excess and apart.excess is not None else []
            table.append([str(rank), hit.name, with_error(apart.value, apart.stderr), *excess, *sizes, *values])
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


def nearest(snapshot: Snapshot, recipe: CatalogRecipe, query: Sketch, k: int, where: str | None, limit: int) -> Hits:
    """The k entries nearest to a sketch, after comparing at most ``limit`` of them in full.

    What counts is the excess over what the sizes give by chance, where sketches know it. The squared distance
    of two vectors estimates that of their sketches with a known relative deviation. So comparing stops once no
    remaining vector can belong to an entry nearer than the k-th.
    """
    wanted = limit + 1 if query.halves is None else _WIDER * limit
    candidates = snapshot.closest(recipe.vector(query), wanted, where)
    all_entries = len(candidates) < wanted
    candidates.sort(key=lambda one: one.squared - _floor(query, one))
    hits: list[Hit] = []
    sure = False
    while not sure and len(hits) < min(limit, len(candidates)):
        done = len(hits)
        hits += _compared(snapshot, recipe, query, candidates[done : min(done + max(_TOGETHER, k - done), limit)])
        hits = _in_order(hits)
        if len(hits) == len(candidates):
            sure = all_entries
        elif len(hits) >= k:
            sure = _nothing_nearer(candidates[len(hits) :], hits[k - 1], query, recipe)
    return Hits(tuple(hits[:k]), len(hits), sure or not candidates)


def _in_order(hits: Sequence[Hit]) -> list[Hit]:
    """Nearest first: by excess, or by distance where one has no excess."""
    if any(hit.distance.excess is None for hit in hits):
        return sorted(hits, key=lambda hit: (hit.distance.value, hit.name))
    by_excess = [replace(hit, ranked_by="excess") for hit in hits]
    return sorted(by_excess, key=lambda hit: (hit.distance.excess or 0.0, hit.name))


def _floor(query: Sketch, candidate: Candidate) -> float:
    """The squared distance that the sizes alone would give, if both came from one source; 0 where unknown."""
    sizes = query.n_points, candidate.entry.n_points
    floor = floor_of_sketches([(query.n_points, query.halves)], 2, sizes, 0.0)
    return 0.0 if floor is None else floor.power


def _nothing_nearer(left: Sequence[Candidate], last: Hit, query: Sketch, recipe: CatalogRecipe) -> bool:
    """Whether the remaining vectors are all too far for an entry nearer than the last hit."""
    by_excess = last.ranked_by == "excess" and query.halves is not None
    reach = (last.distance.excess or 0.0) if by_excess else last.distance.value**2
    widest = 1 + _DEVIATIONS * recipe.relative_deviation
    return all(one.squared / widest - (_floor(query, one) if by_excess else 0.0) > reach for one in left)


def _compared(snapshot: Snapshot, recipe: CatalogRecipe, query: Sketch, candidates: Sequence[Candidate]) -> list[Hit]:
    """Compare the full sketches of these candidates with the query."""
    hits = []
    for start in range(0, len(candidates), _TOGETHER):
        part = candidates[start : start + _TOGETHER]
        for one, content in zip(part, snapshot.contents([one.row for one in part]), strict=True):
            stored = from_bytes(content, one.entry.name, recipe.sketch.projections)
            hits.append(Hit(one.entry.name, query.distance(stored), one.entry.metadata))
    return hits
