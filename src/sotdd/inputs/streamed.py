"""Features that are read in blocks when asked for, and never held whole.

`StreamedFeatures` says what they all can do; the kinds of them follow. Rows that can only be decoded many at
a time, such as the row groups of a Parquet file, have a cache and so a file of their own: `grouped`.
"""

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError

# Rows that are picked one by one are read together where they are at most _NEAR apart, within runs of _RUN rows; of
# rows that are large, fewer.
_NEAR, _NEAR_BYTES = 64, 1 << 18
_RUN, _RUN_BYTES = 4096, 1 << 26


class StreamedFeatures(ABC):
    """Points outside memory that read like an array (n, ...): by slices and by arrays of row numbers.

    Several threads may read at the same time. Values that are not finite are refused when they are
    read, since finding them any earlier would mean reading everything.

    Parameters
    ----------
    name
        What messages call the dataset.
    shape
        The shape (n, ...) of all points together.
    dtype
        The dtype of every block.
    finite
        Whether the values are known to be finite, so that blocks need no check.
    """

    def __init__(self, name: str, shape: tuple[int, ...], dtype: DTypeLike, *, finite: bool = False) -> None:
        self.name = name
        self.shape = shape
        self.ndim: int = len(shape)
        self.size: int = int(np.prod(shape, dtype=np.int64))
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.finite: bool = finite or self.dtype.kind != "f"

    @abstractmethod
    def read(self, start: int, stop: int) -> NDArray[Any]:
        """The rows from ``start`` up to ``stop``; callers do not write to them."""

    def __len__(self) -> int:
        """How many points there are."""
        return self.shape[0]

    def __getitem__(self, rows: slice | NDArray[np.integer]) -> NDArray[Any]:
        """Some points as an array in memory."""
        try:
            return self._some(rows)
        except OSError as error:
            raise SotddError(f"cannot read dataset {self.name!r} ({first_line(error)}): open it again.") from error

    def _some(self, rows: slice | NDArray[np.integer]) -> NDArray[Any]:
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
        """All points as an array in memory, for those who have the room."""
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
        row_bytes = max(1, self.size // len(self) * self.dtype.itemsize)
        near, run = min(_NEAR, max(1, _NEAR_BYTES // row_bytes)), min(_RUN, max(1, _RUN_BYTES // row_bytes))
        apart = (np.diff(ascending) > near) | (np.diff(ascending // run) > 0)
        for places in np.split(order, np.flatnonzero(apart) + 1):
            first, last = int(rows[places[0]]), int(rows[places[-1]])
            block = self.read(first, last + 1)[rows[places] - first]
            if not self.finite:
                refuse_non_finite(block, rows[places], self.name)
            result[places] = block
        return result


def refuse_non_finite(block: NDArray[Any], rows: range | NDArray[np.integer], name: str) -> None:
    """Refuse a block that holds NaN or infinities, and say where the first of them is; ``rows`` numbers its rows."""
    finite = np.isfinite(block)
    if finite.all():
        return
    row, feature = np.argwhere(~finite.reshape(len(block), -1))[0]
    raise not_finite(name, block.reshape(len(block), -1)[row, feature], int(rows[row]), int(feature))


def not_finite(name: str, value: object, row: int, feature: int) -> SotddError:
    """The error for values that are NaN or infinite, with where the first of them is."""
    return SotddError(
        f"dataset {name!r} has values that are NaN or infinite, the first ({value}) in row {row:,}, feature "
        f"{feature:,}: drop or impute them first, as sotdd.open_dataset(..., missing='drop') does for NaN."
    )


class _FileRows(StreamedFeatures):
    """Numbers of an array in a file, from ``offset`` on.

    They are read, not mapped: a map of a file that is cut short meanwhile ends the process, and the pages of a map
    count as memory of this process once they were read, up to the size of the file.
    """

    def __init__(
        self, name: str, file: IO[bytes], offset: int, shape: tuple[int, ...], dtype: DTypeLike, *, finite: bool = False
    ) -> None:
        super().__init__(name, shape, dtype, finite=finite)
        self._file = file
        self._offset = offset
        self._row_values = int(np.prod(shape[1:], dtype=np.int64))
        self._lock = threading.Lock()
        weakref.finalize(self, file.close)

    def _fill(self, values: NDArray[Any], first: int) -> None:
        """Fill an array with the numbers from the first on, counted from the beginning of the array in the file."""
        room = memoryview(values.view(np.uint8))  # type: ignore[arg-type]  # arrays are buffers
        place = self._offset + first * self.dtype.itemsize
        while room:
            count = self._read_into(room, place)
            if not count:
                raise SotddError(
                    f"the file of dataset {self.name!r} has become shorter since it was opened: open it again, and "
                    "leave it as it is meanwhile."
                )
            room, place = room[count:], place + count

    def _read_into(self, room: memoryview, place: int) -> int:
        if hasattr(os, "preadv"):  # several threads may read at once
            return os.preadv(self._file.fileno(), [room], place)
        with self._lock:
            self._file.seek(place)
            return self._file.readinto(room)  # type: ignore[attr-defined, no-any-return]  # binary files have it


class RowsInFile(_FileRows):
    """Rows of an array in a file, one row after another."""

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """A copy of some rows."""
        block = np.empty((stop - start, *self.shape[1:]), self.dtype)
        self._fill(block.reshape(-1), start * self._row_values)
        return block


class ColumnsInFile(_FileRows):
    """Rows of an array that a file holds column by column, so that every row is spread over the whole file."""

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """A copy of some rows."""
        columns = np.empty((self._row_values, stop - start), self.dtype)
        for number, column in enumerate(columns):
            self._fill(column, number * len(self) + start)
        return np.ascontiguousarray(columns.reshape(*self.shape[:0:-1], stop - start).T)


class ChosenRows(StreamedFeatures):
    """Some rows of other features, such as a sample or those that have a label; they are picked when they are read."""

    def __init__(self, features: StreamedFeatures, rows: NDArray[np.integer]) -> None:
        shape = (len(rows), *features.shape[1:])
        super().__init__(features.name, shape, features.dtype, finite=True)  # they check themselves
        self._features = features
        self._rows = rows

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Pick the rows from the features they belong to."""
        return self._features[self._rows[start:stop]]


class ReorderedColumns(StreamedFeatures):
    """Other features with their columns in another order: every block is reordered when it is read.

    A place of -1 stands for a column that is zero throughout.
    """

    def __init__(self, features: StreamedFeatures, order: list[int]) -> None:
        shape = (features.shape[0], len(order))
        super().__init__(features.name, shape, features.dtype, finite=True)  # they check themselves
        self._features = features
        self._order = order

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read some rows, and put their columns in order."""
        return reordered(self._features[start:stop], self._order)


def reordered(rows: NDArray[Any], order: list[int]) -> NDArray[Any]:
    """Rows (n, d) with their columns in another order; a place of -1 stands for zeros."""
    result = np.take(rows, order, axis=1)
    result[:, np.array(order) < 0] = 0
    return result


class MoreColumns(StreamedFeatures):
    """Other features, as a matrix, with further columns from memory beside them."""

    def __init__(self, features: StreamedFeatures, more: NDArray[Any]) -> None:
        width = int(np.prod(features.shape[1:], dtype=np.int64)) + more.shape[1]
        dtype = np.result_type(features.dtype, more.dtype)
        super().__init__(features.name, (len(features), width), dtype, finite=True)  # they check themselves
        self._features = features
        self._more = more

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read some rows, and put the further columns beside them."""
        return put_beside(self._features[start:stop], self._more[start:stop])


def put_beside(rows: NDArray[Any], more: NDArray[Any]) -> NDArray[Any]:
    """Rows (n, ...) as a matrix with further columns (n, k); numbers of one byte stay so where all fit it."""
    return np.concatenate([rows.reshape(len(rows), -1), more], axis=1)
