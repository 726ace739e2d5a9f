"""References on disk, in the format of sketches: no pickle, and every entry is checked before it is used.

The header has the settings of a reference and how batches are to be opened. The arrays are
``rows`` (L, n), the projected points; ``label rows`` (L, n), where labels have directions of their own; ``codes`` (n,),
the class of every point; ``commonest`` (d,), how often each feature has its commonest value; ``edges``, where targets
are cut into classes; ``sketch``, the bytes of a sketch file; and those of the scaler.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from sotdd.basics.checks import check_order, first_line
from sotdd.basics.errors import SotddError
from sotdd.basics.files import read_whole, shown
from sotdd.measure.drift import FARTHEST, DriftReference, Projected
from sotdd.measure.drift_reading import SETTINGS, Reading
from sotdd.measure.drift_values import Commonest
from sotdd.projections.recipe import Projections
from sotdd.sketches import file as sketch_file
from sotdd.sketches.codec import (
    Checked,
    pack_labels,
    pack_projections,
    packed,
    read_projections,
    unpacked,
)
from sotdd.sketches.sketch import Sketch

KIND = "drift reference"


def to_bytes(reference: DriftReference) -> bytes:
    """The content of a file."""
    header, arrays = pack_projections(reference.projections)
    reading, points = reference.reading, reference.points
    header |= {
        "name": reference.name,
        "p": reference.p,
        "label_names": reference.label_names,
        "seed": str(reference.seed),  # of any size
        "classes": pack_labels(list(points.classes)),
        "remarks": list(reference.remarks),
        "reading": {
            "settings": dict(reading.settings),
            "columns": None if reading.columns is None else list(reading.columns),
            "labelled": reading.labelled,
            "suffix": reading.suffix,
        },
    }
    arrays |= {"rows": points.rows, "codes": points.codes.astype(np.int32)}
    arrays |= {} if points.label_rows is None else {"label rows": points.label_rows}
    if reference.sketch is not None:
        arrays["sketch"] = np.frombuffer(sketch_file.to_bytes(reference.sketch), np.uint8)
    if reference.commonest is not None:
        header["counted_rows"] = reference.commonest.n_rows
        arrays["commonest"] = reference.commonest.counts
    arrays |= {} if reading.edges is None else {"edges": np.array(reading.edges)}
    return packed(KIND, header, arrays)


def read(path: str | PathLike[str], projections: Projections | None = None) -> DriftReference:
    """Read a reference; anything else is refused in one line."""
    checked = unpacked(KIND, read_whole(path, f"the file of a {KIND}"), path)
    recipe = read_projections(checked, projections)
    label_names: Any = checked.get("label_names", str)
    if label_names not in ("ignore", "match"):
        raise checked.refused(f"its 'label_names' are {label_names!r}")
    try:
        p = check_order(checked.number("p"))
    except SotddError as error:
        raise checked.refused(first_line(error).rstrip(".")) from error
    return DriftReference(
        _points_in(checked, recipe),
        recipe,
        p,
        label_names,
        _seed_in(checked),
        checked.texts("remarks"),
        checked.get("name", str),
        _reading_in(checked),
        _sketch_in(checked, recipe, path),
        _commonest_in(checked, recipe.n_features),
    )


def _points_in(checked: Checked, projections: Projections) -> Projected:
    """The projected points: as many as there are codes, under every projection, none beyond what is ever kept."""
    classes = checked.labels()
    codes = checked.array("codes", (np.int32,), (None,))
    if not classes or codes.min() < 0 or codes.max() >= len(classes):
        raise checked.refused("its points are of classes that it does not have")
    shape = (projections.n_projections, len(codes))
    rows = {"rows": checked.array("rows", (np.float32,), shape)}
    if projections.draw(0, 1).label_features is not None:
        rows["label rows"] = checked.array("label rows", (np.float32,), shape)
    if any(np.abs(values).max() > 2 * FARTHEST for values in rows.values()):
        raise checked.refused("its points are farther than any reference keeps")
    return Projected(rows["rows"], rows.get("label rows"), classes, codes)


def _sketch_in(checked: Checked, projections: Projections, path: str | PathLike[str]) -> Sketch | None:
    """The sketch, which is a file within the file; one of other features than the points is refused."""
    if not checked.holds("sketch"):
        return None
    content = checked.array("sketch", (np.uint8,), (None,)).tobytes()
    sketch = sketch_file.from_bytes(content, f"the sketch in {shown(path)}", projections)
    if not sketch.n_points or sketch.recipe.get("n_features") != projections.n_features:
        raise checked.refused("its sketch is of other features than its points")
    return sketch


def _commonest_in(checked: Checked, n_features: int) -> Commonest | None:
    if not checked.holds("commonest"):
        return None
    counts, n_rows = checked.array("commonest", (np.int64,), (n_features,)), checked.count("counted_rows")
    if counts.min() < 1 or counts.max() > n_rows:
        raise checked.refused("its 'commonest' are not counts of its rows")
    return Commonest(counts, n_rows)


def _seed_in(checked: Checked) -> int:
    text = checked.get("seed", str)
    if not (text.isascii() and text.isdigit() and len(text) <= 40):
        raise checked.refused("its 'seed' is no whole number")
    return int(text)


def _reading_in(checked: Checked) -> Reading:
    reading = checked.within("reading")
    settings = reading.get("settings", dict)
    if not all(name in SETTINGS and _is_plain(value) for name, value in settings.items()):
        raise checked.refused("it would open batches in a way that no reference does")
    edges = checked.array("edges", (np.float64,), (None,)) if checked.holds("edges") else None
    if edges is not None and (np.diff(edges) <= 0).any():
        raise checked.refused("its 'edges' do not ascend")
    kept = None if edges is None else tuple(edges.tolist())
    columns = reading.texts("columns") if reading.has("columns") else None
    return Reading(settings, columns, reading.get("labelled", bool), kept, reading.get("suffix", str))


def _is_plain(value: object) -> bool:
    """Whether a setting is a number, a word, or a few numbers."""
    if isinstance(value, list):
        return len(value) <= 2 and all(isinstance(part, int) for part in value)
    return value is None or isinstance(value, (str, int, bool))
