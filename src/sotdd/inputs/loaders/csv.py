"""CSV files, plain or compressed, read once, a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sotdd.basics.errors import require
from sotdd.inputs.loaded import Loaded
from sotdd.inputs.loaders.arrow_columns import ArrowTexts, arrow, block_of, kinds_of, labels_of
from sotdd.inputs.loaders.columns import Columns, Kind
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
        columns = Columns.choose(_kinds(path), settings, name)
        spool, texts, labels = Spool(name), [], []
        for batch in _batches(path, columns):
            if columns.kind == "text":
                texts.append(batch.column(columns.features[0]))
            else:
                spool.add(block_of(batch, columns, np.dtype(np.float64), name))
            if columns.label is not None:
                labels.append(batch.column(columns.label))
        numbered = labels_of(labels, name).as_numbers() if labels else None
        if columns.kind == "text" and texts:
            return Loaded(ArrowTexts(arrow().chunked_array(texts), name), numbered)
        return Loaded(spool.features(), numbered, columns=columns.names)


def _kinds(path: Path) -> dict[str, Kind]:
    """What each column holds, judging by the first rows."""
    with _reader(path, {}) as reader:
        return kinds_of(reader.schema, str(path))


def _batches(path: Path, columns: Columns) -> Iterator[Any]:
    """Rows of the columns that are wanted.

    The reader is told the types rather than left to guess them from the first rows: further down, numbers may
    get a fraction and labels a letter.
    """
    library = arrow()
    numbers = columns.kind != "text"
    types = {column: library.float64() if numbers else library.large_string() for column in columns.features}
    if columns.label is not None:
        types[columns.label] = library.large_string()
    with _reader(path, {"column_types": types, "include_columns": columns.all}) as reader:
        yield from reader


def _reader(path: Path, convert: dict[str, Any]) -> Any:  # noqa: ANN401  # Arrow is optional
    csv = require("pyarrow.csv", "reading CSV files", "'sotdd[inputs]'")
    delimiter = "\t" if ".tsv" in (suffix.lower() for suffix in path.suffixes) else ","
    content = CheckedQuotes(arrow().input_stream(str(path)), str(path), delimiter, _BLOCK_BYTES)
    return csv.open_csv(
        arrow().PythonFile(content, mode="r"),
        read_options=csv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),
        parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=csv.ConvertOptions(strings_can_be_null=True, **convert),
    )
