"""Sketches on disk, and the format that the files of builders share.

A file is in the safetensors format, readable without this package and without pickle. Its metadata have one
entry, ``sotdd``: a JSON object with the version of the format, the kind of content, the recipe of the projections,
what else that kind keeps, and a checksum over all of it and over every array.

The arrays of a sketch are ``quantiles`` (L, Q), ``counts`` (C,), ``class_terms`` (L, C) and, where features were
scaled, ``centre`` (d,), with ``scale`` (d,) if each feature has its own. A half-size file holds ``quantiles`` in 16
bits, with ``low`` and ``step`` (L,) to read them by: low + step × number. ``lost`` (L, 3) is how far off the sketch's
distances may be; version 1 of the format did not have it, and its files open without a stated error. ``spacing`` says
how probability is cut into the Q parts (`sotdd.sketches.levels`); where it is missing they are of equal probability.
``halves`` (2, S) is how far apart halves of the data are for p = 1 and p = 2. Tilted directions have ``basis`` (r, d)
and ``stretch`` (r,), and ``weights`` (L,) that projections count by. What controls are made of
(`sotdd.sketches.controls`) is in ``places`` (L, 1 + J, 2), in 16 bits where the quantiles are; ``values`` (L, 5);
``lengths`` (5,), three even moments, the variance between classes and the dimensions; and ``mean`` (d,).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import described, first_line
from sotdd.basics.errors import SotddError
from sotdd.basics.files import read_whole, shown, write_whole
from sotdd.basics.text import json_label
from sotdd.engines.controls import Lengths
from sotdd.projections.directions import TILTED_TURNS, Tilted
from sotdd.projections.recipe import Projections
from sotdd.projections.restore import restored
from sotdd.projections.scaler import Scaler
from sotdd.sketches.checked import Checked
from sotdd.sketches.controls import Carried
from sotdd.sketches.levels import SPACINGS, Spacing
from sotdd.sketches.memory import memory_for, refuse_too_large
from sotdd.sketches.sketch import Sketch

# 1 kept nothing of what a sketch has lost, and up to 2 parts had equal probability; both are read all the same.
VERSION = 3
_METADATA_KEY = "sotdd"
_KIND, WINDOW = "sketch", "sketch window"
_LEVELS = 65535  # of a 16-bit number
_MOST_FEATURES = 1 << 24  # blocks of more do not fit in memory

_LESS = "make it with fewer quantiles or projections, or free memory"
_MORE = "open it where there is more memory"

Arrays = dict[str, NDArray[Any]]
Header = dict[str, Any]


def write(sketch: Sketch, path: str | PathLike[str], half: bool = False) -> None:
    """Write a sketch; a failure leaves the old file, or none."""
    write_whole(path, to_bytes(sketch, half))


def read(path: str | PathLike[str]) -> Sketch:
    """Read a sketch, or make that of a window; any other file is refused."""
    content = content_of(path, _KIND)
    if _kind_of(content) == WINDOW:
        from sotdd.sketches.window import SketchWindow

        return SketchWindow.load(path).finish(Path(path).stem)
    sketch = from_bytes(content, str(path))
    if not sketch.n_points:  # as catalogs keep one for its recipe alone, which is never a file of its own
        raise SotddError(f"{shown(path)} cannot be used: it has no points. It was not written by sotdd; make it again.")
    return sketch


@memory_for("the content of a sketch file", _LESS)
def to_bytes(sketch: Sketch, half: bool = False) -> bytes:
    """The content of a file."""
    header, arrays = packed_recipe(sketch.recipe, sketch.fingerprint, sketch.scaler, sketch.tilt)
    header |= {
        "name": sketch.name,
        "classes": [json_label(label) for label in sketch.classes],
        "exact": sketch.exact,
        "spacing": sketch.spacing,
        "remarks": list(sketch.remarks),
    }
    arrays |= {"counts": sketch.counts, "class_terms": sketch.class_terms}
    arrays |= {} if sketch.lost is None else {"lost": sketch.lost}
    arrays |= {} if sketch.halves is None else {"halves": sketch.halves}
    arrays |= {} if sketch.weights is None else {"weights": sketch.weights}
    arrays |= _packed_controls(sketch.controls, half)
    arrays |= _in_16_bits(sketch.quantiles) if half else {"quantiles": sketch.quantiles}
    return packed(_KIND, header, arrays)


@memory_for("the content of a sketch file", _MORE)
def from_bytes(content: bytes, name: str, projections: Projections | None = None) -> Sketch:
    """A sketch from the content of a file, or an error that says what is wrong with it.

    A sketch through these projections uses them; otherwise they are drawn again from its recipe.
    """
    checked = unpacked(_KIND, content, name)
    scaler, tilt, fingerprint = scaler_in(checked), tilt_in(checked), checked.text("fingerprint")
    if projections is None or projections.fingerprint != fingerprint:
        projections = _drawn_again(checked, scaler, tilt)
    n_projections, classes = checked.within("recipe").count("n_projections"), checked.labels()
    counts = checked.not_negative("counts", checked.array("counts", (np.int64,), (len(classes),)))
    quantiles, step = _quantiles_in(checked, n_projections)
    if checked.truth("exact") and quantiles.shape[1] != counts.sum():
        raise checked.refused("it claims to keep every value, and does not")
    spacing: Spacing = "even" if not checked.has("spacing") else checked.one_of("spacing", SPACINGS)
    lost = halves = None
    if checked.holds("lost"):
        lost = checked.lengths("lost", (n_projections, 3))
        if step is not None:
            lost = lost + step[:, None] * [0.0, 0.0, 0.5]  # values were rounded to the nearest step
    if checked.holds("halves"):
        halves = checked.lengths("halves", (2, None))
    return Sketch(
        checked.text("name"),
        quantiles,
        checked.truth("exact"),
        classes,
        counts,
        checked.array("class_terms", (np.float32,), (n_projections, len(classes))),
        checked.settings("recipe"),
        fingerprint,
        scaler,
        projections,
        lost,
        checked.texts("remarks"),
        halves,
        spacing,
        _weights_in(checked, n_projections),
        tilt,
        _controls_in(checked, n_projections),
    )


def _weights_in(checked: Checked, n_projections: int) -> NDArray[np.float64] | None:
    """What projections count by, or None where they count the same."""
    if not checked.holds("weights"):
        return None
    return checked.lengths("weights", (n_projections,))


def _packed_controls(controls: Carried | None, half: bool) -> Arrays:
    if controls is None:
        return {}
    arrays: Arrays = {}
    if controls.places is not None:
        flat = controls.places.transpose(2, 0, 1).reshape(2 * len(controls.places), -1)
        arrays = _in_16_bits(flat, "places") if half else {"places": controls.places}
    if controls.values is not None and controls.lengths is not None:
        known = controls.lengths
        numbers = np.array([*known.even, known.between, known.dimensions])
        arrays |= {"values": controls.values, "lengths": numbers, "mean": known.mean.astype(np.float32)}
    return arrays


def _controls_in(checked: Checked, n_projections: int) -> Carried | None:
    places = values = lengths = None
    if checked.holds("places step"):
        flat, _ = _from_16_bits(checked, 2 * n_projections, "places")
        places = np.ascontiguousarray(flat.reshape(2, n_projections, -1).transpose(1, 2, 0))
    elif checked.holds("places"):
        places = checked.array("places", (np.float32,), (n_projections, None, 2))
    if checked.holds("values"):
        n_features = checked.within("recipe").count("n_features")
        values = checked.array("values", (np.float64,), (n_projections, 5))
        *even, between, dimensions = checked.not_negative("lengths", checked.array("lengths", (np.float64,), (5,)))
        mean = checked.array("mean", (np.float32,), (n_features,)).astype(np.float64)
        if not n_features <= dimensions <= _MOST_FEATURES:
            raise checked.refused("its directions are in fewer dimensions than there are features, or in too many")
        lengths = Lengths(np.array(even), float(between), mean, int(dimensions))
    return None if places is None and values is None else Carried(places, values, lengths)


def _quantiles_in(checked: Checked, n_projections: int) -> tuple[NDArray[np.float32], NDArray[np.float64] | None]:
    """The quantile functions (L, Q); and the step (L,) that they were rounded to, in a half-size file."""
    if not checked.holds("step"):
        quantiles = checked.array("quantiles", (np.float32,), (n_projections, None))
        return checked.ascending("quantiles", quantiles), None
    quantiles, step = _from_16_bits(checked, n_projections)
    return checked.ascending("quantiles", quantiles), step


def _from_16_bits(
    checked: Checked, n_rows: int, name: str = "quantiles"
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """What `_in_16_bits` wrote, and the step (B,) of each row."""
    numbers = checked.array(name, (np.uint16,), (n_rows, None))
    low, step = (checked.array(f"{_before(name)}{part}", (np.float64,), (n_rows,)) for part in ("low", "step"))
    checked.not_negative(f"{_before(name)}step", step)
    with np.errstate(over="ignore"):
        values = (low[:, None] + step[:, None] * numbers).astype(np.float32)
    if not np.isfinite(values).all():
        raise checked.refused(f"its {name} leave float32")
    return values, step


def packed(kind: str, header: Mapping[str, Any], arrays: Arrays) -> bytes:
    """The content of a file of this kind."""
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}  # saved as they lie in memory
    refuse_too_large(sum(array.nbytes for array in arrays.values()), f"the file of a {kind}", _LESS)
    whole: Header = {"format": VERSION, "kind": kind, **header}
    whole["checksum"] = _checksum(whole, arrays)
    content: bytes = save(arrays, metadata={_METADATA_KEY: json.dumps(whole, allow_nan=False)})
    return content


def unpacked(kind: str, content: bytes, name: str) -> Checked:
    """The content of a file of this kind, to be taken out piece by piece, or an error that says what is wrong."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    refuse_too_large(len(content), f"the file of a {kind}", _MORE)
    try:
        arrays: Arrays = load(content)
        header: Header = json.loads(_metadata(content)[_METADATA_KEY])
        version = header["format"]
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise SotddError(
            f"{shown(name)} is not a whole {kind} ({first_line(error)}): it is damaged, cut short or another kind of "
            "file."
        ) from error
    if version not in range(1, VERSION + 1):
        raise SotddError(
            f"{shown(name)} has version {described(version)} of the format but this sotdd reads up to {VERSION}: "
            "update sotdd."
        )
    if header.pop("checksum", None) != _checksum(header, arrays):
        raise SotddError(f"{shown(name)} is damaged: its checksum does not match. Copy or make it again.")
    checked = Checked(header, arrays, name)
    if header.get("kind") != kind:
        raise SotddError(f"{shown(name)} holds a {checked.text('kind')[:60]}: expected a {kind}.")
    return checked


@memory_for("the content of a file", _MORE)
def content_of(path: str | PathLike[str], kind: str) -> bytes:
    """The content of a file that should be of this kind."""
    return read_whole(path, f"the file of a {kind}")


def packed_recipe(
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


def scaler_in(checked: Checked) -> Scaler | None:
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
    try:
        return Scaler(
            centre, checked.number("scale") if each is None else each, columns, checked.texts("scale_remarks")
        )
    except SotddError as error:
        raise checked.refused(first_line(error)) from error


def tilt_in(checked: Checked) -> Tilted | None:
    """The tilt of the directions that a file was made with; None where they were not tilted."""
    if not checked.holds("basis"):
        return None
    recipe = checked.within("recipe")
    law = recipe.within("directions")
    basis = checked.array("basis", (np.float32,), (None, recipe.count("n_features")))
    stretch = checked.array("stretch", (np.float64,), (len(basis),))
    try:
        return Tilted(basis, stretch, law.text("law") == TILTED_TURNS)
    except SotddError as error:
        raise checked.refused(first_line(error)) from error


def restored_from(checked: Checked, scaler: Scaler | None, tilt: Tilted | None = None) -> Projections:
    """The projections of a file, drawn again from its recipe, or an error that says why they cannot be."""
    if checked.within("recipe").count("n_features") > _MOST_FEATURES:
        raise SotddError("they have more features than can be drawn")
    try:
        return restored(checked.settings("recipe"), scaler, checked.text("fingerprint"), tilt)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, MemoryError) as error:
        if isinstance(error, SotddError):
            raise
        raise SotddError("its recipe is not one that this sotdd writes") from error


def _drawn_again(checked: Checked, scaler: Scaler | None, tilt: Tilted | None) -> Projections | None:
    try:
        return restored_from(checked, scaler, tilt)
    except SotddError:  # sketches can be compared without them; calls that need them say that they are missing
        return None


def _in_16_bits(rows: NDArray[np.float32], name: str = "quantiles") -> Arrays:
    """Rows (B, n) in steps between the lowest and the highest value of each."""
    wide = rows.astype(np.float64)
    low = wide.min(axis=1)
    step = (wide.max(axis=1) - low) / _LEVELS
    numbers = np.rint((wide - low[:, None]) / np.where(step > 0, step, 1.0)[:, None])
    return {name: numbers.astype(np.uint16), f"{_before(name)}low": low, f"{_before(name)}step": step}


def _before(name: str) -> str:
    """What the names of an array's steps begin with; those of the quantiles came first, and have bare names."""
    return "" if name == "quantiles" else f"{name} "


def _checksum(header: Mapping[str, Any], arrays: Arrays) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(array.data)
    return digest.hexdigest()


def _kind_of(content: bytes) -> object:
    """The kind of content that a file says it has; None where it says nothing."""
    try:
        return json.loads(_metadata(content)[_METADATA_KEY]).get("kind")
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def _metadata(content: bytes) -> dict[str, str]:
    """The metadata of a safetensors header, whose length is its first eight bytes."""
    length = int.from_bytes(content[:8], "little")
    metadata: dict[str, str] = json.loads(content[8 : 8 + length])["__metadata__"]
    return metadata
