"""The search of a catalog: by vectors first, then by the full sketches of the best."""

from __future__ import annotations

from sotdd.catalog.common import Common
from sotdd.catalog.hits import Hit, Hits
from sotdd.catalog.snapshot import Found, Snapshot
from sotdd.sketches.file import from_bytes
from sotdd.sketches.sketch import Sketch

# One that is passed over is nearer than the k-th with the chance of a normal deviate beyond this: 0.1 %.
_DEVIATIONS = 3.0
# Full sketches are read so many at a time, which bounds memory.
_TOGETHER = 16


def nearest(snapshot: Snapshot, common: Common, query: Sketch, k: int, where: str | None, limit: int) -> Hits:
    """The k entries nearest to a sketch, of which up to ``limit`` are compared in full.

    The squared distance of two vectors is that of their sketches with a known relative deviation, so
    the comparisons stop where the next vector is too far off to be of one nearer than the k-th.
    """
    found = snapshot.closest(common.vector(query), limit + 1, where)
    hits: list[Hit] = []
    sure = False
    while not sure and len(hits) < min(limit, len(found)):
        done = len(hits)
        hits += _compared(snapshot, common, query, found[done : min(done + max(_TOGETHER, k - done), limit)])
        hits.sort(key=lambda hit: (hit.distance.value, hit.name))
        if len(hits) == len(found):
            sure = True
        elif len(hits) >= k:
            reach = hits[k - 1].distance.value ** 2 * (1 + _DEVIATIONS * common.spread)
            sure = found[len(hits)].squared > reach
    return Hits(tuple(hits[:k]), len(hits), sure or not found)


def _compared(snapshot: Snapshot, common: Common, query: Sketch, found: list[Found]) -> list[Hit]:
    hits = []
    for start in range(0, len(found), _TOGETHER):
        part = found[start : start + _TOGETHER]
        for one, content in zip(part, snapshot.contents([one.row for one in part]), strict=True):
            stored = from_bytes(content, one.entry.name, common.sketch.projections)
            hits.append(Hit(one.entry.name, query.distance(stored), one.entry.metadata))
    return hits
