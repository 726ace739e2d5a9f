"""Sketches, builders, windows and class statistics as files; no data points are in them.

`sotdd.sketches.codec` has the format. The arrays of a sketch are ``quantiles`` (L, Q), ``counts`` (C,) and
``class_terms`` (L, C). A half-size file holds ``quantiles`` in 16 bits, with ``quantiles low`` and ``quantiles step``
(L,) to read them by: low + step × number. ``lost`` (L, 3) is how far off the sketch's distances may be, ``halves``
(2, S) how far apart halves of the data are for p = 1 and p = 2, ``weights`` (L,) what projections count by. What
controls are made of (`sotdd.sketches.controls`) is in ``places`` (L, 1 + J, 2), in 16 bits where the quantiles are;
``values`` (L, 5); ``lengths`` (5,), three even moments, the variance between classes and the dimensions; and ``mean``
(d,).

Class statistics are under ``seen``. A builder also has ``counted``, its histograms, and ``given``, the statistics of
the first pass. What controls are made of is in ``powers``, ``totals``, ``even`` and ``lengths`` of the statistics;
points dealt to groups are under ``dealt``. A window has a builder for each of its ``parts``, whose arrays have its
number before their names.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.files import read_whole
from sotdd.basics.text import json_label
from sotdd.engines.controls import Lengths
from sotdd.projections.recipe import Projections
from sotdd.sketches.builder import GROUP_BINS, GROUPS, GroupCounts, SketchBuilder
from sotdd.sketches.codec import (
    MOST_FEATURES,
    Arrays,
    Checked,
    Header,
    header_of,
    pack_labels,
    pack_projections,
    pack_recipe,
    packed,
    read_projections,
    read_scaler,
    read_tilt,
    restore_projections,
    unpacked,
)
from sotdd.sketches.controls import Carried
from sotdd.sketches.counting import Histograms
from sotdd.sketches.levels import MOST_QUANTILES
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.statistics import ClassStatistics
from sotdd.sketches.window import SketchWindow

_SKETCH, _STATISTICS, _BUILDER, _WINDOW = "sketch", "class statistics", "sketch builder", "sketch window"
_STEPS = 65535  # of a 16-bit number


# ------------------------------------------------------------------ sketches


def read(path: str | PathLike[str]) -> Sketch:
    """Read a sketch, or make that of a window; any other file is refused."""
    content = read_whole(path, "a file of a sketch")
    kind = None
    with suppress(ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        kind = header_of(content).get("kind")
    if kind == _WINDOW:
        return window_from_bytes(content, path, None).finish(Path(path).stem)
    sketch = from_bytes(content, path)
    if not sketch.n_points:  # as catalogs keep one for its recipe alone, which is never a file of its own
        raise Checked({}, {}, path).refused("it has no points")
    return sketch


def to_bytes(sketch: Sketch, half: bool = False) -> bytes:
    """The content of a file."""
    header, arrays = pack_recipe(sketch.recipe, sketch.fingerprint, sketch.scaler, sketch.tilt)
    header |= {
        "name": sketch.name,
        "classes": [json_label(label) for label in sketch.classes],
        "exact": sketch.exact,
        "remarks": list(sketch.remarks),
    }
    arrays |= {"counts": sketch.counts, "class_terms": sketch.class_terms}
    optional = {"lost": sketch.lost, "halves": sketch.halves, "weights": sketch.weights}
    arrays |= {name: array for name, array in optional.items() if array is not None}
    arrays |= _pack_controls(sketch.controls, half)
    arrays |= _in_16_bits("quantiles", sketch.quantiles) if half else {"quantiles": sketch.quantiles}
    return packed(_SKETCH, header, arrays)


def from_bytes(content: bytes, name: str | PathLike[str], projections: Projections | None = None) -> Sketch:
    """A sketch from the content of a file, or an error that says what is wrong with it.

    A sketch through these projections uses them; otherwise they are drawn again from its recipe.
    """
    checked = unpacked(_SKETCH, content, name)
    scaler, tilt, fingerprint = read_scaler(checked), read_tilt(checked), checked.get("fingerprint", str)
    if projections is None or projections.fingerprint != fingerprint:
        projections = None
        with suppress(SotddError):  # sketches can be compared without them; calls that need them say so
            projections = restore_projections(checked)
    n_projections, classes = checked.within("recipe").count("n_projections"), checked.labels()
    counts = checked.not_negative("counts", np.int64, (len(classes),))
    quantiles, step = _read_rows(checked, "quantiles", n_projections)
    checked.ascending("quantiles", quantiles)
    if checked.get("exact", bool) and quantiles.shape[1] != counts.sum():
        raise checked.refused("it claims to keep every value, and does not")
    shapes = {"lost": (n_projections, 3), "halves": (2, None), "weights": (n_projections,)}
    optional = {key: checked.lengths(key, shape) for key, shape in shapes.items() if checked.holds(key)}
    if "lost" in optional and step is not None:  # values were rounded to the nearest step
        optional["lost"] = optional["lost"] + step[:, None] * [0.0, 0.0, 0.5]
    return Sketch(
        checked.get("name", str),
        quantiles,
        checked.get("exact", bool),
        classes,
        counts,
        checked.array("class_terms", (np.float32,), (n_projections, len(classes))),
        checked.get("recipe", dict),
        fingerprint,
        scaler,
        projections,
        remarks=checked.texts("remarks"),
        tilt=tilt,
        controls=_read_controls(checked, n_projections),
        **optional,
    )


def _pack_controls(controls: Carried | None, half: bool) -> Arrays:
    if controls is None:
        return {}
    arrays: Arrays = {}
    if controls.places is not None:
        flat = controls.places.transpose(2, 0, 1).reshape(2 * len(controls.places), -1)
        arrays = _in_16_bits("places", flat) if half else {"places": controls.places}
    if controls.values is not None and controls.lengths is not None:
        known = controls.lengths
        numbers = np.array([*known.even, known.between, known.dimensions])
        arrays |= {"values": controls.values, "lengths": numbers, "mean": known.mean.astype(np.float32)}
    return arrays


def _read_controls(checked: Checked, n_projections: int) -> Carried | None:
    places = values = lengths = None
    if checked.holds("places step"):
        flat, _ = _read_rows(checked, "places", 2 * n_projections)
        places = np.ascontiguousarray(flat.reshape(2, n_projections, -1).transpose(1, 2, 0))
    elif checked.holds("places"):
        places = checked.array("places", (np.float32,), (n_projections, None, 2))
    if checked.holds("values"):
        n_features = checked.within("recipe").count("n_features")
        values = checked.array("values", (np.float64,), (n_projections, 5))
        *even, between, dimensions = checked.not_negative("lengths", np.float64, (5,))
        mean = checked.array("mean", (np.float32,), (n_features,)).astype(np.float64)
        if not n_features <= dimensions <= MOST_FEATURES:
            raise checked.refused("its directions are in fewer dimensions than there are features, or in too many")
        lengths = Lengths(np.array(even), float(between), mean, int(dimensions))
    return None if places is None and values is None else Carried(places, values, lengths)


def _in_16_bits(name: str, rows: NDArray[np.float32]) -> Arrays:
    """Rows (B, n) in steps between the lowest and the highest value of each."""
    wide = rows.astype(np.float64)
    low = wide.min(axis=1)
    step = (wide.max(axis=1) - low) / _STEPS
    numbers = np.rint((wide - low[:, None]) / np.where(step > 0, step, 1.0)[:, None])
    return {name: numbers.astype(np.uint16), f"{name} low": low, f"{name} step": step}


def _read_rows(checked: Checked, name: str, n_rows: int) -> tuple[NDArray[np.float32], NDArray[np.float64] | None]:
    """Rows (B, n); and the step (B,) that each was rounded to, where they are in 16 bits."""
    if not checked.holds(f"{name} step"):
        return checked.array(name, (np.float32,), (n_rows, None)), None
    numbers = checked.array(name, (np.uint16,), (n_rows, None))
    low = checked.array(f"{name} low", (np.float64,), (n_rows,))
    step = checked.not_negative(f"{name} step", np.float64, (n_rows,))
    with np.errstate(over="ignore"):
        values = (low[:, None] + step[:, None] * numbers).astype(np.float32)
    if not np.isfinite(values).all():
        raise checked.refused(f"its {name} leave float32")
    return values, step


# ------------------------------------------------------------------ class statistics, builders, windows


def statistics_to_bytes(statistics: ClassStatistics) -> bytes:
    """The counts of classes, and what the label terms are computed from, as the content of a file."""
    header, arrays = pack_projections(statistics.projections)
    header["seen"] = _pack_statistics(statistics, arrays, "seen")
    return packed(_STATISTICS, header, arrays)


def statistics_from_bytes(
    content: bytes, path: str | PathLike[str], projections: Projections | None
) -> ClassStatistics:
    """What `statistics_to_bytes` made; messages call it by its path."""
    checked = unpacked(_STATISTICS, content, path)
    return _read_statistics(checked.within("seen"), "seen", read_projections(checked, projections))


def builder_to_bytes(builder: SketchBuilder) -> bytes:
    """Everything that a builder has counted, as the content of a file."""
    header, arrays = pack_projections(builder.projections)
    return packed(_BUILDER, header | _pack_builder(builder, arrays, ""), arrays)


def builder_from_bytes(
    content: bytes, path: str | PathLike[str], projections: Projections | None = None
) -> SketchBuilder:
    """What `builder_to_bytes` made; messages call it by its path."""
    checked = unpacked(_BUILDER, content, path)
    return _read_builder(checked, read_projections(checked, projections), "")


def window_to_bytes(window: SketchWindow) -> bytes:
    """All parts of a window, as the content of a file."""
    header, arrays = pack_projections(window.projections)
    parts = {str(at): _pack_builder(part, arrays, f"{at} ") for at, part in enumerate(window.parts.values())}
    header |= {"n_quantiles": window.n_quantiles, "names": list(window.names), "parts": parts}
    return packed(_WINDOW, header, arrays)


def window_from_bytes(content: bytes, path: str | PathLike[str], projections: Projections | None) -> SketchWindow:
    """What `window_to_bytes` made; messages call it by its path."""
    checked = unpacked(_WINDOW, content, path)
    drawn = read_projections(checked, projections)
    window = SketchWindow(drawn, n_quantiles=checked.count("n_quantiles", most=MOST_QUANTILES))
    names, parts = checked.texts("names"), checked.within("parts")
    if len(set(names)) < len(names):
        raise checked.refused("two of its parts have one name")
    window.parts = {name: _read_builder(parts.within(str(at)), drawn, f"{at} ") for at, name in enumerate(names)}
    return window


def _pack_builder(builder: SketchBuilder, arrays: Arrays, before: str) -> Header:
    """Put a builder into a file; the names of its arrays begin with ``before``."""
    builder.refuse_half_counted()
    first, counted = builder.first_pass, {} if builder.shares_histograms else builder.histograms
    return {
        "n_quantiles": builder.n_quantiles,
        "seen": _pack_statistics(builder.statistics, arrays, f"{before}seen"),
        "given": None if first is None else _pack_statistics(first, arrays, f"{before}given"),
        "dealt": _pack_groups(builder.groups, list(builder.statistics.counts), arrays, f"{before}dealt"),
        "counted": _pack_histograms(counted, arrays, f"{before}counted"),
    }


def _read_builder(checked: Checked, drawn: Projections, before: str) -> SketchBuilder:
    """What `_pack_builder` wrote, or an error where it cannot be."""
    first = None
    if checked.has("given"):
        first = _read_statistics(checked.within("given"), f"{before}given", drawn)
    builder = SketchBuilder(drawn, first, n_quantiles=checked.count("n_quantiles", most=MOST_QUANTILES))
    builder.statistics = _read_statistics(checked.within("seen"), f"{before}seen", drawn)
    counted = checked.histograms("counted", f"{before}counted", drawn.n_projections)
    builder.histograms = builder.statistics.histograms if builder.shares_histograms else counted
    if not builder.is_consistent():
        raise checked.refused("what it has counted is not what it has seen")
    _read_groups(checked, builder, f"{before}dealt")
    return builder


def _pack_statistics(statistics: ClassStatistics, arrays: Arrays, name: str) -> Header:
    classes, powers = list(statistics.counts), statistics.powers
    stacked = {"sums": statistics.sums, "powers": powers.powers, "totals": powers.totals}  # one array of each class
    arrays |= {f"{name} {key}": np.stack([kept[label] for label in classes]) for key, kept in stacked.items() if kept}
    if powers.powers:
        arrays |= {f"{name} even": powers.even, f"{name} lengths": powers.lengths}
    return {
        "classes": pack_labels(classes),
        "counts": list(statistics.counts.values()),
        "by_position": statistics.by_position,
        "histograms": _pack_histograms(statistics.histograms, arrays, name),
    }


def _read_statistics(checked: Checked, name: str, projections: Projections) -> ClassStatistics:
    classes, count = checked.labels(), projections.n_projections
    statistics = ClassStatistics(projections)
    statistics.by_position = checked.get("by_position", bool)
    statistics.counts = dict(zip(classes, checked.class_counts(len(classes)), strict=True))
    if checked.holds(f"{name} sums"):
        statistics.sums = _read_by_class(checked, f"{name} sums", classes, (count,))
    statistics.histograms.update(checked.histograms("histograms", name, count))
    _read_powers(checked, name, statistics)
    if not statistics.is_consistent():
        raise checked.refused(f"the classes of its {name!r} do not fit what is kept of them")
    return statistics


def _read_by_class(
    checked: Checked, name: str, classes: tuple[Hashable, ...], shape: tuple[int, ...]
) -> dict[Hashable, NDArray[np.float64]]:
    """An array of this shape for each class."""
    return dict(zip(classes, checked.array(name, (np.float64,), (len(classes), *shape)).copy(), strict=True))


def _read_powers(checked: Checked, name: str, statistics: ClassStatistics) -> None:
    """What controls are made of; a file may not have it."""
    powers, classes = statistics.powers, tuple(statistics.counts)
    if not classes:  # nothing is counted yet, and nothing is lost
        return
    powers.expect(classes)
    if not (powers.kept and checked.holds(f"{name} powers")):
        powers.drop()
        return
    count, n_features = statistics.projections.n_projections, statistics.projections.n_features
    powers.powers = _read_by_class(checked, f"{name} powers", classes, (count, powers.plan.degree + 1))
    powers.even = checked.not_negative(f"{name} even", np.float64, (count, 3)).copy()
    powers.lengths = checked.not_negative(f"{name} lengths", np.float64, (3,)).copy()
    if powers.plan.dimensions is not None:
        powers.totals = _read_by_class(checked, f"{name} totals", classes, (n_features,))


def _pack_groups(groups: GroupCounts, classes: list[Hashable], arrays: Arrays, name: str) -> list[list[object]]:
    """Put in the groups of each class one after another, under numbers, and their sums (C, G, B)."""
    if not groups.kept or not groups.histograms:
        return []
    flat: dict[Hashable, Histograms] = dict(enumerate(one for label in classes for one in groups.histograms[label]))
    arrays[f"{name} sums"] = np.stack([groups.sums[label] for label in classes])
    return _pack_histograms(flat, arrays, name)


def _read_groups(checked: Checked, builder: SketchBuilder, name: str) -> None:
    """The groups of each class, where a file has them, in the order of the classes seen."""
    groups, classes = builder.groups, tuple(builder.statistics.counts)
    if not classes:
        return
    if not checked.holds(f"{name} sums") or not groups.kept:
        groups.drop()
        return
    flat = list(checked.histograms("dealt", name, groups.n_rows, GROUP_BINS).values())
    groups.histograms = {label: flat[at * GROUPS : (at + 1) * GROUPS] for at, label in enumerate(classes)}
    groups.sums = _read_by_class(checked, f"{name} sums", classes, (GROUPS, groups.n_rows))
    groups.n_dealt = builder.n_points
    if len(flat) != len(classes) * GROUPS or not groups.is_consistent(builder.statistics.counts):
        raise checked.refused("its groups do not have the points that it has seen")


def _pack_histograms(histograms: Mapping[Hashable, Histograms], arrays: Arrays, name: str) -> list[list[object]]:
    """Put in counts (G, L, H) and ranges (G, L); returns the groups, each with its number of points."""
    if histograms:
        arrays[f"{name} counts"] = np.stack([group.counts for group in histograms.values()])  # in the widest type
        arrays[f"{name} low"] = np.stack([group.low for group in histograms.values()])
        arrays[f"{name} high"] = np.stack([group.high for group in histograms.values()])
    sizes = [group.n_points for group in histograms.values()]
    return [[label, size] for label, size in zip(pack_labels(list(histograms)), sizes, strict=True)]
