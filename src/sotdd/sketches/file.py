"""Sketches on disk.

The arrays of a file are ``quantiles`` (L, Q), ``counts`` (C,), ``class_terms`` (L, C) and, where features were
scaled, ``centre`` (d,), with ``scale`` (d,) if each feature has its own. A half-size file holds ``quantiles`` in 16
bits, with ``low`` and ``step`` (L,) to read them by: low + step × number. ``lost`` (L, 3) is what the sketch's
distances may be off by; version 1 of the format did not have it, and its files open without a stated error.
``halves`` (2, S), how far apart halves of the data are for p = 1 and p = 2, is there for sketches made from points.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.files import write_whole
from sotdd.projections.recipe import Projections
from sotdd.projections.restore import restored
from sotdd.projections.scaler import Scaler
from sotdd.results.distance import json_label
from sotdd.sketches.container import Arrays, Header, content_of, described_as, packed, scaler_in, unpacked
from sotdd.sketches.sketch import Sketch

_KIND = "sketch"
_LEVELS = 65535  # of a 16-bit number


def write(sketch: Sketch, path: Path, half: bool = False) -> None:
    """Write a sketch, whole or not at all."""
    write_whole(path, to_bytes(sketch, half))


def read(path: Path) -> Sketch:
    """Read a sketch, or refuse a file that is not one."""
    return from_bytes(content_of(path, _KIND), str(path))


def to_bytes(sketch: Sketch, half: bool = False) -> bytes:
    """The content of a file."""
    header, arrays = described_as(sketch.recipe, sketch.fingerprint, sketch.scaler)
    header |= {
        "name": sketch.name,
        "classes": [json_label(label) for label in sketch.classes],
        "exact": sketch.exact,
        "remarks": list(sketch.remarks),
    }
    arrays |= {"counts": sketch.counts, "class_terms": sketch.class_terms}
    arrays |= {} if sketch.lost is None else {"lost": sketch.lost}
    arrays |= {} if sketch.halves is None else {"halves": sketch.halves}
    arrays |= _in_16_bits(sketch.quantiles) if half else {"quantiles": sketch.quantiles}
    return packed(_KIND, header, arrays)


def from_bytes(content: bytes, name: str = "the file", known: Projections | None = None) -> Sketch:
    """A sketch from the content of a file, or an error that says what is wrong with it.

    Projections that are ``known`` are not drawn again, where the sketch is through them.
    """
    header, arrays = unpacked(_KIND, content, name)
    scaler = scaler_in(header, arrays)
    same = known is not None and known.fingerprint == header["fingerprint"]
    projections = known if same else _drawn_again(header, scaler)
    quantiles, lost = arrays["quantiles"], arrays.get("lost")
    if "step" in arrays:
        quantiles = (arrays["low"][:, None] + arrays["step"][:, None] * quantiles).astype(np.float32)
        if lost is not None:
            lost = lost + arrays["step"][:, None] * [0.0, 0.0, 0.5]  # values were rounded to the nearest step
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
        projections,
        lost,
        tuple(header.get("remarks", ())),
        arrays.get("halves"),
    )


def _drawn_again(header: Header, scaler: Scaler | None) -> Projections | None:
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
