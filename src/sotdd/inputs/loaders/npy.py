"""NumPy's own files: features in one .npy file, labels in another."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.memory import available_bytes
from sotdd.inputs.labels import Labels
from sotdd.inputs.loaded import Loaded
from sotdd.inputs.reading import exists, reading
from sotdd.inputs.settings import Settings
from sotdd.inputs.streamed import ColumnsInFile, RowsInFile

_EXPECTED = "an .npy file of numbers, as numpy.save writes it"


def open_npy(path: Path, name: str, settings: Settings, labels: Path | None = None) -> Loaded:
    """Open features without reading them, and read labels from the file that ``label`` names."""
    settings.refuse("an .npy file holds one array", "features", "split", "broken")
    settings.refuse_for_no_table("an .npy file is no table")
    if labels is None and settings.label_column is not None:
        labels = labels_beside(path, str(settings.label_column))
    if labels is None and not settings.unlabelled:
        raise SotddError(
            f"{path} holds features only: name the file with the labels, {path}::label=LABELS.npy, or pass label=None "
            "(label= in a source text) for one class."
        )
    with reading(path, _EXPECTED):
        features = _in_file(path, name)
    return Loaded(features, None if labels is None else Labels.of(read_labels(labels), len(features), name))


def _in_file(path: Path, name: str) -> RowsInFile | ColumnsInFile:
    file = path.open("rb")
    try:
        shape, fortran_order, dtype = read_header(file, str(path))
        offset = file.tell()
        refuse_other_size(path.stat().st_size - offset, shape, dtype, str(path))
        if not shape:
            raise SotddError(f"{path} holds a single number: expected features of shape (n, ...).")
        kind = ColumnsInFile if fortran_order and len(shape) > 1 else RowsInFile
        return kind(name, file, offset, shape, dtype)
    except BaseException:
        file.close()
        raise


def labels_beside(path: Path, label: str) -> Path:
    """The file with the labels: as named, or in the folder of the features."""
    labels = Path(label)
    return labels if labels.is_absolute() or exists(labels) else path.parent / labels


def read_labels(path: Path) -> NDArray[Any]:
    """The labels in an .npy file."""
    with reading(path, "an .npy file with one label per row"), path.open("rb") as file:
        shape, _, dtype = read_header(file, str(path))
        refuse_other_size(path.stat().st_size - file.tell(), shape, dtype, str(path))
        refuse_beyond_memory(shape, dtype, str(path))
        file.seek(0)
        array: NDArray[Any] = np.load(file, allow_pickle=False)
        return array


def read_header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
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


def refuse_other_size(actual: int, shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> None:
    """Refuse a file whose header declares another size than it has: one was cut short, or the other made up."""
    declared = byte_count(shape, dtype)
    if actual != declared:
        raise SotddError(
            f"cannot read {name}: its header declares {declared:,} bytes, shape {shape} of {dtype}, but there are "
            f"{actual:,}."
        )


def refuse_beyond_memory(shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> None:
    """Refuse an array that does not fit into free memory."""
    needed, free = byte_count(shape, dtype), available_bytes()
    if needed > free:
        raise SotddError(
            f"{name} has shape {shape} of {dtype}, {needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB of memory are "
            "free: save it with numpy.save as .npy, which is read in blocks."
        )


def byte_count(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """How many bytes an array takes; Python integers do not overflow, whatever a header declares."""
    count = dtype.itemsize
    for length in shape:
        count *= int(length)
    return count
