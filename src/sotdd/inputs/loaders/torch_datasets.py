"""Torch datasets and loaders, and any object that yields one item per row number.

Torch is not imported: its objects are recognised by the names of their types and by what they can do. Tensors,
which hold all points at once, are another thing: `inputs.tensors` reads them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import described
from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted
from sotdd.inputs.labels import Labels, sample_rows
from sotdd.inputs.loaded import Loaded
from sotdd.inputs.loaders.columns import LABEL_NAMES
from sotdd.inputs.loaders.images import BATCH, is_image
from sotdd.inputs.prepare import Preparation
from sotdd.inputs.settings import OF_FOLDERS, OF_TABLES, Settings
from sotdd.inputs.spool import Spool
from sotdd.inputs.tensors import host_array, is_tensor

_log = logging.getLogger("sotdd.inputs")

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


def open_torch(source: Any, name: str, settings: Settings) -> Loaded:  # noqa: ANN401  # torch is optional
    """Read a Dataset or a DataLoader once; beyond a size, its points go to a temporary file."""
    settings.refuse("a torch dataset", *OF_FOLDERS, *OF_TABLES)
    if hasattr(source, "batch_sampler") and hasattr(source, "dataset"):
        endless = _length(source) is None
        batches = _unbatched(source, settings, name)
        return read_stream(batches, name, settings, head=endless)
    count = _length(source)
    if count is None:
        return read_stream(_batched(iter(source), settings, name), name, settings, head=True)
    rows: NDArray[np.integer] = np.arange(count)
    if settings.max_points is not None and settings.max_points < count:
        rows = sample_rows(rows, settings.max_points, settings.seed)
    items = (source[int(row)] for row in rows)
    return read_stream(_batched(items, settings, name), name, settings, sampled_already=True)


def read_stream(
    batches: Iterator[Batch],
    name: str,
    settings: Settings,
    *,
    head: bool = False,
    sampled_already: bool = False,
) -> Loaded:
    """Read batches of points and labels as they come; with ``head``, only the first ``max_points`` points."""
    if head and settings.max_points is None:
        raise SotddError(
            f"dataset {name!r} is a stream whose end cannot be seen: pass max_points= to take its first points."
        )
    prepare = Preparation(name, settings)
    spool = Spool(name)
    labels: list[Any] = []
    count = 0
    for points, classes in batches:
        room = settings.max_points - count if head and settings.max_points is not None else len(points)
        if len(points):
            spool.add(prepare(points[:room]))
        labels.extend([] if classes is None else classes[:room])
        count += min(room, len(points))
        if head and count == settings.max_points:
            _log.info("%s: the first %s taken.", name, counted(count, "row of the stream is", "rows of the stream are"))
            break
    features = spool.features()
    numbered = None if settings.unlabelled or not labels else Labels.of(labels, len(features), name)
    return Loaded(features, numbered, sampled=head or sampled_already, prepared=True)


def _batched(items: Iterator[Any], settings: Settings, name: str) -> Iterator[Batch]:
    """Batches made of single items."""
    start = 0
    while part := list(islice(items, BATCH)):
        pairs = [_pair(item, settings, name) for item in part]
        points = stacked([point for point, _ in pairs], start, name)
        yield points, None if settings.unlabelled else [label for _, label in pairs]
        start += len(part)


def _unbatched(loader: Iterable[Any], settings: Settings, name: str) -> Iterator[Batch]:
    """The batches of a loader, or batches of its items if it yields them one by one."""
    if getattr(loader, "batch_size", 1) is None and getattr(loader, "batch_sampler", None) is None:
        yield from _batched(iter(loader), settings, name)
        return
    start = 0
    for batch in loader:
        points, labels = _pair(batch, settings, name)
        points = host_array(points) if is_tensor(points) else points
        if not isinstance(points, np.ndarray):
            points = stacked(list(points), start, name)
        classes = None if settings.unlabelled else list(host_array(labels) if is_tensor(labels) else labels)
        yield points, classes
        start += len(points)


def _pair(item: Any, settings: Settings, name: str) -> tuple[Any, Any]:  # noqa: ANN401
    """The point and the label of an item: (point, label), a mapping, or the point alone."""
    if isinstance(item, Mapping):
        return _fields(item, settings, name)
    if not isinstance(item, (tuple, list)):
        if settings.unlabelled:
            return item, None
        raise SotddError(
            f"items of dataset {name!r} are {described(item)}: expected (point, label); pass label=None for one class."
        )
    if len(item) != 2 and not settings.unlabelled and settings.label_column is None:
        raise SotddError(
            f"items of dataset {name!r} have {counted(len(item), 'part', 'parts')}: expected (point, label); say "
            "which with features=0, label=1."
        )
    point = 0 if settings.features is None else settings.features[0]
    label = 1 if settings.label_column is None else settings.label_column
    try:
        return item[int(point)], None if settings.unlabelled else item[int(label)]
    except (ValueError, IndexError):
        raise SotddError(
            f"items of dataset {name!r} have {counted(len(item), 'part', 'parts')}: expected numbers from 0 to "
            f"{len(item) - 1}, not {point!r} and {label!r}."
        ) from None


def _fields(item: Mapping[Any, Any], settings: Settings, name: str) -> tuple[Any, Any]:
    """The point and the label of a mapping: the fields that were named, or those with the usual names."""
    usual = [key for key in item if str(key).lower() in LABEL_NAMES]
    label = settings.label_column if settings.label_column is not None else usual[0] if len(usual) == 1 else None
    if label is None and not settings.unlabelled:
        raise SotddError(f"items of dataset {name!r} have {', '.join(map(repr, item))}: name the labels with label=.")
    rest = [key for key in item if key != label]
    point = settings.features[0] if settings.features is not None else rest[0] if len(rest) == 1 else None
    for key in (point, label):
        if key is not None and key not in item:
            raise SotddError(f"items of dataset {name!r} have no {key!r}, only {', '.join(map(repr, item))}.")
    if point is None or (settings.features is not None and len(settings.features) > 1):
        raise SotddError(f"items of dataset {name!r} have {', '.join(map(repr, item))}: name one with features=.")
    return item[point], None if settings.unlabelled else item[label]


def stacked(points: list[Any], start: int, name: str) -> list[Any] | NDArray[Any]:
    """Points of one shape as an array (m, ...); texts and images stay as they are."""
    if points and all(isinstance(point, str) for point in points):
        return points
    if points and all(is_image(point) for point in points):
        return points
    try:
        arrays = [host_array(point) for point in points]
    except (ValueError, TypeError) as error:
        raise SotddError(f"points of dataset {name!r} are {described(points[0])}: expected numbers.") from error
    for position, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            advice = ", or pass image_size= to a dataset that yields images" if array.ndim > 1 else ""
            raise SotddError(
                f"point {start + position:,} of dataset {name!r} has shape {array.shape} but others {arrays[0].shape}: "
                f"expected one shape; bring them to it in the dataset's transform{advice}."
            )
        if array.dtype.kind not in "biuf":
            raise SotddError(
                f"point {start + position:,} of dataset {name!r} is {described(points[position])}: expected numbers."
            )
    return np.stack(arrays)


def _length(source: Any) -> int | None:  # noqa: ANN401
    """How many items there are; None for streams."""
    is_stream = any(kind.__name__ == "IterableDataset" for kind in type(source).__mro__)
    if not hasattr(source, "__len__") or (is_stream and not hasattr(source, "batch_sampler")):
        return None
    try:
        return len(source)
    except (TypeError, NotImplementedError):
        return None
