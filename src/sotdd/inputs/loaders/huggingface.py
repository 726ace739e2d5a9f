"""Datasets of Hugging Face's `datasets`: in memory, on disk, streamed, or on the Hub by name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError, require
from sotdd.basics.remarks import Remark
from sotdd.inputs.labels import Labels
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.loaders.images import BATCH
from sotdd.inputs.loaders.tables import ArrowRows, load_table, make_labels
from sotdd.inputs.loaders.torch_datasets import open_torch
from sotdd.inputs.preparation import Items, Loaded
from sotdd.inputs.reading import Reading

PREFIX = "hub:"
# Where a sample of a dataset on the Hub is asked for, rows are shuffled among so many.
_BUFFER = 10_000
# The most characters that are shown of an error of the libraries.
_CAUSE = 300


def is_huggingface(source: object) -> bool:
    """Whether a source is one of the library's datasets; it is not imported for that."""
    kind = type(source)
    return kind.__module__.split(".")[0] == "datasets" and kind.__name__ in {
        "Dataset", "DatasetDict", "IterableDataset", "IterableDatasetDict",
    }  # fmt: skip


def open_saved(folder: Path, name: str, reading: Reading) -> Loaded:
    """Open a folder written by ``save_to_disk``; its files are mapped, not read."""
    library = require("datasets", f"reading {folder}", "datasets")
    try:
        for state in folder.rglob("state.json"):
            files = [str(file["filename"]) for file in json.loads(state.read_text())["_data_files"]]
            if any(Path(file).name != file for file in files):
                raise ValueError(f"{state} names files elsewhere")
        source = library.load_from_disk(str(folder))
    except (OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        raise SotddError(f"cannot read {folder} ({first_line(error)}): expected what save_to_disk writes.") from error
    return open_huggingface(source, name, reading)


def open_huggingface(source: Any, name: str, reading: Reading) -> Loaded:  # noqa: ANN401  # the library is optional
    """Open a dataset as the table that it is; images are decoded once."""
    reading.refuse("a Hugging Face dataset")
    if isinstance(source, dict):
        source = _choose_split(source, name, reading)
    elif reading.split is not None:
        reading.refuse(f"dataset {name!r}, which has no splits", "split")
    if type(source).__name__ == "IterableDataset":
        return _open_stream(source, name, reading)
    if not len(source):
        raise SotddError(f"{name} has no rows: expected at least one.")
    if source.format["type"] == "custom":  # a transform of the user's decides what rows are
        return open_torch(source, name, reading)
    reading, images = _look_at(source.features, reading)
    rows = ArrowRows(lambda columns: _read(source, columns))
    look, _ = rows.look(name)
    columns = Columns.choose(look, reading, name, images=images)
    if columns.alone is None or columns.alone == "list":
        loaded = load_table(rows, name, reading, images)
    else:
        title = columns.features[0].name
        labels = None
        if columns.label is not None:
            parts = [batch.column(columns.label) for batch in _read(source, [columns.label])]
            labels = make_labels(parts, name, reading)
        loaded = Loaded(_make_items(source, title, name), labels, origin=columns.origin)
    return _name_classes(loaded, source.features, columns.label)


def _read(source: Any, columns: Any) -> Iterator[Any]:  # noqa: ANN401
    """Record batches of a dataset, with rows as it has them."""
    table = (source if columns is None else source.select_columns(list(columns))).with_format("arrow")[:]
    yield from table.to_batches()


def _choose_split(source: dict[str, Any], name: str, reading: Reading) -> Any:  # noqa: ANN401
    wanted = reading.split or (next(iter(source)) if len(source) == 1 else None)
    if wanted not in source:
        asked = "" if wanted is None else f" and no {wanted!r}"
        known = ", ".join(map(repr, source))
        raise SotddError(f"dataset {name!r} has the splits {known}{asked}: choose one with split=.")
    return source[wanted]


def _look_at(features: Any, reading: Reading) -> tuple[Reading, tuple[str, ...]]:  # noqa: ANN401
    """Which columns are images; the only column of class labels holds the labels, whatever it is called."""
    coded = [column for column, kind in features.items() if type(kind).__name__ == "ClassLabel"]
    if len(coded) == 1 and reading.label_is_auto:
        reading = replace(reading, label=coded[0])
    images = tuple(column for column, kind in features.items() if type(kind).__name__ == "Image")
    if images:
        require("PIL.Image", "reading images", "'sotdd[inputs]'")
    return reading, images


def _name_classes(loaded: Loaded, features: Any, label: str | None) -> Loaded:  # noqa: ANN401
    """Class labels by their names; `datasets` writes -1 for a label that is not known."""
    feature = None if label is None else features[label]
    if loaded.labels is None or type(feature).__name__ != "ClassLabel":
        return loaded
    known = loaded.labels.classes
    values = [None if value == -1 or value is None else feature.int2str(value) for value in known]  # type: ignore[union-attr]
    return replace(loaded, labels=Labels.in_natural_order(values, loaded.labels.codes))


def _make_items(source: Any, column: str, name: str) -> Items:  # noqa: ANN401
    """A column of texts, or of images that the library decodes."""
    plain = source.select_columns([column]).with_format(None)

    def read(rows: NDArray[np.integer]) -> list[Any]:
        try:
            items: list[Any] = list(plain[rows.tolist()][column])
        except (OSError, ValueError, TypeError, SyntaxError) as error:
            where = f"rows {rows[0]:,} to {rows[-1]:,}"
            raise SotddError(f"cannot read column {column!r} of {name} in {where} ({first_line(error)}).") from error
        if any(item is None for item in items):
            raise SotddError(f"column {column!r} of {name} has missing entries: drop those rows first.")
        return items

    images = type(source.features[column]).__name__ == "Image"
    return Items(len(source), read, BATCH if images else Items.batch_size)


def _open_stream(source: Any, name: str, reading: Reading) -> Loaded:  # noqa: ANN401
    """The first rows of a stream, as the table that they are."""
    if source.features is None:
        return open_torch(source, name, reading)
    if reading.max_points is None:
        raise SotddError(f"dataset {name!r} is a stream whose end cannot be seen: take the first with max_points=.")
    library = require("datasets", f"reading {name}", "datasets")
    rows = list(islice(source.with_format(None), reading.max_points))
    loaded = open_huggingface(library.Dataset.from_list(rows, features=source.features), name, reading)
    taken = [Remark("first rows", rows=len(rows))] if len(rows) == reading.max_points else []
    return replace(loaded, origin=loaded.origin.also(*taken))


def open_hub(text: str, name: str, reading: Reading) -> Loaded:
    """Open a dataset on the Hub, NAME or NAME:CONFIG: whole, or as a stream where a sample of it is asked for."""
    library = require("datasets", f"reading {text}", "'sotdd[hub]'")
    dataset, _, config = text.removeprefix(PREFIX).partition(":")
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", dataset):
        raise SotddError(f"{text!r} is no name of a dataset on the Hub: expected OWNER/NAME, or OWNER/NAME:CONFIG.")
    if Path(dataset).exists():
        raise SotddError(f"there is {dataset!r} in this folder, and the Hub's would not be read: work in another.")
    streaming = reading.max_points is not None
    try:
        source = library.load_dataset(dataset, config or None, split=reading.split, streaming=streaming)
        if isinstance(source, dict):
            source = _choose_split(source, name, reading)
        if streaming:
            source = source.shuffle(seed=reading.seed, buffer_size=_BUFFER)
        return open_huggingface(source, name, replace(reading, split=None))
    except SotddError:
        raise
    except Exception as error:  # of whichever library speaks HTTP, too
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        raise SotddError(
            f"cannot read dataset {dataset!r} from the Hub ({cause[:_CAUSE]}): check its name (NAME:CONFIG where it "
            "has several), log in with 'hf auth login' if it is private, or check the network."
        ) from error
