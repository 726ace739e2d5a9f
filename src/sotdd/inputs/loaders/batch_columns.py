"""Columns of Arrow tables as batches of features and labels, one table of the same kind after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from sotdd.basics.defaults import default, given
from sotdd.basics.errors import SotddError
from sotdd.inputs.data import Dataset, LabelledData
from sotdd.inputs.items import Batch
from sotdd.inputs.loaders.arrow_columns import block_of, dtype_of, kind_of, kinds_of
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.settings import Settings, checked_features, checked_label

# Arrow's own types are not checked, since it is optional.
Schema = Any
Table = Any
Column = Any


@dataclass(frozen=True)
class BatchColumns:
    """Which columns of tables are features and which one holds the labels, or None for one class.

    Examples
    --------
    >>> import pyarrow
    >>> from sotdd.inputs.loaders.batch_columns import BatchColumns
    >>> table = pyarrow.table({"height": [1.5, 2.5], "width": [3, 4], "y": ["cat", "dog"]})
    >>> columns = BatchColumns.choose(table.schema, "pets")
    >>> columns.features, columns.label
    (('height', 'width'), 'y')
    >>> columns.arrays(table.to_batches()[0], "pets")[0]
    array([[1.5, 3. ],
           [2.5, 4. ]])
    """

    chosen: Columns

    @classmethod
    def choose(
        cls,
        schema: Schema,
        name: str,
        features: str | Sequence[str] | None = None,
        label: str | None = default("label"),
    ) -> BatchColumns:
        """Find the columns that were named, or those that can only be meant.

        A ``label`` left at its default is the only column with one of the usual names.
        """
        if len(set(schema.names)) < len(schema.names):
            raise SotddError(f"{name} has two columns of the same name: rename one.")
        named = given(label=label)
        settings = Settings(
            label=checked_label(named.get("label")), label_given=bool(named), features=checked_features(features)
        )
        return cls(Columns.choose(kinds_of(schema), settings, name))

    @property
    def features(self) -> tuple[str, ...]:
        """The columns of features."""
        return self.chosen.features

    @property
    def label(self) -> str | None:
        """The column of labels."""
        return self.chosen.label

    @property
    def all(self) -> list[str]:
        """Every column that is read."""
        return self.chosen.all

    def refuse_other(self, schema: Schema, name: str, first: Schema, name_of_first: str) -> None:
        """Refuse a table whose columns are not those of the first, or hold something else."""
        for column in self.all:
            if column not in schema.names:
                raise SotddError(f"{name} has no column {column!r}, which {name_of_first} has: expected the same.")
            one, other = (kind_of(table.field(column).type) for table in (schema, first))
            if one != other:
                raise SotddError(
                    f"column {column!r} holds {one} in {name} but {other} in {name_of_first}: expected one type."
                )

    def arrays(self, batch: Table, name: str) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Features (n, d), and labels (n,) or None, of one record batch."""
        for column in self.all:
            if column not in batch.schema.names:
                raise SotddError(f"{name} has no column {column!r}: expected the columns {', '.join(self.all)}.")
        # Asked of the batch itself: an empty frame's columns of Python objects do not say what they hold.
        held = {column: kind_of(batch.schema.field(column).type) for column in self.features}
        lists = len(held) == 1 and set(held.values()) == {"list"}
        for column, kind in held.items():
            if kind != "numbers" and not lists:
                raise SotddError(f"column {column!r} of {name} holds {kind}: expected numbers, or lists of them.")
        columns = replace(self.chosen, kind="list" if lists else "numbers")
        labels = None if self.label is None else _labels(batch.column(self.label), self.label, name)
        dtype = dtype_of([batch.schema.field(column).type for column in self.features])
        return block_of(batch, columns, dtype, name), labels

    def batch(self, table: Table, name: str) -> Dataset:
        """The same as a small dataset: (features, labels), or features alone, which keep the names of their columns."""
        features, labels = self.arrays(table, name)
        is_list = kind_of(table.schema.field(self.features[0]).type) == "list"
        names = None if is_list else self.features
        if labels is not None:
            return Batch.of(features, labels, names)
        if names is None or not len(features):
            return features
        return replace(LabelledData.of(features, name), columns=names)


def _labels(column: Column, title: str, name: str) -> NDArray[Any]:
    if column.null_count:
        raise SotddError(
            f"label column {title!r} of {name} has {column.null_count:,} missing values: drop those rows or name the "
            "class."
        )
    if kind_of(column.type) == "list":
        raise SotddError(f"label column {title!r} of {name} holds lists: expected one label per row.")
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    labels: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return labels
