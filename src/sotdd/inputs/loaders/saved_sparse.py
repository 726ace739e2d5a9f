"""Sparse matrices as `scipy.sparse.save_npz` writes them: the parts of a matrix as arrays of an archive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError

# The arrays that make up a matrix of each format, beside its shape.
_PARTS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "bsr": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
}


def is_saved_sparse(members: Sequence[str]) -> bool:
    """Whether an archive with these members is a sparse matrix, and has no array X."""
    return {"format.npy", "shape.npy", "data.npy"} <= set(members) and "X.npy" not in members


def read_sparse(array: Callable[[str], NDArray[Any]], path: Path) -> Any:  # noqa: ANN401  # one of SciPy's
    """The matrix whose parts ``array`` reads by name; whether they belong together is checked where it is opened."""
    from scipy import sparse

    kind = array("format").item() if array("format").size == 1 else None
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
    if not isinstance(kind, str) or kind not in _PARTS:
        raise SotddError(f"{path} holds a sparse matrix of format {kind!r}: save it as CSR, scipy.sparse.csr_array(x).")
    shape, parts = array("shape"), [array(name) for name in _PARTS[kind]]
    whole = [part.ndim == 1 and part.dtype.kind in "iu" for part in (shape, *parts[1:])]
    if not all(whole) or shape.size != 2 or not (shape >= 0).all():
        raise SotddError(f"{path} holds a sparse matrix with odd indices or of shape {shape.tolist()}: save it again.")
    sizes = tuple(int(length) for length in shape)
    try:
        if kind == "coo":
            return sparse.coo_array((parts[0], (parts[1], parts[2])), shape=sizes)
        return getattr(sparse, f"{kind}_array")(tuple(parts), shape=sizes)
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise SotddError(f"{path} holds a sparse matrix whose parts do not fit ({first_line(error)}).") from error
