"""References on disk, in the format of sketches: no pickle, and every entry is checked before it is used.

The header has the settings of a reference, and how batches are to be opened. The arrays are the rows as they were read:
``numbers`` (n, ...), the features of arrays or the columns of numbers of a table; ``gaps`` (n, g), where these are
missing; ``categories`` (n, c), the values of categories, 0 for one that is missing; ``codes`` and ``groups`` (n,), the
class of every row, and which belong together; ``target`` (n,), numbers that are cut into classes; ``sketch``, the bytes
of a sketch file; and those of the projections.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from os import PathLike
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import check_order, first_line
from sotdd.basics.errors import SotddError
from sotdd.basics.files import read_whole
from sotdd.basics.text import quote
from sotdd.drift.reading import SETTINGS, BatchReading
from sotdd.drift.reference import DriftReference
from sotdd.inputs.agreement import arrange
from sotdd.inputs.data import Category, LabelledData, LeftOut, Names, Origin, Target, Why
from sotdd.inputs.reading import Reading
from sotdd.measure.statistics import LabelNames
from sotdd.projections.recipe import Projections
from sotdd.sketches.codec import Field, Reader, pack, pack_labels, pack_remarks, unpack
from sotdd.sketches.file import pack_sketch, unpack_sketch
from sotdd.sketches.recipe import Recipe, read_projections
from sotdd.sketches.sketch import Sketch

KIND = "drift reference"

_NUMBERS = "u1 f4 f8"


def pack_reference(reference: DriftReference) -> bytes:
    """The content of a file."""
    header, arrays = Recipe.of(reference.projections).pack()
    reading, sketch = reference.reading, reference.sketch
    table, rows = _pack_data(reference.data)
    header |= {
        "name": reference.name,
        "p": reference.p,
        "label_names": reference.label_names,
        "seed": str(reference.seed),  # of any size
        "is_fixed": reference.is_fixed,
        "remarks": pack_remarks(reference.remarks),
        "reading": {"settings": dict(reading.settings), "suffix": reading.suffix},
        "table": table,
        "classes": pack_labels(reference.data.classes),
    }
    packed = None if sketch is None else np.frombuffer(pack_sketch(sketch), np.uint8)
    return pack(KIND, header, {**arrays, **rows, "sketch": packed})


def _pack_data(data: LabelledData) -> tuple[dict[str, Any], dict[str, NDArray[Any] | None]]:
    """The rows of a reference: entries of the header, and arrays. Numbers keep all their digits."""
    origin = data.origin
    made = dict(zip(data.columns or (), data.find_columns(data.columns or ()), strict=True))
    places = [place for place, (name, column) in enumerate(made.items())
              if name == column and column not in origin.categories]  # fmt: skip
    features = np.asarray(data.features)
    numbers = features if data.columns is None else features[:, places]
    narrow = numbers.astype(np.float32) if numbers.dtype == np.float64 else numbers
    names = tuple(made)
    table = {
        "name": data.name,
        "features": None if data.columns is None else list(data.columns),
        "numbers": None if data.columns is None else [names[place] for place in places],
        "dtype": features.dtype.name,
        "gaps": list(origin.gaps),
        "categories": {
            name: {**asdict(one), "codes": None, "values": list(one.values)} for name, one in origin.categories.items()
        },
        "left_out": {column: asdict(left) for column, left in origin.left_out.items()},
        "unread": list(origin.unread),
        "label_column": origin.label_column,
        "group_column": origin.group_column,
        "rows_seen": origin.rows_seen,
        "bins": None if origin.target is None else origin.target.bins,
        "labelled": origin.labelled,
    }
    codes = [one.codes + 1 for one in origin.categories.values()]
    arrays = {
        "numbers": (narrow if np.array_equal(narrow, numbers) else numbers) if numbers.size else None,
        "gaps": np.column_stack([*origin.gaps.values()]).astype(np.uint8) if origin.gaps else None,
        "categories": np.column_stack(codes).astype(np.uint32) if codes else None,
        "codes": data.codes.astype(np.int32),
        "groups": None if origin.groups is None else origin.groups.astype(np.int64),
        "target": None if origin.target is None else origin.target.values,
    }
    return table, arrays


def read_reference(path: str | PathLike[str], projections: Projections | None = None) -> DriftReference:
    """Read a reference; anything else is refused in one line."""
    reader = unpack(KIND, read_whole(path, f"the file of a {KIND}"), path)
    recipe = read_projections(reader, projections)
    label_names: Any = reader.get("label_names", str)
    if label_names not in get_args(LabelNames):
        raise reader.refuse(f"its 'label_names' are {label_names!r}")
    seed = reader.get("seed", str)
    if not (seed.isascii() and seed.isdigit() and len(seed) <= 40):
        raise reader.refuse("its 'seed' is no whole number")
    try:
        p = check_order(reader.number("p"))
    except SotddError as error:
        raise reader.refuse(first_line(error).rstrip(".")) from error
    data = _read_data(reader)
    if data.n_features != recipe.n_features or data.columns != recipe.columns:
        raise reader.refuse("its rows have other features than its projections")
    return DriftReference(
        data,
        recipe,
        p,
        label_names,
        int(seed),
        reader.remarks("remarks"),
        reader.get("name", str),
        _read_reading(reader, data),
        _read_sketch(reader, recipe),
        reader.get("is_fixed", bool),
    )


def _read_data(reader: Reader) -> LabelledData:
    """The rows: as many of everything as there are codes."""
    table, classes = reader.within("table"), reader.labels()
    codes = reader.array("codes", Field("i4", (None,)))
    n_points = len(codes)
    if not classes or codes.min() < 0 or codes.max() >= len(classes):
        raise reader.refuse("its rows are of classes that it does not have")
    each = (n_points,)
    groups = reader.array("groups", Field("i8", each, least=0)) if reader.holds("groups") else None
    bins = table.count("bins") if table.has("bins") else None
    target = None if bins is None else Target(reader.array("target", Field("f8", each)), bins)
    names = table.texts("numbers") if table.has("numbers") else None
    origin = Origin(
        table.get("labelled", bool), _read_left_out(table), _read_categories(reader, table, n_points),
        _read_gaps(reader, table, n_points), (), target, groups, rows_seen=table.get("rows_seen", int),
        numbers=names or (), unread=table.texts("unread"),
        label_column=table.get("label_column", str) if table.has("label_column") else None,
        group_column=table.get("group_column", str) if table.has("group_column") else None,
    )  # fmt: skip
    numbers = _read_numbers(reader, names, n_points)
    dtype = table.get("dtype", str)
    if dtype not in ("uint8", "float32", "float64"):
        raise reader.refuse(f"its numbers have the type {dtype!r}")
    data = LabelledData(table.get("name", str), numbers.astype(dtype), classes, codes, names, origin)
    if names is None:
        return data
    features = table.texts("features")
    known = {*names, *origin.categories, *origin.gaps}
    if not features or not {*names} <= {*features} or not {*data.find_columns(features)} <= known:
        raise reader.refuse("its features are not those of its columns")
    return arrange(data, features)


def _read_numbers(reader: Reader, names: Names | None, n_points: int) -> NDArray[Any]:
    """The features of arrays (n, ...), or columns of numbers (n, k), of which there may be none."""
    if names is not None:
        shape = (n_points, len(names))
        return reader.array("numbers", Field(_NUMBERS, shape)) if names else np.empty(shape, np.uint8)
    axes: list[int | None] = [None] * max(0, reader.rank("numbers") - 1)
    return reader.array("numbers", Field(_NUMBERS, (n_points, *axes)))


def _read_gaps(reader: Reader, table: Reader, n_points: int) -> dict[str, NDArray[np.bool_]]:
    names = table.texts("gaps")
    if not names:
        return {}
    gaps = reader.array("gaps", Field("u1", (n_points, len(names)), most=1))
    return {name: gaps[:, place] == 1 for place, name in enumerate(names)}


def _read_categories(reader: Reader, table: Reader, n_points: int) -> dict[str, Category]:
    """Categories, with codes of values that they have."""
    kept = table.get("categories", dict)
    if not kept:
        return {}
    codes = reader.array("categories", Field("u4", (n_points, len(kept))))
    found = {}
    for place, name in enumerate(kept):
        one = table.within("categories").within(name)
        values = one.texts("values")
        flag = one.get("flag", str) if one.has("flag") else None
        number = _read_left(one.within("number")) if one.has("number") else None
        too_large = codes[:, place].max(initial=0) > len(values)
        if too_large or len(set(values)) < len(values) or flag not in (None, *values):
            raise reader.refuse(f"its category {name!r} does not fit its codes")
        own = codes[:, place].astype(np.int32) - 1
        found[name] = Category(values, own, one.count("most"), flag, number)
    return found


def _read_left_out(table: Reader) -> dict[str, LeftOut]:
    left_out = table.within("left_out")
    return {column: _read_left(left_out.within(column)) for column in table.get("left_out", dict)}


def _read_left(reader: Reader) -> LeftOut:
    """Why a column is left out, and what is known of it."""
    why = reader.get("why", str)
    if why not in get_args(Why):
        raise reader.refuse(f"it left a column out for {why!r}")
    kinds = {"str": str, "int": int, "bool": bool}
    facts: dict[str, Any] = {}
    for one in fields(LeftOut):
        if one.name != "why" and reader.has(one.name):
            facts[one.name] = reader.get(one.name, kinds[str(one.type).partition(" ")[0]])
    return LeftOut(cast("Why", why), **facts)


def _read_sketch(reader: Reader, projections: Projections) -> Sketch | None:
    """The sketch, which is a file within the file; one of other features than the rows is refused."""
    if not reader.holds("sketch"):
        return None
    content = reader.array("sketch", Field("u1", (None,))).tobytes()
    sketch = unpack_sketch(content, f"the sketch in {quote(reader.name)}", projections)
    if sketch.recipe["n_features"] != projections.n_features:
        raise reader.refuse("its sketch is of other features than its rows")
    return sketch


def _read_reading(reader: Reader, data: LabelledData) -> BatchReading:
    """How batches are opened: as the rows were."""
    reading = reader.within("reading")
    settings = reading.get("settings", dict)
    if not set(settings) <= set(SETTINGS):
        raise reader.refuse("it would open batches in a way that no reference does")
    try:
        Reading.of(**settings)
    except SotddError as error:
        raise reader.refuse(first_line(error).rstrip(".")) from error
    return BatchReading(settings, reading.get("suffix", str), data.columns, data.schema, data.origin.labelled)
