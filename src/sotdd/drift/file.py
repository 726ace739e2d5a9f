"""References on disk, in the format of sketches: no pickle, and every entry is checked before it is used.

The header has the settings of a reference and how batches are to be opened. The arrays are
``rows`` (L, n), the projected points; ``codes`` (n,), the class of every point; ``commonest`` (d,), how often each
feature has its commonest value; ``edges``, where targets are cut into classes; ``sketch``, the bytes of a sketch file;
and those of the recipe.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from sotdd.basics.checks import check_order, first_line
from sotdd.basics.errors import SotddError
from sotdd.basics.files import read_whole
from sotdd.basics.text import quote
from sotdd.compute.engine import ProjectedPoints
from sotdd.drift.reading import SETTINGS, BatchReading
from sotdd.drift.reference import FARTHEST, Commonest, DriftReference
from sotdd.inputs.reading import Reading
from sotdd.projections.recipe import Projections
from sotdd.sketches.codec import Field, Reader, pack, pack_labels, pack_remarks, unpack
from sotdd.sketches.file import pack_sketch, unpack_sketch
from sotdd.sketches.recipe import Recipe, read_projections
from sotdd.sketches.sketch import Sketch

KIND = "drift reference"


def pack_reference(reference: DriftReference) -> bytes:
    """The content of a file."""
    header, arrays = Recipe.of(reference.projections).pack()
    reading, points, commonest = reference.reading, reference.points, reference.commonest
    header |= {
        "name": reference.name,
        "p": reference.p,
        "label_names": reference.label_names,
        "seed": str(reference.seed),  # of any size
        "classes": pack_labels(points.classes),
        "remarks": pack_remarks(reference.remarks),
        "counted_rows": None if commonest is None else commonest.n_rows,
        "reading": {
            "settings": dict(reading.settings),
            "columns": None if reading.columns is None else list(reading.columns),
            "labelled": reading.labelled,
            "suffix": reading.suffix,
            "left_out": dict(reading.left_out),
        },
    }
    sketch = reference.sketch
    optional = {
        "sketch": None if sketch is None else np.frombuffer(pack_sketch(sketch), np.uint8),
        "commonest": None if commonest is None else commonest.counts,
        "edges": None if reading.edges is None else np.array(reading.edges),
    }
    return pack(KIND, header, {**arrays, "rows": points.rows, "codes": points.codes.astype(np.int32), **optional})


def read_reference(path: str | PathLike[str], projections: Projections | None = None) -> DriftReference:
    """Read a reference; anything else is refused in one line."""
    reader = unpack(KIND, read_whole(path, f"the file of a {KIND}"), path)
    recipe = read_projections(reader, projections)
    label_names: Any = reader.get("label_names", str)
    if label_names not in ("ignore", "match"):
        raise reader.refuse(f"its 'label_names' are {label_names!r}")
    try:
        p = check_order(reader.number("p"))
    except SotddError as error:
        raise reader.refuse(first_line(error).rstrip(".")) from error
    return DriftReference(
        _read_points(reader, recipe),
        recipe,
        p,
        label_names,
        _read_seed(reader),
        reader.remarks("remarks"),
        reader.get("name", str),
        _read_reading(reader),
        _read_sketch(reader, recipe),
        _read_commonest(reader, recipe.n_features),
    )


def _read_points(reader: Reader, projections: Projections) -> ProjectedPoints:
    """The projected points: as many as there are codes, under every projection, none beyond what is ever kept."""
    classes = reader.labels()
    codes = reader.array("codes", Field("i4", (None,)))
    if not classes or codes.min() < 0 or codes.max() >= len(classes):
        raise reader.refuse("its points are of classes that it does not have")
    rows = reader.array("rows", Field("f4", (projections.n_projections, len(codes))))
    if np.abs(rows).max() > 2 * FARTHEST:
        raise reader.refuse("its points are farther than any reference keeps")
    return ProjectedPoints(reader.get("name", str), rows, classes, codes)


def _read_sketch(reader: Reader, projections: Projections) -> Sketch | None:
    """The sketch, which is a file within the file; one of other features than the points is refused."""
    if not reader.holds("sketch"):
        return None
    content = reader.array("sketch", Field("u1", (None,))).tobytes()
    sketch = unpack_sketch(content, f"the sketch in {quote(reader.name)}", projections)
    if sketch.recipe["n_features"] != projections.n_features:
        raise reader.refuse("its sketch is of other features than its points")
    return sketch


def _read_commonest(reader: Reader, n_features: int) -> Commonest | None:
    if not reader.holds("commonest"):
        return None
    counts, n_rows = reader.array("commonest", Field("i8", (n_features,))), reader.count("counted_rows")
    if counts.min() < 1 or counts.max() > n_rows:
        raise reader.refuse("its 'commonest' are not counts of its rows")
    return Commonest(counts, n_rows)


def _read_seed(reader: Reader) -> int:
    text = reader.get("seed", str)
    if not (text.isascii() and text.isdigit() and len(text) <= 40):
        raise reader.refuse("its 'seed' is no whole number")
    return int(text)


def _read_reading(reader: Reader) -> BatchReading:
    reading = reader.within("reading")
    settings = reading.get("settings", dict)
    if not set(settings) <= set(SETTINGS):
        raise reader.refuse("it would open batches in a way that no reference does")
    try:
        Reading.of(**settings)
    except SotddError as error:
        raise reader.refuse(first_line(error).rstrip(".")) from error
    edges = reader.array("edges", Field("f8", (None,))) if reader.holds("edges") else None
    if edges is not None and (np.diff(edges) <= 0).any():
        raise reader.refuse("its 'edges' do not ascend")
    kept = None if edges is None else tuple(edges.tolist())
    columns = reading.texts("columns") if reading.has("columns") else None
    left_out = reading.get("left_out", dict)
    if not all(isinstance(why, str) for why in left_out.values()):
        raise reader.refuse("its 'left_out' are no texts")
    return BatchReading(settings, columns, reading.get("labelled", bool), kept, reading.get("suffix", str), left_out)
