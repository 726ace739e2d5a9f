"""Sparse matrices as features: only values other than zero are held, and a block is made dense when it is read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, first_line
from sotdd.inputs.streamed import Rows, StreamedFeatures


def is_sparse(features: object) -> bool:
    """Whether features are a sparse matrix, of SciPy or of a library whose matrices turn into SciPy's."""
    return hasattr(features, "tocsr")


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
    >>> from sotdd.inputs.sparse import SparseRows
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
