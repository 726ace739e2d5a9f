"""NumPy archives: a file of named arrays, of which one holds features and one labels; or a sparse matrix of SciPy's."""

from __future__ import annotations

import logging
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.inputs.data import checked_features
from sotdd.inputs.labels import Labels
from sotdd.inputs.loaded import Loaded
from sotdd.inputs.loaders.npy import (
    labels_beside,
    read_header,
    read_labels,
    refuse_beyond_memory,
    refuse_other_size,
)
from sotdd.inputs.loaders.saved_sparse import is_saved_sparse, read_sparse
from sotdd.inputs.reading import reading
from sotdd.inputs.settings import Settings

_log = logging.getLogger("sotdd.inputs")

_ADVICE = "name arrays as FILE::features=NAME,label=NAME"

# Arrays beyond this many bytes that compress by more than this factor are taken for a zip bomb: data never do.
_LARGE = 1 << 30
_SQUEEZED = 100


def open_npz(path: Path, name: str, settings: Settings) -> Loaded:
    """Read the features X and the labels y, or arrays of other names; or what `scipy.sparse.save_npz` wrote."""
    settings.refuse("an .npz file has no splits and holds no image files", "split", "broken")
    settings.refuse_for_no_table("an .npz file is no table")
    if settings.features is not None and len(settings.features) > 1:
        raise SotddError(f"features of {path} are {len(settings.features)} names: expected one array.")
    wanted = "X" if settings.features is None else str(settings.features[0])
    label = "y" if settings.label_column is None else str(settings.label_column)
    with reading(path, "an .npz file of number and text arrays"), path.open("rb") as file:
        if file.read(6) == b"\x93NUMPY":
            raise SotddError(f"{path} holds a single array: save X and y with numpy.savez.")
        with zipfile.ZipFile(file) as archive:
            sparse = settings.features is None and is_saved_sparse(archive.namelist())
            features = (
                read_sparse(lambda member: _array(archive, member, path), path)
                if sparse
                else _array(archive, wanted, path)
            )
            if settings.unlabelled:
                labels = None
            elif sparse and label.endswith(".npy"):
                labels = read_labels(labels_beside(path, label))
            elif settings.label_is_auto and f"{label}.npy" not in archive.namelist():
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
        raise SotddError(f"{path} has no array {name!r}, only {', '.join(names) or 'none'}: {_ADVICE}.")
    member = archive.getinfo(f"{name}.npy")
    what = f"array {name!r} of {path}"
    with archive.open(member) as file:
        shape, _, dtype = read_header(file, what)
        refuse_other_size(member.file_size - file.tell(), shape, dtype, what)
        if member.file_size > _LARGE and member.file_size > _SQUEEZED * member.compress_size:
            raise SotddError(
                f"{what} takes {member.compress_size / 1e6:,.1f} MB and would become {member.file_size / 1e9:,.1f} GB, "
                "as a zip bomb does: if that is right, save it with numpy.savez, which does not compress."
            )
        refuse_beyond_memory(shape, dtype, what)
    with archive.open(member) as file:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        return array
