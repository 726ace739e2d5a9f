"""Torch datasets and loaders, and any object that yields one item per row number.

Torch is not imported: its objects are recognised by the names of their types and by what they can do. Tensors,
which hold all points at once, are another thing: `inputs.tensors` reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import describe
from sotdd.basics.errors import SotddError
from sotdd.basics.remarks import Remark
from sotdd.basics.text import say_count
from sotdd.inputs.data import PLAIN
from sotdd.inputs.labels import Labels, sample_rows
from sotdd.inputs.loaders.columns import LABEL_NAMES
from sotdd.inputs.loaders.images import BATCH, is_image
from sotdd.inputs.preparation import Loaded, PreparedRows
from sotdd.inputs.reading import Reading
from sotdd.inputs.tensors import host_array, is_tensor

# Points and their labels, if they have any.
Batch = tuple[list[Any] | NDArray[Any], list[Any] | None]


def is_torch_data(source: object) -> bool:
    """Whether a source is a torch Dataset or DataLoader, or of a class derived from them."""
    return any(kind.__module__.startswith("torch.utils.data") for kind in type(source).__mro__)


def is_indexed(source: object) -> bool:
    """Whether a source yields items by number, and is not an array, a list or a mapping."""
    return (
        hasattr(source, "__getitem__")
        and hasattr(source, "__len__")
        and not hasattr(source, "__array__")
        and not hasattr(source, "__dlpack__")
        and not hasattr(source, "tocsr")
        and not isinstance(source, (Sequence, memoryview, Mapping))
    )


def open_torch(source: Any, name: str, reading: Reading) -> Loaded:  # noqa: ANN401  # torch is optional
    """Read a Dataset or a DataLoader once; beyond a size, its points go to a temporary file."""
    reading.refuse("a torch dataset")
    count = _length(source)
    if hasattr(source, "batch_sampler") and hasattr(source, "dataset"):
        return read_stream(_unbatch(source, reading, name), name, reading, head=count is None)
    if count is None:
        return read_stream(_batch(iter(source), reading, name), name, reading, head=True)
    rows: NDArray[np.integer] = np.arange(count)
    if reading.max_points is not None and reading.max_points < count:
        rows = sample_rows(rows, reading.max_points, reading.seed)
    items = (source[int(row)] for row in rows)
    return replace(read_stream(_batch(items, reading, name), name, reading), sampled=True)


def read_stream(batches: Iterator[Batch], name: str, reading: Reading, *, head: bool = False) -> Loaded:
    """Read batches of points and labels as they come; with ``head``, only the first ``max_points`` points."""
    if head and reading.max_points is None:
        raise SotddError(f"dataset {name!r} is a stream whose end cannot be seen: take the first with max_points=.")
    most = reading.max_points if head else None
    prepared, labels = PreparedRows(name, reading), list[Any]()
    count, origin = 0, PLAIN
    for points, classes in batches:
        room = len(points) if most is None else most - count
        prepared.add(points[:room])
        labels.extend([] if classes is None else classes[:room])
        count += min(room, len(points))
        if count == most:
            origin = origin.also(Remark("first rows", rows=count))
            break
    features = prepared.array()
    numbered = None if reading.unlabelled or not labels else Labels.of(labels, len(features), name)
    return Loaded(features, numbered, origin=origin, sampled=head, prepared=True)


def _batch(items: Iterator[Any], reading: Reading, name: str) -> Iterator[Batch]:
    """Batches made of single items."""
    start = 0
    while part := list(islice(items, BATCH)):
        pairs = [_pair(item, reading, name) for item in part]
        points = stack_points([point for point, _ in pairs], start, name)
        yield points, None if reading.unlabelled else [label for _, label in pairs]
        start += len(part)


def _unbatch(loader: Iterable[Any], reading: Reading, name: str) -> Iterator[Batch]:
    """The batches of a loader, or batches of its items if it yields them one by one."""
    if getattr(loader, "batch_size", 1) is None and getattr(loader, "batch_sampler", None) is None:
        yield from _batch(iter(loader), reading, name)
        return
    start = 0
    for batch in loader:
        points, labels = _pair(batch, reading, name)
        points = host_array(points) if is_tensor(points) else points
        if not isinstance(points, np.ndarray):
            points = stack_points(list(points), start, name)
        yield points, None if reading.unlabelled else list(host_array(labels) if is_tensor(labels) else labels)
        start += len(points)


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
        raise SotddError(f"{held}: name the labels with label=.")
    for key in [*([] if label is None else [label]), *chosen]:
        if key not in parts:
            raise SotddError(f"{held}, and no {key!r}: check features= and label=.")
    if (isinstance(item, Mapping) or reading.features is not None) and len(chosen) != 1:
        raise SotddError(f"{held}: name one with features=.")
    return parts[chosen[0]], None if label is None else parts[label]


def stack_points(points: list[Any], start: int, name: str) -> list[Any] | NDArray[Any]:
    """Points of one shape as an array (m, ...); texts and images stay as they are."""
    if points and (all(isinstance(point, str) for point in points) or all(is_image(point) for point in points)):
        return points
    try:
        arrays = [host_array(point) for point in points]
    except (ValueError, TypeError) as error:
        raise SotddError(f"points of dataset {name!r} are {describe(points[0])}: expected numbers.") from error
    for position, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            advice = ", or pass image_size= to a dataset that yields images" if array.ndim > 1 else ""
            where = f"point {start + position:,} of dataset {name!r}"
            raise SotddError(
                f"{where} has shape {array.shape} but others {arrays[0].shape}: transform them to one{advice}."
            )
        if array.dtype.kind not in "biuf":
            kind = describe(points[position])
            raise SotddError(f"point {start + position:,} of dataset {name!r} is {kind}: expected numbers.")
    return np.stack(arrays)


def _length(source: Any) -> int | None:  # noqa: ANN401
    """How many items there are; None for streams."""
    is_stream = any(kind.__name__ == "IterableDataset" for kind in type(source).__mro__)
    if not hasattr(source, "__len__") or (is_stream and not hasattr(source, "batch_sampler")):
        return None
    try:
        return len(source)
    except (TypeError, NotImplementedError, ValueError):  # of what has no length, or a negative one
        return None
