"""Builders and class statistics on their way between machines or parties: files without any data in them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path

import numpy as np

from sotdd.basics.errors import SotddError
from sotdd.basics.files import write_whole
from sotdd.projections.recipe import Projections
from sotdd.projections.restore import restored
from sotdd.results.distance import json_label
from sotdd.sketches.builder import SketchBuilder
from sotdd.sketches.container import Arrays, Header, content_of, packed, scaler_in, seen_through, unpacked
from sotdd.sketches.histograms import Histograms
from sotdd.sketches.statistics import ClassStatistics

_STATISTICS, _BUILDER = "class statistics", "sketch builder"


def write_statistics(statistics: ClassStatistics, path: Path) -> None:
    """Write the counts and what the label terms are made of."""
    header, arrays = seen_through(statistics.projections)
    header["seen"] = _put_statistics(statistics, arrays, "seen")
    write_whole(path, packed(_STATISTICS, header, arrays))


def read_statistics(path: Path, projections: Projections | None) -> ClassStatistics:
    """Read what `write_statistics` wrote."""
    header, arrays = unpacked(_STATISTICS, content_of(path, _STATISTICS), str(path))
    return _take_statistics(header["seen"], arrays, "seen", _projections(header, arrays, projections, path))


def write_builder(builder: SketchBuilder, path: Path) -> None:
    """Write all that a builder has counted."""
    builder.refuse_half_counted()
    header, arrays = seen_through(builder.projections)
    header["n_quantiles"] = builder.n_quantiles
    header["seen"] = _put_statistics(builder.statistics, arrays, "seen")
    header["given"] = None if builder.given is None else _put_statistics(builder.given, arrays, "given")
    header["counted"] = [] if builder.kept_once else _put_histograms(builder.histograms, arrays, "counted")
    write_whole(path, packed(_BUILDER, header, arrays))


def read_builder(path: Path, projections: Projections | None) -> SketchBuilder:
    """Read what `write_builder` wrote."""
    header, arrays = unpacked(_BUILDER, content_of(path, _BUILDER), str(path))
    found = _projections(header, arrays, projections, path)
    given = None if header["given"] is None else _take_statistics(header["given"], arrays, "given", found)
    builder = SketchBuilder(found, given, n_quantiles=header["n_quantiles"])
    seen = _take_statistics(header["seen"], arrays, "seen", found)
    builder.take(seen, _take_histograms(header["counted"], arrays, "counted"))
    return builder


def _projections(header: Header, arrays: Arrays, projections: Projections | None, path: Path) -> Projections:
    """Those of the file: drawn again, or given and checked."""
    if projections is None:
        try:
            return restored(header["recipe"], scaler_in(header, arrays), header["fingerprint"])
        except SotddError as error:
            raise SotddError(f"{str(path)!r} needs its projections: {error}; pass projections=.") from error
    if projections.fingerprint != header["fingerprint"]:
        raise SotddError(f"{str(path)!r} was made through other projections than those given: pass the same.")
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
        counts = [counted.counts for counted in histograms.values()]
        widest = max((part.dtype for part in counts), key=lambda dtype: dtype.itemsize)
        arrays[f"{name} counts"] = np.stack([part.astype(widest, copy=False) for part in counts])
        arrays[f"{name} low"] = np.stack([counted.low for counted in histograms.values()])
        arrays[f"{name} high"] = np.stack([counted.high for counted in histograms.values()])
    points = [counted.n_points for counted in histograms.values()]
    return [[label, count] for label, count in zip(_as_json(list(histograms)), points, strict=True)]


def _take_histograms(groups: list[tuple[Hashable, int]], arrays: Arrays, name: str) -> dict[Hashable, Histograms]:
    found: dict[Hashable, Histograms] = {}
    for place, (label, points) in enumerate(groups):
        counts, low, high = (arrays[f"{name} {what}"][place].copy() for what in ("counts", "low", "high"))
        found[label] = Histograms(counts, low, high, points)
    return found


def _as_json(labels: list[Hashable]) -> list[str | int | float | bool | None]:
    """Labels that come back as they are: others could not be merged with those of another party."""
    written = [json_label(label) for label in labels]
    for label, text in zip(labels, written, strict=True):
        if label != text:
            raise SotddError(f"the label {label!r} cannot be written to a file as it is: use text or numbers.")
    return written
