"""NumPy's own files: one array each (.npy), archives of named arrays (.npz), and sparse matrices of SciPy's in them."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.remarks import Remark
from sotdd.basics.text import join_names
from sotdd.inputs.data import PLAIN, check_features
from sotdd.inputs.labels import Labels
from sotdd.inputs.preparation import Loaded
from sotdd.inputs.reading import Reading
from sotdd.inputs.sources import exists, reading_file
from sotdd.inputs.streamed import HELD_BYTES

# Arrays beyond this many bytes that compress by more than this factor are taken for a zip bomb: data never do.
_LARGE = 1 << 30
_SQUEEZED = 100

# The arrays that tell a sparse matrix, as `scipy.sparse.save_npz` writes it.
_SPARSE = {"format.npy", "shape.npy", "data.npy"}


def open_npy(path: Path, name: str, reading: Reading, labels: Path | None = None) -> Loaded:
    """Open features without reading them, and read labels from the file that ``label`` names."""
    reading.refuse("an .npy file")
    if labels is None and reading.label_column is not None:
        labels = _labels_beside(path, str(reading.label_column))
    if labels is None and not reading.unlabelled:
        raise SotddError(f"{path} holds features only: name the labels, {path}::label=LABELS.npy, or pass label=None.")
    with reading_file(path, "an .npy file of numbers, as numpy.save writes it"):
        features = check_features(_read_array(path), name)
    return Loaded(features, None if labels is None else Labels.of(_read_labels(labels), len(features), name))


def _read_array(path: Path) -> NDArray[Any]:
    """The array in an .npy file, whose size is checked first; a large one is mapped."""
    with path.open("rb") as file:
        shape, _, dtype = _read_header(file, str(path))
        size = path.stat().st_size - file.tell()
        _refuse_other_size(size, shape, dtype, str(path))
    array: NDArray[Any] = np.load(path, mmap_mode="r" if size > HELD_BYTES else None, allow_pickle=False)
    return array


def _labels_beside(path: Path, label: str) -> Path:
    """The file with the labels: as named, or in the folder of the features."""
    labels = Path(label)
    return labels if labels.is_absolute() or exists(labels) else path.parent / labels


def _read_labels(path: Path) -> NDArray[Any]:
    """The labels in an .npy file."""
    with reading_file(path, "an .npy file with one label per row"):
        return _read_array(path)


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
        raise SotddError(f"cannot read {name}: its header declares {declared:,} bytes, but there are {actual:,}.")


def open_npz(path: Path, name: str, reading: Reading) -> Loaded:
    """Read the features X and the labels y, or arrays of other names; or what `scipy.sparse.save_npz` wrote."""
    reading.refuse("an .npz file")
    if reading.features is not None and len(reading.features) > 1:
        raise SotddError(f"features of {path} are {len(reading.features)} names: expected one array.")
    wanted = "X" if reading.features is None else str(reading.features[0])
    label = "y" if reading.label_column is None else str(reading.label_column)
    origin = PLAIN
    with reading_file(path, "an .npz file of number and text arrays"), path.open("rb") as file:
        if file.read(6) == b"\x93NUMPY":
            raise SotddError(f"{path} holds a single array: save X and y with numpy.savez.")
        with zipfile.ZipFile(file) as archive:
            members = set(archive.namelist())
            sparse = reading.features is None and members >= _SPARSE and "X.npy" not in members
            features = _read_sparse(archive, path) if sparse else _array(archive, wanted, path)
            if reading.unlabelled:
                labels = None
            elif sparse and label.endswith(".npy"):
                labels = _read_labels(_labels_beside(path, label))
            elif reading.label_is_auto and f"{label}.npy" not in members:
                labels, origin = None, origin.also(Remark("no labels", array=label))
            else:
                labels = _array(archive, label, path)
    checked = check_features(features, name)
    return Loaded(checked, None if labels is None else Labels.of(labels, len(checked), name), origin=origin)


def _array(archive: zipfile.ZipFile, name: str, path: Path) -> NDArray[Any]:
    """One array, whose size is checked before it is read."""
    _check_array(archive, name, path)
    with archive.open(f"{name}.npy") as file:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        return array


def _check_array(archive: zipfile.ZipFile, name: str, path: Path) -> np.dtype[Any]:
    """The dtype of an array; one that is not there, has another size than it declares, or is a bomb is refused."""
    if f"{name}.npy" not in archive.namelist():
        names = [member.removesuffix(".npy") for member in archive.namelist()]
        raise SotddError(f"{path} has no array {name!r}, only {join_names(names) or 'none'}: check the name.")
    member = archive.getinfo(f"{name}.npy")
    what = f"array {name!r} of {path}"
    with archive.open(member) as file:
        shape, _, dtype = _read_header(file, what)
        _refuse_other_size(member.file_size - file.tell(), shape, dtype, what)
    if member.file_size > _LARGE and member.file_size > _SQUEEZED * member.compress_size:
        sizes = f"{member.compress_size / 1e6:,.1f} MB and would become {member.file_size / 1e9:,.1f} GB"
        raise SotddError(f"{what} takes {sizes}, as a zip bomb does: save it with numpy.savez.")
    return dtype


def _read_sparse(archive: zipfile.ZipFile, path: Path) -> Any:  # noqa: ANN401  # one of SciPy's
    """The matrix whose parts an archive holds; whether they belong together is checked where it is opened."""
    from scipy import sparse

    with reading_file(path, "a sparse matrix, as scipy.sparse.save_npz writes it"):
        for name in [member.removesuffix(".npy") for member in archive.namelist()]:
            if _check_array(archive, name, path).kind not in "iu" and name not in ("data", "format"):
                raise ValueError(f"its {name!r} are no integers")
        return sparse.load_npz(path)
