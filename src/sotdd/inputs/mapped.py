"""Arrays in files: every block is mapped into memory when it is read, and let go afterwards."""

from __future__ import annotations

import mmap
import weakref
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sotdd.inputs.streamed import StreamedFeatures


class MappedRows(StreamedFeatures):
    """Rows of an array that lies in a file, one row after another from ``offset`` on.

    A map of the whole file would be simpler, but its pages would count as memory of this process
    once they were read, up to the size of the file.
    """

    def __init__(
        self, name: str, file: IO[bytes], offset: int, shape: tuple[int, ...], dtype: DTypeLike, *, finite: bool = False
    ) -> None:
        super().__init__(name, shape, dtype, finite=finite)
        self._file = file
        self._offset = offset
        self._row_values = int(np.prod(shape[1:], dtype=np.int64))
        weakref.finalize(self, file.close)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """A view of the file; the map lives as long as the view."""
        count = (stop - start) * self._row_values
        if not count:
            return np.empty((stop - start, *self.shape[1:]), self.dtype)
        first = self._offset + start * self._row_values * self.dtype.itemsize
        page = first - first % mmap.ALLOCATIONGRANULARITY  # maps begin at multiples of it
        length = first - page + count * self.dtype.itemsize
        block = mmap.mmap(self._file.fileno(), length, access=mmap.ACCESS_READ, offset=page)
        return np.frombuffer(block, self.dtype, count, first - page).reshape(-1, *self.shape[1:])


class WholeMap(StreamedFeatures):
    """Rows of an array whose columns lie one after another in a file: every row is all over it."""

    def __init__(self, name: str, array: NDArray[Any]) -> None:
        super().__init__(name, array.shape, array.dtype)
        self._array = array

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """A copy of some rows."""
        return np.array(self._array[start:stop], order="C")
