"""CSV files, plain or compressed, read a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from sotdd.basics.errors import require
from sotdd.inputs.loaded import Loaded
from sotdd.inputs.loaders.arrow_columns import ArrowTexts, arrow, block_of, kinds_of, labels_of
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.loaders.contents import ArrowContents
from sotdd.inputs.loaders.csv_dialect import Dialect
from sotdd.inputs.loaders.csv_quotes import CheckedQuotes
from sotdd.inputs.reading import reading
from sotdd.inputs.settings import Settings
from sotdd.inputs.spool import Spool

_EXPECTED = "a CSV file with a header and the same columns in every line"

_BLOCK_BYTES = 4 << 20


def open_csv(path: Path, name: str, settings: Settings) -> Loaded:
    """Read the columns that are wanted; beyond a size, numbers go to a temporary file."""
    settings.refuse("CSV files have no splits and hold no image files", "split", "broken")
    require("pyarrow.csv", "reading CSV files", "'sotdd[inputs]'")
    with reading(path, _EXPECTED):
        dialect = Dialect.of(path, settings)
        with _reader(path, dialect, {}) as reader:
            schema = reader.schema  # judging by the first rows
        contents = ArrowContents(schema, lambda column: _column(path, dialect, schema, column))
        columns = Columns.choose(kinds_of(schema, str(path)), settings, name, contents)
        spool, texts, labels = Spool(name, gaps=True), [], []
        for batch in _batches(path, dialect, schema, columns):
            if columns.kind == "text":
                texts.append(batch.column(columns.features[0]))
            else:
                spool.add(block_of(batch, columns, np.dtype(np.float64), name))
            if columns.label is not None:
                labels.append(batch.column(columns.label))
        numbered = labels_of(labels, name).as_numbers(dialect.decimal) if labels else None
        if columns.kind == "text" and texts:
            return Loaded(ArrowTexts(arrow().chunked_array(texts), name), numbered, table=columns)
        return Loaded(spool.features(), numbered, columns=columns.names, table=columns, gaps=True)


def _column(path: Path, dialect: Dialect, schema: Any, column: str) -> Iterator[Any]:  # noqa: ANN401  # Arrow's
    """One column, a block at a time, in the type that its first rows have."""
    convert = {"column_types": {column: schema.field(column).type}, "include_columns": [column]}
    with closing(_reader(path, dialect, convert)) as reader:
        try:
            for batch in reader:
                yield batch.column(column)
        except arrow().ArrowInvalid:  # integers at first, and fractions further down
            yield arrow().array([0, 0])


def _batches(path: Path, dialect: Dialect, schema: Any, columns: Columns) -> Iterator[Any]:  # noqa: ANN401  # Arrow's
    """Rows of the columns that are wanted.

    The reader is told the types rather than left to guess them from the first rows: further down, numbers may
    get a fraction and labels a letter.
    """
    library = arrow()
    texts = {column for column, _ in columns.categories} | (set(columns.features) if columns.kind == "text" else set())
    types = {column: library.large_string() if column in texts else library.float64() for column in columns.features}
    flags = [column for column in columns.features if library.types.is_boolean(schema.field(column).type)]
    types |= {column: schema.field(column).type for column in (*columns.dates, *flags)}
    if columns.label is not None:
        types[columns.label] = library.large_string()
    with _reader(path, dialect, {"column_types": types, "include_columns": columns.all}) as reader:
        yield from reader


def _reader(path: Path, dialect: Dialect, convert: dict[str, Any]) -> Any:  # noqa: ANN401  # Arrow is optional
    csv = require("pyarrow.csv", "reading CSV files", "'sotdd[inputs]'")
    content = CheckedQuotes(dialect.stream(path), str(path), dialect.separator, _BLOCK_BYTES)
    return csv.open_csv(
        arrow().PythonFile(content, mode="r"),
        read_options=csv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),
        parse_options=csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True),
        convert_options=csv.ConvertOptions(strings_can_be_null=True, decimal_point=dialect.decimal, **convert),
    )
