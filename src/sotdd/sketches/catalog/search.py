"""The search of a catalog: candidates by vectors, and then the full sketches of the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.sketches.catalog.candidates import DEVIATIONS, Candidates
from sotdd.sketches.catalog.hits import Hit, Hits
from sotdd.sketches.catalog.learned import chance_of
from sotdd.sketches.catalog.recipe import CatalogRecipe
from sotdd.sketches.catalog.resident import LOOKED_AT, Resident
from sotdd.sketches.catalog.snapshot import Snapshot
from sotdd.sketches.file import from_bytes
from sotdd.sketches.sketch import Sketch

RankBy: TypeAlias = Literal["excess", "distance"]
_ORDERS = get_args(RankBy)

# This many full sketches are read at a time, which bounds memory.
_TOGETHER = 16
# So many more than are asked for are compared at first, and at least so many. With learned vectors that often does.
_AT_FIRST, _AT_LEAST = 2, 12
# This many times as many vectors are looked at as sketches may be compared, where vectors are not learned: small
# datasets are far from everything, and may be nearer by excess than they are by distance.
_WIDER = 5


def checked_order(rank_by: object) -> RankBy:
    """What hits are ranked by, or refuse."""
    if not isinstance(rank_by, str) or rank_by not in _ORDERS:
        raise SotddError(f"rank_by is {described(rank_by)}: expected 'excess' or 'distance'.")
    return "excess" if rank_by == "excess" else "distance"


def nearest(
    snapshot: Snapshot,
    resident: Resident | None,
    recipe: CatalogRecipe,
    query: Sketch,
    k: int,
    where: str | None,
    limit: int,
    rank_by: RankBy,
) -> Hits:
    """The k entries nearest to a sketch, after comparing at most ``limit`` of them in full.

    Candidates come in the order of what vectors tell. Comparing stops once no other entry is likely to be nearer
    than the k-th.
    """
    hits: dict[int, Hit] = {}  # by row
    if resident is None:
        candidates = _by_own_vectors(snapshot, recipe, query, where, limit, rank_by)
        sure = _compare(snapshot, recipe, query, candidates, hits, k, limit, max(k, _TOGETHER))
        return _best(hits, candidates, k, sure)
    allowed = None if where is None else snapshot.listing(["n_points"], where)["_rowid"].to_numpy()
    for looked_at in LOOKED_AT:
        candidates = resident.candidates(query, recipe, allowed, rank_by, looked_at)
        sure = _compare(snapshot, recipe, query, candidates, hits, k, limit, max(k + _AT_FIRST, _AT_LEAST))
        if sure or len(hits) >= limit:
            break
    return _best(hits, candidates, k, sure)


def _compare(
    snapshot: Snapshot,
    recipe: CatalogRecipe,
    query: Sketch,
    candidates: Candidates,
    hits: dict[int, Hit],
    k: int,
    limit: int,
    at_first: int,
) -> bool:
    """Compare candidates until no other entry is likely to be nearer, beside earlier hits; whether it came to that."""
    left = np.flatnonzero(~np.isin(candidates.rows, np.fromiter(hits, np.uint64)))
    wanted = _TOGETHER if hits else at_first
    while True:
        share, reach = candidates.share_seen(hits), _reach(list(hits.values()), k, candidates)
        left = left[candidates.least(share)[left] <= reach]
        if not len(left) or len(hits) >= limit:
            return not len(left) and candidates.outside(share) > reach
        chosen, left = np.split(left, [min(wanted, limit - len(hits))])
        hits |= _compared(snapshot, recipe, query, candidates, chosen)
        wanted = _TOGETHER


def _best(hits: dict[int, Hit], candidates: Candidates, k: int, sure: bool) -> Hits:
    return Hits(tuple(_in_order(list(hits.values()), candidates)[:k]), len(hits), sure or not len(candidates))


def _by_own_vectors(
    snapshot: Snapshot, recipe: CatalogRecipe, query: Sketch, where: str | None, limit: int, rank_by: RankBy
) -> Candidates:
    """The candidates of a catalog without learned vectors, by the vectors of its entries."""
    by_excess = rank_by == "excess" and query.halves is not None
    wanted = _WIDER * limit if by_excess else limit + 1
    found = snapshot.closest(recipe.vector(query), wanted, where)
    squared = np.array([one.squared for one in found], np.float64)
    sizes = np.array([one.entry.n_points for one in found], np.float64)
    floors = chance_of(query) * (1 / query.n_points + 1 / sizes) if by_excess else np.zeros(len(found))
    order = np.argsort(squared - floors, kind="stable")
    widest = 1 + DEVIATIONS * recipe.relative_deviation
    farthest = np.inf if len(found) < wanted else float(squared.max() / widest - floors.max())
    return Candidates(
        np.array([one.row for one in found], np.uint64)[order],
        squared[order],
        (squared * (1 - 1 / widest))[order],
        False,
        floors[order],
        lambda chosen: [found[number].entry for number in order[chosen]],
        lambda _: farthest,
        rank_by,
    )


def _keys(hits: Sequence[Hit], candidates: Candidates) -> tuple[str, list[float]]:
    """What hits are ranked by, and the number of each: its excess, or its squared distance where one has none."""
    excesses = [hit.distance.excess for hit in hits]
    if candidates.rank_by == "distance" or None in excesses:
        return "distance", [hit.distance.value**2 for hit in hits]
    return "excess", [excess for excess in excesses if excess is not None]


def _reach(hits: Sequence[Hit], k: int, candidates: Candidates) -> float:
    """What the k-th of the hits is ranked by; infinite where there are fewer."""
    _, keys = _keys(hits, candidates)
    return sorted(keys)[k - 1] if len(keys) >= k else np.inf


def _in_order(hits: Sequence[Hit], candidates: Candidates) -> list[Hit]:
    """Nearest first."""
    ranked_by, keys = _keys(hits, candidates)
    order = sorted(range(len(hits)), key=lambda i: (keys[i], hits[i].name))
    return [replace(hits[i], ranked_by=ranked_by) for i in order]


def _compared(
    snapshot: Snapshot, recipe: CatalogRecipe, query: Sketch, candidates: Candidates, chosen: NDArray[np.int64]
) -> dict[int, Hit]:
    """Compare the full sketches of some candidates with the query; by row."""
    hits = {}
    for start in range(0, len(chosen), _TOGETHER):
        part = chosen[start : start + _TOGETHER]
        rows = candidates.rows[part].tolist()
        for row, entry, content in zip(rows, candidates.entries(part), snapshot.contents(rows), strict=True):
            stored = from_bytes(content, entry.name, recipe.sketch.projections)
            # Plain means, which vectors bound: what is called sure is sure. All go through the same projections.
            hits[row] = Hit(entry.name, query.distance(stored, estimator="plain"), entry.metadata)
    return hits
