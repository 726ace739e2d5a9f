"""Blocks of rows that can be read only once, kept in memory or, beyond a size, in a temporary file."""

from __future__ import annotations

import tempfile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.inputs.streamed import RowsInFile, refuse_non_finite

# Rows that take more than this go to a temporary file.
HELD_BYTES = 512 << 20


def stored_dtype(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
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
    >>> from sotdd.inputs.spool import Spool
    >>> spool = Spool("digits")
    >>> for block in np.zeros((3, 10, 4), np.float32):
    ...     spool.add(block)
    >>> spool.features().shape
    (30, 4)
    """

    def __init__(self, name: str, held_bytes: int | None = None, *, gaps: bool = False) -> None:
        self._name = name
        self._gaps = gaps  # whether values may be missing, which is for others to look at
        self._budget = HELD_BYTES if held_bytes is None else held_bytes
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
            self._kind = block.shape[1:], stored_dtype(block.dtype)
        shape, dtype = self._kind
        if block.shape[1:] != shape:
            raise SotddError(
                f"points of dataset {self._name!r} have shape {shape} at first and {block.shape[1:]} from row "
                f"{self._rows:,} on: expected one shape{'; for images, pass image_size=' if len(shape) > 1 else ''}."
            )
        if stored_dtype(block.dtype, dtype) != dtype:
            raise SotddError(
                f"points of dataset {self._name!r} are {dtype} at first and {block.dtype} from row {self._rows:,} on: "
                "expected one dtype, convert them with transform=."
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
            return self._joined(shape, dtype)
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

    def _joined(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        if len(self._blocks) == 1:
            return self._blocks[0]
        whole = np.empty(shape, dtype)
        stop = len(whole)
        while self._blocks:  # each is let go once it is copied
            block = self._blocks.pop()
            whole[stop - len(block) : stop] = block
            stop -= len(block)
        return whole
