"""Sketches and builders as files: numbers over many points, which give few points away.

`sotdd.sketches.codec` has the format, and every file has the `Recipe` of its projections. The arrays of a sketch are
``quantiles`` (L, Q), ``counts`` (C,) and ``class_terms`` (L, C). ``lost`` (L, 3) is how far off the sketch's distances
may be, ``halves`` (2, S) how far apart halves of the data are for p = 1 and p = 2, ``weights`` (L,) what projections
count by. What controls are made of (`sotdd.sketches.controls`) is in ``places`` (L, 1 + J, 2); ``values`` (L, 5);
``lengths`` (5,), three even moments, the variance between classes and the dimensions; and ``mean`` (d,).

A builder has the classes, their counts, and which `Sums` are kept; the names of arrays are those of the sums and of
their totals.
"""

from __future__ import annotations

from os import PathLike

import numpy as np

from sotdd.basics.text import json_label
from sotdd.compute.class_moments import ClassMoments, PointMoments
from sotdd.projections.recipe import Projections
from sotdd.sketches.builder import SketchBuilder
from sotdd.sketches.codec import (
    LARGEST_VALUE,
    Arrays,
    Field,
    Reader,
    pack,
    pack_labels,
    pack_remarks,
    unpack,
)
from sotdd.sketches.quantiles import MOST_QUANTILES
from sotdd.sketches.recipe import MOST_FEATURES, Recipe, read_projections
from sotdd.sketches.sketch import Sketch

_SKETCH, _BUILDER = "sketch", "sketch builder"


# ------------------------------------------------------------------ sketches


def pack_sketch(sketch: Sketch) -> bytes:
    """The content of a file."""
    header, arrays = sketch.through.pack()
    header |= {
        "name": sketch.name,
        "classes": [json_label(label) for label in sketch.classes],
        "exact": sketch.exact,
        "remarks": pack_remarks(sketch.remarks),
    }
    names = ("quantiles", "counts", "class_terms", "lost", "halves", "weights")
    arrays |= _pack_controls(sketch.controls)
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
            "quantiles": Field("f4", (count, None)),
            "counts": Field("i8", (len(classes),), least=0),
            "class_terms": Field("f4", (count, len(classes))),
            "lost": Field("f8", (count, 3), 0, most, optional=True),
            "halves": Field("f8", (2, None), 0, most, optional=True),
            "weights": Field("f8", (count,), 0, most),
        }
    )
    reader.check_ascending("quantiles", arrays["quantiles"])
    exact, n_points = reader.get("exact", bool), arrays["counts"].sum()
    if exact and arrays["quantiles"].shape[1] != n_points:
        raise reader.refuse("it claims to keep every value, and does not")
    if not n_points:
        raise reader.refuse("it has no points")
    remarks, controls = reader.remarks("remarks"), _read_controls(reader, count)
    return Sketch(
        reader.get("name", str), through, exact=exact, classes=classes, remarks=remarks, controls=controls, **arrays
    )


def _pack_controls(controls: ClassMoments | None) -> Arrays:
    if controls is None:
        return {}
    gaussian, directions, known = controls.gaussian_moments, controls.direction_moments, controls.point_moments
    arrays: Arrays = {} if gaussian is None else {"places": gaussian}
    if directions is not None and known is not None:
        numbers = np.array([*known.even, known.between, known.dimensions])
        arrays |= {"values": directions, "lengths": numbers, "mean": known.mean.astype(np.float32)}
    return arrays


def _read_controls(reader: Reader, n_projections: int) -> ClassMoments | None:
    gaussian = directions = points = None
    if reader.holds("places"):
        gaussian = reader.array("places", Field("f4", (n_projections, None, 2)))
    if reader.holds("values"):
        n_features = reader.within("recipe").count("n_features")
        directions = reader.array("values", Field("f8", (n_projections, 5)))
        *even, between, dimensions = reader.array("lengths", Field("f8", (5,), least=0))
        mean = reader.array("mean", Field("f4", (n_features,))).astype(np.float64)
        if not n_features <= dimensions <= MOST_FEATURES:
            raise reader.refuse("its directions are in fewer dimensions than there are features, or in too many")
        points = PointMoments(np.array(even), float(between), mean, int(dimensions))
    return None if gaussian is None and directions is None else ClassMoments(gaussian, directions, points)


# ------------------------------------------------------------------ builders


def pack_builder(builder: SketchBuilder) -> bytes:
    """The content of a file."""
    builder.refuse_half_added()
    classes = list(builder.counts)
    kept = [name for name, sums in builder.sums.items() if sums.kept]
    header, arrays = Recipe.of(builder.projections).pack()
    header |= {
        "n_quantiles": builder.n_quantiles,
        "classes": pack_labels(classes),
        "counts": list(builder.counts.values()),
        "by_position": builder.by_position,
        "remarks": pack_remarks(builder.remarks),
        "kept": kept,
    }
    for name in kept:
        arrays |= builder.sums[name].pack(classes, f"{name} ")
    return pack(_BUILDER, header, arrays)


def unpack_builder(content: bytes, path: str | PathLike[str], projections: Projections | None = None) -> SketchBuilder:
    """A builder from the content of a file; messages call it by its path."""
    reader = unpack(_BUILDER, content, path)
    drawn, count = read_projections(reader, projections), reader.count("n_quantiles", most=MOST_QUANTILES)
    builder = SketchBuilder(drawn, n_quantiles=count)
    classes, counts, kept = reader.labels(), reader.get("counts", list), reader.texts("kept")
    whole = all(type(count) is int and count > 0 for count in counts) and sum(counts) < 2**62
    if len(counts) != len(classes) or not whole:
        raise reader.refuse("its 'counts' are not one for each class")
    builder.by_position, builder.remarks = reader.get("by_position", bool), ()
    if reader.has("remarks"):  # as older files have not
        builder.remarks = reader.remarks("remarks")
    builder.counts = dict(zip(classes, counts, strict=True))
    for name, sums in builder.sums.items():
        if name in kept and sums.kept:
            sums.read(reader, builder.counts, f"{name} ")
        elif sums.required:
            raise reader.refuse(f"it does not have its {name!r}")
        else:
            sums.drop()
    return builder
