"""References on disk, in the format of sketches: no pickle, and every entry is checked before it is used.

The header has the settings of a reference and how batches are to be opened. The arrays are
``rows`` (L, n), the projected points; ``codes`` and ``groups`` (n,), the class of every point, and which belong
together; ``column_codes`` (k, C) and ``column_steps``, all columns, and what codes of numbers stand for, one column
after another;
``edges``, where targets are cut into classes; ``sketch``, the bytes of a sketch file; and those of the recipe.
"""

from __future__ import annotations

from os import PathLike
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_order, first_line
from sotdd.basics.errors import SotddError
from sotdd.basics.files import read_whole
from sotdd.basics.text import quote
from sotdd.compute.engine import ProjectedPoints
from sotdd.drift.columns import GAP, UNTOLD, Codes, Column, Kind, ReferenceColumns
from sotdd.drift.reading import SETTINGS, BatchReading
from sotdd.drift.reference import FARTHEST, DriftReference
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
    reading, points, columns = reference.reading, reference.points, reference.columns
    header |= {
        "name": reference.name,
        "p": reference.p,
        "label_names": reference.label_names,
        "seed": str(reference.seed),  # of any size
        "classes": pack_labels(points.classes),
        "remarks": pack_remarks(reference.remarks),
        "columns_kept": None if columns is None else [_pack_column(column) for column in columns.columns],
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
        "groups": None if points.groups is None else points.groups.astype(np.int32),
        "column_codes": None if columns is None else _narrow_codes(columns.codes),
        "column_steps": None if columns is None else np.concatenate([one.steps for one in columns.columns]),
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
    seed = reader.get("seed", str)
    if not (seed.isascii() and seed.isdigit() and len(seed) <= 40):
        raise reader.refuse("its 'seed' is no whole number")
    try:
        p = check_order(reader.number("p"))
    except SotddError as error:
        raise reader.refuse(first_line(error).rstrip(".")) from error
    return DriftReference(
        _read_points(reader, recipe),
        recipe,
        p,
        label_names,
        int(seed),
        reader.remarks("remarks"),
        reader.get("name", str),
        _read_reading(reader),
        _read_sketch(reader, recipe),
        _read_columns(reader) if reader.holds("column_codes") else None,
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
    groups = None
    if reader.holds("groups"):
        groups = reader.array("groups", Field("i4", (len(codes),), least=0)).astype(np.int64)
    return ProjectedPoints(reader.get("name", str), rows, classes, codes, groups)


def _read_sketch(reader: Reader, projections: Projections) -> Sketch | None:
    """The sketch, which is a file within the file; one of other features than the points is refused."""
    if not reader.holds("sketch"):
        return None
    content = reader.array("sketch", Field("u1", (None,))).tobytes()
    sketch = unpack_sketch(content, f"the sketch in {quote(reader.name)}", projections)
    if sketch.recipe["n_features"] != projections.n_features:
        raise reader.refuse("its sketch is of other features than its points")
    return sketch


def _narrow_codes(codes: Codes) -> NDArray[np.uint8 | np.uint16]:
    """Codes as bytes, the largest two for what has no value or is not told apart; as they are where they do not fit."""
    told = codes < UNTOLD
    return np.where(told, codes, codes % 256).astype(np.uint8) if codes[told].max(initial=0) < 254 else codes


def _pack_column(column: Column) -> dict[str, Any]:
    """A column as JSON values; how many steps it has, for these are an array."""
    return {**vars(column), "steps": len(column.steps), "values": list(column.values)}


def _read_columns(reader: Reader) -> ReferenceColumns:
    """The columns, with codes of values that they have."""
    kept = reader.get("columns_kept", list)
    codes = reader.array("column_codes", Field("u1 u2", (None, len(kept))))
    if codes.dtype == np.uint8:
        codes = np.where(codes < 254, codes, codes.astype(np.uint16) + (GAP - 255)).astype(np.uint16)
    steps = reader.array("column_steps", Field("f8", (None,))) if reader.holds("column_steps") else np.zeros(0)
    columns, start = [], 0
    for place, header in enumerate(kept):
        one = Reader(header if isinstance(header, dict) else {}, {}, reader.name)
        kind, size = one.get("kind", str), one.get("steps", int)
        own = steps[start : start + max(size, 0)]
        start += len(own)
        values = one.texts("values")
        numbers = one.number("mean"), one.get("commonest", int), one.get("is_exact", bool)
        column = Column(one.get("name", str), cast("Kind", kind), own, values, *numbers)
        told = codes[:, place][codes[:, place] < UNTOLD]
        fits = len(own) == size > 0 and (np.diff(own) > 0).all() if column.is_number else size == 0
        known = len(own) + 2 if column.is_number else len(values)
        if kind not in get_args(Kind) or not fits or (told >= known).any() or not 0 <= numbers[1] <= len(codes):
            raise reader.refuse(f"its column {column.name!r} does not fit its codes")
        columns.append(column)
    return ReferenceColumns(tuple(columns), codes)


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
