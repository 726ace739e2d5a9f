"""Entries that may be near, before their sketches are read: estimates of their distances, and how sure these are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sotdd.sketches.catalog.entries import Entry
from sotdd.sketches.catalog.hits import Hit

Doubles = NDArray[np.float64]

# An entry that is not compared is nearer than the k-th with the chance of a normal deviate beyond this: 0.1 %.
DEVIATIONS = 3.0
# With fewer comparisons than this, nothing is taken from them.
_FEWEST_JUDGED = 5


@dataclass(frozen=True, eq=False)
class Candidates:
    """Entries in the order of what they are ranked by, as far as vectors tell.

    What they are ranked by is their squared distance less ``floors``. It is about ``estimates - floors``, and not less
    than ``estimates - share * doubts - floors``, where the share is 1 for sure. Of learned vectors it is the cosine
    between what lies off their basis, mostly far below 1; a search takes it from the sketches that it has read.

    Attributes
    ----------
    rows
        Where the entries are in the table.
    estimates, doubts
        Of their squared distances.
    learned
        Whether the share may be below 1.
    floors
        What chance alone gives; 0 where the order is by distance.
    entries
        Gives the entries of some candidates.
    outside
        The least that an entry which is not among the candidates may have, given a share; infinite where all are.
    rank_by
        "excess" where the order is by that, provided that all that are compared know it; or "distance".
    """

    rows: NDArray[np.uint64]
    estimates: Doubles
    doubts: Doubles
    learned: bool
    floors: Doubles
    entries: Callable[[NDArray[np.int64]], list[Entry]]
    outside: Callable[[float], float]
    rank_by: Literal["excess", "distance"]

    def __len__(self) -> int:
        return len(self.rows)

    def least(self, share: float) -> Doubles:
        """The least that each may be ranked by."""
        least: Doubles = self.estimates - (share if self.learned else 1.0) * self.doubts - self.floors
        return least

    def share_seen(self, hits: Mapping[int, Hit]) -> float:
        """The largest share that is likely, from those that were compared.

        The nearer two sketches are, the more they have in common: a copy has all. So the farther half of those
        compared speaks for the rest, which are farther still: their mean and three standard deviations. With fewer than
        a handful nothing is known.
        """
        compared = np.flatnonzero(np.isin(self.rows, np.fromiter(hits, np.uint64)) & (self.doubts > 0))
        squared = np.array([hits[int(row)].distance.value ** 2 for row in self.rows[compared]])
        farther = np.argsort(squared)[len(squared) // 2 :]
        if len(farther) < _FEWEST_JUDGED:
            return 1.0
        shares = np.clip((self.estimates[compared] - squared)[farther] / self.doubts[compared][farther], -1.0, 1.0)
        return float(min(1.0, max(0.0, np.mean(shares) + DEVIATIONS * np.std(shares))))
