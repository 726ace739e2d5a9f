"""Sparse matrices as features: only values other than zero are held, and a block is made dense where that is needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import first_line, refuse_beyond_float64
from sotdd.basics.errors import SotddError
from sotdd.inputs.streamed import Rows, StreamedFeatures

Doubles = NDArray[np.float64]
Indices = NDArray[np.int64]

# Stored values that are widened to float64 at a time.
_VALUES = 1 << 20

# Deviations smaller than this are not divided by, so that their inverse stays in float64.
_SMALLEST = 1e-300


def is_sparse(features: object) -> bool:
    """Whether features are a sparse matrix, of SciPy or of a library whose matrices turn into SciPy's."""
    return hasattr(features, "tocsr")


class SparseRows(StreamedFeatures):
    """Points of a sparse matrix (n, d), row by row; slices and picked rows are dense blocks.

    Parameters
    ----------
    values
        (z,) those that are stored, row after row.
    columns
        (z,) the column of each, no column twice in a row.
    edges
        (n + 1,) where rows begin among them.
    n_features
        d.

    Examples
    --------
    >>> import scipy.sparse
    >>> from sotdd.inputs.sparse import SparseRows
    >>> words = SparseRows.of(scipy.sparse.csr_array([[0, 3, 0], [1, 0, 0]]), "words")
    >>> words[1:]
    array([[1, 0, 0]])
    """

    def __init__(
        self, name: str, values: NDArray[Any], columns: NDArray[Any], edges: NDArray[Any], n_features: int
    ) -> None:
        super().__init__(name, (len(edges) - 1, n_features), values.dtype)
        self.values: NDArray[Any] = values
        self.columns: NDArray[Any] = columns
        self.edges: NDArray[Any] = edges

    @classmethod
    def of(cls, matrix: Any, name: str) -> SparseRows:  # noqa: ANN401  # of whatever library
        """Hold a sparse matrix of any format by its rows; those of CSR matrices are not copied."""
        rows = _by_rows(matrix, name)
        return cls(name, rows.data, rows.indices, rows.indptr, rows.shape[1])

    def __getitem__(self, rows: Rows) -> NDArray[Any]:
        """A dense copy of some rows."""
        if not isinstance(rows, slice) or rows.step not in (None, 1):
            picked = np.arange(len(self))[rows] if isinstance(rows, slice) else np.asarray(rows)
            return self.take(picked)[:]
        start, stop, _ = rows.indices(len(self))
        stop = max(start, stop)
        block = np.zeros((stop - start, self.shape[1]), self.dtype)
        stored = slice(self.edges[start], self.edges[stop])
        block[np.repeat(np.arange(stop - start), np.diff(self.edges[start : stop + 1])), self.columns[stored]] = (
            self.values[stored]
        )
        return block

    def take(self, rows: NDArray[np.integer]) -> SparseRows:
        """Some rows, in any order, still sparse."""
        starts, counts = self.edges[:-1][rows], np.diff(self.edges)[rows]
        edges = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        stored = np.repeat(starts - edges[:-1], counts) + np.arange(edges[-1])
        return SparseRows(self.name, self.values[stored], self.columns[stored], edges, self.shape[1])

    def features(self, block: slice) -> NDArray[Any]:
        """A dense copy of some features of all points."""
        first, last, _ = block.indices(self.shape[1])
        wanted = np.flatnonzero((self.columns >= first) & (self.columns < last))
        result = np.zeros((len(self), last - first), self.dtype)
        result[np.searchsorted(self.edges, wanted, side="right") - 1, self.columns[wanted] - first] = self.values[
            wanted
        ]
        return result

    def part(self, start: int, stop: int) -> tuple[Doubles, Indices, Indices]:
        """Values, columns and edges of some rows, as compiled loops take them."""
        edges = self.edges[start : stop + 1].astype(np.int64)
        stored = slice(edges[0], edges[-1])
        return self.values[stored].astype(np.float64), self.columns[stored].astype(np.int64), edges - edges[0]

    def parts(self) -> Iterator[slice]:
        """Rows in portions of about as many stored values, whatever the length of each row."""
        start = 0
        while start < len(self):
            last = int(np.searchsorted(self.edges, int(self.edges[start]) + _VALUES, side="right")) - 1
            stop = max(start + 1, min(last, len(self), start + _VALUES))
            yield slice(start, stop)
            start = stop

    def find_non_finite(self) -> tuple[Any, int, int] | None:
        """The first stored value that is NaN or infinite, its row and its feature; None where all are finite."""
        bad = np.flatnonzero(~np.isfinite(self.values)) if self.dtype.kind == "f" else self.columns[:0]
        if not bad.size:
            return None
        row = int(np.searchsorted(self.edges, bad[0], side="right")) - 1
        return self.values[bad[0]], row, int(self.columns[bad[0]])

    def moments(self, pivot: Doubles) -> tuple[Doubles, Doubles, Doubles, int]:
        """Reach, mean and summed squared deviations of every feature, and the farthest row; see `DeviceFeatures`."""
        zeros = len(self) - np.bincount(self.columns, minlength=self.shape[1])  # (d,) how often each is not stored
        reach = np.where(zeros > 0, np.abs(pivot), 0.0)
        for part in self.parts():
            values, columns, _ = self.part(part.start, part.stop)
            with np.errstate(over="ignore"):  # refused below
                np.maximum.at(reach, columns, np.abs(values - pivot[columns]))
        refuse_beyond_float64(reach)
        reach = np.maximum(np.where(reach > 0, reach, 1.0), _SMALLEST)
        inverse = 1.0 / reach
        of_zero = np.where(zeros > 0, -pivot, 0.0) * inverse
        sums = zeros * of_zero
        for part in self.parts():
            values, columns, _ = self.part(part.start, part.stop)
            sums += np.bincount(columns, (values - pivot[columns]) * inverse[columns], len(sums))
        mean = sums / len(self)
        at_zero = of_zero - mean
        squares, lengths, unit = zeros * at_zero**2, np.empty(len(self)), reach / reach.max()
        for part in self.parts():
            values, columns, edges = self.part(part.start, part.stop)
            deviations = ((values - pivot[columns]) * inverse[columns] - mean[columns]) ** 2
            squares += np.bincount(columns, deviations, len(squares))
            # Lengths leave out the deviations of a point that is all zeros, which all points share.
            beyond = (deviations - at_zero[columns] ** 2) * unit[columns] ** 2
            row = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
            lengths[part] = np.bincount(row, beyond, len(edges) - 1)
        return reach, mean, squares, int(np.argmax(lengths))


def _by_rows(matrix: Any, name: str) -> Any:  # noqa: ANN401  # one of SciPy's
    """A CSR matrix with every column at most once in a row, whose numbers are safe for compiled loops."""
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
        if not rows.has_canonical_format:
            rows = rows.copy()  # what the caller has stays as it is
            rows.sum_duplicates()
    except MemoryError:
        raise
    except Exception as error:  # of whatever library
        cause = first_line(error)
        raise SotddError(
            f"cannot read the sparse matrix {name!r} ({cause}): expected one of scipy.sparse, of shape (n, d)."
        ) from error
    return rows


def _refuse_broken(matrix: Any) -> None:  # noqa: ANN401
    """Refuse a compressed matrix whose indices point beyond it: loops that read it would, too."""
    if matrix.format in ("csr", "csc", "bsr") and matrix.ndim == 2:
        if {matrix.indptr.dtype.kind, matrix.indices.dtype.kind} - {"i", "u"}:
            raise ValueError("its indices are no integers")
        matrix.check_format(full_check=True)
