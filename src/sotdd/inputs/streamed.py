"""Features that are read in blocks when asked for, and never held whole; and rows that can be read only once.

`StreamedFeatures` says what they all can do; the kinds of them follow. Rows that can only be decoded many at
a time, such as the row groups of a Parquet file, have a cache and so a file of their own: `row_groups`.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError

# Rows that can be read only once and take more than this go to a temporary file.
SPOOLED_BYTES = 512 << 20
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
            return self._pick(np.asarray(rows))
        start, stop, step = rows.indices(len(self))
        if step != 1:
            return self._pick(np.arange(start, stop, step))
        block = self.read(start, max(start, stop))
        if not self.finite:
            refuse_non_finite(block, range(start, stop), self.name)
        return block

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """All points as an array in memory, for those who have the room."""
        return np.asarray(self[:], dtype=dtype)

    def _pick(self, rows: NDArray[np.integer]) -> NDArray[Any]:
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
    raise non_finite_error(name, block.reshape(len(block), -1)[row, feature], int(rows[row]), int(feature))


def non_finite_error(name: str, value: object, row: int, feature: int) -> SotddError:
    """The error for values that are NaN or infinite, with where the first of them is."""
    where = f"({value}) in row {row:,}, feature {feature:,}"
    return SotddError(f"dataset {name!r} has values that are NaN or infinite, the first {where}: drop them.")


class RowsInFile(StreamedFeatures):
    """Rows of an array in a file, from ``offset`` on; it may hold them one after another, or column by column.

    They are read, not mapped: a map of a file that is cut short meanwhile ends the process, and the pages of a map
    count as memory of this process once they were read, up to the size of the file.
    """

    def __init__(
        self,
        name: str,
        file: IO[bytes],
        offset: int,
        shape: tuple[int, ...],
        dtype: DTypeLike,
        *,
        by_column: bool = False,
        finite: bool = False,
    ) -> None:
        super().__init__(name, shape, dtype, finite=finite)
        self._file, self._by_column = file, by_column
        self._offset = offset
        self._row_values = int(np.prod(shape[1:], dtype=np.int64))
        self._lock = threading.Lock()
        weakref.finalize(self, file.close)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """A copy of some rows."""
        if not self._by_column:
            block = np.empty((stop - start, *self.shape[1:]), self.dtype)
            self._fill(block.reshape(-1), start * self._row_values)
            return block
        columns = np.empty((self._row_values, stop - start), self.dtype)
        for number, column in enumerate(columns):
            self._fill(column, number * len(self) + start)
        return np.ascontiguousarray(columns.reshape(*self.shape[:0:-1], stop - start).T)

    def _fill(self, values: NDArray[Any], first: int) -> None:
        """Fill an array with the numbers from the first on, counted from the beginning of the array in the file."""
        room = memoryview(values.view(np.uint8))  # type: ignore[arg-type]  # arrays are buffers
        place = self._offset + first * self.dtype.itemsize
        while room:
            count = self._read_into(room, place)
            if not count:
                raise SotddError(f"the file of dataset {self.name!r} has become shorter: open it again.")
            room, place = room[count:], place + count

    def _read_into(self, room: memoryview, place: int) -> int:
        if hasattr(os, "preadv"):  # several threads may read at once
            return os.preadv(self._file.fileno(), [room], place)
        with self._lock:
            self._file.seek(place)
            return self._file.readinto(room)  # type: ignore[attr-defined, no-any-return]  # binary files have it


class DerivedFeatures(StreamedFeatures):
    """Other features, changed whenever a block of them is read.

    Parameters
    ----------
    features
        The others, which check themselves.
    shape, dtype
        What they become.
    change
        A function of the first row and the one after the last that returns these rows.
    """

    def __init__(
        self, features: StreamedFeatures, shape: tuple[int, ...], dtype: DTypeLike, change: Callable[[int, int], Any]
    ) -> None:
        super().__init__(features.name, shape, dtype, finite=True)
        self._change = change

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read some rows of the others, and change them."""
        rows: NDArray[Any] = self._change(start, stop)
        return rows


def choose_rows(features: StreamedFeatures, rows: NDArray[np.integer]) -> StreamedFeatures:
    """Some rows, such as a sample or those that have a label; they are picked when they are read."""
    shape = (len(rows), *features.shape[1:])
    return DerivedFeatures(features, shape, features.dtype, lambda start, stop: features[rows[start:stop]])


def reorder(rows: NDArray[Any], order: list[int]) -> NDArray[Any]:
    """Rows (n, d) with their columns in another order; a place of -1 stands for zeros."""
    result = np.take(rows, order, axis=1)
    result[:, np.array(order) < 0] = 0
    return result


def put_beside(rows: NDArray[Any], more: NDArray[Any]) -> NDArray[Any]:
    """Rows (n, ...) as a matrix with further columns (n, k); numbers of one byte stay so where all fit it."""
    return np.concatenate([rows.reshape(len(rows), -1), more], axis=1)


def narrow_dtype(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """The narrowest of uint8, float32 and float64 for numbers of all these dtypes."""
    if all(dtype.kind == "b" or dtype == np.uint8 for dtype in dtypes):
        return np.dtype(np.uint8)
    if all(dtype.itemsize <= (4 if dtype.kind == "f" else 2) for dtype in dtypes):
        return np.dtype(np.float32)
    return np.dtype(np.float64)


class Spool:
    """Takes blocks of rows one after another, and returns all of them as features.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.inputs.streamed import Spool
    >>> spool = Spool("digits")
    >>> for block in np.zeros((3, 10, 4), np.float32):
    ...     spool.add(block)
    >>> spool.features().shape
    (30, 4)
    """

    def __init__(self, name: str, held_bytes: int | None = None, *, gaps: bool = False) -> None:
        self._name = name
        self._gaps = gaps  # whether values may be missing, which is for others to look at
        self._budget = SPOOLED_BYTES if held_bytes is None else held_bytes
        self._blocks: list[NDArray[Any]] = []
        self._bytes = 0
        self._rows = 0
        self._kind: tuple[tuple[int, ...], np.dtype[Any]] | None = None
        self._file: IO[bytes] | None = None

    def add(self, block: NDArray[Any]) -> None:
        """Check and keep a block of rows (m, ...)."""
        if block.dtype.kind not in "biuf":
            raise SotddError(f"features of dataset {self._name!r} have dtype {block.dtype}: expected real numbers.")
        if self._kind is None:
            self._kind = block.shape[1:], narrow_dtype(block.dtype)
        shape, dtype = self._kind
        if block.shape[1:] != shape:
            since, images = f"from row {self._rows:,} on", "; for images, pass image_size=" if len(shape) > 1 else ""
            raise SotddError(
                f"points of {self._name!r} have shape {shape} and, {since}, {block.shape[1:]}: expected one{images}."
            )
        if narrow_dtype(block.dtype, dtype) != dtype:
            since = f"from row {self._rows:,} on"
            raise SotddError(
                f"points of {self._name!r} are {dtype} and, {since}, {block.dtype}: convert them with transform=."
            )
        if block.dtype.kind == "f" and not self._gaps:
            refuse_non_finite(block, range(self._rows, self._rows + len(block)), self._name)
        self._rows += len(block)
        self._keep(np.ascontiguousarray(block, dtype))

    def features(self) -> NDArray[Any] | RowsInFile:
        """All rows, once every block was added."""
        if self._kind is None or not self._rows:
            raise SotddError(f"dataset {self._name!r} has no points: expected at least one.")
        shape, dtype = (self._rows, *self._kind[0]), self._kind[1]
        if 0 in shape:
            raise SotddError(f"points of dataset {self._name!r} have shape {shape[1:]}: expected at least one number.")
        if self._file is None:
            return self._join(shape, dtype)
        self._file.flush()
        return RowsInFile(self._name, self._file, 0, shape, dtype, finite=not self._gaps)

    def _keep(self, block: NDArray[Any]) -> None:
        self._bytes += block.nbytes
        if self._file is None and self._bytes <= self._budget:
            self._blocks.append(block)
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="sotdd-")  # noqa: SIM115  # closed by what reads it
            for earlier in self._blocks:
                self._file.write(earlier.data)
            self._blocks.clear()
        self._file.write(block.data)

    def _join(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        if len(self._blocks) == 1:
            return self._blocks[0]
        whole = np.empty(shape, dtype)
        stop = len(whole)
        while self._blocks:  # each is let go once it is copied
            block = self._blocks.pop()
            whole[stop - len(block) : stop] = block
            stop -= len(block)
        return whole
