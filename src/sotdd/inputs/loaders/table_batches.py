"""Rows of Arrow tables as batches of features and labels, one table of the same kind after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from sotdd.basics.errors import SotddError
from sotdd.basics.text import counted
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.inputs.loaders.arrow_columns import Column, Schema, Table, block_of, dtype_of, kind_of, kinds_of
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.settings import AUTO, Settings, checked_columns, checked_label


class TableBatch(tuple[NDArray[Any], NDArray[Any]]):
    """(features, labels) of some rows of a table: a pair as any other, which also knows the names of its columns."""

    columns: tuple[str, ...] | None = None

    @classmethod
    def of(cls, features: NDArray[Any], labels: NDArray[Any], columns: tuple[str, ...] | None) -> TableBatch:
        """Put features, labels and the names of the features together."""
        batch = cls((features, labels))
        batch.columns = columns
        return batch


def batch_columns(
    schema: Schema, name: str, features: str | Sequence[str] | None = None, label: str | None = AUTO
) -> Columns:
    """The columns to read: those that were named or, without names, those that are the only possible choice.

    With ``label="auto"`` the only column with one of the usual names holds the labels; None means one class.
    """
    settings = Settings(label=checked_label(label), features=checked_columns(features))
    return Columns.choose(kinds_of(schema, name), settings, name)


def batch_of(table: Table, columns: Columns, name: str) -> Dataset:
    """Some rows of a table as a small dataset: (features, labels), or features alone where there is no label column.

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
    for column, kind in kinds.items():
        if kind != "numbers" and not is_list:
            raise SotddError(f"column {column!r} of {name} holds {kind}: expected numbers, or lists of them.")
    columns_read = replace(columns, kind="list" if is_list else "numbers")
    labels = None if columns.label is None else _labels(table.column(columns.label), columns.label, name)
    dtype = dtype_of([table.schema.field(column).type for column in columns.features])
    features = block_of(table, columns_read, dtype, name)
    if labels is not None:
        return TableBatch.of(features, labels, columns_read.names)
    if columns_read.names is None or not len(features):
        return features
    return replace(LabelledData.of(features, name), columns=columns_read.names)


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
