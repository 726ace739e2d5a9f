"""The files of sketches and of builders: arrays and a header, checked whole when they are read.

A file is in the safetensors format, readable without this package and without pickle. Its metadata have
one entry, ``sotdd``: a JSON object with the version of the format, the kind of content, the recipe of the
projections, what else that kind keeps, and a checksum over all of it and over every array.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError
from sotdd.basics.files import reason
from sotdd.projections.recipe import Projections
from sotdd.projections.scaler import Scaler

VERSION = 2  # 1 kept nothing of what a sketch has lost; it is read all the same
_KEY = "sotdd"

Arrays = dict[str, NDArray[Any]]
Header = dict[str, Any]


def packed(kind: str, header: Mapping[str, Any], arrays: Arrays) -> bytes:
    """The content of a file."""
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}  # saved as they lie in memory
    whole: Header = {"format": VERSION, "kind": kind, **header}
    whole["checksum"] = _checksum(whole, arrays)
    content: bytes = save(arrays, metadata={_KEY: json.dumps(whole, allow_nan=False)})
    return content


def unpacked(kind: str, content: bytes, name: str) -> tuple[Header, Arrays]:
    """The header and the arrays of a file of this kind, or an error that says what is wrong with it."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays: Arrays = load(content)
        header: Header = json.loads(_metadata(content)[_KEY])
        version = header["format"]
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise SotddError(
            f"{name!r} is not a whole {kind} ({first_line(error)}): it is damaged, cut short or another kind of file."
        ) from error
    if version not in range(1, VERSION + 1):
        raise SotddError(
            f"{name!r} has version {version} of the format but this sotdd reads up to {VERSION}: update sotdd."
        )
    if header.pop("checksum", None) != _checksum(header, arrays):
        raise SotddError(f"{name!r} is damaged: its checksum does not match. Copy or make it again.")
    if header["kind"] != kind:
        raise SotddError(f"{name!r} holds a {header['kind']}: expected a {kind}.")
    return header, arrays


def content_of(path: Path, kind: str) -> bytes:
    """Read a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise SotddError(f"cannot read {str(path)!r} ({reason(error)}): expected the file of a {kind}.") from error


def seen_through(projections: Projections) -> tuple[Header, Arrays]:
    """What a file tells of projections: entries of its header, and its arrays."""
    return described_as(projections.recipe(), projections.fingerprint, projections.scaler)


def described_as(recipe: Mapping[str, Any], fingerprint: str, scaler: Scaler | None) -> tuple[Header, Arrays]:
    """The same, from a description."""
    header: Header = {"recipe": dict(recipe), "fingerprint": fingerprint}
    if scaler is None:
        return header, {}
    header["scale_remarks"] = list(scaler.remarks)
    if isinstance(scaler.scale, float):
        header["scale"] = scaler.scale
        return header, {"centre": scaler.centre}
    return header, {"centre": scaler.centre, "scale": scaler.scale}


def scaler_in(header: Header, arrays: Arrays) -> Scaler | None:
    """The scaler that a file tells of."""
    if "centre" not in arrays:
        return None
    columns = tuple(header["recipe"]["columns"]) if "columns" in header["recipe"] else None
    scale = arrays["scale"] if "scale" in arrays else header["scale"]
    return Scaler(arrays["centre"], scale, columns, tuple(header.get("scale_remarks", ())))


def _checksum(header: Mapping[str, Any], arrays: Arrays) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(array.data)
    return digest.hexdigest()


def _metadata(content: bytes) -> dict[str, str]:
    """The metadata of a safetensors header, whose length is its first eight bytes."""
    length = int.from_bytes(content[:8], "little")
    found: dict[str, str] = json.loads(content[8 : 8 + length])["__metadata__"]
    return found
