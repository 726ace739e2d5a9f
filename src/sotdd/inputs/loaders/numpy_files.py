"""NumPy's own files: one array each (.npy), archives of named arrays (.npz), and sparse matrices of SciPy's in them."""

from __future__ import annotations

import logging
import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError
from sotdd.inputs.data import checked_features
from sotdd.inputs.files import exists, reading
from sotdd.inputs.labels import Labels
from sotdd.inputs.loaded import Loaded
from sotdd.inputs.settings import OF_FOLDERS, OF_TABLES, Settings
from sotdd.inputs.streamed import ColumnsInFile, RowsInFile

_log = logging.getLogger("sotdd.inputs")

# Arrays beyond this many bytes that compress by more than this factor are taken for a zip bomb: data never do.
_LARGE = 1 << 30
_SQUEEZED = 100

# The arrays that tell a sparse matrix, as `scipy.sparse.save_npz` writes it, and those that make up one of each format.
_SPARSE = {"format.npy", "shape.npy", "data.npy"}
_PARTS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "bsr": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
}


def open_npy(path: Path, name: str, settings: Settings, labels: Path | None = None) -> Loaded:
    """Open features without reading them, and read labels from the file that ``label`` names."""
    settings.refuse("an .npy file", "features", *OF_FOLDERS, *OF_TABLES)
    if labels is None and settings.label_column is not None:
        labels = _labels_beside(path, str(settings.label_column))
    if labels is None and not settings.unlabelled:
        raise SotddError(
            f"{path} holds features only: name the file with the labels, {path}::label=LABELS.npy, or pass label=None "
            "(label= in a source text) for one class."
        )
    with reading(path, "an .npy file of numbers, as numpy.save writes it"):
        features = _in_file(path, name)
    return Loaded(features, None if labels is None else Labels.of(_read_labels(labels), len(features), name))


def _in_file(path: Path, name: str) -> RowsInFile | ColumnsInFile:
    file = path.open("rb")
    try:
        shape, fortran_order, dtype = _read_header(file, str(path))
        offset = file.tell()
        _refuse_other_size(path.stat().st_size - offset, shape, dtype, str(path))
        if not shape:
            raise SotddError(f"{path} holds a single number: expected features of shape (n, ...).")
        kind = ColumnsInFile if fortran_order and len(shape) > 1 else RowsInFile
        return kind(name, file, offset, shape, dtype)
    except BaseException:
        file.close()
        raise


def _labels_beside(path: Path, label: str) -> Path:
    """The file with the labels: as named, or in the folder of the features."""
    labels = Path(label)
    return labels if labels.is_absolute() or exists(labels) else path.parent / labels


def _read_labels(path: Path) -> NDArray[Any]:
    """The labels in an .npy file."""
    with reading(path, "an .npy file with one label per row"), path.open("rb") as file:
        shape, _, dtype = _read_header(file, str(path))
        _refuse_other_size(path.stat().st_size - file.tell(), shape, dtype, str(path))
        file.seek(0)
        array: NDArray[Any] = np.load(file, allow_pickle=False)
        return array


def _read_header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns come first, and dtype; pickled objects are refused before anything else is read."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, fortran_order, dtype = np.lib.format.read_array_header_2_0(file)
    else:
        raise SotddError(f"{name} has records with names, format {version}: expected a plain array.")
    if dtype.hasobject:
        raise SotddError(f"cannot read {name} (it holds Python objects): save arrays of numbers or texts instead.")
    return shape, fortran_order, dtype


def _refuse_other_size(actual: int, shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> None:
    """Refuse a file whose header declares another size than it has: one was cut short, or the other made up."""
    declared = math.prod(map(int, shape), start=dtype.itemsize)  # of Python: no header makes that overflow
    if actual != declared:
        raise SotddError(
            f"cannot read {name}: its header declares {declared:,} bytes, shape {shape} of {dtype}, but there are "
            f"{actual:,}."
        )


def open_npz(path: Path, name: str, settings: Settings) -> Loaded:
    """Read the features X and the labels y, or arrays of other names; or what `scipy.sparse.save_npz` wrote."""
    settings.refuse("an .npz file", *OF_FOLDERS, *OF_TABLES)
    if settings.features is not None and len(settings.features) > 1:
        raise SotddError(f"features of {path} are {len(settings.features)} names: expected one array.")
    wanted = "X" if settings.features is None else str(settings.features[0])
    label = "y" if settings.label_column is None else str(settings.label_column)
    with reading(path, "an .npz file of number and text arrays"), path.open("rb") as file:
        if file.read(6) == b"\x93NUMPY":
            raise SotddError(f"{path} holds a single array: save X and y with numpy.savez.")
        with zipfile.ZipFile(file) as archive:
            members = set(archive.namelist())
            sparse = settings.features is None and members >= _SPARSE and "X.npy" not in members
            features = (
                _read_sparse(lambda member: _array(archive, member, path), path)
                if sparse
                else _array(archive, wanted, path)
            )
            if settings.unlabelled:
                labels = None
            elif sparse and label.endswith(".npy"):
                labels = _read_labels(_labels_beside(path, label))
            elif settings.label_is_auto and f"{label}.npy" not in members:
                _log.info("%s has no array %r: all its points count as one class.", path, label)
                labels = None
            else:
                labels = _array(archive, label, path)
    checked = checked_features(features, name)
    return Loaded(checked, None if labels is None else Labels.of(labels, len(checked), name))


def _array(archive: zipfile.ZipFile, name: str, path: Path) -> NDArray[Any]:
    """One array, whose size is checked before it is read."""
    if f"{name}.npy" not in archive.namelist():
        names = [member.removesuffix(".npy") for member in archive.namelist()]
        raise SotddError(f"{path} has no array {name!r}, only {', '.join(names) or 'none'}: check the name.")
    member = archive.getinfo(f"{name}.npy")
    what = f"array {name!r} of {path}"
    with archive.open(member) as file:
        shape, _, dtype = _read_header(file, what)
        _refuse_other_size(member.file_size - file.tell(), shape, dtype, what)
        if member.file_size > _LARGE and member.file_size > _SQUEEZED * member.compress_size:
            raise SotddError(
                f"{what} takes {member.compress_size / 1e6:,.1f} MB and would become {member.file_size / 1e9:,.1f} GB, "
                "as a zip bomb does: if that is right, save it with numpy.savez, which does not compress."
            )
    with archive.open(member) as file:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        return array


def _read_sparse(array: Callable[[str], NDArray[Any]], path: Path) -> Any:  # noqa: ANN401  # one of SciPy's
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
