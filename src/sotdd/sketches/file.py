"""Sketches on disk: one safetensors file, readable without this package and without pickle.

The arrays are ``quantiles`` (L, Q), ``counts`` (C,), ``class_terms`` (L, C) and, where features were
scaled, ``centre`` (d,). A half-size file holds ``quantiles`` in 16 bits, with ``low`` and ``step`` (L,) to
read them by: low + step × number. The header's metadata has one entry, ``sotdd``: a JSON object with the
version of the format, what the sketch is of, the recipe of its projections, and a checksum over all of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.checks import first_line
from sotdd.errors import SotddError
from sotdd.files import reason, write_whole
from sotdd.projections.recipe import Projections
from sotdd.projections.restore import restored
from sotdd.result import json_label
from sotdd.scaling import Scaler
from sotdd.sketches.sketch import Sketch

VERSION = 1
_LEVELS = 65535  # of a 16-bit number
_KEY = "sotdd"

Arrays = dict[str, NDArray[Any]]


def write(sketch: Sketch, path: Path, half: bool = False) -> None:
    """Write a sketch, whole or not at all."""
    write_whole(path, to_bytes(sketch, half))


def read(path: Path) -> Sketch:
    """Read a sketch, or refuse a file that is not one."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SotddError(
            f"cannot read {str(path)!r} ({reason(error)}): expected a file made by Sketch.save."
        ) from error
    return from_bytes(content, str(path))


def to_bytes(sketch: Sketch, half: bool = False) -> bytes:
    """The content of a file."""
    from safetensors.numpy import save

    arrays: Arrays = {"counts": sketch.counts, "class_terms": sketch.class_terms}
    if sketch.scaler is not None:
        arrays["centre"] = sketch.scaler.centre
    arrays.update(_in_16_bits(sketch.quantiles) if half else {"quantiles": sketch.quantiles})
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}  # saved as they lie in memory
    header: dict[str, Any] = {
        "format": VERSION,
        "name": sketch.name,
        "classes": [json_label(label) for label in sketch.classes],
        "exact": sketch.exact,
        "recipe": dict(sketch.recipe),
        "fingerprint": sketch.fingerprint,
        "scale": None if sketch.scaler is None else sketch.scaler.scale,
    }
    header["checksum"] = _checksum(header, arrays)
    content: bytes = save(arrays, metadata={_KEY: json.dumps(header, allow_nan=False)})
    return content


def from_bytes(content: bytes, name: str = "the file", known: Projections | None = None) -> Sketch:
    """A sketch from the content of a file, or an error that says what is wrong with it.

    Projections that are ``known`` are not drawn again, where the sketch is through them.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays: Arrays = load(content)
        header = json.loads(_metadata(content)[_KEY])
        version = header["format"]
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise SotddError(
            f"{name!r} is not a whole sketch ({first_line(error)}): it is damaged, cut short or another kind of file."
        ) from error
    if version != VERSION:
        raise SotddError(
            f"{name!r} has version {version} of the format of sketches but this sotdd reads version {VERSION}: "
            "update sotdd."
        )
    if header.pop("checksum", None) != _checksum(header, arrays):
        raise SotddError(f"{name!r} is damaged: its checksum does not match. Copy or make it again.")
    return _sketch(header, arrays, known)


def _sketch(header: dict[str, Any], arrays: Arrays, known: Projections | None) -> Sketch:
    scaler = Scaler(arrays["centre"], header["scale"]) if "centre" in arrays else None
    quantiles = arrays["quantiles"]
    if "step" in arrays:
        quantiles = (arrays["low"][:, None] + arrays["step"][:, None] * quantiles).astype(np.float32)
    return Sketch(
        header["name"],
        quantiles,
        header["exact"],
        tuple(header["classes"]),
        arrays["counts"],
        arrays["class_terms"],
        header["recipe"],
        header["fingerprint"],
        scaler,
        known if known and known.fingerprint == header["fingerprint"] else _projections(header, scaler),
    )


def _projections(header: Mapping[str, Any], scaler: Scaler | None) -> Projections | None:
    try:
        return restored(header["recipe"], scaler, header["fingerprint"])
    except SotddError:  # sketches can be compared without them; whoever needs them says that they are missing
        return None


def _in_16_bits(quantiles: NDArray[np.float32]) -> Arrays:
    wide = quantiles.astype(np.float64)
    low = wide[:, 0]
    step = (wide[:, -1] - low) / _LEVELS
    numbers = np.rint((wide - low[:, None]) / np.where(step > 0, step, 1.0)[:, None])
    return {"quantiles": numbers.astype(np.uint16), "low": low, "step": step}


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
