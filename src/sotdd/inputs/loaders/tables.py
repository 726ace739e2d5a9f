"""Tables of every kind, which all come as record batches of Arrow: read once, into numbers, codes and labels.

One look at the first rows says how columns are read (`columns`). A table that ends within the look is not read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, first_line, require
from sotdd.basics.text import say_count
from sotdd.inputs.arrays import Labels, check_features, is_missing, refuse_non_finite
from sotdd.inputs.features import GatheredRows, Rows, narrow_dtype
from sotdd.inputs.loaders.columns import LOOK_ROWS, Columns
from sotdd.inputs.loaders.values import (
    NO_LABEL,
    Array,
    Batch,
    Codes,
    Column,
    RowNumbers,
    arrow,
    clean_texts,
    find_kind,
    find_range,
    is_list,
    make_labels,
    plain_type,
    read_numbers,
)
from sotdd.inputs.preparation import Items, Loaded
from sotdd.inputs.reading import Reading
from sotdd.inputs.sampling import BATCH_ROWS, RowSample
from sotdd.inputs.schema import MISSING, Feature

# The look ends with the batch in which it has so many bytes, or so many rows.
_LOOK_BYTES = 256 << 20

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
    together = arrow().concat_tables(tables, promote_options="permissive")  # some have wider numbers
    return together.combine_chunks(), whole


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
    features = features[rows.chosen]
    filled = {numbers[place].name: _fill(features[:, place]) for place in np.flatnonzero(has_gaps)}
    gaps_of = {title: mask for title, mask in filled.items() if mask.any()}
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
        return Loaded(gathered.array()[rows.chosen], None, origin=columns.origin)
    items = images[title] if columns.alone == "image" else _make_texts(texts, rows.chosen, name)
    return Loaded(items, None, origin=columns.origin)


def _read_block(
    numbers: Sequence[Column], batch: Batch, name: str, reading: Reading, rows: RowNumbers, at_once: bool
) -> NDArray[Any]:
    """Some rows of numbers (m, d), in a dtype by the types of their columns; bytes cannot say that one is missing."""
    parts = [read_numbers(column, batch.column(column.name), reading, name, rows) for column in numbers]
    narrow = narrow_dtype(np.dtype(np.uint8 if at_once else np.float32), *(part.dtype for part in parts))
    block = np.empty((batch.num_rows, len(numbers)), narrow)
    for place, part in enumerate(parts):
        block[:, place] = part
    if np.isinf(block).any():
        known = np.where(np.isnan(block), 0, block)
        refuse_non_finite(known, rows, name, [column.name for column in numbers])
    return block


def _fill(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Fill the gaps of a column with the mean of the others, and say where they were."""
    gaps: NDArray[np.bool_] = np.isnan(values)
    values[gaps] = 0 if gaps.all() else values[~gaps].mean(dtype=np.float64)
    return gaps


def _make_texts(parts: Sequence[Array], chosen: Rows, name: str) -> Items:
    """A column of texts, or those of some rows."""
    column = arrow().chunked_array(parts)
    column = column if isinstance(chosen, slice) else column.take(arrow().array(chosen))
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


# ------------------------------------------------------------------ rows


class TableRows:
    """Reads the batches of a table once, and keeps labels, groups and the ranges of dates on the way.

    Attributes
    ----------
    labels, groups
        The columns of these, batch by batch; nothing where there is no such column.
    chosen
        The places of the sample among the rows that were read, once all are read.
    """

    def __init__(self, batches: Iterable[Batch], columns: Columns, reading: Reading) -> None:
        self.labels: list[Array] = []
        self.groups: list[Array] = []
        self.chosen: Rows = slice(None)
        self._batches, self._columns, self._reading = batches, columns, reading
        self._n_seen, self._ranges = 0, {title: list[str]() for title in columns.dates}
        most = None if columns.alone == "image" else reading.max_points  # images are chosen before they are read
        self._sample = None if most is None else RowSample(most, reading.seed)

    def read(self) -> Iterator[tuple[Batch, RowNumbers]]:
        """Batches of rows with their numbers; say of each, by `accept`, which rows lack something."""
        origin = self._columns.origin
        for batch in self._batches:
            for date, ends in self._ranges.items():
                ends.extend(find_range(batch.column(date), self._reading))
            for part, rows in self._pick(batch):
                for title, kept in ((origin.label_column, self.labels), (origin.group_column, self.groups)):
                    if title is not None:
                        kept.append(part.column(title))
                yield part, rows
        if self._sample is not None:
            chosen = self._sample.choose()
            self.chosen = chosen if len(chosen) < self._n_seen else slice(None)

    def _pick(self, batch: Batch) -> Iterator[tuple[Batch, RowNumbers]]:
        """A batch whole, or the rows of it that a sample may need."""
        start, self._n_seen = self._n_seen, self._n_seen + batch.num_rows
        if self._sample is None:
            yield batch, range(start, self._n_seen)
            return
        for first in range(0, batch.num_rows, BATCH_ROWS):
            part = batch.slice(first, BATCH_ROWS)
            places = self._sample.offer(part.num_rows)
            if len(places) < part.num_rows:
                part = part.take(arrow().array(places))
            yield part, start + first + places

    def accept(self, lacking: NDArray[np.bool_] | None = None) -> None:
        """Say which rows (m,) of the last batch lack a value: a sample is to have as many rows that are used."""
        if self._sample is None:
            return
        unusable = [] if lacking is None or self._reading.missing != "drop" else [lacking]
        if self.labels:
            last = self.labels[-1]
            known = clean_texts(last, self._reading, NO_LABEL) if find_kind(last.type) == "text" else last
            unusable.append(np.asarray(known.is_null(nan_is_null=True)))
        self._sample.accept(~np.logical_or.reduce(unusable) if unusable else None)

    def finish(self, loaded: Loaded, labels: Labels | None, groups: Labels | None) -> Loaded:
        """A dataset with its labels and groups, all of which were read, and with what is known of dates and rows."""
        ranges = {title: (min(ends), max(ends)) for title, ends in self._ranges.items() if ends}
        left_out = {
            title: replace(left, first=ranges[title][0], last=ranges[title][1]) if title in ranges else left
            for title, left in loaded.origin.left_out.items()
        }
        labels, groups = (
            None if one is None else Labels(one.classes, one.codes[self.chosen]) for one in (labels, groups)
        )
        rows = None if self._sample is None or isinstance(self.chosen, slice) else self._sample.rows[self.chosen]
        origin = replace(loaded.origin, left_out=left_out, rows_seen=self._n_seen)
        return replace(loaded, labels=labels, groups=groups, rows=rows, origin=origin)


# ------------------------------------------------------------------ tables in memory


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
