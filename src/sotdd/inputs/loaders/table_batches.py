"""Rows of Arrow tables as batches of features and labels, one table of the same kind after another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.inputs.gaps import Gaps
from sotdd.inputs.loaders.arrow_columns import Column, Schema, Table, block_of, dtype_of, kind_of, kinds_of
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.origin import Origin
from sotdd.inputs.settings import DEFAULTS, Settings
from sotdd.inputs.streamed import StreamedFeatures


class TableBatch(tuple[NDArray[Any], NDArray[Any]]):
    """(features, labels) of some rows of a table: a pair as any other, which also knows the names of its columns."""

    columns: tuple[str, ...] | None = None
    one_hot: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        features: NDArray[Any],
        labels: NDArray[Any],
        columns: tuple[str, ...] | None,
        one_hot: tuple[str, ...] = (),
    ) -> TableBatch:
        """Put features, labels and the names of the features together, and which columns became several."""
        batch = cls((features, labels))
        batch.columns, batch.one_hot = columns, one_hot
        return batch


def batch_columns(schema: Schema, name: str, settings: Settings = DEFAULTS) -> Columns:
    """The columns to read: those that were named or, without names, those that are the only possible choice.

    With ``label="auto"`` the only column with one of the usual names holds the labels; None means one class.
    """
    return Columns.choose(kinds_of(schema, name), settings, name)


def batch_of(table: Table, columns: Columns, name: str, missing: str = "error") -> Dataset:
    """Some rows of a table as a small dataset: (features, labels), or features alone where there is no label column.

    Rows in which a value is missing are refused, or left out with "drop".

    Examples
    --------
    >>> import pyarrow
    >>> from sotdd.inputs.loaders.table_batches import batch_columns, batch_of
    >>> table = pyarrow.table({"height": [1.5, 2.5], "width": [3, 4], "y": ["cat", "dog"]})
    >>> columns = batch_columns(table.schema, "pets")
    >>> columns.features, columns.label
    (('height', 'width'), 'y')
    >>> features, labels = batch_of(table.to_batches()[0], columns, "pets")
    >>> features
    array([[1.5, 3. ],
           [2.5, 4. ]])
    """
    names = set(table.schema.names)
    for column in columns.all:
        if column not in names:
            raise SotddError(f"{name} has no column {column!r}: expected the columns {', '.join(columns.all)}.")
    # The table itself is asked: an empty frame's columns of Python objects do not say what they hold.
    kinds = {column: kind_of(table.schema.field(column).type) for column in columns.features}
    is_list = list(kinds.values()) == ["list"]
    turned = {*columns.dates, *(column for column, _ in columns.categories)}
    for column, kind in kinds.items():
        if kind != "numbers" and not is_list and column not in turned:
            raise SotddError(f"column {column!r} of {name} holds {kind}: expected numbers, or lists of them.")
    columns_read = replace(columns, kind="list" if is_list else "numbers")
    if missing == "drop" and columns.label is not None:
        table = table.filter(table.column(columns.label).is_valid())
    gaps = not is_list and any(table.column(column).null_count for column in columns.features)
    features = block_of(table, columns_read, dtype_of(table.schema, columns, gaps=gaps), name)
    labels = None if columns.label is None else _labels(table.column(columns.label), columns.label, name)
    if gaps or missing == "drop":
        found = Gaps.of(features, titles_of(columns_read, features), name)
        if missing == "error":
            found.refuse(name, fill=False)
        features = np.delete(features, found.rows, axis=0)
        labels = None if labels is None else np.delete(labels, found.rows)
    one_hot = tuple(column for column, _ in columns.categories)
    if labels is not None:
        return TableBatch.of(features, labels, columns_read.names, one_hot)
    if columns_read.names is None or not len(features):
        return features
    return replace(LabelledData.of(features, name), columns=columns_read.names, origin=Origin(one_hot=one_hot))


def titles_of(columns: Columns, features: NDArray[Any] | StreamedFeatures) -> tuple[str, ...]:
    """What messages call each feature: its column, which one-hot features share."""
    if columns.kind != "numbers":
        return tuple(columns.features[0] for _ in range(int(np.prod(features.shape[1:], dtype=np.int64))))
    widths = {column: len(values) for column, values in columns.categories}
    return tuple(column for column in columns.features for _ in range(widths.get(column, 1)))


def _labels(column: Column, title: str, name: str) -> NDArray[Any]:
    if column.null_count:
        missing = counted(column.null_count, "missing value", "missing values")
        raise SotddError(f"label column {title!r} of {name} has {missing}: drop those rows or name the class.")
    if kind_of(column.type) == "list":
        raise SotddError(f"label column {title!r} of {name} holds lists: expected one label per row.")
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    labels: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return labels
