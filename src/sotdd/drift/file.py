"""References on disk, in the format of sketches: no pickle, and every entry is checked before it is used.

The header has the settings of a reference, how batches are to be opened, and its rows as they were read, field by
field. An array in a field is an array of the file, of which the header has the name. Beside these are ``numbers``
(n, ...), the features of arrays or the columns of numbers of a table; ``codes`` (n,), the class of every row;
``sketch``, the bytes of a sketch file; and those of the projections.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from os import PathLike
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from sotdd.basics.errors import SotddError, check_order, check_seed, first_line
from sotdd.basics.files import read_whole
from sotdd.basics.remarks import Remark
from sotdd.basics.text import quote
from sotdd.drift.reference import SETTINGS, DriftReference
from sotdd.inputs.agreement import arrange
from sotdd.inputs.data import LabelledData, Origin
from sotdd.inputs.reading import Reading
from sotdd.inputs.schema import MISSING, Feature, find_columns
from sotdd.projections.projections import Projections
from sotdd.sketches.codec import Arrays, Header, Reader, pack, pack_labels, pack_remarks, unpack
from sotdd.sketches.saved_projections import SavedProjections, read_projections
from sotdd.sketches.sketch import Sketch, pack_sketch, unpack_sketch

KIND = "drift reference"

# The fields of a reference that are plain values.
_PLAIN = ("p", "label_names", "seed", "remarks", "suffix", "is_fixed")
# What an array of a field may hold, by its type there: types in the file, least and most. All have an entry per row.
_OF_ROWS = {
    np.bool_: ("u1", 0, 1),
    np.int32: ("i4", MISSING, math.inf),
    np.int64: ("i8", 0, math.inf),
    np.float64: ("f8", -math.inf, math.inf),
}


def pack_reference(reference: DriftReference) -> bytes:
    """The content of a file; of a table only numbers are kept as features, and of categories the codes."""
    header, arrays = SavedProjections.of(reference.projections).pack()
    data, columns = reference.data, reference.data.columns
    table: Header = {"name": data.name, "classes": pack_labels(data.classes)}
    if columns is not None:
        made = [Feature.of(name) for name in columns]
        numbers = tuple(one.name for one in made if one.kind == "number" and one.column not in data.origin.categories)
        table |= {"features": list(columns), "numbers": list(numbers)}
        data = arrange(data, numbers)
    header |= {
        "plain": {name: _pack(getattr(reference, name), arrays) for name in _PLAIN},
        "settings": dict(reference.settings),
        "data": {**table, "origin": _pack(reference.data.origin, arrays)},
    }
    sketch = None if reference.sketch is None else np.frombuffer(pack_sketch(reference.sketch), np.uint8)
    rows = {"numbers": np.asarray(data.features), "codes": data.codes.astype(np.int32), "sketch": sketch}
    return pack(KIND, header, {**arrays, **rows})


def read_reference(path: str | PathLike[str], projections: Projections | None = None) -> DriftReference:
    """Read a reference; anything else is refused in one line."""
    reader = unpack(KIND, read_whole(path, f"the file of a {KIND}"), path)
    data, hints = _read_data(reader), get_type_hints(DriftReference)
    if data.n_features != reader.within("recipe").count("n_features"):  # before anything is drawn
        raise reader.refuse("its rows have other features than its projections")
    recipe = read_projections(reader, projections)
    plain = {name: _read(reader.within("plain"), name, hints[name], 0) for name in _PLAIN}
    settings = reader.get("settings", dict)
    if not set(settings) <= set(SETTINGS):
        raise reader.refuse("it would open batches in a way that no reference does")
    try:
        check_order(plain["p"]), check_seed(plain["seed"]), Reading.of(**settings)
    except SotddError as error:
        raise reader.refuse(first_line(error).rstrip(".")) from error
    if data.columns != recipe.columns:
        raise reader.refuse("its rows have other features than its projections")
    if data.origin.target is not None and data.origin.target.bins != settings.get("bins"):
        raise reader.refuse("its targets are cut otherwise than those of batches")
    return DriftReference(data, recipe, settings=settings, sketch=_read_sketch(reader, recipe), **plain)


def _read_data(reader: Reader) -> LabelledData:
    """The rows: as many of everything as there are codes."""
    table, codes = reader.within("data"), reader.array("codes", "i4", (None,))
    classes, n_points = table.labels(), len(codes)
    if not classes or codes.min() < 0 or codes.max() >= len(classes):
        raise reader.refuse("its rows are of classes that it does not have")
    origin = _read(table, "origin", Origin, n_points)
    for name, one in origin.categories.items():
        too_large = one.codes.max() >= len(one.values)
        if too_large or one.most < 1 or len({*one.values}) < len(one.values) or one.flag not in (None, *one.values):
            raise reader.refuse(f"its category {name!r} does not fit its codes")
    names = table.texts("numbers") if table.has("numbers") else None
    axes = [None] * (reader.rank("numbers") - 1) if names is None else [len(names)]
    numbers = reader.array("numbers", "u1 f4 f8", (n_points, *axes))
    data = LabelledData(table.get("name", str), numbers, classes, codes, names, origin)
    if names is None:
        return data
    features = table.texts("features")
    known = {*find_columns(names), *origin.categories, *origin.gaps}
    if not features or not {*names} <= {*features} or not {*find_columns(features)} <= known:
        raise reader.refuse("its features are not those of its columns")
    return arrange(data, features)


def _read_sketch(reader: Reader, projections: Projections) -> Sketch | None:
    """The sketch, which is a file within the file; one of other features than the rows is refused."""
    if not reader.holds("sketch"):
        return None
    content = reader.array("sketch", "u1", (None,)).tobytes()
    sketch = unpack_sketch(content, f"the sketch in {quote(reader.name)}", projections)
    if sketch.recipe["n_features"] != projections.n_features:
        raise reader.refuse("its sketch is of other features than its rows")
    return sketch


# ------------------------------------------------------------------ values by their types


def _pack(value: Any, arrays: Arrays) -> Any:  # noqa: ANN401  # a frozen dataclass, or what one has in its fields
    """A value in JSON; of an array the name under which it joins the others."""
    if isinstance(value, np.ndarray):
        name = f"rows {len(arrays)}"
        arrays[name] = value.astype(np.uint8) if value.dtype == bool else value
        return name
    if is_dataclass(value):
        return {one.name: _pack(getattr(value, one.name), arrays) for one in fields(value)}
    if isinstance(value, Mapping):
        return {name: _pack(one, arrays) for name, one in value.items()}
    if isinstance(value, tuple):
        return pack_remarks(value) if value and isinstance(value[0], Remark) else list(value)
    return value


def _read(reader: Reader, key: str, kind: Any, n_points: int) -> Any:  # noqa: ANN401  # what was packed
    """The entry of a header as a value of just this type, with arrays of an entry for each point."""
    origin, parts = get_origin(kind), get_args(kind)
    if isinstance(kind, UnionType):  # or None
        return _read(reader, key, parts[0], n_points) if reader.has(key) else None
    if origin is Mapping:
        inside = reader.within(key)
        return {name: _read(inside, name, parts[1], n_points) for name in reader.get(key, dict)}
    if isinstance(kind, type) and is_dataclass(kind):
        inside, hints = reader.within(key), get_type_hints(kind)
        return kind(**{one.name: _read(inside, one.name, hints[one.name], n_points) for one in fields(kind)})
    if origin is tuple:
        return reader.remarks(key) if parts[0] is Remark else reader.texts(key)
    if origin is np.ndarray:
        (scalar,) = get_args(parts[1])
        types, *bounds = _OF_ROWS[scalar]
        return reader.array(reader.get(key, str), types, (n_points,), *bounds).astype(scalar)
    value = reader.get(key, str if origin is Literal else kind)
    if parts and value not in parts:
        raise reader.refuse(f"its {key!r} is {value!r}")
    return value
