"""Data frames of pandas, Polars, Arrow and others, by way of narwhals."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError, require
from sotdd.basics.text import counted
from sotdd.inputs.data import checked_features
from sotdd.inputs.labels import Labels, is_missing
from sotdd.inputs.loaded import ListItems, Loaded
from sotdd.inputs.loaders.columns import Columns, Kind
from sotdd.inputs.settings import Settings
from sotdd.inputs.spool import stored_dtype

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
    settings.refuse("a table has no splits and holds no image files", "split", "broken")
    settings.refuse_for_no_csv("a frame is not text")
    frame = _frame(source, name)
    if not len(frame):
        raise SotddError(f"{name} has no rows: expected at least one.")
    kinds = {column: _kind(frame[column]) for column in frame.columns}

    def values(column: str, most: int) -> tuple[str, ...] | None:
        found = {text for text in frame[column].unique().to_list() if isinstance(text, str)}
        return None if len(found) > most else tuple(sorted(found))

    columns = Columns.choose(kinds, settings, name, values)
    labels = None if columns.label is None else Labels.of(_values(frame[columns.label]), len(frame), name)
    if columns.kind in ("text", "list"):
        column = frame[columns.features[0]]
        if column.null_count():
            gaps = counted(column.null_count(), "missing value", "missing values")
            raise SotddError(f"column {columns.features[0]!r} of {name} has {gaps}: drop or impute those rows first.")
        if columns.kind == "text":
            return Loaded(ListItems(column.to_list()), labels, table=columns)
        return Loaded(checked_features(_lists(column, name), name), labels, table=columns)
    names = columns.names if _has_names(source) else None
    return Loaded(_numbers(frame, columns), labels, columns=names, table=columns, gaps=True)


def _has_names(source: Any) -> bool:  # noqa: ANN401
    """Whether the columns have names; pandas merely numbers them by default."""
    return not hasattr(source, "set_axis") or all(isinstance(column, str) for column in source.columns)


def _frame(source: Any, name: str) -> Frame:  # noqa: ANN401
    narwhals = require("narwhals", "reading data frames", "'sotdd[inputs]'")
    if type(source).__name__ == "RecordBatch":
        source = require("pyarrow", "reading Arrow tables", "'sotdd[inputs]'").Table.from_batches([source])
    try:
        if hasattr(source, "set_axis") and not all(isinstance(column, str) for column in source.columns):
            source = source.set_axis([str(column) for column in source.columns], axis=1)
        frame = narwhals.from_native(source)
        return frame.collect() if isinstance(frame, narwhals.LazyFrame) else frame
    except (TypeError, ValueError, RuntimeError, narwhals.exceptions.NarwhalsError) as error:
        raise SotddError(f"cannot read the table {name!r} ({first_line(error)}): expected columns by name.") from error


def _kind(series: Series) -> Kind:  # noqa: PLR0911  # one for each kind
    narwhals = require("narwhals", "reading data frames", "'sotdd[inputs]'")
    dtype = series.dtype
    if dtype.is_numeric() or dtype == narwhals.Boolean:
        return "empty" if series.null_count() == len(series) else "numbers"
    if dtype in (narwhals.String, narwhals.Categorical, narwhals.Enum):
        return "text"
    if dtype in (narwhals.Date, narwhals.Datetime):
        return "date"
    if dtype in (narwhals.List, narwhals.Array):
        return "list"
    if dtype == narwhals.Object:  # of pandas, which keeps lists as plain objects
        first = next((value for value in series.to_list() if value is not None), None)
        if isinstance(first, (list, tuple, np.ndarray)):
            return "list"
        if isinstance(first, (date, bool)):
            return "numbers" if isinstance(first, bool) else "date"
        return "text" if isinstance(first, str) else "other"
    return "other"


def _values(series: Series) -> Any:  # noqa: ANN401  # labels of any kind
    """Labels as plain values; numbers as an array if none is missing."""
    whole = series.dtype.is_numeric() and not series.null_count() and not _is_wide(series)
    return series.to_numpy() if whole else series.to_list()


def _is_wide(series: Series) -> bool:
    """Whether a column holds integers of 128 bits, for which NumPy has no dtype."""
    return str(series.dtype) in ("Int128", "UInt128")


def _numbers(frame: Frame, columns: Columns) -> NDArray[Any]:
    """Features side by side, in one array (n, d), NaN where one is missing."""
    categories = dict(columns.categories)
    arrays = [
        _one_hot(frame[column], categories[column])
        if column in categories
        else (_days(frame[column]) if column in columns.dates else _array(frame[column]))[:, None]
        for column in columns.features
    ]
    block = np.empty((len(frame), sum(array.shape[1] for array in arrays)), stored_dtype(*(a.dtype for a in arrays)))
    position = 0
    for array in arrays:
        block[:, position : position + array.shape[1]] = array
        position += array.shape[1]
    return block


def _array(series: Series) -> NDArray[Any]:
    """Numbers of one column; those that NumPy has no dtype for, such as decimals, as floats."""
    if _is_wide(series):
        return np.array(series.to_list(), np.float64)
    array: NDArray[Any] = series.to_numpy()
    if array.dtype == object:  # numbers or truth values of which some may be missing
        return np.array([np.nan if is_missing(value) else float(value) for value in series.to_list()])
    return array if array.dtype.kind in "biuf" else array.astype(np.float64)


def _days(series: Series) -> NDArray[np.float64]:
    """Dates as days since the beginning of 1970, in UTC; NaN where one is missing."""
    narwhals = require("narwhals", "reading data frames", "'sotdd[inputs]'")
    if series.dtype == narwhals.Datetime and getattr(series.dtype, "time_zone", None) is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    moments = series.to_numpy().astype("datetime64[us]")
    days: NDArray[np.float64] = moments.astype(np.int64) / 86_400e6
    days[np.isnat(moments)] = np.nan
    return days


def _one_hot(series: Series, values: tuple[str, ...]) -> NDArray[Any]:
    """One feature (n, k) per value, 1 where a text is that value; NaN throughout where it is missing."""
    places = {value: place for place, value in enumerate(values)}
    codes = np.array([places.get(text, -1) if isinstance(text, str) else -2 for text in series.to_list()])
    result: NDArray[Any] = codes[:, None] == np.arange(len(values))
    if (codes != -2).all():
        return result
    with_gaps: NDArray[Any] = result.astype(np.float32)
    with_gaps[codes == -2] = np.nan
    return with_gaps


def _lists(series: Series, name: str) -> NDArray[Any]:
    try:
        return np.array([np.asarray(value) for value in series.to_list()])
    except ValueError as error:
        lengths = sorted({len(value) for value in series.to_list()})
        raise SotddError(
            f"lists in column {series.name!r} of {name} have {lengths[0]} to {lengths[-1]} entries: expected one "
            "length."
        ) from error
