"""Features that are stuck: one value far more often than the reference ever has one.

A sensor that reports zero, or a column that a pipeline filled with a default, moves hardly anything in a random
direction, and no two-sample test finds it in a small batch. Counting finds it at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.inputs.data import LabelledData

# The share of clean commands that this may fail, beside the level of the test.
STUCK_LEVEL = 1e-4

# How surely the share of the commonest value is no larger than it is taken to be.
_DOUBT = 1e-6

# Values are counted in this many rows at most, spread over all, and of this many features.
_MOST_ROWS = 5000
_MOST_FEATURES = 2000


@dataclass(frozen=True, eq=False)
class Commonest:
    """How often each feature has its commonest value.

    Attributes
    ----------
    counts
        (d,) of the rows that were looked at, those that have it.
    n_rows
        How many were looked at.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> usual = Commonest.of(sotdd.LabelledData.of(x))
    >>> stuck = sotdd.LabelledData.of(np.column_stack([x[:20, 0], np.zeros(20)]))
    >>> usual.most_stuck(stuck).feature
    1
    """

    counts: NDArray[np.int64]
    n_rows: int

    @classmethod
    def of(cls, data: LabelledData) -> Commonest | None:
        """Count values; None where there are too many features to be worth it."""
        if data.n_features > _MOST_FEATURES:
            return None
        rows = _some_rows(data)
        return cls(_commonest(rows)[0], len(rows))

    def most_stuck(self, batch: LabelledData) -> Stuck | None:
        """The feature of a batch whose commonest value is least likely; None where there are too many features."""
        from scipy.special import bdtrc, betaincinv

        if batch.n_features > _MOST_FEATURES:
            return None
        rows = _some_rows(batch)
        counts, values = _commonest(rows)
        most = betaincinv(self.counts + 1.0, np.maximum(self.n_rows - self.counts, 1e-9), 1 - _DOUBT)
        most = np.where(self.counts == self.n_rows, 1.0, np.minimum(most, 1.0))
        # P(any value k times or more) is at most P(Bin(m, q) ≥ k) / q: rarer values contribute in proportion at most.
        chances = np.minimum(1.0, bdtrc(counts - 1.0, len(rows), most) / most) * len(counts)
        feature = int(np.argmin(chances))
        return Stuck(
            feature,
            float(values[feature]),
            int(counts[feature]),
            len(rows),
            float(most[feature]),
            min(1.0, float(chances[feature])),
        )


@dataclass(frozen=True)
class Stuck:
    """A feature and its commonest value in a batch: how often it is there, and how likely that is by chance."""

    feature: int
    value: float
    count: int
    n_rows: int
    usual: float
    p_value: float


def _some_rows(data: LabelledData) -> NDArray[np.float64]:
    """Rows spread over the dataset (n, d)."""
    step = -(-data.n_points // _MOST_ROWS)
    wanted = [data.rows(block)[(-block.start) % step :: step] for block in data.blocks()]
    return np.concatenate(wanted).astype(np.float64)


def _commonest(rows: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Of every column (n, d) how often its commonest value is there, and which it is."""
    ordered = np.sort(rows, axis=0)
    counts, values = np.empty(rows.shape[1], np.int64), np.empty(rows.shape[1])
    for column in range(rows.shape[1]):
        one = ordered[:, column]
        starts = np.flatnonzero(np.concatenate([[True], one[1:] != one[:-1]]))
        lengths = np.diff([*starts, len(one)])
        longest = int(np.argmax(lengths))
        counts[column], values[column] = lengths[longest], one[starts[longest]]
    return counts, values
