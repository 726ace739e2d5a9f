"""NumPy's own files: one array each (.npy), and archives of named arrays (.npz).

Every array is mapped before anything of it is read: its header cannot ask for more memory than the file has bytes, and
pickled objects are refused.
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.remarks import Remark
from sotdd.basics.text import join_names
from sotdd.inputs.data import PLAIN
from sotdd.inputs.features import check_features
from sotdd.inputs.labels import Labels
from sotdd.inputs.preparation import Loaded
from sotdd.inputs.reading import Reading
from sotdd.inputs.sources import exists, reading_file, refuse_irregular, temporary_folder
from sotdd.inputs.streamed import HELD_BYTES

# Arrays beyond this many bytes that compress by more than this factor are taken for a zip bomb: data never do.
_LARGE = 1 << 30
_SQUEEZED = 100


def open_npy(path: Path, name: str, reading: Reading) -> Loaded:
    """Open features without reading them, and read labels from the file that ``label`` names."""
    reading.refuse("an .npy file")
    if reading.label_column is None and not reading.unlabelled:
        raise SotddError(f"{path} holds features only: name the labels, {path}::label=LABELS.npy, or pass label=None.")
    features = check_features(_read_array(path), name)
    if reading.label_column is None:
        return Loaded(features, None)
    named = Path(str(reading.label_column))  # as it is, or in the folder of the features
    labels = _read_array(named if named.is_absolute() or exists(named) else path.parent / named)
    return Loaded(features, Labels.of(labels, len(features), name))


def _read_array(path: Path, what: object = None) -> NDArray[Any]:
    """The array in an .npy file, which messages call ``what``; a large one stays mapped."""
    refuse_irregular(path)
    with reading_file(what or path, "an array of numbers or texts, as numpy.save writes it"):
        array = np.lib.format.open_memmap(path, "r")
        if array.offset + array.nbytes != path.stat().st_size:
            raise ValueError("its header declares another size")
        return array if array.nbytes > HELD_BYTES else np.array(array)


def open_npz(path: Path, name: str, reading: Reading) -> Loaded:
    """Read the features X and the labels y, or arrays of other names."""
    reading.refuse("an .npz file")
    if reading.features is not None and len(reading.features) > 1:
        raise SotddError(f"features of {path} are {len(reading.features)} names: expected one array.")
    wanted = "X" if reading.features is None else str(reading.features[0])
    label = "y" if reading.label_column is None else str(reading.label_column)
    labels, origin = None, PLAIN
    with reading_file(path, "an .npz file of arrays"), zipfile.ZipFile(path) as archive:
        features = _read_member(archive, wanted, path)
        if reading.label_is_auto and f"{label}.npy" not in archive.NameToInfo:
            origin = origin.also(Remark("no labels", names=(label,)))
        elif not reading.unlabelled:
            labels = _read_member(archive, label, path)
    checked = check_features(features, name)
    return Loaded(checked, None if labels is None else Labels.of(labels, len(checked), name), origin=origin)


def _read_member(archive: zipfile.ZipFile, name: str, path: Path) -> NDArray[Any]:
    """One array of an archive, unpacked into a file of its own; a bomb is refused before."""
    if f"{name}.npy" not in archive.NameToInfo:
        names = [member.removesuffix(".npy") for member in archive.namelist()]
        raise SotddError(f"{path} has no array {name!r}, only {join_names(names) or 'none'}: check the name.")
    member = archive.getinfo(f"{name}.npy")
    if member.file_size > _LARGE and member.file_size > _SQUEEZED * member.compress_size:
        sizes = f"{member.compress_size / 1e6:,.1f} MB and would become {member.file_size / 1e9:,.1f} GB"
        raise SotddError(f"array {name!r} of {path} takes {sizes}, as a zip bomb does: save it with numpy.savez.")
    unpacked = Path(archive.extract(member, tempfile.mkdtemp(dir=temporary_folder().name)))
    array = _read_array(unpacked, f"array {name!r} of {path}")
    if not isinstance(array, np.memmap):
        shutil.rmtree(unpacked.parent)
    return array
