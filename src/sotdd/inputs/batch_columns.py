"""Columns of Arrow tables as batches of features and labels, one kind of table after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.defaults import default, given
from sotdd.errors import SotddError, require

# Arrow's own types are not checked, since it is optional.
Schema = Any
Table = Any
Column = Any
Type = Any

# A column of one of these names holds the labels, unless another is named.
LABEL_NAMES = ("label", "labels", "target", "y", "class")

# What pandas adds to files for its own use.
_INDEX = "__index_level_"

_SHOWN = 8


@dataclass(frozen=True)
class BatchColumns:
    """Which columns are features and which one holds the labels, or None for one class.

    Examples
    --------
    >>> import pyarrow
    >>> from sotdd.inputs.batch_columns import BatchColumns
    >>> table = pyarrow.table({"height": [1.5, 2.5], "width": [3, 4], "y": ["cat", "dog"]})
    >>> columns = BatchColumns.choose(table.schema, "pets")
    >>> columns
    BatchColumns(features=('height', 'width'), label='y')
    >>> columns.arrays(table.to_batches()[0], "pets")[0]
    array([[1.5, 3. ],
           [2.5, 4. ]])
    """

    features: tuple[str, ...]
    label: str | None

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
        fields = [field for field in schema if not field.name.startswith(_INDEX)]
        kinds = {field.name: kind_of(field.type) for field in fields}
        if len(kinds) < len(fields):
            raise SotddError(f"{name} has two columns of the same name: rename one.")
        chosen = _label(kinds, label, name)
        return cls(_features(kinds, features, chosen, name), chosen)

    @property
    def all(self) -> list[str]:
        """Every column that is read."""
        return [*self.features, *([] if self.label is None else [self.label])]

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
        missing = [column for column in self.all if column not in batch.schema.names]
        if missing:
            raise SotddError(f"{name} has no column {missing[0]!r}, only {_listed(batch.schema.names)}.")
        labels = None if self.label is None else _labels(batch.column(self.label), self.label, name)
        columns = [batch.column(column) for column in self.features]
        if len(columns) == 1 and kind_of(columns[0].type) == "lists":
            return _lists(columns[0], self.features[0], name), labels
        numbers = [_numbers(column, title, name) for column, title in zip(columns, self.features, strict=True)]
        block = np.empty((batch.num_rows, len(numbers)), np.result_type(*{part.dtype for part in numbers}))
        for place, part in enumerate(numbers):
            block[:, place] = part
        return block, labels


def kind_of(kind: Type) -> str:
    """What a column of that Arrow type holds, in a word."""
    types = require("pyarrow", "reading tables", "'sotdd[cluster]'").types
    if hasattr(kind, "storage_type"):  # an extension type
        kind = kind.storage_type
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_boolean(kind):
        return "true or false"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "numbers"
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return "lists"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    # Empty tables of pandas do not say what their object columns hold.
    return "anything" if types.is_null(kind) else str(kind)


def _label(kinds: dict[str, str], label: str | None, name: str) -> str | None:
    if given(label=label):
        if label is not None and label not in kinds:
            raise SotddError(f"{name} has no label column {label!r}, only {_listed(kinds)}: check the name.")
        return label
    usual = [column for column in kinds if column.lower() in LABEL_NAMES]
    if len(usual) == 1:
        return usual[0]
    found = "none is" if not usual else f"{' and '.join(map(repr, usual))} are"
    raise SotddError(
        f"{name} has the columns {_listed(kinds)}, of which {found} named {', '.join(LABEL_NAMES)}: name the labels "
        "with label=COLUMN, or pass label=None for one class."
    )


def _features(
    kinds: dict[str, str], features: str | Sequence[str] | None, label: str | None, name: str
) -> tuple[str, ...]:
    rest = {column: kind for column, kind in kinds.items() if column != label}
    if features is not None:
        named = (features,) if isinstance(features, str) else tuple(features)
        unknown = [column for column in named if column not in kinds]
        if unknown or not named:
            what = f"no column {unknown[0]!r}" if unknown else "features=[] which names no column"
            raise SotddError(f"{name} has {what}, only {_listed(kinds)}: check the names of the features.")
        rest = {column: kinds[column] for column in named}
    if not rest:
        raise SotddError(f"{name} has no column beside the labels: expected features.")
    others = [column for column, kind in rest.items() if kind not in ("numbers", "true or false")]
    if others and (len(rest) > 1 or rest[others[0]] not in ("lists", "anything")):
        raise SotddError(
            f"column {others[0]!r} of {name} holds {rest[others[0]]}: expected columns of numbers or a single one of "
            "lists; name them with features=[...]."
        )
    return tuple(rest)


def _numbers(column: Column, title: str, name: str) -> NDArray[Any]:
    arrow = require("pyarrow", "reading tables", "'sotdd[cluster]'")
    if kind_of(column.type) not in ("numbers", "true or false"):
        raise SotddError(f"column {title!r} of {name} holds {kind_of(column.type)}: expected numbers.")
    if column.null_count:
        raise SotddError(
            f"column {title!r} of {name} has {column.null_count:,} missing values: drop or impute those rows first."
        )
    if arrow.types.is_decimal(column.type):
        column = column.cast(arrow.float64())
    numbers: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return numbers


def _lists(column: Column, title: str, name: str) -> NDArray[Any]:
    """Lists of one length as rows of an array."""
    compute = require("pyarrow.compute", "reading tables", "'sotdd[cluster]'")
    if hasattr(column, "storage"):
        column = column.storage
    if column.null_count:
        raise SotddError(f"column {title!r} of {name} has {column.null_count:,} missing lists: drop those rows first.")
    lengths = np.unique(compute.list_value_length(column).to_numpy(zero_copy_only=False))
    if len(lengths) > 1:
        raise SotddError(
            f"lists in column {title!r} of {name} have {lengths[0]} to {lengths[-1]} entries: expected one length."
        )
    values = column.flatten()
    if kind_of(values.type) == "lists":
        raise SotddError(f"column {title!r} of {name} holds lists of lists: expected lists of numbers.")
    return _numbers(values, title, name).reshape(len(column), int(lengths[0]) if len(lengths) else 0)


def _labels(column: Column, title: str, name: str) -> NDArray[Any]:
    if column.null_count:
        raise SotddError(
            f"label column {title!r} of {name} has {column.null_count:,} missing values: drop those rows or name the "
            "class."
        )
    if kind_of(column.type) == "lists":
        raise SotddError(f"label column {title!r} of {name} holds lists: expected one label per row.")
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    labels: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return labels


def _listed(columns: object) -> str:
    names = [repr(column) for column in columns]  # type: ignore[attr-defined]  # names in any container
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
