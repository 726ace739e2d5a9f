"""Columns of Arrow tables turned into blocks of numbers, labels and texts: for Parquet, Arrow, CSV and Hugging Face."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, require
from sotdd.basics.text import counted
from sotdd.inputs.labels import Labels
from sotdd.inputs.loaded import Items
from sotdd.inputs.loaders.columns import Columns, Kind
from sotdd.inputs.spool import stored_dtype

# Arrow's own types are not checked, since it is optional.
Schema = Any
Type = Any
Table = Any
Column = Any


def arrow() -> Any:  # noqa: ANN401  # a module
    """The library; where it is missing, an error says how to install it."""
    return require("pyarrow", "reading Parquet, Arrow and CSV files", "'sotdd[inputs]'")


def kinds_of(schema: Schema, name: str) -> dict[str, Kind]:
    """What each column of a schema holds; two columns of one name are refused."""
    kinds: dict[str, Kind] = {}
    for field in schema:
        if field.name in kinds:
            raise SotddError(f"{name} has two columns named {field.name!r}: rename one.")
        kinds[field.name] = kind_of(field.type)
    return kinds


def kind_of(kind: Type) -> Kind:
    """What a column of that type holds."""
    types = arrow().types
    kind = _plain(kind)
    if _is_number(kind) or types.is_null(kind):
        return "numbers"
    if types.is_string(kind) or types.is_large_string(kind):
        return "text"
    if _is_list(kind):
        leaf = kind
        while _is_list(leaf):
            leaf = _plain(leaf.value_type)
        return "list" if _is_number(leaf) else "other"
    return "other"


def dtype_of(types: Sequence[Type]) -> np.dtype[Any]:
    """The dtype in which numbers of these types, or lists of them, are read."""
    leaves = []
    for kind in types:
        leaf = _plain(kind)
        while _is_list(leaf):
            leaf = _plain(leaf.value_type)
        decimal = arrow().types.is_decimal(leaf) or arrow().types.is_null(leaf)
        leaves.append(np.dtype(np.float64) if decimal else np.dtype(leaf.to_pandas_dtype()))
    return stored_dtype(*leaves)


def block_of(
    table: Table, columns: Columns, dtype: np.dtype[Any], name: str, point_shape: tuple[int, ...] | None = None
) -> NDArray[Any]:
    """The features of a table as an array (n, ...); lists of another shape than ``point_shape`` are refused."""
    if columns.kind == "list":
        lists = _nested(table.column(columns.features[0]), name, columns.features[0]).astype(dtype, copy=False)
        if point_shape is not None and lists.shape[1:] != point_shape:
            raise SotddError(
                f"lists in {name} have shape {lists.shape[1:]} but {point_shape} before: expected one length."
            )
        return lists
    block = np.empty((table.num_rows, len(columns.features)), dtype)
    for position, column in enumerate(columns.features):
        block[:, position] = _numbers(table.column(column), name, column)
    return block


def labels_of(parts: Sequence[Column], name: str) -> Labels:
    """The labels of one column, which may come in parts."""
    library = arrow()
    kind = _plain(parts[0].type)
    if library.types.is_nested(kind):
        raise SotddError(f"labels of {name} are {kind}: expected one plain value per row.")
    chunks = [chunk.cast(kind) for part in parts for chunk in (part.chunks if hasattr(part, "chunks") else [part])]
    coded = library.chunked_array(chunks, type=kind).dictionary_encode().unify_dictionaries()
    if not len(coded):
        raise SotddError(f"{name} has no rows: expected at least one.")
    codes = np.concatenate([chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False) for chunk in coded.chunks])
    filled = next((chunk for chunk in coded.chunks if len(chunk)), None)
    return Labels.in_natural_order([] if filled is None else filled.dictionary.to_pylist(), codes)


class ArrowTexts(Items):
    """A column of texts."""

    def __init__(self, column: Column, name: str) -> None:
        if column.null_count:
            missing = counted(column.null_count, "missing text", "missing texts")
            raise SotddError(f"{name} has {missing}: drop those rows or fill them first.")
        self._column = column.cast(_plain(column.type))

    def __len__(self) -> int:
        """How many texts there are."""
        return len(self._column)

    def read(self, rows: NDArray[np.integer]) -> list[Any]:
        """The texts of some rows."""
        texts: list[Any] = self._column.take(arrow().array(rows)).to_pylist()
        return texts


def _numbers(column: Column, name: str, label: str) -> NDArray[Any]:
    library = arrow()
    if column.null_count:
        missing = counted(column.null_count, "missing value", "missing values")
        raise SotddError(f"column {label!r} of {name} has {missing}: drop or impute those rows first.")
    kind = _plain(column.type)
    if library.types.is_decimal(kind) or kind != column.type:
        column = column.cast(library.float64() if library.types.is_decimal(kind) else kind)
    if isinstance(column, library.ChunkedArray):
        chunked: NDArray[Any] = column.to_numpy()
        return chunked
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values


def _nested(column: Column, name: str, label: str) -> NDArray[Any]:
    """Lists of one length as an array (n, length, ...)."""
    library = arrow()
    if isinstance(column, library.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, library.ChunkedArray):  # there were no chunks
            column = column.chunk(0) if column.num_chunks else library.array([], column.type)
    if isinstance(column, library.ExtensionArray):
        column = column.storage
    if not _is_list(column.type):
        return _numbers(column, name, label)
    if column.null_count:
        missing = counted(column.null_count, "missing list", "missing lists")
        raise SotddError(f"column {label!r} of {name} has {missing}: drop those rows first.")
    lengths = np.unique(library.compute.list_value_length(column).to_numpy(zero_copy_only=False))
    if len(lengths) > 1:
        raise SotddError(
            f"lists in column {label!r} of {name} have {lengths[0]} to {lengths[-1]} entries: expected one length."
        )
    values = _nested(column.flatten(), name, label)
    return values.reshape(len(column), int(lengths[0]) if len(lengths) else 0, *values.shape[1:])


def _plain(kind: Type) -> Type:
    """The type of the values themselves, behind an extension type, a dictionary or a view."""
    library = arrow()
    if isinstance(kind, library.BaseExtensionType):
        return kind.storage_type
    kind = kind.value_type if library.types.is_dictionary(kind) else kind
    # Views of strings, as Polars writes them, have hardly any functions.
    return library.large_string() if str(kind) == "string_view" else kind


def _is_number(kind: Type) -> bool:
    types = arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _is_list(kind: Type) -> bool:
    types = arrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
