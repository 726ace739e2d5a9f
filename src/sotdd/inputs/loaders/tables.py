"""Tables of every kind, which all come as record batches of Arrow: read once, into numbers, codes and labels.

One look at the first rows says how columns are read (`columns`). A table that ends within the look is not read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError, require
from sotdd.basics.remarks import Remark
from sotdd.basics.text import say_count
from sotdd.inputs.data import Category, Names, check_features, refuse_non_finite
from sotdd.inputs.labels import Labels, is_missing
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.loaders.values import (
    arrow,
    clean_texts,
    compute,
    find_kind,
    is_list,
    is_number,
    plain_type,
    read_codes,
    read_numbers,
)
from sotdd.inputs.preparation import Items, Loaded
from sotdd.inputs.reading import Reading
from sotdd.inputs.streamed import GatheredRows, narrow_dtype

# The look ends with the batch in which it has so many rows, or so many bytes.
LOOK_ROWS, _LOOK_BYTES = 100_000, 256 << 20
# How labels that are missing are written: a question mark and a minus may be names of classes.
_NO_LABEL = ("", "na", "n/a", "null", "none", "nan", "#n/a")
# Columns of integers with this many rows or more, all different, may be ids.
_FEWEST_IDS = 20

_LIBRARIES = {"cudf", "dask", "duckdb", "ibis", "modin", "narwhals", "pandas", "polars", "pyarrow"}
_FRAMES = {"DataFrame", "DuckDBPyRelation", "LazyFrame", "RecordBatch", "Table"}

# The types of Arrow and narwhals are not checked, since they are optional.
Batch = Any
Array = Any


@dataclass(frozen=True, eq=False)
class ArrowRows:
    """A table as record batches, which can be read any number of times.

    Attributes
    ----------
    read
        A function of the names of columns, or None for all, that yields batches.
    in_text
        Whether all of it is text, as in CSV.
    """

    read: Callable[[Sequence[str] | None], Iterable[Batch]]
    in_text: bool = False

    @classmethod
    def of(cls, table: Any) -> ArrowRows:  # noqa: ANN401  # one of Arrow's
        """A table in memory."""
        return cls(lambda columns: (table if columns is None else table.select(columns)).to_batches() or [
            arrow().RecordBatch.from_pylist([], table.schema)
        ])  # fmt: skip

    def look(self, name: str) -> tuple[Any, bool]:
        """The first rows as a table, and whether there are no others."""
        batches: list[Batch] = []
        rows = size = 0
        for batch in self.read(None):
            batches.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows >= LOOK_ROWS or size >= _LOOK_BYTES:
                return _join(batches), False
        if not rows:
            raise SotddError(f"{name} has no rows: expected at least one.")
        return _join(batches), True


def _join(batches: Sequence[Batch]) -> Any:  # noqa: ANN401  # a table of Arrow's
    """Batches as one table; numbers may be wider in some of them."""
    library = arrow()
    if all(batch.schema.equals(batches[0].schema) for batch in batches):
        return library.Table.from_batches(batches)
    parts = [library.Table.from_batches([batch]) for batch in batches]
    return library.concat_tables(parts, promote_options="permissive")


def load_table(rows: ArrowRows, name: str, reading: Reading, images: Names = ()) -> Loaded:
    """Choose columns by a look, and read them."""
    look, whole = rows.look(name)
    columns = Columns.choose(look, reading, name, images=images, in_text=rows.in_text)
    batches = look.combine_chunks().to_batches() if whole else rows.read(columns.all)
    loaded = load_batches(batches, columns, name, reading, in_text=rows.in_text, is_whole=whole)
    return remark_ids(loaded, reading)


def load_batches(
    batches: Iterable[Batch],
    columns: Columns,
    name: str,
    reading: Reading,
    *,
    in_text: bool = False,
    is_whole: bool = False,
) -> Loaded:
    """The dataset that batches of these columns make; numbers that are missing hold the mean of their column."""
    parts, labels, texts = _Parts(columns, name, reading, is_whole), [], []
    for batch in batches:
        if columns.label is not None:
            labels.append(_get_column(batch, columns.label, name))
        if columns.alone == "text":
            texts.append(_get_column(batch, columns.features[0].name, name))
        elif columns.alone is None:
            parts.add(batch)
        else:
            parts.add_lists(batch)
    numbered = make_labels(labels, name, reading, in_text=in_text) if labels else None
    if columns.alone == "text":
        return Loaded(make_texts(arrow().chunked_array(texts), name), numbered, origin=columns.origin)
    return parts.finish(numbered)


class _Parts:
    """What was read so far: numbers, codes of categories, and where numbers are missing."""

    def __init__(self, columns: Columns, name: str, reading: Reading, is_whole: bool) -> None:
        self._columns, self._name, self._reading, self._is_whole = columns, name, reading, is_whole
        self._numbers = [column for column in columns.features if column.kind != "category"]
        self._codes: dict[str, list[NDArray[np.int32]]] = {
            column.name: [] for column in columns.features if column.kind == "category"
        }
        self._rows = GatheredRows(name)
        self._count = 0
        self._gaps: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._sums: NDArray[np.float64] = np.zeros(len(self._numbers))

    def add(self, batch: Batch) -> None:
        """Read some rows of numbers and categories."""
        values = dict(zip(batch.schema.names, batch.columns, strict=True))
        for column in self._columns.features:
            if column.name not in values:
                raise SotddError(
                    f"{self._name} has no column {column.name!r} in some of its parts: expected it in all."
                )
        read = [read_numbers(one, values[one.name], self._reading, self._name, self._count) for one in self._numbers]
        block = np.empty((batch.num_rows, len(read)), self._find_dtype(values))
        for place, one in enumerate(read):
            block[:, place] = one
        if block.dtype.kind == "f":
            gaps = np.isnan(block)
            known = np.where(gaps, 0, block) if gaps.any() else block
            titles = [column.name for column in self._numbers]
            refuse_non_finite(known, range(self._count, self._count + len(block)), self._name, titles)
            self._sums += known.sum(axis=0, dtype=np.float64)
            at, which = np.nonzero(gaps)
            self._gaps.append((at + self._count, which))
        for column in self._columns.features:
            if column.kind == "category":
                self._codes[column.name].append(read_codes(column, values[column.name], self._reading))
        self._count += batch.num_rows
        self._rows.add(block)

    def _find_dtype(self, values: dict[str, Array]) -> np.dtype[Any]:
        """The dtype of numbers, by the types of their columns; bytes cannot say that one is missing."""
        types = arrow().types
        dtypes = [np.dtype(np.uint8 if self._is_whole else np.float32)]
        for column in self._numbers:
            kind = plain_type(values[column.name].type)
            plain = column.kind == "number" and is_number(kind) and not types.is_decimal(kind)
            dtypes.append(np.dtype(kind.to_pandas_dtype() if plain else np.float64))
            if values[column.name].null_count:
                dtypes.append(np.dtype(np.float32))
        return narrow_dtype(*dtypes)

    def add_lists(self, batch: Batch) -> None:
        """Read some rows of one column of lists."""
        title = self._columns.features[0].name
        lists = make_nested(_get_column(batch, title, self._name), self._name, title)
        self._rows.add(np.asarray(check_features(lists, self._name)))

    def finish(self, labels: Labels | None) -> Loaded:
        """All that was read."""
        origin = self._columns.origin
        if self._columns.alone is not None:
            return Loaded(self._rows.array(), labels, origin=origin)
        features = self._rows.array() if self._numbers else np.empty((self._count, 0), np.uint8)
        gaps = self._fill(features)
        categories = {
            column.name: Category(
                column.values,
                np.concatenate(self._codes[column.name]),
                self._reading.one_hot or len(column.values),
                column.flag,
                column.number,
            )
            for column in self._columns.features
            if column.kind == "category"
        }
        names = tuple(column.name for column in self._numbers)
        order = tuple(column.name for column in self._columns.features)
        return Loaded(features, labels, names, replace(origin, categories=categories, gaps=gaps), order=order)

    def _fill(self, features: NDArray[Any]) -> dict[str, NDArray[np.bool_]]:
        """Fill in the means of columns, and say in which rows of which."""
        if not any(len(rows) for rows, _ in self._gaps):
            return {}
        rows, places = (np.concatenate(part) for part in zip(*self._gaps, strict=True))
        gaps: dict[str, NDArray[np.bool_]] = {}
        for place in np.unique(places):
            mask = np.zeros(len(features), bool)
            mask[rows[places == place]] = True
            count = len(mask) - np.count_nonzero(mask)
            features[mask, place] = self._sums[place] / count if count else 0
            gaps[self._numbers[place].name] = mask
        return gaps


def _get_column(batch: Batch, title: str, name: str) -> Array:
    if title not in batch.schema.names:
        raise SotddError(f"{name} has no column {title!r} in some of its parts: expected it in all.")
    return batch.column(title)


def make_labels(parts: Sequence[Array], name: str, reading: Reading, *, in_text: bool = False) -> Labels:
    """The labels of one column, which may come in parts."""
    library = arrow()
    kind = plain_type(parts[0].type)
    if library.types.is_nested(kind):
        raise SotddError(f"labels of {name} are {kind}: expected one plain value per row.")
    if find_kind(kind) == "text":
        parts = [clean_texts(part, reading, _NO_LABEL) for part in parts]
        kind = library.large_string()
    chunks = [chunk.cast(kind) for part in parts for chunk in (part.chunks if hasattr(part, "chunks") else [part])]
    coded = library.chunked_array(chunks, type=kind).dictionary_encode().unify_dictionaries()
    codes = np.concatenate([np.asarray(chunk.indices.fill_null(-1)) for chunk in coded.chunks])
    filled = next((chunk for chunk in coded.chunks if len(chunk)), None)
    labels = Labels.in_natural_order([] if filled is None else filled.dictionary.to_pylist(), codes)
    return labels.as_numbers(reading.decimal or ".") if in_text else labels


def make_texts(column: Array, name: str) -> Items:
    """A column of texts."""
    if column.null_count:
        missing = say_count(column.null_count, "missing text", "missing texts")
        raise SotddError(f"{name} has {missing}: drop those rows or fill them first.")
    plain = column.cast(plain_type(column.type))
    return Items(len(plain), lambda rows: plain.take(arrow().array(rows)).to_pylist())


def make_nested(column: Array, name: str, label: str) -> NDArray[Any]:
    """Lists of one length as an array (n, length, ...)."""
    library = arrow()
    if isinstance(column, library.ExtensionArray):
        column = column.storage
    if column.null_count:
        missing = say_count(column.null_count, "missing value", "missing values")
        raise SotddError(f"lists in column {label!r} of {name} have {missing}: drop or impute those rows first.")
    if not is_list(column.type):
        plain = column.cast(library.float64()) if library.types.is_decimal(column.type) else column
        return np.asarray(plain)
    lengths = np.unique(np.asarray(compute().list_value_length(column)))
    if len(lengths) > 1:
        raise SotddError(
            f"lists in {label!r} of {name} have {lengths[0]} to {lengths[-1]} entries: expected one length."
        )
    values = make_nested(column.flatten(), name, label)
    return values.reshape(len(column), int(lengths[0]) if len(lengths) else 0, *values.shape[1:])


def remark_ids(loaded: Loaded, reading: Reading) -> Loaded:
    """The same with a remark on columns that may be ids; whether they are is for the user to say."""
    features, found = loaded.features, []
    if reading.features is not None or not isinstance(features, np.ndarray) or len(features) < _FEWEST_IDS:
        return loaded
    for name, values in zip(loaded.columns or (), features[:LOOK_ROWS].T, strict=False):
        few = values[:_FEWEST_IDS]  # which tell measurements at once
        if np.array_equal(few, np.floor(few)) and len(np.unique(values)) == len(values):
            found += [name] if np.array_equal(values, np.floor(values)) else []
    remarks = [Remark("may be ids", columns=tuple(found))] if found else []
    return replace(loaded, origin=loaded.origin.also(*remarks))


# ------------------------------------------------------------------ tables in memory


def is_frame(source: object) -> bool:
    """Whether a source is a table of a library that narwhals knows, told without importing any."""
    kind = type(source)
    return kind.__module__.split(".")[0].lstrip("_") in _LIBRARIES and kind.__name__ in _FRAMES


def open_frame(source: Any, name: str, reading: Reading) -> Loaded:  # noqa: ANN401  # of any library
    """Open the columns of a table in memory."""
    reading.refuse("a frame")
    table = read_frame(source, name)
    loaded = load_table(ArrowRows.of(table), name, reading)
    has_names = not hasattr(source, "set_axis") or all(isinstance(column, str) for column in source.columns)
    return loaded if has_names else replace(loaded, named=False)


def read_frame(source: Any, name: str) -> Any:  # noqa: ANN401  # of any library
    """A table of any library as one of Arrow's."""
    narwhals = require("narwhals", "reading data frames", "'sotdd[inputs]'")
    library = arrow()
    if type(source).__name__ == "RecordBatch":
        source = library.Table.from_batches([source])
    try:
        if hasattr(source, "set_axis") and not all(isinstance(column, str) for column in source.columns):
            source = source.set_axis([str(column) for column in source.columns], axis=1)  # pandas may number them
        frame = narwhals.from_native(source)
        frame = frame.collect() if isinstance(frame, narwhals.LazyFrame) else frame
        return library.table({column: _as_arrow(frame[column]) for column in frame.columns})
    except (TypeError, ValueError, RuntimeError, narwhals.exceptions.NarwhalsError) as error:
        raise SotddError(f"cannot read the table {name!r} ({first_line(error)}): expected columns by name.") from error


def _as_arrow(series: Any) -> Array:  # noqa: ANN401  # of narwhals
    """A column of Arrow's; NaN are missing."""
    try:
        return series.to_arrow()
    except Exception:  # noqa: BLE001  # of whatever library
        return make_column(series.to_list())


def make_column(values: Sequence[Any]) -> Array:
    """Values of Python as a column; numbers beside texts become text, and what Arrow has no type for is left out."""
    library = arrow()
    known = [None if is_missing(value) else value for value in values]
    try:
        return library.array(known)
    except (library.ArrowException, TypeError, ValueError, OverflowError):
        if all(value is None or isinstance(value, (str, int, float, Decimal)) for value in known):
            return library.array([None if value is None else str(value) for value in known])
        return library.array([b"" for _ in known], library.binary())
