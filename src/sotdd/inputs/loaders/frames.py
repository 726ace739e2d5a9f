"""Data frames of pandas, Polars, Arrow and others, by way of narwhals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError, require
from sotdd.basics.text import counted
from sotdd.inputs.data import checked_features
from sotdd.inputs.labels import Labels
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
    frame = _frame(source, name)
    if not len(frame):
        raise SotddError(f"{name} has no rows: expected at least one.")
    columns = Columns.choose({column: _kind(frame[column]) for column in frame.columns}, settings, name)
    labels = None if columns.label is None else Labels.of(_values(frame[columns.label]), len(frame), name)
    for column in columns.features:
        missing = frame[column].null_count()
        if missing:
            values = counted(missing, "missing value", "missing values")
            raise SotddError(f"column {column!r} of {name} has {values}: drop or impute those rows first.")
    if columns.kind == "text":
        return Loaded(ListItems(frame[columns.features[0]].to_list()), labels)
    features = _lists(frame[columns.features[0]], name) if columns.kind == "list" else _numbers(frame, columns)
    names = columns.names if _has_names(source) else None
    return Loaded(checked_features(features, name), labels, columns=names)


def names_of(features: Any, matrix: Any) -> tuple[str, ...] | None:  # noqa: ANN401  # of any library
    """The names of the columns of a table that is held as a matrix; None for anything but a table."""
    if not is_frame(features) or not _has_names(features) or np.ndim(matrix) != 2:
        return None
    names = tuple(features.column_names if hasattr(features, "column_names") else features.columns)
    return names if len(set(names)) == len(names) == matrix.shape[1] else None


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


def _kind(series: Series) -> Kind:
    narwhals = require("narwhals", "reading data frames", "'sotdd[inputs]'")
    dtype = series.dtype
    if dtype.is_numeric() or dtype == narwhals.Boolean:
        return "numbers"
    if dtype in (narwhals.String, narwhals.Categorical, narwhals.Enum):
        return "text"
    if dtype in (narwhals.List, narwhals.Array):
        return "list"
    if dtype == narwhals.Object:  # of pandas, which keeps lists as plain objects
        first = next((value for value in series.to_list() if value is not None), None)
        if isinstance(first, (list, tuple, np.ndarray)):
            return "list"
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
    """Columns of numbers side by side, in one array (n, d)."""
    arrays = [_array(frame[column]) for column in columns.features]
    block = np.empty((len(frame), len(arrays)), stored_dtype(*(array.dtype for array in arrays)))
    for position, array in enumerate(arrays):
        block[:, position] = array
    return block


def _array(series: Series) -> NDArray[Any]:
    """Numbers of one column; those that NumPy has no dtype for, such as decimals, as floats."""
    if _is_wide(series):
        return np.array(series.to_list(), np.float64)
    array: NDArray[Any] = series.to_numpy()
    return array if array.dtype.kind in "biuf" else array.astype(np.float64)


def _lists(series: Series, name: str) -> NDArray[Any]:
    try:
        return np.array([np.asarray(value) for value in series.to_list()])
    except ValueError as error:
        lengths = sorted({len(value) for value in series.to_list()})
        raise SotddError(
            f"lists in column {series.name!r} of {name} have {lengths[0]} to {lengths[-1]} entries: expected one "
            "length."
        ) from error
