"""Datasets of torch, with its loaders, and of Hugging Face's `datasets`.

Neither library is imported: objects are recognised by the names of their types and by what they can do. Tensors,
which hold all points at once, are another thing: `inputs.arrays` reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, describe, first_line, require
from sotdd.basics.text import say_count
from sotdd.inputs.arrays import Labels, host_array, is_tensor
from sotdd.inputs.data import Origin
from sotdd.inputs.loaders.columns import LABEL_NAMES
from sotdd.inputs.loaders.tables import load_table
from sotdd.inputs.loaders.values import arrow
from sotdd.inputs.preparation import IMAGES, Items, Loaded, PreparedRows, fit_arrays, is_image
from sotdd.inputs.reading import Reading
from sotdd.inputs.sampling import sample_rows
from sotdd.inputs.sources import reading_file

# Rows of a table read at a time.
_BATCH_ROWS = 1 << 14


def open_torch(source: Any, name: str, reading: Reading) -> Loaded:  # noqa: ANN401  # torch is optional
    """Read a Dataset or a DataLoader once; beyond a size, its points go to a temporary file."""
    reading.refuse("a torch dataset")
    count, most = _find_length(source, name), reading.max_points
    if getattr(source, "batch_sampler", None) is not None:  # a loader of batches
        return _gather((_pair(batch, reading, name) for batch in source), name, reading)
    if hasattr(source, "batch_sampler"):
        return _gather(_batch(iter(source), reading, name), name, reading)
    chosen = None if most is None or most >= count else sample_rows(count, most, reading.seed)
    items = (source[int(row)] for row in (range(count) if chosen is None else chosen))
    return replace(_gather(_batch(items, reading, name), name, reading), rows=chosen, origin=Origin(rows_seen=count))


def _gather(batches: Iterable[tuple[Any, Any]], name: str, reading: Reading) -> Loaded:
    """Prepare points and labels as they come."""
    prepared, labels, count = PreparedRows(name, reading), list[Any](), 0
    for batch, classes in batches:
        points = _stack(batch, count, name, reading)
        prepared.add(points)
        if not reading.unlabelled:
            labels.extend(host_array(classes) if is_tensor(classes) else classes)
        count += len(points)
    features = prepared.array()
    known = Labels.of(labels, len(features), name) if labels else None
    if known is not None and reading.bins is None:
        known.refuse_odd(name)
    return Loaded(features, known, prepared=True)


def _batch(items: Iterator[Any], reading: Reading, name: str) -> Iterator[tuple[Any, Any]]:
    """Points and labels of single items, some at a time."""
    while part := [_pair(item, reading, name) for item in islice(items, IMAGES)]:
        yield tuple(zip(*part, strict=True))  # type: ignore[misc]  # two of them


def _pair(item: Any, reading: Reading, name: str) -> tuple[Any, Any]:  # noqa: ANN401
    """The point and the label of an item: (point, label), a mapping, or the point alone.

    Parts go by their names, or by their numbers: those that were asked for, or else those with the usual names.
    """
    if not isinstance(item, (Mapping, tuple, list)):
        if reading.unlabelled:
            return item, None
        expected = "expected (point, label); pass label=None for one class"
        raise SotddError(f"items of dataset {name!r} are {describe(item)}: {expected}.")
    parts = {str(key): value for key, value in (item.items() if isinstance(item, Mapping) else enumerate(item))}
    usual = [key for key in parts if key.lower() in LABEL_NAMES]
    if not isinstance(item, Mapping):
        usual = ["1"] if len(item) == 2 else []
    wanted = [*usual] if reading.label_column is None else [str(reading.label_column)]
    label = wanted[0] if len(wanted) == 1 and not reading.unlabelled else None
    rest = [key for key in parts if key not in wanted]
    chosen = rest if reading.features is None else [str(key) for key in reading.features]
    held = f"items of dataset {name!r} have {say_count(len(parts), 'part')}, {', '.join(map(repr, parts))}"
    if label is None and not reading.unlabelled:
        raise SotddError(f"{held}: name the labels", by=("label",))
    for key in [*([] if label is None else [label]), *chosen]:
        if key not in parts:
            raise SotddError(f"{held}, and no {key!r}: name others", by=("features", "label"))
    if (isinstance(item, Mapping) or reading.features is not None) and len(chosen) != 1:
        raise SotddError(f"{held}: name one", by=("features",))
    return parts[chosen[0]], None if label is None else parts[label]


def _stack(points: Any, start: int, name: str, reading: Reading) -> list[Any] | NDArray[Any]:  # noqa: ANN401  # of any library
    """Points of one shape as an array (m, ...); texts and images stay as they are."""
    if is_tensor(points) or isinstance(points, np.ndarray):
        return host_array(points)
    if all(isinstance(point, str) for point in points) or all(is_image(point) for point in points):
        return list(points)
    try:
        arrays = [host_array(point) for point in points]
    except (ValueError, TypeError) as error:
        raise SotddError(f"points of dataset {name!r} are {describe(points[0])}: expected numbers.") from error
    if reading.image_size is not None:  # they may be of several
        arrays = [fit_arrays(array[None], name, reading)[0] for array in arrays]
    for row, (point, array) in enumerate(zip(points, arrays, strict=True), start):
        if array.shape != arrays[0].shape or array.dtype.kind not in "biuf":
            means = ("image_mode" if reading.image_size else "image_size",) if array.ndim > 1 else ()
            raise SotddError(
                f"point {row:,} of dataset {name!r} has shape {array.shape}, {describe(point)}: expected numbers of "
                f"shape {arrays[0].shape}{': bring images to one shape' if means else '.'}",
                by=means,
            )
    return np.stack(arrays)


def _find_length(source: Any, name: str) -> int:  # noqa: ANN401
    """How many items there are; refuse streams, which have no length."""
    is_loader = hasattr(source, "batch_sampler")
    if any(kind.__name__ == "IterableDataset" for kind in type(source).__mro__) and not is_loader:
        raise stream_error(name)
    try:
        return len(source)
    except (TypeError, NotImplementedError) as error:  # of a loader of a stream
        raise stream_error(name) from error
    except (ValueError, OverflowError) as error:
        raise SotddError(f"dataset {name!r} has no length ({first_line(error)}): expected a count of items.") from error


def stream_error(name: str) -> SotddError:
    """The error for what yields points without an end that can be seen."""
    return SotddError(f"dataset {name!r} is a stream: give its batches to sotdd.sketch_stream, or take some points.")


# ------------------------------------------------------------------ Hugging Face


def open_saved(folder: Path, name: str, reading: Reading) -> Loaded:
    """Open what `save_to_disk` wrote, as the library itself reads it."""
    with reading_file(folder, "a dataset saved by save_to_disk"):
        source = require("datasets", f"reading {folder}", "datasets").load_from_disk(str(folder))
    return open_huggingface(source, name, reading)


def open_huggingface(source: Any, name: str, reading: Reading) -> Loaded:  # noqa: ANN401  # the library is optional
    """Open a dataset as the table that it is; images are decoded once."""
    reading.refuse("a Hugging Face dataset")
    if isinstance(source, dict):
        split = reading.split or (next(iter(source)) if len(source) == 1 else None)
        if split not in source:
            raise SotddError(f"{name} has the splits {', '.join(map(repr, source))}: name one", by=("split",))
        source = source[split]
    elif reading.split is not None:
        raise SotddError(f"is {reading.split!r} but {name} has no splits: leave it out.", setting="split")
    if type(source).__name__ == "IterableDataset":
        raise stream_error(name)
    if not len(source):
        raise SotddError(f"{name} has no rows: expected at least one.")
    if source.format["type"] == "custom":  # a transform of the user's decides what rows are
        return open_torch(source, name, reading)
    coded = [column for column, kind in source.features.items() if type(kind).__name__ == "ClassLabel"]
    if len(coded) == 1 and reading.label_is_auto:  # which holds the labels, whatever it is called
        reading = replace(reading, label=coded[0])
    images = [column for column, kind in source.features.items() if type(kind).__name__ == "Image"]
    items = {column: _make_items(source, column, name) for column in images}
    return load_table(lambda columns: _read(source, columns, coded), name, reading, items)


def _read(source: Any, columns: Sequence[str] | None, coded: Sequence[str]) -> Iterator[Any]:  # noqa: ANN401
    """Record batches of a dataset, with rows as it has them; class labels by name, of which -1 is not known."""
    wanted = source if columns is None else source.select_columns(list(columns))
    for table in wanted.with_format("arrow").iter(_BATCH_ROWS):
        for column in set(coded) & set(table.column_names):
            codes = table.column(column).combine_chunks()
            known = arrow().compute.if_else(arrow().compute.equal(codes, -1), None, codes)
            named = arrow().DictionaryArray.from_arrays(known, source.features[column].names)
            table = table.set_column(table.column_names.index(column), column, named)  # noqa: PLW2901
        yield from table.to_batches()


def _make_items(source: Any, column: str, name: str) -> Items:  # noqa: ANN401
    """A column of images, which the library decodes."""
    require("PIL.Image", "reading images", "'sotdd[inputs]'")
    plain = source.select_columns([column]).with_format(None)

    def read(rows: NDArray[np.integer]) -> list[Any]:
        with reading_file(f"column {column!r} of {name}, rows {rows[0]:,} to {rows[-1]:,}", "an image in each"):
            items: list[Any] = list(plain[rows.tolist()][column])
        if any(item is None for item in items):
            raise SotddError(f"column {column!r} of {name} has missing entries: drop those rows first.")
        return items

    return Items(len(source), read, IMAGES)
