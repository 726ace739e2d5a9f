"""Builders, windows and class statistics as files, for other machines or parties to merge; no data points are in them.

The format is that of `sotdd.sketches.file`. Class statistics are under ``seen``. A builder also has ``counted``, its
histograms, and ``given``, the statistics of the first pass. What controls are made of is in ``powers``, ``totals``,
``even`` and ``lengths`` of the statistics; points dealt to groups are under ``dealt``. A window has a builder for each
of its ``parts``, whose arrays have its number before their names.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from os import PathLike

import numpy as np

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.basics.files import shown, write_whole
from sotdd.basics.text import json_label
from sotdd.projections.recipe import Projections
from sotdd.sketches.builder import SketchBuilder
from sotdd.sketches.checked import Checked
from sotdd.sketches.counting import Histograms
from sotdd.sketches.file import (
    WINDOW,
    Arrays,
    Header,
    content_of,
    packed,
    packed_recipe,
    restored_from,
    scaler_in,
    tilt_in,
    unpacked,
)
from sotdd.sketches.groups import GROUP_BINS, GROUPS, GroupCounts
from sotdd.sketches.levels import MOST_QUANTILES
from sotdd.sketches.memory import memory_for
from sotdd.sketches.statistics import ClassStatistics
from sotdd.sketches.window import SketchWindow

_STATISTICS, _BUILDER = "class statistics", "sketch builder"

# How values are counted. Files of older versions do not say: theirs had bins of one width over the whole range.
_BINS = "by doublings"


@memory_for("the file of class statistics", "use fewer projections")
def write_statistics(statistics: ClassStatistics, path: str | PathLike[str]) -> None:
    """Write the counts of classes, and what the label terms are computed from."""
    header, arrays = packed_projections(statistics.projections)
    header["seen"] = _put_statistics(statistics, arrays, "seen")
    write_whole(path, packed(_STATISTICS, header, arrays))


@memory_for("the file of class statistics", "open it where there is more memory")
def read_statistics(path: str | PathLike[str], projections: Projections | None) -> ClassStatistics:
    """Read what `write_statistics` wrote."""
    checked = _opened(_STATISTICS, path)
    return _take_statistics(checked.within("seen"), "seen", projections_in(checked, projections, path))


def write_builder(builder: SketchBuilder, path: str | PathLike[str]) -> None:
    """Write everything that a builder has counted."""
    write_whole(path, builder_to_bytes(builder))


def read_builder(path: str | PathLike[str], projections: Projections | None) -> SketchBuilder:
    """Read what `write_builder` wrote."""
    return builder_from_bytes(content_of(path, _BUILDER), path, projections)


@memory_for("the file of a builder", "use fewer projections, or two passes")
def builder_to_bytes(builder: SketchBuilder) -> bytes:
    """The content of a file."""
    header, arrays = packed_projections(builder.projections)
    return packed(_BUILDER, header | _put_builder(builder, arrays, ""), arrays)


@memory_for("the file of a builder", "open it where there is more memory")
def builder_from_bytes(
    content: bytes, path: str | PathLike[str], projections: Projections | None = None
) -> SketchBuilder:
    """A builder from the content of a file; messages call it by its path."""
    checked = _checked(_BUILDER, content, path)
    return _take_builder(checked, projections_in(checked, projections, path), "")


@memory_for("the file of a window", "keep fewer parts, or use fewer projections")
def write_window(window: SketchWindow, path: str | PathLike[str]) -> None:
    """Write all parts of a window."""
    header, arrays = packed_projections(window.projections)
    parts = {str(at): _put_builder(part, arrays, f"{at} ") for at, part in enumerate(window.parts.values())}
    header |= {"n_quantiles": window.n_quantiles, "names": list(window.names), "parts": parts}
    write_whole(path, packed(WINDOW, header, arrays))


@memory_for("the file of a window", "open it where there is more memory")
def read_window(path: str | PathLike[str], projections: Projections | None) -> SketchWindow:
    """Read what `write_window` wrote."""
    checked = _opened(WINDOW, path)
    drawn = projections_in(checked, projections, path)
    window = SketchWindow(drawn, n_quantiles=checked.count("n_quantiles", most=MOST_QUANTILES))
    names, parts = checked.texts("names"), checked.within("parts")
    if len(set(names)) < len(names):
        raise checked.refused("two of its parts have one name")
    window.parts = {name: _take_builder(parts.within(str(at)), drawn, f"{at} ") for at, name in enumerate(names)}
    return window


def _put_builder(builder: SketchBuilder, arrays: Arrays, before: str) -> Header:
    """Write a builder; the names of its arrays begin with ``before``."""
    builder.refuse_half_counted()
    first, counted = builder.first_pass, {} if builder.shares_histograms else builder.histograms
    return {
        "n_quantiles": builder.n_quantiles,
        "seen": _put_statistics(builder.statistics, arrays, f"{before}seen"),
        "given": None if first is None else _put_statistics(first, arrays, f"{before}given"),
        "dealt": _put_groups(builder.groups, list(builder.statistics.counts), arrays, f"{before}dealt"),
        "counted": _put_histograms(counted, arrays, f"{before}counted"),
    }


def _take_builder(checked: Checked, drawn: Projections, before: str) -> SketchBuilder:
    """What `_put_builder` wrote, or an error where it cannot be."""
    first = None
    if checked.has("given"):
        first = _take_statistics(checked.within("given"), f"{before}given", drawn)
    builder = SketchBuilder(drawn, first, n_quantiles=checked.count("n_quantiles", most=MOST_QUANTILES))
    statistics = _take_statistics(checked.within("seen"), f"{before}seen", drawn)
    builder.resume(statistics, checked.histograms("counted", f"{before}counted", drawn.n_projections))
    if not builder.is_consistent():
        raise checked.refused("what it has counted is not what it has seen")
    _take_groups(checked, builder, f"{before}dealt")
    return builder


def _opened(kind: str, path: str | PathLike[str]) -> Checked:
    """The content of a file."""
    return _checked(kind, content_of(path, kind), path)


def _checked(kind: str, content: bytes, path: str | PathLike[str]) -> Checked:
    """What a file holds, or an error where its counts are not in the bins of today."""
    checked = unpacked(kind, content, str(path))
    if checked.counts_values and not (checked.has("bins") and checked.text("bins") == _BINS):
        raise SotddError(f"{shown(path)} counts values in other bins than this sotdd: go over the data again.")
    return checked


def packed_projections(projections: Projections) -> tuple[Header, Arrays]:
    """What a file says of its projections, and how values are counted."""
    header, arrays = packed_recipe(projections.recipe(), projections.fingerprint, projections.scaler, projections.tilt)
    return {"bins": _BINS, **header}, arrays


def projections_in(checked: Checked, projections: Projections | None, path: str | PathLike[str]) -> Projections:
    """The projections of a file: drawn again from its recipe, or those passed, once they are checked."""
    scaler = scaler_in(checked)
    if projections is None:
        try:
            return restored_from(checked, scaler, tilt_in(checked))
        except SotddError as error:
            raise SotddError(f"{shown(path)} needs its projections: {error}; pass projections=.") from error
    if not isinstance(projections, Projections):
        raise SotddError(f"projections is {described(projections)}: expected Projections.fit(...) or from_arrays(...).")
    if projections.fingerprint != checked.text("fingerprint"):
        raise SotddError(f"{shown(path)} was made through other projections than those passed: pass its own.")
    return projections


def _put_statistics(statistics: ClassStatistics, arrays: Arrays, name: str) -> Header:
    classes = list(statistics.counts)
    if classes and statistics.sums:
        arrays[f"{name} sums"] = np.stack([statistics.sums[label] for label in classes])
    powers = statistics.powers
    if powers.kept and classes:
        arrays[f"{name} powers"] = np.stack([powers.powers[label] for label in classes])
        arrays |= {f"{name} even": powers.even, f"{name} lengths": powers.lengths}
        if powers.totals:
            arrays[f"{name} totals"] = np.stack([powers.totals[label] for label in classes])
    return {
        "classes": labels_as_json(classes),
        "counts": list(statistics.counts.values()),
        "by_position": statistics.by_position,
        "histograms": _put_histograms(statistics.histograms, arrays, name),
    }


def _take_statistics(checked: Checked, name: str, projections: Projections) -> ClassStatistics:
    classes, count = checked.labels(), projections.n_projections
    statistics = ClassStatistics(projections)
    statistics.by_position = checked.truth("by_position")
    statistics.counts = dict(zip(classes, checked.class_counts(len(classes)), strict=True))
    if checked.holds(f"{name} sums"):
        sums = checked.array(f"{name} sums", (np.float64,), (len(classes), count))
        statistics.sums = dict(zip(classes, sums.copy(), strict=True))
    statistics.histograms.update(checked.histograms("histograms", name, count))
    _take_powers(checked, name, statistics)
    if not statistics.is_consistent():
        raise checked.refused(f"the classes of its {name!r} do not fit what is kept of them")
    return statistics


def _take_powers(checked: Checked, name: str, statistics: ClassStatistics) -> None:
    """What controls are made of; files of older versions do not have it, and others may not either."""
    powers, classes = statistics.powers, list(statistics.counts)
    if not classes:  # nothing is counted yet, and nothing is lost
        return
    powers.expect(classes)
    if not (powers.kept and checked.holds(f"{name} powers")):
        powers.drop()
        return
    count, width = statistics.projections.n_projections, powers.plan.degree + 1
    found = checked.array(f"{name} powers", (np.float64,), (len(classes), count, width))
    powers.powers = dict(zip(classes, found.copy(), strict=True))
    powers.even = checked.not_negative("even", checked.array(f"{name} even", (np.float64,), (count, 3))).copy()
    powers.lengths = checked.not_negative("lengths", checked.array(f"{name} lengths", (np.float64,), (3,))).copy()
    if powers.plan.dimensions is not None:
        shape = (len(classes), statistics.projections.n_features)
        totals = checked.array(f"{name} totals", (np.float64,), shape)
        powers.totals = dict(zip(classes, totals.copy(), strict=True))


def _put_groups(groups: GroupCounts, classes: list[Hashable], arrays: Arrays, name: str) -> list[list[object]]:
    """Write the groups of each class one after another, under numbers, and their sums (C, G, B)."""
    if not groups.kept or not groups.histograms:
        return []
    flat: dict[Hashable, Histograms] = dict(enumerate(one for label in classes for one in groups.histograms[label]))
    arrays[f"{name} sums"] = np.stack([groups.sums[label] for label in classes])
    return _put_histograms(flat, arrays, name)


def _take_groups(checked: Checked, builder: SketchBuilder, name: str) -> None:
    """The groups of each class, where a file has them, in the order of the classes seen."""
    groups, classes = builder.groups, list(builder.statistics.counts)
    if not classes:
        return
    if not checked.holds(f"{name} sums") or not groups.kept:
        groups.drop()
        return
    flat = list(checked.histograms("dealt", name, groups.n_rows, GROUP_BINS).values())
    sums = checked.array(f"{name} sums", (np.float64,), (len(classes), GROUPS, groups.n_rows))
    if len(flat) != len(classes) * GROUPS:
        raise checked.refused("its groups are not so many for each class")
    groups.histograms = {label: flat[at * GROUPS : (at + 1) * GROUPS] for at, label in enumerate(classes)}
    groups.sums = dict(zip(classes, sums.copy(), strict=True))
    groups.n_dealt = builder.n_points
    if not groups.is_consistent(builder.statistics.counts):
        raise checked.refused("its groups do not have the points that it has seen")


def _put_histograms(histograms: Mapping[Hashable, Histograms], arrays: Arrays, name: str) -> list[list[object]]:
    """Write counts (G, L, H) and ranges (G, L); returns the groups, each with its number of points."""
    if histograms:
        counts = [group.counts for group in histograms.values()]
        widest = max((part.dtype for part in counts), key=lambda dtype: dtype.itemsize)
        arrays[f"{name} counts"] = np.stack([part.astype(widest, copy=False) for part in counts])
        arrays[f"{name} low"] = np.stack([group.low for group in histograms.values()])
        arrays[f"{name} high"] = np.stack([group.high for group in histograms.values()])
    sizes = [group.n_points for group in histograms.values()]
    return [[label, size] for label, size in zip(labels_as_json(list(histograms)), sizes, strict=True)]


def labels_as_json(labels: list[Hashable]) -> list[str | int | float | bool | None]:
    """Labels as JSON values, or an error where one would come back changed and not merge with another party's."""
    written = [json_label(label) for label in labels]
    for label, text in zip(labels, written, strict=True):
        if label != text:
            raise SotddError(f"the label {label!r} cannot be written to a file unchanged: use text or numbers.")
    return written
