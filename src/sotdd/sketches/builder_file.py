"""Builders and class statistics as files, for other machines or parties to merge; no data points are in them.

The format is that of `sotdd.sketches.file`. Class statistics are under ``seen``. A builder also has ``counted``, its
histograms, and ``given``, the statistics of the first pass.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path

import numpy as np

from sotdd.basics.errors import SotddError
from sotdd.basics.files import write_whole
from sotdd.basics.text import json_label
from sotdd.projections.recipe import Projections
from sotdd.projections.restore import restored
from sotdd.sketches.builder import SketchBuilder
from sotdd.sketches.counting import Histograms
from sotdd.sketches.file import Arrays, Header, content_of, packed, packed_recipe, scaler_in, unpacked
from sotdd.sketches.statistics import ClassStatistics

_STATISTICS, _BUILDER = "class statistics", "sketch builder"


def write_statistics(statistics: ClassStatistics, path: Path) -> None:
    """Write the counts of classes, and what the label terms are computed from."""
    header, arrays = _recipe_of(statistics.projections)
    header["seen"] = _put_statistics(statistics, arrays, "seen")
    write_whole(path, packed(_STATISTICS, header, arrays))


def read_statistics(path: Path, projections: Projections | None) -> ClassStatistics:
    """Read what `write_statistics` wrote."""
    header, arrays = unpacked(_STATISTICS, content_of(path, _STATISTICS), str(path))
    return _take_statistics(header["seen"], arrays, "seen", _projections(header, arrays, projections, path))


def write_builder(builder: SketchBuilder, path: Path) -> None:
    """Write everything that a builder has counted."""
    builder.refuse_half_counted()
    header, arrays = _recipe_of(builder.projections)
    first = builder.first_pass
    header["n_quantiles"] = builder.n_quantiles
    header["seen"] = _put_statistics(builder.statistics, arrays, "seen")
    header["given"] = None if first is None else _put_statistics(first, arrays, "given")
    header["counted"] = [] if builder.shares_histograms else _put_histograms(builder.histograms, arrays, "counted")
    write_whole(path, packed(_BUILDER, header, arrays))


def read_builder(path: Path, projections: Projections | None) -> SketchBuilder:
    """Read what `write_builder` wrote."""
    header, arrays = unpacked(_BUILDER, content_of(path, _BUILDER), str(path))
    drawn = _projections(header, arrays, projections, path)
    first = None if header["given"] is None else _take_statistics(header["given"], arrays, "given", drawn)
    builder = SketchBuilder(drawn, first, n_quantiles=header["n_quantiles"])
    statistics = _take_statistics(header["seen"], arrays, "seen", drawn)
    builder.resume(statistics, _take_histograms(header["counted"], arrays, "counted"))
    return builder


def _recipe_of(projections: Projections) -> tuple[Header, Arrays]:
    return packed_recipe(projections.recipe(), projections.fingerprint, projections.scaler)


def _projections(header: Header, arrays: Arrays, projections: Projections | None, path: Path) -> Projections:
    """The projections of a file: drawn again from its recipe, or those passed, once they are checked."""
    if projections is None:
        try:
            return restored(header["recipe"], scaler_in(header, arrays), header["fingerprint"])
        except SotddError as error:
            raise SotddError(f"{str(path)!r} needs its projections: {error}; pass projections=.") from error
    if projections.fingerprint != header["fingerprint"]:
        raise SotddError(f"{str(path)!r} was made through other projections than those passed: pass its own.")
    return projections


def _put_statistics(statistics: ClassStatistics, arrays: Arrays, name: str) -> Header:
    classes = list(statistics.counts)
    if classes and statistics.sums:
        arrays[f"{name} sums"] = np.stack([statistics.sums[label] for label in classes])
    return {
        "classes": _as_json(classes),
        "counts": list(statistics.counts.values()),
        "by_position": statistics.by_position,
        "histograms": _put_histograms(statistics.histograms, arrays, name),
    }


def _take_statistics(header: Header, arrays: Arrays, name: str, projections: Projections) -> ClassStatistics:
    statistics = ClassStatistics(projections)
    statistics.by_position = header["by_position"]
    statistics.counts = dict(zip(header["classes"], header["counts"], strict=True))
    if f"{name} sums" in arrays:
        statistics.sums = dict(zip(header["classes"], arrays[f"{name} sums"].copy(), strict=True))
    statistics.histograms.update(_take_histograms(header["histograms"], arrays, name))
    return statistics


def _put_histograms(histograms: Mapping[Hashable, Histograms], arrays: Arrays, name: str) -> list[list[object]]:
    """Write counts (G, L, H) and ranges (G, L); returns the groups, each with its number of points."""
    if histograms:
        counts = [group.counts for group in histograms.values()]
        widest = max((part.dtype for part in counts), key=lambda dtype: dtype.itemsize)
        arrays[f"{name} counts"] = np.stack([part.astype(widest, copy=False) for part in counts])
        arrays[f"{name} low"] = np.stack([group.low for group in histograms.values()])
        arrays[f"{name} high"] = np.stack([group.high for group in histograms.values()])
    sizes = [group.n_points for group in histograms.values()]
    return [[label, size] for label, size in zip(_as_json(list(histograms)), sizes, strict=True)]


def _take_histograms(groups: list[tuple[Hashable, int]], arrays: Arrays, name: str) -> dict[Hashable, Histograms]:
    histograms: dict[Hashable, Histograms] = {}
    for index, (label, n_points) in enumerate(groups):
        counts, low, high = (arrays[f"{name} {what}"][index].copy() for what in ("counts", "low", "high"))
        histograms[label] = Histograms(counts, low, high, n_points)
    return histograms


def _as_json(labels: list[Hashable]) -> list[str | int | float | bool | None]:
    """Labels as JSON values, or an error where one would come back changed and not merge with another party's."""
    written = [json_label(label) for label in labels]
    for label, text in zip(labels, written, strict=True):
        if label != text:
            raise SotddError(f"the label {label!r} cannot be written to a file unchanged: use text or numbers.")
    return written
