"""Features that are read in blocks when asked for, and never held whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sotdd.basics.errors import SotddError

# Rows picked one by one are read together where they lie this near, but never more than so many at once.
_NEAR = 64
_RUN = 4096


class StreamedFeatures(ABC):
    """Points outside memory that read like an array (n, ...): by slices and by arrays of row numbers.

    Several threads may read at the same time. Values that are not finite are found when they are
    read, since looking for them before would mean reading everything.

    Parameters
    ----------
    name
        What messages call it.
    shape
        Of all points, (n, ...).
    dtype
        Of every block.
    finite
        Whether the values are known to be finite.
    """

    def __init__(self, name: str, shape: tuple[int, ...], dtype: DTypeLike, *, finite: bool = False) -> None:
        self.name = name
        self.shape = shape
        self.ndim = len(shape)
        self.size = int(np.prod(shape, dtype=np.int64))
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.finite = finite or self.dtype.kind != "f"

    @abstractmethod
    def read(self, start: int, stop: int) -> NDArray[Any]:
        """The rows from ``start`` up to ``stop``; what is returned is not written to."""

    def __len__(self) -> int:
        """How many points there are."""
        return self.shape[0]

    def __getitem__(self, rows: slice | NDArray[np.integer]) -> NDArray[Any]:
        """Some points, in memory."""
        if not isinstance(rows, slice):
            return self._picked(np.asarray(rows))
        start, stop, step = rows.indices(len(self))
        if step != 1:
            return self._picked(np.arange(start, stop, step))
        block = self.read(start, max(start, stop))
        if not self.finite:
            refuse_non_finite(block, range(start, stop), self.name)
        return block

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """All points, in memory: for those who can afford it."""
        return np.asarray(self[:], dtype=dtype)

    def _picked(self, rows: NDArray[np.integer]) -> NDArray[Any]:
        """Rows in any order, read in runs of neighbours."""
        result = np.empty((len(rows), *self.shape[1:]), self.dtype)
        if not len(rows):
            return result
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        if ascending[0] < 0 or ascending[-1] >= len(self):
            raise IndexError(f"rows {ascending[0]:,} to {ascending[-1]:,} of {len(self):,}")
        apart = (np.diff(ascending) > _NEAR) | (np.diff(ascending // _RUN) > 0)
        for places in np.split(order, np.flatnonzero(apart) + 1):
            first, last = int(rows[places[0]]), int(rows[places[-1]])
            block = self.read(first, last + 1)[rows[places] - first]
            if not self.finite:
                refuse_non_finite(block, rows[places], self.name)
            result[places] = block
        return result


def refuse_non_finite(block: NDArray[Any], rows: range | NDArray[np.integer], name: str) -> None:
    """Refuse a block that holds NaN or infinities, and say in which of its rows the first is."""
    finite = np.isfinite(block)
    if finite.all():
        return
    place = np.argwhere(~finite.reshape(len(block), -1))[0]
    value = block.reshape(len(block), -1)[tuple(place)]
    raise SotddError(
        f"dataset {name!r} has values that are NaN or infinite, the first ({value}) in row {rows[place[0]]:,}, "
        f"feature {place[1]:,}: drop or impute them first."
    )


class ReorderedColumns(StreamedFeatures):
    """The columns of other features in another order, put so as they are read."""

    def __init__(self, features: StreamedFeatures, order: list[int]) -> None:
        super().__init__(features.name, features.shape, features.dtype, finite=True)  # the features look themselves
        self._features = features
        self._order = order

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read rows from where they are, and put their columns in order."""
        return np.take(self._features[start:stop], self._order, axis=1)
