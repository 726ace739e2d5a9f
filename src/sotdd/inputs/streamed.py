"""Features that are made block by block when they are asked for, and rows gathered in memory or in a mapped file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from io import BytesIO
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sotdd.basics.errors import SotddError
from sotdd.inputs.tensors import DeviceFeatures

# Rows that take more than this go to a temporary file, which is mapped.
HELD_BYTES = 512 << 20

Rows = slice | NDArray[np.integer]


class StreamedFeatures:
    """Points that read like an array (n, ...), by slices and by arrays of row numbers, and are made when they are read.

    Several threads may read at the same time.

    Parameters
    ----------
    name
        What messages call the dataset.
    shape
        The shape (n, ...) of all points together.
    dtype
        The dtype of every block.
    make
        A function of rows, which are a slice or an array of numbers, that returns these points; None for a subclass
        that reads rows in its own way.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.inputs.streamed import StreamedFeatures
    >>> x = np.arange(6.0).reshape(3, 2)
    >>> StreamedFeatures("halves", (3, 2), float, lambda rows: x[rows] / 2)[1:]
    array([[1. , 1.5],
           [2. , 2.5]])
    """

    def __init__(
        self, name: str, shape: tuple[int, ...], dtype: DTypeLike, make: Callable[[Rows], NDArray[Any]] | None = None
    ) -> None:
        self.name = name
        self.shape = shape
        self.ndim: int = len(shape)
        self.size: int = int(np.prod(shape, dtype=np.int64))
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self._make = make

    def __getitem__(self, rows: Rows) -> NDArray[Any]:
        """Some points as an array in memory, made now."""
        assert self._make is not None
        return self._make(rows)

    def __len__(self) -> int:
        """How many points there are."""
        return self.shape[0]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """All points as an array in memory, for those who have the room."""
        return np.asarray(self[:], dtype=dtype)


# Where features are: an array in memory or mapped, a tensor on a device, or something that is made in blocks.
Features: TypeAlias = NDArray[Any] | DeviceFeatures | StreamedFeatures


def add_columns(features: Features, more: NDArray[Any]) -> Features:
    """Features as a matrix (n, d) with further columns (n, k), for every kind of features."""
    width = features.size // len(features)
    if isinstance(features, DeviceFeatures):
        tensor = features.tensor.reshape(len(features), -1)
        floats = tensor if tensor.is_floating_point() or more.dtype.kind != "f" else tensor.double()
        whole = floats.new_empty((len(features), width + more.shape[1]))
        whole[:, :width] = floats
        whole[:, width:] = floats.new_tensor(more)
        return DeviceFeatures(whole)

    def put_beside(rows: Rows) -> NDArray[Any]:
        block = features[rows]
        return np.concatenate([block.reshape(len(block), -1), more[rows]], axis=1)

    if not isinstance(features, StreamedFeatures):
        return put_beside(slice(None))
    shape = (len(features), width + more.shape[1])
    return StreamedFeatures(features.name, shape, np.result_type(features.dtype, more), put_beside)


def narrow_dtype(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """The narrowest of uint8, float32 and float64 for numbers of all these dtypes."""
    if all(dtype.kind == "b" or dtype == np.uint8 for dtype in dtypes):
        return np.dtype(np.uint8)
    if all(dtype.itemsize <= (4 if dtype.kind == "f" else 2) for dtype in dtypes):
        return np.dtype(np.float32)
    return np.dtype(np.float64)


class GatheredRows:
    """Takes blocks of rows one after another, and returns all of them as one array, which is mapped if it is large.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.inputs.streamed import GatheredRows
    >>> rows = GatheredRows("digits")
    >>> for block in np.zeros((3, 10, 4), np.float32):
    ...     rows.add(block)
    >>> rows.array().shape
    (30, 4)
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0
        self._kind: tuple[tuple[int, ...], np.dtype[Any]] | None = None
        self._file: IO[bytes] = BytesIO()

    def __len__(self) -> int:
        """How many rows were added."""
        return self._count

    def add(self, block: NDArray[Any]) -> None:
        """Keep a block of rows (m, ...), all of one shape and dtype."""
        if block.dtype.kind not in "biuf":
            raise SotddError(f"features of dataset {self._name!r} have dtype {block.dtype}: expected real numbers.")
        if self._kind is None:
            self._kind = block.shape[1:], narrow_dtype(block.dtype)
        shape, dtype = self._kind
        if block.shape[1:] != shape or narrow_dtype(block.dtype, dtype) != dtype:
            images = "; for images, pass image_size=" if len(shape) > 1 and block.shape[1:] != shape else ""
            raise SotddError(
                f"points of {self._name!r} are {dtype} of shape {shape} and, from row {self._count:,} on, "
                f"{block.dtype} of shape {block.shape[1:]}: expected one{images}."
            )
        self._count += len(block)
        self._file.write(np.ascontiguousarray(block, dtype).data)
        if isinstance(self._file, BytesIO) and self._file.tell() > HELD_BYTES:
            held, self._file = self._file, tempfile.TemporaryFile(prefix="sotdd-")  # noqa: SIM115  # closed below
            self._file.write(held.getbuffer())

    def array(self) -> NDArray[Any]:
        """All rows, once every block was added."""
        if self._kind is None or not self._count:
            raise SotddError(f"dataset {self._name!r} has no points: expected at least one.")
        shape, dtype = (self._count, *self._kind[0]), self._kind[1]
        if 0 in shape:
            raise SotddError(f"points of dataset {self._name!r} have shape {shape[1:]}: expected at least one number.")
        if isinstance(self._file, BytesIO):
            return np.frombuffer(self._file.getbuffer(), dtype).reshape(shape)
        with self._file as file:  # the map holds it
            file.flush()
            return np.memmap(file, dtype, "r+", shape=shape)
