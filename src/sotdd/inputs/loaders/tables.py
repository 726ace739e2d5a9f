"""Tables of every kind, which all come as record batches of Arrow: read once, into numbers, codes and labels.

One look at the first rows says how columns are read (`columns`). A table that ends within the look is not read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, first_line, require
from sotdd.basics.text import say_count
from sotdd.inputs.features import check_features, refuse_non_finite
from sotdd.inputs.labels import is_missing
from sotdd.inputs.loaders.columns import LOOK_ROWS, Columns
from sotdd.inputs.loaders.rows import TableRows
from sotdd.inputs.loaders.values import (
    Array,
    Batch,
    Codes,
    Column,
    RowNumbers,
    arrow,
    is_list,
    make_labels,
    plain_type,
    read_columns,
)
from sotdd.inputs.preparation import Items, Loaded
from sotdd.inputs.reading import Reading
from sotdd.inputs.sampling import BATCH_ROWS
from sotdd.inputs.schema import MISSING, Feature
from sotdd.inputs.streamed import GatheredRows, narrow_dtype

# The look ends with the batch in which it has so many bytes, or so many rows.
_LOOK_BYTES = 256 << 20

_LIBRARIES = {"cudf", "dask", "duckdb", "ibis", "modin", "narwhals", "pandas", "polars", "pyarrow"}
_FRAMES = {"DataFrame", "DuckDBPyRelation", "LazyFrame", "RecordBatch", "Table"}

# Reads a table, any number of times: batches of the columns that are named, or of all for None.
Read = Callable[[Sequence[str] | None], Iterable[Batch]]


def load_table(
    read: Read,
    name: str,
    reading: Reading,
    images: Mapping[str, Items] = MappingProxyType({}),
    *,
    in_text: bool = False,
) -> Loaded:
    """Choose columns by a look, and read them; numbers that are missing hold the mean of their column.

    ``images`` are read by who knows how, and in CSV all is text. Of more rows than ``max_points``, a sample is taken
    while they are read.
    """
    look, whole = look_at(read(None), name)
    columns = Columns.choose(look, reading, name, images)
    batches = look.to_batches() if whole else read([one for one in columns.all if one not in images])
    rows = TableRows(batches, columns, reading)
    if columns.alone is None:
        at_once = whole and (reading.max_points is None or look.num_rows <= BATCH_ROWS)
        loaded = _load_features(rows, columns, name, reading, at_once)
    else:
        loaded = _load_alone(rows, columns, name, images)
    labels = make_labels(rows.labels, name, reading, in_text=in_text) if rows.labels else None
    if labels is not None and reading.bins is None:
        labels.refuse_odd(name)
    groups = make_labels(rows.groups, name, reading) if rows.groups else None
    return rows.finish(loaded, labels, groups)


def look_at(batches: Iterable[Batch], name: str) -> tuple[Any, bool]:
    """The first rows as a table, and whether there are no others."""
    parts: list[Any] = []
    rows, size, whole = 0, 0, True
    for batch in batches:
        parts.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= LOOK_ROWS or size >= _LOOK_BYTES:
            whole = False
            break
    if not rows:
        raise SotddError(f"{name} has no rows: expected at least one.")
    tables = [arrow().Table.from_batches([part]) for part in parts]
    if len(tables) == 1:
        return tables[0], whole
    return arrow().concat_tables(
        tables, promote_options="permissive"
    ).combine_chunks(), whole  # some have wider numbers


def read_whole(table: Any) -> Read:  # noqa: ANN401  # one of Arrow's
    """How a table in memory is read."""
    return lambda columns: (table if columns is None else table.select(columns)).to_batches()


def _load_features(rows: TableRows, columns: Columns, name: str, reading: Reading, at_once: bool) -> Loaded:
    """Columns of numbers and of categories."""
    numbers = [column for column in columns.features if column.kind != "category"]
    coded = {column.name: Codes(column, reading) for column in columns.features if column.kind == "category"}
    gathered, has_gaps = GatheredRows(name), np.zeros(len(numbers), bool)
    for batch, places in rows.read():
        block = _read_block(numbers, batch, name, reading, places, at_once)
        gaps = np.isnan(block)
        has_gaps |= gaps.any(axis=0)
        codes = [column.add(batch.column(title)) for title, column in coded.items()]
        rows.accept(np.logical_or.reduce([gaps.any(axis=1), *(one == MISSING for one in codes)]))
        gathered.add(block)
    features = gathered.array() if numbers else np.empty((len(gathered), 0), np.uint8)
    if rows.chosen is not None:
        features = features[rows.chosen]
        has_gaps[:] = np.isnan(features).any(axis=0)
    gaps_of = {numbers[place].name: _fill(features[:, place]) for place in np.flatnonzero(has_gaps)}
    categories = {title: column.finish(rows.chosen) for title, column in coded.items()}
    names = tuple(Feature(column.name).name for column in numbers)
    order = tuple(column.name for column in columns.features)
    origin = replace(columns.origin, categories=categories, gaps=gaps_of)
    return Loaded(features, None, names, origin, order=order)


def _load_alone(rows: TableRows, columns: Columns, name: str, images: Mapping[str, Items]) -> Loaded:
    """One column of lists, texts or images."""
    title, gathered, texts = columns.features[0].name, GatheredRows(name), list[Array]()
    for batch, _ in rows.read():
        rows.accept()
        if columns.alone == "list":
            gathered.add(np.asarray(check_features(_make_nested(batch.column(title), name, title), name)))
        elif columns.alone == "text":
            texts.append(batch.column(title))
    if columns.alone == "list":
        features = gathered.array()
        return Loaded(features if rows.chosen is None else features[rows.chosen], None, origin=columns.origin)
    items = images[title] if columns.alone == "image" else _make_texts(texts, rows.chosen, name)
    return Loaded(items, None, origin=columns.origin)


def _read_block(
    numbers: Sequence[Column], batch: Batch, name: str, reading: Reading, rows: RowNumbers, at_once: bool
) -> NDArray[Any]:
    """Some rows of numbers (m, d), in a dtype by the types of their columns; bytes cannot say that one is missing."""
    places: dict[Any, list[int]] = {}
    kinds = dict(zip(batch.schema.names, batch.schema.types, strict=True))
    for place, column in enumerate(numbers):
        places.setdefault(kinds[column.name], []).append(place)
    parts = [
        read_columns(kind, [numbers[place] for place in alike], batch, reading, name, rows)
        for kind, alike in places.items()
    ]
    narrow = narrow_dtype(np.dtype(np.uint8 if at_once else np.float32), *(part.dtype for part in parts))
    block = np.empty((batch.num_rows, len(numbers)), narrow)
    for alike, part in zip(places.values(), parts, strict=True):
        block[:, alike] = part
    if np.isinf(block).any():
        known = np.where(np.isnan(block), 0, block)
        refuse_non_finite(known, rows, name, [column.name for column in numbers])
    return block


def _fill(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Fill the gaps of a column with the mean of the others, and say where they were."""
    gaps: NDArray[np.bool_] = np.isnan(values)
    values[gaps] = 0 if gaps.all() else values[~gaps].mean(dtype=np.float64)
    return gaps


def _make_texts(parts: Sequence[Array], chosen: NDArray[np.int64] | None, name: str) -> Items:
    """A column of texts, or those of some rows."""
    column = arrow().chunked_array(parts)
    column = column if chosen is None else column.take(arrow().array(chosen))
    if column.null_count:
        missing = say_count(column.null_count, "missing text", "missing texts")
        raise SotddError(f"{name} has {missing}: drop those rows or fill them first.")
    plain = column.cast(plain_type(column.type))
    return Items(len(plain), lambda rows: plain.take(arrow().array(rows)).to_pylist())


def _make_nested(column: Array, name: str, label: str) -> NDArray[Any]:
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
    lengths = np.unique(np.asarray(arrow().compute.list_value_length(column)))
    if len(lengths) > 1:
        raise SotddError(
            f"lists in {label!r} of {name} have {lengths[0]} to {lengths[-1]} entries: expected one length."
        )
    values = _make_nested(column.flatten(), name, label)
    return values.reshape(len(column), int(lengths[0]) if len(lengths) else 0, *values.shape[1:])


# ------------------------------------------------------------------ tables in memory


def is_frame(source: object) -> bool:
    """Whether a source is a table of a library that narwhals knows, told without importing any."""
    kind = type(source)
    return kind.__module__.split(".")[0].lstrip("_") in _LIBRARIES and kind.__name__ in _FRAMES


def open_frame(source: Any, name: str, reading: Reading) -> Loaded:  # noqa: ANN401  # of any library
    """Open the columns of a table in memory."""
    reading.refuse("a frame")
    narwhals = require("narwhals", "reading data frames", "'sotdd[inputs]'")
    library = arrow()
    if type(source).__name__ == "RecordBatch":
        source = library.Table.from_batches([source])
    try:
        frame = narwhals.from_native(source)
        frame = frame.collect() if isinstance(frame, narwhals.LazyFrame) else frame
        table = library.table([_as_arrow(one) for one in frame.iter_columns()], names=[*map(str, frame.columns)])
    except (TypeError, ValueError, RuntimeError, narwhals.exceptions.NarwhalsError) as error:
        raise SotddError(f"cannot read the table {name!r} ({first_line(error)}): expected columns by name.") from error
    loaded = load_table(read_whole(table), name, reading)
    # pandas may number columns, and then these numbers mean nothing.
    return replace(loaded, named=not hasattr(source, "set_axis") or all(isinstance(one, str) for one in source.columns))


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
