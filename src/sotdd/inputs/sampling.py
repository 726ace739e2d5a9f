"""Random samples of rows, the same ones whether rows come all at once or batch by batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Rows are offered at most this many at a time.
BATCH_ROWS = 1 << 16


class RowSample:
    """Chooses rows without replacement as they come: those with the smallest of random keys, one for every row.

    A row whose key is beyond the smallest so far can be let go at once, so of n rows only about count · log₂(n / count)
    are ever kept.

    Parameters
    ----------
    count
        How many usable rows to choose.
    seed
        The seed of the keys.

    Examples
    --------
    >>> from sotdd.inputs.sampling import RowSample
    >>> sample = RowSample(3, seed=0)
    >>> for size in (50, 50):
    ...     rows = sample.offer(size)
    ...     sample.accept()
    >>> sample.rows[sample.choose()], sample.n_offered
    (array([ 3, 11, 92]), 100)
    """

    def __init__(self, count: int, seed: int) -> None:
        self.n_offered = 0
        self._count, self._generator = count, np.random.default_rng(seed)
        self._keys: list[NDArray[np.float64]] = []
        self._rows: list[NDArray[np.int64]] = []
        self._smallest, self._limit = np.empty(0), np.inf

    def offer(self, n_rows: int) -> NDArray[np.int64]:
        """Which of the next rows (m,) may be chosen; say of these, by `accept`, which are usable."""
        keys = self._generator.random(n_rows)
        chosen = np.flatnonzero(keys <= self._limit)
        self._keys.append(keys[chosen])
        self._rows.append(self.n_offered + chosen)
        self.n_offered += n_rows
        return chosen

    def accept(self, usable: NDArray[np.bool_] | None = None) -> None:
        """Take the rows (m,) that were offered last, of which only usable ones count; None for all."""
        keys = self._keys[-1]
        self._smallest = np.concatenate([self._smallest, keys if usable is None else keys[usable]])
        if len(self._smallest) >= 2 * self._count:  # so that they are rarely put in order
            self._lower_limit()

    def choose(self) -> NDArray[np.int64]:
        """The sample, as places among `rows`, ascending; rows that are not usable come with it, in proportion."""
        self._lower_limit()
        return np.flatnonzero(np.concatenate(self._keys) <= self._limit)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The numbers of all rows that were kept so far."""
        return np.concatenate(self._rows)

    def _lower_limit(self) -> None:
        if len(self._smallest) > self._count:
            self._smallest = np.partition(self._smallest, self._count - 1)[: self._count]
            self._limit = float(self._smallest.max())


def sample_rows(n_rows: int, count: int, seed: int, usable: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """A sample without replacement of the rows that are usable, ascending.

    Examples
    --------
    >>> from sotdd.inputs.sampling import sample_rows
    >>> sample_rows(100, 3, seed=0)
    array([ 3, 11, 92])
    """
    sample = RowSample(count, seed)
    for start in range(0, n_rows, BATCH_ROWS):
        rows = start + sample.offer(min(BATCH_ROWS, n_rows - start))
        sample.accept(None if usable is None else usable[rows])
    rows = sample.rows[sample.choose()]
    return rows if usable is None else rows[usable[rows]]
