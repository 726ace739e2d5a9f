"""The format of all files that this package writes, but for tables and pictures.

A file is in the safetensors format, readable without this package and without pickle. Its metadata have one entry,
``sotdd``: a JSON object with the version of the format, the kind of content, what that kind keeps, and a checksum over
all of it and over every array.

Anyone can write a file with a valid checksum. Compiled loops trust the shapes, the order and the signs of what they
are given, so every entry of a header and every array passes through a `Reader` first.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Hashable, Mapping, Sequence
from os import PathLike
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, describe, first_line
from sotdd.basics.remarks import SENTENCES, Remark, Remarks
from sotdd.basics.text import json_label, quote

VERSION = 1
_METADATA_KEY = "sotdd"
# Neighbours that fall by less than this share of the largest value in their row are equal but for rounding.
_ROUNDING = 1e-5
# More points than this were never counted: sums of counts stay within 64 bits.
_MOST_POINTS = 2**62
# No projected value, which are float32, is larger.
LARGEST_VALUE = float(np.finfo(np.float32).max)

Arrays = dict[str, NDArray[Any]]
Header = dict[str, Any]
T = TypeVar("T")


def pack(kind: str, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any] | None]) -> bytes:
    """The content of a file of this kind; arrays that are None are left out."""
    from safetensors.numpy import save

    # Arrays are saved as they lie in memory.
    held = {name: np.ascontiguousarray(array) for name, array in arrays.items() if array is not None}
    whole: Header = {"format": VERSION, "kind": kind, **header}
    whole["checksum"] = _compute_checksum(whole, held)
    content: bytes = save(held, metadata={_METADATA_KEY: json.dumps(whole, allow_nan=False)})
    return content


def unpack(kind: str, content: bytes, name: str | PathLike[str]) -> Reader:
    """The content of a file of this kind, to be taken out piece by piece, or an error that says what is wrong."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays: Arrays = load(content)
        header = read_header(content)
        version = header["format"]
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise SotddError(
            f"{quote(name)} is not a whole {kind} ({first_line(error)}): it is damaged, cut short or another kind of "
            "file."
        ) from error
    if version != VERSION:
        raise SotddError(
            f"{quote(name)} has version {describe(version)} of the format but this sotdd reads {VERSION}: "
            "update sotdd, or make the file again."
        )
    if header.pop("checksum", None) != _compute_checksum(header, arrays):
        raise SotddError(f"{quote(name)} is damaged: its checksum does not match. Copy or make it again.")
    reader = Reader(header, arrays, name)
    if header.get("kind") != kind:
        raise SotddError(f"{quote(name)} holds a {reader.get('kind', str)[:60]}: expected a {kind}.")
    return reader


def read_header(content: bytes) -> Header:
    """The header in a safetensors file, whose length is its first eight bytes; NaN and infinity are refused."""
    length = int.from_bytes(content[:8], "little")
    text = json.loads(content[8 : 8 + length])["__metadata__"][_METADATA_KEY]
    header: Header = json.loads(text, parse_float=_parse_finite, parse_constant=_parse_finite)
    return header


def _parse_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"its header has {text} for a number")
    return number


def _compute_checksum(header: Mapping[str, Any], arrays: Arrays) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(array.data)
    return digest.hexdigest()


def pack_labels(labels: Sequence[Hashable]) -> list[str | int | float | bool | None]:
    """Labels as JSON values, or an error where one would come back changed and not merge with another party's."""
    written = [json_label(label) for label in labels]
    for label, text in zip(labels, written, strict=True):
        if label != text:
            raise SotddError(f"the label {label!r} cannot be written to a file unchanged: use text or numbers.")
    return written


def pack_remarks(remarks: Remarks) -> list[Header]:
    """Remarks as JSON values."""
    return [{"kind": remark.kind, "about": remark.about, "facts": remark.facts} for remark in remarks]


class Reader:
    """The header and the arrays of a file, handed out one by one, each held to what it must be."""

    def __init__(
        self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], name: str | PathLike[str]
    ) -> None:
        self._header, self._arrays = header, arrays
        self.name: str | PathLike[str] = name

    def refuse(self, what: str) -> SotddError:
        """The error to raise for a file that holds something that it cannot."""
        return SotddError(f"{quote(self.name)} cannot be used: {what}. It was not written by sotdd; make it again.")

    # ------------------------------------------------------------------ the header

    def get(self, key: str, kind: type[T]) -> T:
        """An entry of the header, of this JSON type."""
        value = self._header.get(key)
        if type(value) is not kind:
            raise self.refuse(f"its {key!r} is missing or not of type {kind.__name__}")
        return value

    def has(self, key: str) -> bool:
        """Whether the header has an entry that is not null."""
        return self._header.get(key) is not None

    def within(self, key: str) -> Reader:
        """An object in the header, with the same arrays."""
        return Reader(self.get(key, dict), self._arrays, self.name)

    def texts(self, key: str) -> tuple[str, ...]:
        """Texts; none where the entry is missing."""
        values = self.get(key, list) if self.has(key) else []
        if not all(isinstance(value, str) for value in values):
            raise self.refuse(f"its {key!r} are no texts")
        return tuple(values)

    def count(self, key: str, most: int = _MOST_POINTS) -> int:
        """A whole number of at least one, and at most another."""
        value = self._header.get(key)
        if type(value) is not int or not 1 <= value <= most:
            raise self.refuse(f"its {key!r} is {describe(value)} where a whole number from 1 to {most:,} belongs")
        return value

    def number(self, key: str) -> float:
        """A finite number."""
        value = self._header.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and -1e300 < value < 1e300:
            return float(value)
        raise self.refuse(f"its {key!r} is no number")

    def labels(self) -> tuple[Hashable, ...]:
        """Labels that JSON can hold, no two the same."""
        values = self.get("classes", list)
        if not all(isinstance(value, (str, int, float)) for value in values):
            raise self.refuse("its 'classes' are no labels")
        if len(set(values)) < len(values):
            raise self.refuse("its 'classes' hold a label twice")
        return tuple(values)

    def remarks(self, key: str) -> Remarks:
        """Remarks of kinds that there are, with the facts that their sentences need."""
        values, unknown = self.get(key, list), self.refuse(f"its {key!r} are not remarks that sotdd makes")
        try:
            remarks = tuple(Remark(value["kind"], value["about"], **_freeze(value["facts"])) for value in values)
            known = [one.kind in SENTENCES and isinstance(one.about, str) and str(one) for one in remarks]
        except Exception as error:  # a sentence fails in any way with facts that are not its own
            raise unknown from error
        if not all(known):
            raise unknown
        return remarks

    # ------------------------------------------------------------------ the arrays

    def holds(self, name: str) -> bool:
        """Whether there is an array of this name."""
        return name in self._arrays

    def rank(self, name: str) -> int:
        """How many axes an array has; 0 for one that is not there."""
        return self._arrays[name].ndim if name in self._arrays else 0

    def array(
        self, name: str, types: str, shape: tuple[int | None, ...], least: float = -math.inf, most: float = math.inf
    ) -> NDArray[Any]:
        """An array, or an error that says what is wrong with it.

        Parameters
        ----------
        name
            Its name.
        types
            Names of the dtypes that it may have, such as "f8" or "u4 u8".
        shape
            Its sizes; None for any size of at least one.
        least, most
            Bounds of its values. Whole numbers that are not negative are counts, whose sum is bounded too.
        """
        array = self._arrays.get(name)
        if array is None:
            raise self.refuse(f"it has no array {name!r}")
        if array.dtype.str[1:] not in types.split():
            raise self.refuse(f"its array {name!r} has the type {array.dtype}")
        sizes = [max(size, 1) if wanted is None else wanted for size, wanted in zip(array.shape, shape)]  # noqa: B905
        if array.ndim != len(shape) or list(array.shape) != sizes:
            raise self.refuse(f"its array {name!r} has the shape {array.shape}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise self.refuse(f"its array {name!r} holds NaN or infinity")
        if least == 0 and (array < 0).any():
            raise self.refuse(f"its array {name!r} holds negative numbers")
        if (array < least).any() or (array > most).any():
            raise self.refuse(f"its array {name!r} holds numbers from {array.min():.3g} to {array.max():.3g}")
        if array.dtype.kind in "iu" and least == 0 and float(array.sum(dtype=np.float64)) > _MOST_POINTS:
            raise self.refuse(f"its array {name!r} counts more than there can be")
        return array

    def check_ascending(self, name: str, array: NDArray[Any]) -> None:
        """Refuse an array whose rows fall, by more than rounding leaves of equal means."""
        wide = array.astype(np.float64)
        if (np.diff(wide, axis=1) < -_ROUNDING * np.abs(wide).max(axis=1, keepdims=True)).any():
            raise self.refuse(f"the rows of its array {name!r} are not sorted")


def _freeze(value: Any) -> Any:  # noqa: ANN401  # any JSON value
    """Facts as remarks have them: JSON has no tuples."""
    if isinstance(value, dict):
        return {key: _freeze(part) for key, part in value.items()}
    return tuple(_freeze(part) for part in value) if isinstance(value, list) else value
