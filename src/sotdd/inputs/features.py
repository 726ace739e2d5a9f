"""Features that stay where they are: on a device, sparse, made block by block, or gathered in memory or a file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from io import BytesIO
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sotdd.basics.errors import SotddError, first_line

# Rows that take more than this go to a temporary file, which is mapped.
HELD_BYTES = 512 << 20

Rows = slice | NDArray[np.integer]


# This many values on a device are widened to float64 at a time.
_VALUES = 1 << 26
# Deviations smaller than this are not divided by, so that their inverse stays in float64.
_SMALLEST = 1e-300


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
    >>> from sotdd.inputs.features import StreamedFeatures
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


class SparseRows(StreamedFeatures):
    """Points of a sparse matrix (n, d), row by row; slices and picked rows are dense blocks.

    Parameters
    ----------
    name
        What messages call the dataset.
    matrix
        A CSR matrix of SciPy's, no column twice in a row.

    Examples
    --------
    >>> import scipy.sparse
    >>> from sotdd.inputs.features import SparseRows
    >>> words = SparseRows.of(scipy.sparse.csr_array([[0, 3, 0], [1, 0, 0]]), "words")
    >>> words[1:]
    array([[1, 0, 0]])
    """

    def __init__(self, name: str, matrix: Any) -> None:  # noqa: ANN401  # one of SciPy's
        super().__init__(name, matrix.shape, matrix.dtype)
        self.matrix = matrix

    @classmethod
    def of(cls, matrix: Any, name: str) -> SparseRows:  # noqa: ANN401  # of whatever library
        """Hold a sparse matrix of any format by its rows; those of CSR matrices are not copied."""
        from scipy import sparse

        try:
            if sparse.issparse(matrix):
                _refuse_broken(matrix)
                if matrix.ndim == 1:  # as arrays of one dimension: points of one feature
                    matrix = matrix.tocoo().reshape((-1, 1))
            rows = matrix.tocsr()
            if not sparse.issparse(rows) or rows.ndim != 2:
                raise ValueError(f"{type(matrix).__name__} of shape {getattr(matrix, 'shape', '?')}")
            _refuse_broken(rows)
            if not rows.has_canonical_format:  # where no column is twice in a row
                rows = rows.copy()  # what the caller has stays as it is
                rows.sum_duplicates()
        except MemoryError:
            raise
        except Exception as error:  # of whatever library
            cause = first_line(error)
            raise SotddError(
                f"cannot read the sparse matrix {name!r} ({cause}): expected one of scipy.sparse, of shape (n, d)."
            ) from error
        return cls(name, rows)

    def __getitem__(self, rows: Rows) -> NDArray[Any]:
        """A dense copy of some rows."""
        dense: NDArray[Any] = self.matrix[rows].toarray()
        return dense

    def take(self, rows: NDArray[np.integer]) -> SparseRows:
        """Some rows, in any order, still sparse."""
        return SparseRows(self.name, self.matrix[rows])

    def find_non_finite(self) -> tuple[Any, int, int] | None:
        """The first stored value that is NaN or infinite, its row and its feature; None where all are finite."""
        bad = np.flatnonzero(~np.isfinite(self.matrix.data))
        if not bad.size:
            return None
        row = int(np.searchsorted(self.matrix.indptr, bad[0], side="right")) - 1
        return self.matrix.data[bad[0]], row, int(self.matrix.indices[bad[0]])


def _refuse_broken(matrix: Any) -> None:  # noqa: ANN401
    """Refuse a compressed matrix whose indices point beyond it: loops that read it would, too."""
    if matrix.format in ("csr", "csc", "bsr") and matrix.ndim == 2:
        if {matrix.indptr.dtype.kind, matrix.indices.dtype.kind} - {"i", "u"}:
            raise ValueError("its indices are no integers")
        matrix.check_format(full_check=True)


class DeviceFeatures:
    """A tensor on a device that reads like an array: rows are copied to the host when they are asked for."""

    def __init__(self, tensor: Any) -> None:  # noqa: ANN401
        self.tensor = tensor
        self.shape: tuple[int, ...] = tuple(tensor.shape)
        self.ndim: int = len(self.shape)
        self.size: int = int(np.prod(self.shape, dtype=np.int64))
        self.dtype: np.dtype[Any] = tensor.new_empty(0).cpu().numpy().dtype

    def __len__(self) -> int:
        """How many points there are."""
        return self.shape[0]

    def __getitem__(self, rows: slice | NDArray[np.integer]) -> NDArray[Any]:
        """Some points as an array on the host."""
        host: NDArray[Any] = self.tensor[rows].cpu().numpy()
        return host

    def all_finite(self) -> bool:
        """Whether no value is NaN or infinite, which is found out on the device."""
        return not self.tensor.is_floating_point() or bool(self.tensor.isfinite().all().item())

    def moments(
        self, pivot: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], int]:
        """Reach, mean and summed squared deviations of every feature, and the farthest row.

        The reach (d,) is the largest deviation from ``pivot`` of float64, otherwise one; mean and deviations are those
        of (x - pivot) / reach. All are computed on the device, in float64.
        """
        flat = self.tensor.reshape(len(self), -1)
        origin = flat.new_tensor(pivot, dtype=flat.new_empty(0).double().dtype)
        rows = max(1, _VALUES // max(1, len(origin)))
        starts = range(0, len(flat), rows)

        def gaps(start: int) -> Any:  # noqa: ANN401  # a tensor
            apart = flat[start : start + rows].double() - origin
            return apart.div_(reach) if wide else apart

        reach, wide = origin.new_ones(len(origin)), flat.dtype == origin.dtype
        if wide:  # squares of what is narrower stay in float64 as they are
            lowest, highest = flat.aminmax(dim=0)  # the same as of all gaps, in one pass
            reach = (highest - origin).maximum(origin - lowest)
            reach = reach.where(reach > 0, reach.new_ones(())).clamp_min(_SMALLEST)
        mean = sum(gaps(start).sum(0) for start in starts) / len(flat)
        squares, lengths = reach.new_zeros(len(reach)), reach.new_empty(len(flat))
        for start in starts:
            deviations = gaps(start).sub_(mean).square_()
            squares += deviations.sum(0)
            lengths[start : start + rows] = deviations @ (reach / reach.max()) ** 2
        # Brought to the host at once: every copy is waited for.
        together = reach.new_empty((4, len(reach)))
        together[0], together[1], together[2], together[3] = reach, mean, squares, lengths.argmax()
        host = together.cpu().numpy()
        return host[0], host[1], host[2], int(host[3, 0])


# Where features are: an array in memory or mapped, a tensor on a device, or something that is made in blocks.
Features: TypeAlias = NDArray[Any] | DeviceFeatures | StreamedFeatures


def take_rows(features: Features, rows: NDArray[np.integer]) -> Features:
    """The features of some rows, copied, where they are: on a device, sparse, or in memory."""
    if isinstance(features, DeviceFeatures):
        return DeviceFeatures(features.tensor[rows])
    return features.take(rows) if isinstance(features, SparseRows) else features[rows]


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
    >>> from sotdd.inputs.features import GatheredRows
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
