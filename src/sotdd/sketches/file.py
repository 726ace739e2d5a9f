"""Sketches, builders, windows and class statistics as files; no data points are in them.

`sotdd.sketches.codec` has the format, and every file has the `Recipe` of its projections. The arrays of a sketch are
``quantiles`` (L, Q), ``counts`` (C,) and ``class_terms`` (L, C). A half-size file holds ``quantiles`` in 16 bits, with
``quantiles low`` and ``quantiles step`` (L,) to read them by: low + step × number. ``lost`` (L, 3) is how far off the
sketch's distances may be, ``halves`` (2, S) how far apart halves of the data are for p = 1 and p = 2, ``weights`` (L,)
what projections count by. What controls are made of (`sotdd.sketches.controls`) is in ``places`` (L, 1 + J, 2), in 16
bits where the quantiles are; ``values`` (L, 5); ``lengths`` (5,), three even moments, the variance between classes and
the dimensions; and ``mean`` (d,).

Class statistics have the classes, their counts, and which `Sums` are kept; the names of arrays are those of the sums
and of their totals. A builder has the statistics that it has ``seen``, with its histograms among them, and in a second
pass those of the first, ``given``. A window has a builder for each of its parts, whose arrays have its number before
their names.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.files import read_whole
from sotdd.basics.text import json_label
from sotdd.compute.controls import ControlValues, Lengths
from sotdd.projections.recipe import Projections
from sotdd.sketches.builder import SketchBuilder, SketchWindow
from sotdd.sketches.codec import (
    LARGEST_VALUE,
    Arrays,
    Field,
    Header,
    Reader,
    pack,
    pack_labels,
    pack_remarks,
    read_header,
    unpack,
)
from sotdd.sketches.quantiles import MOST_QUANTILES
from sotdd.sketches.recipe import MOST_FEATURES, Recipe, read_projections
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.statistics import ClassStatistics, Stored

_SKETCH, _WINDOW = "sketch", "sketch window"
_STEPS = 65535  # of a 16-bit number

T = TypeVar("T", bound=Stored)


# ------------------------------------------------------------------ sketches


def read_file(path: str | PathLike[str]) -> Sketch:
    """Read a sketch, or make that of a window; any other file is refused."""
    content = read_whole(path, "a file of a sketch")
    kind = None
    with suppress(ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        kind = read_header(content).get("kind")
    if kind == _WINDOW:
        return unpack_counts(SketchWindow, content, path).finish(Path(path).stem)
    return unpack_sketch(content, path)


def pack_sketch(sketch: Sketch, half: bool = False) -> bytes:
    """The content of a file."""
    header, arrays = sketch.through.pack()
    header |= {
        "name": sketch.name,
        "classes": [json_label(label) for label in sketch.classes],
        "exact": sketch.exact,
        "remarks": pack_remarks(sketch.remarks),
    }
    arrays |= _pack_controls(sketch.controls, half)
    arrays |= _round_rows("quantiles", sketch.quantiles) if half else {"quantiles": sketch.quantiles}
    names = ("counts", "class_terms", "lost", "halves", "weights")
    return pack(_SKETCH, header, {**arrays, **{name: getattr(sketch, name) for name in names}})


def unpack_sketch(content: bytes, name: str | PathLike[str], projections: Projections | None = None) -> Sketch:
    """A sketch from the content of a file, or an error that says what is wrong with it.

    A sketch through these projections uses them; otherwise they are drawn again from its recipe.
    """
    reader = unpack(_SKETCH, content, name)
    through, classes = Recipe.read(reader, projections), reader.labels()
    count = reader.within("recipe").count("n_projections")
    most = 4 * LARGEST_VALUE  # that projected values are apart
    arrays = reader.arrays(
        {
            "counts": Field("i8", (len(classes),), least=0),
            "class_terms": Field("f4", (count, len(classes))),
            "lost": Field("f8", (count, 3), 0, most, optional=True),
            "halves": Field("f8", (2, None), 0, most, optional=True),
            "weights": Field("f8", (count,), 0, most, optional=True),
        }
    )
    quantiles, step = _read_rows(reader, "quantiles", count)
    reader.check_ascending("quantiles", quantiles)
    exact, n_points = reader.get("exact", bool), arrays["counts"].sum()
    if exact and quantiles.shape[1] != n_points:
        raise reader.refuse("it claims to keep every value, and does not")
    if not n_points:
        raise reader.refuse("it has no points")
    if arrays["lost"] is not None and step is not None:  # values were rounded to the nearest step
        arrays["lost"] = arrays["lost"] + step[:, None] * [0.0, 0.0, 0.5]
    remarks, controls = reader.remarks("remarks"), _read_controls(reader, count)
    return Sketch(
        reader.get("name", str), through, quantiles, exact, classes, remarks=remarks, controls=controls, **arrays
    )


def _pack_controls(controls: ControlValues | None, half: bool) -> Arrays:
    if controls is None:
        return {}
    arrays: Arrays = {}
    if controls.places is not None:
        flat = controls.places.transpose(2, 0, 1).reshape(2 * len(controls.places), -1)
        arrays = _round_rows("places", flat) if half else {"places": controls.places}
    if controls.values is not None and controls.lengths is not None:
        known = controls.lengths
        numbers = np.array([*known.even, known.between, known.dimensions])
        arrays |= {"values": controls.values, "lengths": numbers, "mean": known.mean.astype(np.float32)}
    return arrays


def _read_controls(reader: Reader, n_projections: int) -> ControlValues | None:
    places = values = lengths = None
    if reader.holds("places step"):
        flat, _ = _read_rows(reader, "places", 2 * n_projections)
        places = np.ascontiguousarray(flat.reshape(2, n_projections, -1).transpose(1, 2, 0))
    elif reader.holds("places"):
        places = reader.array("places", Field("f4", (n_projections, None, 2)))
    if reader.holds("values"):
        n_features = reader.within("recipe").count("n_features")
        values = reader.array("values", Field("f8", (n_projections, 5)))
        *even, between, dimensions = reader.array("lengths", Field("f8", (5,), least=0))
        mean = reader.array("mean", Field("f4", (n_features,))).astype(np.float64)
        if not n_features <= dimensions <= MOST_FEATURES:
            raise reader.refuse("its directions are in fewer dimensions than there are features, or in too many")
        lengths = Lengths(np.array(even), float(between), mean, int(dimensions))
    return None if places is None and values is None else ControlValues(places, values, lengths)


def _round_rows(name: str, rows: NDArray[np.float32]) -> Arrays:
    """Rows (B, n) in steps between the lowest and the highest value of each."""
    wide = rows.astype(np.float64)
    low = wide.min(axis=1)
    step = (wide.max(axis=1) - low) / _STEPS
    numbers = np.rint((wide - low[:, None]) / np.where(step > 0, step, 1.0)[:, None])
    return {name: numbers.astype(np.uint16), f"{name} low": low, f"{name} step": step}


def _read_rows(reader: Reader, name: str, n_rows: int) -> tuple[NDArray[np.float32], NDArray[np.float64] | None]:
    """Rows (B, n); and the step (B,) that each was rounded to, where they are in 16 bits."""
    if not reader.holds(f"{name} step"):
        return reader.array(name, Field("f4", (n_rows, None))), None
    numbers = reader.array(name, Field("u2", (n_rows, None)))
    low = reader.array(f"{name} low", Field("f8", (n_rows,)))
    step = reader.array(f"{name} step", Field("f8", (n_rows,), least=0))
    with np.errstate(over="ignore"):
        values = (low[:, None] + step[:, None] * numbers).astype(np.float32)
    if not np.isfinite(values).all():
        raise reader.refuse(f"its {name} leave float32")
    return values, step


# ------------------------------------------------------------------ class statistics, builders, windows


def pack_counts(value: Stored) -> bytes:
    """Class statistics, a builder or a window as the content of a file."""
    kind, write, _ = _CODECS[type(value)]
    header, arrays = Recipe.of(value.projections).pack()
    return pack(kind, header | write(value, arrays, ""), arrays)


def unpack_counts(cls: type[T], content: bytes, path: str | PathLike[str], projections: Projections | None = None) -> T:
    """What `pack_counts` made of an object of this class; messages call it by its path."""
    kind, _, read = _CODECS[cls]
    reader = unpack(kind, content, path)
    found: T = read(reader, read_projections(reader, projections), "")
    return found


def _pack_window(window: SketchWindow, arrays: Arrays, _: str) -> Header:
    parts = {str(at): _pack_builder(part, arrays, f"{at} ") for at, part in enumerate(window.parts.values())}
    return {"n_quantiles": window.n_quantiles, "names": list(window.names), "parts": parts}


def _read_window(reader: Reader, drawn: Projections, _: str) -> SketchWindow:
    window = SketchWindow(drawn, n_quantiles=reader.count("n_quantiles", most=MOST_QUANTILES))
    names, parts = reader.texts("names"), reader.within("parts")
    if len(set(names)) < len(names):
        raise reader.refuse("two of its parts have one name")
    window.parts = {name: _read_builder(parts.within(str(at)), drawn, f"{at} ") for at, name in enumerate(names)}
    return window


def _pack_builder(builder: SketchBuilder, arrays: Arrays, before: str) -> Header:
    """Put a builder into a file; the names of its arrays begin with ``before``."""
    first = builder.first_pass
    return {
        "n_quantiles": builder.n_quantiles,
        "seen": _pack_statistics(builder.statistics, arrays, f"{before}seen "),
        "given": None if first is None else _pack_statistics(first, arrays, f"{before}given "),
    }


def _read_builder(reader: Reader, drawn: Projections, before: str) -> SketchBuilder:
    """What `_pack_builder` wrote, or an error where it cannot be."""
    first = None
    if reader.has("given"):
        first = _read_statistics(reader.within("given"), drawn, f"{before}given ")
    builder = SketchBuilder(drawn, first, n_quantiles=reader.count("n_quantiles", most=MOST_QUANTILES))
    _fill_statistics(reader.within("seen"), builder.statistics, f"{before}seen ")
    if first is not None and not set(builder.statistics.counts) <= set(first.counts):
        raise reader.refuse("it has seen classes that the first pass has not")
    builder.groups.n_dealt = builder.n_points
    return builder


def _pack_statistics(statistics: ClassStatistics, arrays: Arrays, before: str) -> Header:
    statistics.refuse_half_added()
    classes = list(statistics.counts)
    kept = [name for name, sums in statistics.sums.items() if sums.kept]
    for name in kept:
        arrays |= statistics.sums[name].pack(classes, f"{before}{name} ")
    return {
        "classes": pack_labels(classes),
        "counts": list(statistics.counts.values()),
        "by_position": statistics.by_position,
        "kept": kept,
    }


def _read_statistics(reader: Reader, drawn: Projections, before: str) -> ClassStatistics:
    statistics = ClassStatistics(drawn)
    _fill_statistics(reader, statistics, before)
    return statistics


def _fill_statistics(reader: Reader, statistics: ClassStatistics, before: str) -> None:
    """Fill statistics without points by what `_pack_statistics` wrote."""
    classes, counts, kept = reader.labels(), reader.get("counts", list), reader.texts("kept")
    whole = all(type(count) is int and count > 0 for count in counts) and sum(counts) < 2**62
    if len(counts) != len(classes) or not whole:
        raise reader.refuse("its 'counts' are not one for each class")
    statistics.by_position = reader.get("by_position", bool)
    statistics.counts = dict(zip(classes, counts, strict=True))
    for name, sums in statistics.sums.items():
        if name in kept and sums.kept:
            sums.read(reader, statistics.counts, f"{before}{name} ")
        elif name in ("terms", "counted") and sums.kept:
            raise reader.refuse(f"it does not have its {name!r}")
        else:
            sums.drop()


# By class: what its files are called, and how they are written and read.
_CODECS: dict[type, tuple[str, Callable[..., Header], Callable[..., Any]]] = {
    ClassStatistics: ("class statistics", _pack_statistics, _read_statistics),
    SketchBuilder: ("sketch builder", _pack_builder, _read_builder),
    SketchWindow: (_WINDOW, _pack_window, _read_window),
}
