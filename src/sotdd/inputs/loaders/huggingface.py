"""Datasets of Hugging Face's `datasets`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, require
from sotdd.inputs.loaders.images import BATCH
from sotdd.inputs.loaders.tables import load_table
from sotdd.inputs.loaders.torch_datasets import open_torch, stream_error
from sotdd.inputs.loaders.values import arrow
from sotdd.inputs.preparation import Items, Loaded
from sotdd.inputs.reading import Reading
from sotdd.inputs.sources import reading_file

# Rows read at a time.
_BATCH_ROWS = 1 << 14


def open_huggingface(source: Any, name: str, reading: Reading) -> Loaded:  # noqa: ANN401  # the library is optional
    """Open a dataset as the table that it is; images are decoded once."""
    reading.refuse("a Hugging Face dataset")
    if isinstance(source, dict):
        if len(source) != 1:
            raise SotddError(f"{name} has the splits {', '.join(map(repr, source))}: pass one of them, as by its name.")
        source = next(iter(source.values()))
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

    return Items(len(source), read, BATCH)
