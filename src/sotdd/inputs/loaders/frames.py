"""Data frames of pandas, Polars, Arrow and others: narwhals opens them, and their columns are read by way of Arrow."""

from __future__ import annotations

from typing import Any

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError, require
from sotdd.inputs.data import checked_features
from sotdd.inputs.labels import Labels
from sotdd.inputs.loaded import Loaded
from sotdd.inputs.loaders.arrow import ArrowTexts, arrow, block_of, distinct_texts, dtype_of, kinds_of
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.settings import OF_CSV, OF_FOLDERS, Settings

_LIBRARIES = {"cudf", "dask", "duckdb", "ibis", "modin", "narwhals", "pandas", "polars", "pyarrow"}
_FRAMES = {"DataFrame", "DuckDBPyRelation", "LazyFrame", "RecordBatch", "Table"}

# The types of narwhals are not checked, since it is optional.
Frame = Any
Series = Any


def is_frame(source: object) -> bool:
    """Whether a source is a table of a library that narwhals knows, told without importing any."""
    kind = type(source)
    return kind.__module__.split(".")[0].lstrip("_") in _LIBRARIES and kind.__name__ in _FRAMES


def open_frame(source: Any, name: str, settings: Settings) -> Loaded:  # noqa: ANN401  # of any library
    """Open the columns of a table."""
    settings.refuse("a frame", *OF_FOLDERS, *OF_CSV)
    frame = _frame(source, name)
    if not len(frame):
        raise SotddError(f"{name} has no rows: expected at least one.")
    table = arrow().table({column: _as_arrow(frame[column]) for column in frame.columns})

    def values(column: str, most: int) -> tuple[str, ...] | None:
        return distinct_texts([table.column(column)], most)

    columns = Columns.choose(kinds_of(table.schema, name), settings, name, values)
    labels = None if columns.label is None else Labels.of(_values(frame[columns.label]), len(frame), name)
    if columns.kind == "text":
        return Loaded(ArrowTexts(table.column(columns.features[0]), name), labels, table=columns)
    gaps = columns.kind == "numbers" and any(table.column(column).null_count for column in columns.features)
    features = block_of(table, columns, dtype_of(table.schema, columns, gaps=gaps), name)
    if columns.kind == "list":
        return Loaded(checked_features(features, name), labels, table=columns)
    has_names = not hasattr(source, "set_axis") or all(isinstance(column, str) for column in source.columns)
    return Loaded(features, labels, columns=columns.names if has_names else None, table=columns, gaps=True)


def _frame(source: Any, name: str) -> Frame:  # noqa: ANN401
    narwhals = require("narwhals", "reading data frames", "'sotdd[inputs]'")
    if type(source).__name__ == "RecordBatch":
        source = arrow().Table.from_batches([source])
    try:
        if hasattr(source, "set_axis") and not all(isinstance(column, str) for column in source.columns):
            source = source.set_axis([str(column) for column in source.columns], axis=1)  # pandas may number them
        frame = narwhals.from_native(source)
        return frame.collect() if isinstance(frame, narwhals.LazyFrame) else frame
    except (TypeError, ValueError, RuntimeError, narwhals.exceptions.NarwhalsError) as error:
        raise SotddError(f"cannot read the table {name!r} ({first_line(error)}): expected columns by name.") from error


def _as_arrow(series: Series) -> Any:  # noqa: ANN401  # a column of Arrow's
    """A column of Arrow's; what Arrow has no type for, such as objects of Python, is bytes without a value."""
    library = arrow()
    try:
        column = series.to_arrow()
    except Exception:  # noqa: BLE001  # of whatever library
        return library.nulls(len(series), library.binary())
    return library.nulls(len(column)) if column.null_count == len(column) else column


def _values(series: Series) -> Any:  # noqa: ANN401  # labels of any kind
    """Labels as plain values; numbers as an array if none is missing."""
    whole = series.dtype.is_numeric() and not series.null_count()
    return series.to_numpy() if whole else series.to_list()
