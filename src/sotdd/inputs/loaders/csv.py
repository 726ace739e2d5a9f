"""CSV files, plain or compressed, read a few rows at a time by Arrow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sotdd.basics.errors import require
from sotdd.inputs.loaders.arrow import (
    arrow,
    distinct_texts,
    find_kinds,
    make_block,
    make_labels,
    make_texts,
    remark_ids,
)
from sotdd.inputs.loaders.columns import Columns
from sotdd.inputs.preparation import Loaded
from sotdd.inputs.reading import Reading
from sotdd.inputs.sources import reading_file
from sotdd.inputs.streamed import Spool

_EXPECTED = "a CSV file with a header and the same columns in every line, in UTF-8 or as encoding= says"

_BLOCK_BYTES = 4 << 20
# As many bytes as this are looked at to find the separator.
_HEAD = 1 << 16
# What may stand between fields, the most usual first.
_SEPARATORS = ",;\t|"


def open_csv(path: Path, name: str, reading: Reading) -> Loaded:
    """Read the columns that are wanted; beyond a size, numbers go to a temporary file."""
    reading.refuse("a CSV file")
    require("pyarrow.csv", "reading CSV files", "'sotdd[inputs]'")
    with reading_file(path, _EXPECTED):
        file = _File.of(path, reading)
        with file.reader({}) as reader:
            schema = reader.schema  # judging by the first rows
        columns = Columns.choose(find_kinds(schema, str(path)), reading, name, file.values)
        spool, texts, labels = Spool(name, gaps=True), [], []
        for batch in file.batches(schema, columns):
            if columns.kind == "text":
                texts.append(batch.column(columns.features[0]))
            else:
                spool.add(make_block(batch, columns, np.dtype(np.float64), name))
            if columns.label is not None:
                labels.append(batch.column(columns.label))
        numbered = make_labels(labels, name).as_numbers(file.decimal) if labels else None
        if columns.kind == "text" and texts:
            return Loaded(make_texts(arrow().chunked_array(texts), name), numbered, origin=columns.origin)
        return remark_ids(Loaded(spool.features(), numbered, columns.names, columns.origin, gaps=True), reading)


@dataclass(frozen=True)
class _File:
    """A CSV file and how it is written; the separator, where it was not said, is told from the header."""

    path: Path
    separator: str
    decimal: str
    encoding: str

    @classmethod
    def of(cls, path: Path, reading: Reading) -> _File:
        with arrow().input_stream(str(path)) as stream:
            head: bytes = stream.read(_HEAD)
        encoding = reading.encoding or ("utf-16" if head.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8")
        whole = head if len(head) < _HEAD else head[: head.rfind(b"\n") + 1]
        header = re.sub(r'"[^"]*"', "", whole.decode(encoding).partition("\n")[0])
        usual = "\t" if ".tsv" in path.name.lower() else ","
        most = max(_SEPARATORS, key=lambda separator: (header.count(separator), separator == usual))
        return cls(path, reading.separator or most, reading.decimal or ".", encoding)

    def reader(self, convert: dict[str, Any]) -> Any:  # noqa: ANN401  # Arrow is optional
        """Arrow's reader of the file in UTF-8, decompressed."""
        csv = require("pyarrow.csv", "reading CSV files", "'sotdd[inputs]'")
        stream = arrow().input_stream(str(self.path))
        if self.encoding != "utf-8":
            stream = arrow().transcoding_input_stream(stream, self.encoding, "utf-8")
        return csv.open_csv(
            stream,
            read_options=csv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),
            parse_options=csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
            convert_options=csv.ConvertOptions(strings_can_be_null=True, decimal_point=self.decimal, **convert),
        )

    def values(self, column: str, most: int) -> tuple[str, ...] | None:
        """The distinct values of a column of text."""
        convert = {"column_types": {column: arrow().large_string()}, "include_columns": [column]}
        with self.reader(convert) as reader:
            return distinct_texts((batch.column(column) for batch in reader), most)

    def batches(self, schema: Any, columns: Columns) -> Iterator[Any]:  # noqa: ANN401  # Arrow's
        """Rows of the columns that are wanted.

        The reader is told the types rather than left to guess them from the first rows: further down, numbers may
        get a fraction and labels a letter.
        """
        library = arrow()
        texts = {*dict(columns.categories), *(columns.features if columns.kind == "text" else ())}
        flags = [column for column in columns.features if library.types.is_boolean(schema.field(column).type)]
        text, number = library.large_string(), library.float64()
        types = {column: text if column in texts else number for column in columns.features}
        types |= {column: schema.field(column).type for column in (*columns.dates, *flags)}
        if columns.label is not None:
            types[columns.label] = text
        with self.reader({"column_types": types, "include_columns": columns.all}) as reader:
            yield from reader
