"""Datasets of Hugging Face's `datasets`: in memory, on disk, or streamed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError, require
from sotdd.inputs.grouped import GroupedRows
from sotdd.inputs.labels import Labels
from sotdd.inputs.loaded import Items, Loaded
from sotdd.inputs.loaders.arrow import block_of, distinct_texts, dtype_of, kind_of, labels_of
from sotdd.inputs.loaders.columns import Columns, Kind, Values
from sotdd.inputs.loaders.images import BATCH
from sotdd.inputs.loaders.torch_datasets import Batch, open_torch, read_stream, stacked
from sotdd.inputs.settings import OF_CSV, Settings

# This many rows are read from the mapped file at a time.
_GROUP = 4096


def is_huggingface(source: object) -> bool:
    """Whether a source is one of the library's datasets; it is not imported for that."""
    kind = type(source)
    return kind.__module__.split(".")[0] == "datasets" and kind.__name__ in {
        "Dataset", "DatasetDict", "IterableDataset", "IterableDatasetDict",
    }  # fmt: skip


def is_saved(folder: Path) -> bool:
    """Whether a folder was written by ``save_to_disk``."""
    return (folder / "dataset_dict.json").is_file() or (
        (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file()
    )


def open_saved(folder: Path, name: str, settings: Settings) -> Loaded:
    """Open a folder written by ``save_to_disk``; its files are mapped, not read."""
    if not is_saved(folder):
        raise SotddError(f"{folder} is not a folder saved by datasets: expected one written by save_to_disk.")
    library = require("datasets", f"reading {folder}", "datasets")
    try:
        source = library.load_from_disk(str(folder))
    except (OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        raise SotddError(
            f"cannot read {folder} ({first_line(error)}): expected a folder written by save_to_disk."
        ) from error
    return open_huggingface(source, name, settings)


def open_huggingface(source: Any, name: str, settings: Settings) -> Loaded:  # noqa: ANN401  # the library is optional
    """Open a dataset: numbers stay in the mapped file until they are read, images are decoded once."""
    settings.refuse("a Hugging Face dataset", "broken", *OF_CSV)
    if isinstance(source, dict):
        source = _split(source, name, settings)
    elif settings.split is not None:
        settings.refuse(f"dataset {name!r}, which has no splits", "split")
    if type(source).__name__ == "IterableDataset":
        return _streamed(source, name, settings)
    if not len(source):
        raise SotddError(f"{name} has no rows: expected at least one.")
    if source.format["type"] == "custom":  # a transform of the user's decides what rows are
        return open_torch(source, name, settings)

    def values(column: str, most: int) -> tuple[str, ...] | None:
        return distinct_texts(_parts(source, column), most)

    columns = _columns(source.features, name, settings, values)
    labels = None if columns.label is None else _labels(source, columns.label, name)
    if columns.kind in ("text", "image"):
        return Loaded(_HubItems(source, columns.features[0], name), labels, table=columns)
    gaps = columns.kind == "numbers" and any(source.data.column(column).null_count for column in columns.features)
    return Loaded(_mapped(source, columns, name, gaps), labels, columns=columns.names, table=columns, gaps=gaps)


def _parts(source: Any, column: str) -> Iterator[Any]:  # noqa: ANN401
    """One column, a few thousand rows at a time."""
    table = source.select_columns([column]).with_format("arrow")
    for start in range(0, len(source), _GROUP):
        yield table[start : start + _GROUP].column(column)


def _split(source: dict[str, Any], name: str, settings: Settings) -> Any:  # noqa: ANN401
    wanted = settings.split or (next(iter(source)) if len(source) == 1 else None)
    if wanted not in source:
        asked = "" if wanted is None else f" and no {wanted!r}"
        raise SotddError(
            f"dataset {name!r} has the splits {', '.join(map(repr, source))}{asked}: choose one with split=."
        )
    return source[wanted]


def _columns(features: Any, name: str, settings: Settings, values: Values | None = None) -> Columns:  # noqa: ANN401
    """Choose columns; the only column of class labels holds the labels, whatever it is called."""
    coded = [column for column, kind in features.items() if type(kind).__name__ == "ClassLabel"]
    if len(coded) == 1 and settings.label_is_auto:
        settings = replace(settings, label=coded[0])
    columns = Columns.choose({column: _kind(kind) for column, kind in features.items()}, settings, name, values)
    if columns.kind == "image":
        require("PIL.Image", f"reading the images of {name}", "'sotdd[inputs]'")
    return columns


def _kind(feature: Any) -> Kind:  # noqa: ANN401
    if type(feature).__name__ == "Image":
        return "image"
    library = require("datasets", "reading datasets", "datasets")
    return kind_of(library.Features({"column": feature}).arrow_schema.field("column").type)


def _labels(source: Any, column: str, name: str) -> Labels:  # noqa: ANN401
    table = source.select_columns([column]).with_format("arrow")[:]
    labels = labels_of([table.column(column)], name)
    return _named(labels, source.features[column])


def _named(labels: Labels, feature: Any) -> Labels:  # noqa: ANN401
    """Class labels by their names; `datasets` writes -1 for a label that is not known."""
    if type(feature).__name__ != "ClassLabel":
        return labels
    values = [None if value == -1 or value is None else feature.int2str(value) for value in labels.classes]
    return Labels.in_natural_order(values, labels.codes)


def _mapped(source: Any, columns: Columns, name: str, gaps: bool) -> GroupedRows:  # noqa: ANN401
    """Numbers that are read from the mapped file a few thousand rows at a time."""
    table = source.select_columns(list(columns.features)).with_format("arrow")
    first = table[:1]
    dtype = dtype_of(first.schema, columns, gaps=gaps)
    shape = block_of(first, columns, dtype, name).shape[1:]
    count = len(source)
    sizes = [min(_GROUP, count - start) for start in range(0, count, _GROUP)]

    def decode(group: int) -> NDArray[Any]:
        return block_of(table[group * _GROUP : group * _GROUP + sizes[group]], columns, dtype, name, shape)

    return GroupedRows(name, sizes, shape, dtype, decode)


class _HubItems(Items):
    """A column of texts, or of images that the library decodes."""

    def __init__(self, source: Any, column: str, name: str) -> None:  # noqa: ANN401
        self._source = source.select_columns([column]).with_format(None)
        self._column = column
        self._name = name
        self.batch_size = BATCH if type(source.features[column]).__name__ == "Image" else Items.batch_size

    def __len__(self) -> int:
        """How many items there are."""
        return len(self._source)

    def read(self, rows: NDArray[np.integer]) -> list[Any]:
        """The items of some rows."""
        try:
            items: list[Any] = list(self._source[rows.tolist()][self._column])
        except (OSError, ValueError, TypeError, SyntaxError) as error:
            raise SotddError(
                f"cannot read column {self._column!r} of {self._name} in rows {rows[0]:,} to {rows[-1]:,} "
                f"({first_line(error)})."
            ) from error
        if any(item is None for item in items):
            raise SotddError(f"column {self._column!r} of {self._name} has missing entries: drop those rows first.")
        return items


def _streamed(source: Any, name: str, settings: Settings) -> Loaded:  # noqa: ANN401
    """The first rows of a stream."""
    if source.features is None:
        return open_torch(source, name, settings)
    settings.refuse("a stream", "one_hot", "dates")
    columns = _columns(source.features, name, settings)
    loaded = read_stream(_stream_batches(source, columns, name), name, settings, head=True)
    if loaded.labels is None or columns.label is None:
        return loaded
    return replace(loaded, labels=_named(loaded.labels, source.features[columns.label]))


def _stream_batches(source: Any, columns: Columns, name: str) -> Iterator[Batch]:  # noqa: ANN401
    start = 0
    for batch in source.with_format(None).iter(BATCH):
        parts = [batch[column] for column in columns.features]
        points = list(parts[0]) if columns.kind != "numbers" else [list(row) for row in zip(*parts, strict=True)]
        yield stacked(points, start, name), None if columns.label is None else list(batch[columns.label])
        start += len(points)
