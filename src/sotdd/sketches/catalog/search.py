"""The search of a catalog: by vectors first, then by the full sketches of the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sotdd.sketches.catalog.common import Common
from sotdd.sketches.catalog.hits import Hit, Hits
from sotdd.sketches.catalog.snapshot import Found, Snapshot
from sotdd.sketches.file import from_bytes
from sotdd.sketches.uncertainty import floor_of_sketches
from sotdd.sketches.sketch import Sketch

# One that is passed over is nearer than the k-th with the chance of a normal deviate beyond this: 0.1 %.
_DEVIATIONS = 3.0
# Full sketches are read so many at a time, which bounds memory.
_TOGETHER = 16
# So many times as many vectors are looked at as sketches may be compared: small datasets, far from
# everything as they are, may be nearer than they look.
_WIDER = 5


def nearest(snapshot: Snapshot, common: Common, query: Sketch, k: int, where: str | None, limit: int) -> Hits:
    """The k entries nearest to a sketch, of which up to ``limit`` are compared in full.

    What counts is the excess over what the sizes give by chance, where sketches know it. The squared distance
    of two vectors is that of their sketches with a known relative deviation, so the comparisons stop where no
    vector that is left can be of one nearer than the k-th.
    """
    wanted = limit + 1 if query.halves is None else _WIDER * limit
    found = snapshot.closest(common.vector(query), wanted, where)
    complete = len(found) < wanted
    found.sort(key=lambda one: one.squared - _floor(query, one))
    hits: list[Hit] = []
    sure = False
    while not sure and len(hits) < min(limit, len(found)):
        done = len(hits)
        hits += _compared(snapshot, common, query, found[done : min(done + max(_TOGETHER, k - done), limit)])
        hits = _in_order(hits)
        if len(hits) == len(found):
            sure = complete
        elif len(hits) >= k:
            sure = _nothing_nearer(found[len(hits) :], hits[k - 1], query, common)
    return Hits(tuple(hits[:k]), len(hits), sure or not found)


def _in_order(hits: Sequence[Hit]) -> list[Hit]:
    """Nearest first: by excess, or by distance where one has no excess."""
    if any(hit.distance.excess is None for hit in hits):
        return sorted(hits, key=lambda hit: (hit.distance.value, hit.name))
    named = [replace(hit, ranked_by="excess") for hit in hits]
    return sorted(named, key=lambda hit: (hit.distance.excess or 0.0, hit.name))


def _floor(query: Sketch, one: Found) -> float:
    """What of a squared distance the sizes would give, were the entry a sample of what the query is; 0 if unknown."""
    sizes = query.n_points, one.entry.n_points
    floor = floor_of_sketches([(query.n_points, query.halves)], 2, sizes, 0.0)
    return 0.0 if floor is None else floor.power


def _nothing_nearer(left: Sequence[Found], last: Hit, query: Sketch, common: Common) -> bool:
    """Whether the vectors that are left are all too far off to be of one nearer than the last hit."""
    by_excess = last.ranked_by == "excess" and query.halves is not None
    reach = (last.distance.excess or 0.0) if by_excess else last.distance.value**2
    widest = 1 + _DEVIATIONS * common.spread
    return all(one.squared / widest - (_floor(query, one) if by_excess else 0.0) > reach for one in left)


def _compared(snapshot: Snapshot, common: Common, query: Sketch, found: list[Found]) -> list[Hit]:
    hits = []
    for start in range(0, len(found), _TOGETHER):
        part = found[start : start + _TOGETHER]
        for one, content in zip(part, snapshot.contents([one.row for one in part]), strict=True):
            stored = from_bytes(content, one.entry.name, common.sketch.projections)
            hits.append(Hit(one.entry.name, query.distance(stored), one.entry.metadata))
    return hits
