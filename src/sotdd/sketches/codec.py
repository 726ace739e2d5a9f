"""The format of all files that this package writes, but for tables and pictures.

A file is in the safetensors format, readable without this package and without pickle. Its metadata have one entry,
``sotdd``: a JSON object with the version of the format, the kind of content, the recipe of the projections, what else
that kind keeps, and a checksum over all of it and over every array. Where features were scaled there is an array
``centre`` (d,), with ``scale`` (d,) if each feature has its own; tilted directions have ``basis`` (r, d) and
``stretch`` (r,).

Anyone can write a file with a valid checksum. Compiled loops trust the shapes, the order and the signs of what they
are given, so every entry of a header and every array passes through `Checked` first.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Hashable, Mapping
from os import PathLike
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import described, first_line
from sotdd.basics.errors import SotddError
from sotdd.basics.files import shown
from sotdd.basics.text import json_label
from sotdd.projections.directions import TILTED_TURNS, Tilted
from sotdd.projections.recipe import Projections
from sotdd.projections.restore import restored
from sotdd.projections.scaler import Scaler
from sotdd.sketches.counting import BINS, Histograms
from sotdd.sketches.sketch import check_projections

VERSION = 1
_METADATA_KEY = "sotdd"
# Blocks of directions with more features do not fit in memory.
MOST_FEATURES = 1 << 24
# Neighbours that fall by less than this share of the largest value in their row are equal but for rounding.
_ROUNDING = 1e-5
# Projected values are float32.
_LARGEST = float(np.finfo(np.float32).max)
# More points than this were never counted: sums of counts stay within 64 bits.
_MOST_POINTS = 2**62

Arrays = dict[str, NDArray[Any]]
Header = dict[str, Any]
T = TypeVar("T")


def packed(kind: str, header: Mapping[str, Any], arrays: Arrays) -> bytes:
    """The content of a file of this kind."""
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}  # saved as they lie in memory
    whole: Header = {"format": VERSION, "kind": kind, **header}
    whole["checksum"] = _checksum(whole, arrays)
    content: bytes = save(arrays, metadata={_METADATA_KEY: json.dumps(whole, allow_nan=False)})
    return content


def unpacked(kind: str, content: bytes, name: str | PathLike[str]) -> Checked:
    """The content of a file of this kind, to be taken out piece by piece, or an error that says what is wrong."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays: Arrays = load(content)
        header = header_of(content)
        version = header["format"]
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise SotddError(
            f"{shown(name)} is not a whole {kind} ({first_line(error)}): it is damaged, cut short or another kind of "
            "file."
        ) from error
    if version != VERSION:
        raise SotddError(
            f"{shown(name)} has version {described(version)} of the format but this sotdd reads {VERSION}: "
            "update sotdd, or make the file again."
        )
    if header.pop("checksum", None) != _checksum(header, arrays):
        raise SotddError(f"{shown(name)} is damaged: its checksum does not match. Copy or make it again.")
    checked = Checked(header, arrays, name)
    if header.get("kind") != kind:
        raise SotddError(f"{shown(name)} holds a {checked.get('kind', str)[:60]}: expected a {kind}.")
    return checked


def header_of(content: bytes) -> Header:
    """The header in a safetensors file, whose length is its first eight bytes."""
    length = int.from_bytes(content[:8], "little")
    header: Header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][_METADATA_KEY])
    return header


def _checksum(header: Mapping[str, Any], arrays: Arrays) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(array.data)
    return digest.hexdigest()


class Checked:
    """The header and the arrays of a file, handed out one by one, each held to what it must be."""

    def __init__(
        self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], name: str | PathLike[str]
    ) -> None:
        self._header, self._arrays, self.name = header, arrays, name

    def refused(self, what: str) -> SotddError:
        """The error for a file that holds something that it cannot."""
        return SotddError(f"{shown(self.name)} cannot be used: {what}. It was not written by sotdd; make it again.")

    # ------------------------------------------------------------------ the header

    def get(self, key: str, kind: type[T]) -> T:
        """An entry of the header, of this JSON type."""
        value = self._header.get(key)
        if type(value) is not kind:
            raise self.refused(f"its {key!r} is missing or not of type {kind.__name__}")
        return value

    def has(self, key: str) -> bool:
        """Whether the header has an entry that is not null."""
        return self._header.get(key) is not None

    def within(self, key: str) -> Checked:
        """An object in the header, with the same arrays."""
        return Checked(self.get(key, dict), self._arrays, self.name)

    def texts(self, key: str) -> tuple[str, ...]:
        """Texts; none where the entry is missing."""
        values = self.get(key, list) if self.has(key) else []
        if not all(isinstance(value, str) for value in values):
            raise self.refused(f"its {key!r} are no texts")
        return tuple(values)

    def count(self, key: str, most: int = _MOST_POINTS) -> int:
        """A whole number of at least one, and at most another."""
        return self._whole(self._header.get(key), key, 1, most)

    def number(self, key: str) -> float:
        """A finite number."""
        value = self._header.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and -1e300 < value < 1e300:
            return float(value)
        raise self.refused(f"its {key!r} is no number")

    def labels(self) -> tuple[Hashable, ...]:
        """Labels that JSON can hold, no two the same."""
        values = self.get("classes", list)
        if not all(_is_label(value) for value in values):
            raise self.refused("its 'classes' are no labels")
        if len(set(values)) < len(values):
            raise self.refused("its 'classes' hold a label twice")
        return tuple(values)

    def class_counts(self, n_classes: int) -> list[int]:
        """How many points each class has."""
        values = self.get("counts", list)
        if len(values) != n_classes:
            raise self.refused("its 'counts' are not one for each class")
        return [self._whole(value, "counts", 0) for value in values]

    def _whole(self, value: Any, key: str, least: int, most: int = _MOST_POINTS) -> int:  # noqa: ANN401
        if type(value) is not int or not least <= value <= most:
            raise self.refused(f"its {key!r} hold {value!r} where a whole number from {least} to {most:,} belongs")
        return value

    # ------------------------------------------------------------------ the arrays

    def holds(self, name: str) -> bool:
        """Whether there is an array of this name."""
        return name in self._arrays

    def array(self, name: str, dtypes: tuple[type, ...], shape: tuple[int | None, ...]) -> NDArray[Any]:
        """An array of one of these types and of this shape, where None stands for any size of at least one."""
        array = self._arrays.get(name)
        if array is None:
            raise self.refused(f"it has no array {name!r}")
        if not any(array.dtype == dtype for dtype in dtypes):
            raise self.refused(f"its array {name!r} has the type {array.dtype}")
        fits = array.ndim == len(shape) and all(
            size == (wanted if wanted is not None else max(size, 1))
            for size, wanted in zip(array.shape, shape, strict=True)
        )
        if not fits:
            raise self.refused(f"its array {name!r} has the shape {array.shape}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise self.refused(f"its array {name!r} holds NaN or infinity")
        return array

    def ascending(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """An array whose rows do not fall, beyond what rounding leaves of equal means."""
        wide = array.astype(np.float64)
        if (np.diff(wide, axis=1) < -_ROUNDING * np.abs(wide).max(axis=1, keepdims=True)).any():
            raise self.refused(f"the rows of its array {name!r} are not sorted")
        return array

    def not_negative(self, name: str, dtype: type, shape: tuple[int | None, ...]) -> NDArray[Any]:
        """An array without negative numbers, whose sum is no more than points can be counted."""
        array = self.array(name, (dtype,), shape)
        if (array < 0).any():
            raise self.refused(f"its array {name!r} holds negative numbers")
        if array.dtype.kind in "iu" and float(array.sum(dtype=np.float64)) > _MOST_POINTS:
            raise self.refused(f"its array {name!r} counts more than there can be")
        return array

    def lengths(self, name: str, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
        """How far projected values are apart: not negative, and no more than such values can be."""
        array = self.not_negative(name, np.float64, shape)
        if (array > 4 * _LARGEST).any():
            raise self.refused(f"its array {name!r} holds numbers beyond all projected values")
        return array

    def histograms(self, key: str, name: str, n_projections: int, n_bins: int = BINS) -> dict[Hashable, Histograms]:
        """Groups of counted values, whose counts lie within their ranges and add up to their points."""
        groups = self._groups(key)
        if not groups:
            return {}
        counts = self.array(f"{name} counts", (np.uint32, np.uint64), (len(groups), n_projections, n_bins))
        low, high = self._ranges(name, (len(groups), n_projections))
        histograms = {}
        for index, (label, n_points) in enumerate(groups):
            group = Histograms(counts[index].copy(), low[index].copy(), high[index].copy(), n_points)
            if not group.is_sound():
                raise self.refused(f"the counts of its {name!r} do not fit their ranges")
            histograms[label] = group
        return histograms

    def _groups(self, key: str) -> list[tuple[Hashable, int]]:
        """Groups of counted values: a label, or null for all, and how many points it has."""
        values = self.get(key, list)
        pairs = all(isinstance(pair, list) and len(pair) == 2 for pair in values)
        if not pairs or not all(_is_label(label) or label is None for label, _ in values):
            raise self.refused(f"its {key!r} are no groups of points")
        if len({label for label, _ in values}) < len(values):
            raise self.refused(f"its {key!r} hold a group twice")
        return [(label, self._whole(size, key, 0)) for label, size in values]

    def _ranges(self, name: str, shape: tuple[int, ...]) -> list[NDArray[np.float64]]:
        """The lowest and the highest value of rows; infinite the wrong way round where nothing was counted."""
        ends = [self._arrays.get(f"{name} {end}", np.empty(0)) for end in ("low", "high")]
        if any(array.dtype != np.float64 or array.shape != shape or np.isnan(array).any() for array in ends):
            raise self.refused(f"the ranges of its {name!r} are missing, or none that was counted")
        low, high = ends
        nothing = (low == np.inf) & (high == -np.inf)
        within = (np.abs(low) <= _LARGEST) & (np.abs(high) <= _LARGEST)
        if not (nothing | (within & (low <= high))).all():
            raise self.refused(f"the ranges of its {name!r} are too wide or the wrong way round")
        return ends


def _is_label(value: object) -> bool:
    return isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value))


def pack_labels(labels: list[Hashable]) -> list[str | int | float | bool | None]:
    """Labels as JSON values, or an error where one would come back changed and not merge with another party's."""
    written = [json_label(label) for label in labels]
    for label, text in zip(labels, written, strict=True):
        if label != text:
            raise SotddError(f"the label {label!r} cannot be written to a file unchanged: use text or numbers.")
    return written


# ------------------------------------------------------------------ projections


def pack_recipe(
    recipe: Mapping[str, Any], fingerprint: str, scaler: Scaler | None, tilt: Tilted | None
) -> tuple[Header, Arrays]:
    """What a file says of its projections: entries of the header, and arrays."""
    header: Header = {"recipe": dict(recipe), "fingerprint": fingerprint}
    arrays: Arrays = {}
    if tilt is not None:
        arrays |= {"basis": tilt.basis.astype(np.float32), "stretch": tilt.stretch}
    if scaler is None:
        return header, arrays
    header["scale_remarks"] = list(scaler.remarks)
    arrays["centre"] = scaler.centre
    if isinstance(scaler.scale, float):
        header["scale"] = scaler.scale
    else:
        arrays["scale"] = scaler.scale
    return header, arrays


def pack_projections(projections: Projections) -> tuple[Header, Arrays]:
    """What a file says of its projections."""
    return pack_recipe(projections.recipe(), projections.fingerprint, projections.scaler, projections.tilt)


def read_scaler(checked: Checked) -> Scaler | None:
    """The scaler of the projections that a file was made with."""
    recipe = checked.within("recipe")
    n_features = recipe.count("n_features")
    columns = recipe.texts("columns") or None
    if columns is not None and len(columns) != n_features:
        raise checked.refused("its columns are not one for each feature")
    if not checked.holds("centre"):
        return None
    centre = checked.array("centre", (np.float64,), (n_features,))
    each = checked.array("scale", (np.float64,), (n_features,)) if checked.holds("scale") else None
    scale = checked.number("scale") if each is None else each
    try:
        return Scaler(centre, scale, columns, checked.texts("scale_remarks"))
    except SotddError as error:
        raise checked.refused(first_line(error)) from error


def read_tilt(checked: Checked) -> Tilted | None:
    """The tilt of the directions that a file was made with; None where they were not tilted."""
    if not checked.holds("basis"):
        return None
    recipe = checked.within("recipe")
    law = recipe.within("directions")
    basis = checked.array("basis", (np.float32,), (None, recipe.count("n_features")))
    stretch = checked.array("stretch", (np.float64,), (len(basis),))
    try:
        return Tilted(basis, stretch, law.get("law", str) == TILTED_TURNS)
    except SotddError as error:
        raise checked.refused(first_line(error)) from error


def restore_projections(checked: Checked) -> Projections:
    """The projections of a file, drawn again from its recipe, or an error that says why they cannot be."""
    if checked.within("recipe").count("n_features") > MOST_FEATURES:
        raise SotddError("they have more features than can be drawn")
    scaler, tilt, fingerprint = read_scaler(checked), read_tilt(checked), checked.get("fingerprint", str)
    try:
        return restored(checked.get("recipe", dict), scaler, fingerprint, tilt)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, MemoryError) as error:
        if isinstance(error, SotddError):
            raise
        raise SotddError("its recipe is not one that this sotdd writes") from error


def read_projections(checked: Checked, projections: Projections | None) -> Projections:
    """The projections of a file: drawn again from its recipe, or those passed, once they are checked."""
    if projections is None:
        try:
            return restore_projections(checked)
        except SotddError as error:
            raise SotddError(f"{shown(checked.name)} needs its projections: {error}; pass projections=.") from error
    if check_projections(projections).fingerprint != checked.get("fingerprint", str):
        raise SotddError(f"{shown(checked.name)} was made through other projections than those passed: pass its own.")
    return projections
