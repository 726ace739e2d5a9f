"""Files that hold tables: CSV, Parquet, Arrow, JSON lines, workbooks and databases, each as record batches."""

from __future__ import annotations

import codecs
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from sotdd.basics.errors import SotddError, require
from sotdd.basics.files import find_store, is_remote
from sotdd.basics.text import join_names
from sotdd.inputs.loaders.tables import ArrowRows, load_table, make_column
from sotdd.inputs.loaders.values import arrow, find_kind
from sotdd.inputs.preparation import Loaded
from sotdd.inputs.reading import Reading
from sotdd.inputs.sources import reading_file, temporary_folder

Schema = Any
Table = Any

_CSV = "a CSV file with a header and the same columns in every line, in UTF-8 or as encoding= says"
_BLOCK_BYTES = 4 << 20
# What may stand between fields, the most usual first.
_SEPARATORS = ",;\t|"
# Rows read at a time.
_BATCH_ROWS = 1 << 14


def open_csv(paths: Sequence[str], name: str, reading: Reading) -> Loaded:
    """Open text with a header, plain or compressed; Arrow reads it by itself, so that nothing of ours has to wait."""
    reading.refuse("a CSV file")
    dataset = require("pyarrow.dataset", "reading CSV files", "'sotdd[inputs]'")
    csv = require("pyarrow.csv", "reading CSV files", "'sotdd[inputs]'")
    with reading_file(name, _CSV):
        header, encoding = _read_header(paths[0], reading)
        plain = [path if encoding == "utf-8" else _transcode(path, encoding) for path in paths]
        usual = "\t" if ".tsv" in paths[0].lower() else ","
        bare = re.sub(r'"[^"]*"', "", header)
        most = max(_SEPARATORS, key=lambda separator: (bare.count(separator), separator == usual))
        parse = csv.ParseOptions(delimiter=reading.separator or most, newlines_in_values=True)
        lines = csv.ReadOptions(block_size=_BLOCK_BYTES)

        def read_as(**how: Any) -> Any:  # noqa: ANN401  # a dataset of Arrow's
            form = dataset.CsvFileFormat(parse, read_options=lines, convert_options=csv.ConvertOptions(**how))
            return dataset.dataset(plain, format=form)

        names = read_as().schema.names
        texts = read_as(column_types=dict.fromkeys(names, arrow().large_string()))
        _refuse_other_columns([(one.path, one.physical_schema) for one in texts.get_fragments()])
        return load_table(ArrowRows(lambda columns: texts.to_batches(columns=columns), in_text=True), name, reading)


def _read_header(path: str, reading: Reading) -> tuple[str, str]:
    """The first line of a file, and how it is encoded."""
    with arrow().input_stream(path) as stream:
        head: bytes = stream.read(_BLOCK_BYTES)
    encoding = reading.encoding or ("utf-16" if head.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8")
    decoder = codecs.getincrementaldecoder(encoding)()
    header, found, _ = decoder.decode(head).partition("\n")
    if not found and len(head) == _BLOCK_BYTES:
        raise SotddError(
            f"{path} has a first line of more than {_BLOCK_BYTES >> 20} MB: expected the names of columns."
        )
    return header, encoding


def _transcode(path: str, encoding: str) -> str:
    """A copy of a file in UTF-8."""
    target = Path(tempfile.mkdtemp(dir=temporary_folder().name)) / "copy.csv"
    with arrow().input_stream(path) as stream, target.open("w", encoding="utf-8", newline="") as copy:
        shutil.copyfileobj(codecs.getreader(encoding)(stream), copy)
    return str(target)


def open_arrow(paths: Sequence[str], name: str, reading: Reading) -> Loaded:
    """Open files or streams of record batches, which are mapped."""
    reading.refuse("a table")
    ipc = require("pyarrow.ipc", "reading Arrow files", "'sotdd[inputs]'")
    library = arrow()

    def open_one(path: str) -> Any:  # noqa: ANN401  # a reader of Arrow's
        source = library.memory_map(path)
        try:
            return ipc.open_file(source)
        except library.ArrowInvalid:  # not a file of batches with a footer, so a stream of them
            source.seek(0)
            return ipc.open_stream(source)

    def read(columns: Sequence[str] | None) -> Iterator[Any]:
        for path in paths:
            reader = open_one(path)
            whole = hasattr(reader, "get_batch")
            batches = map(reader.get_batch, range(reader.num_record_batches)) if whole else reader
            for batch in batches:
                yield batch if columns is None else batch.select(columns)

    with reading_file(name, "an Arrow file"):
        _refuse_other_columns([(path, open_one(path).schema) for path in paths])
        return load_table(ArrowRows(read), name, reading)


def open_json(paths: Sequence[str], name: str, reading: Reading) -> Loaded:
    """Open JSON lines."""
    reading.refuse("a table")
    dataset = require("pyarrow.dataset", "reading JSON lines", "'sotdd[inputs]'")
    with reading_file(name, "JSON lines with the same fields in each"):
        lines = dataset.dataset(list(paths), format="json")
        return load_table(ArrowRows(lambda columns: lines.to_batches(columns=columns)), name, reading)


def open_parquet(paths: Sequence[str], name: str, reading: Reading) -> Loaded:
    """Open files with the same columns as one dataset."""
    reading.refuse("a table")
    with reading_file(name, "a Parquet file"):
        return load_table(ArrowRows(lambda columns: read_parquet(paths, columns)), name, reading)


def read_parquet(
    paths: Sequence[str], columns: Sequence[str] | None, groups: Sequence[int] | None = None, rows: int = _BATCH_ROWS
) -> Iterator[Any]:
    """Some columns of files, or of some row groups of each, at most this many rows at a time."""
    first: list[tuple[str, Schema]] = []
    for path in paths:
        with reading_file(path, "a Parquet file"), open_parquet_file(path) as file:
            first = [*first[:1], (path, file.schema_arrow)]
            if len(paths) > 1:
                _refuse_other_columns(first)
            numbers = range(file.num_row_groups) if groups is None else groups
            names = None if columns is None else list(columns)
            yield from file.iter_batches(rows, row_groups=list(numbers), columns=names, use_threads=False)


def open_parquet_file(path: str) -> Any:  # noqa: ANN401  # pyarrow is optional
    """A reader of a file or URL; without buffers ahead of time a row group is decoded page by page."""
    parquet = require("pyarrow.parquet", "reading Parquet files", "'sotdd[inputs]'")
    with reading_file(path, "a Parquet file"):
        system, inside = find_store(path) if is_remote(path) else (None, path)
        return parquet.ParquetFile(inside, filesystem=system, pre_buffer=False, buffer_size=1 << 20)


def _refuse_other_columns(files: Sequence[tuple[str, Schema]]) -> None:
    """Refuse files whose columns have other names or hold something else than those of the first."""
    first, wanted = files[0]
    for path, schema in files[1:]:
        lacking = [column for column in wanted.names if column not in set(schema.names)]
        if lacking:
            raise SotddError(f"{path} has no column {lacking[0]!r}, which {first} has: expected it in all.")
        for column in wanted.names:
            own, other = (find_kind(one.field(column).type) for one in (schema, wanted))
            if own != other and "empty" not in (own, other):
                raise SotddError(f"column {column!r} holds {own} in {path} but {other} in {first}: expected one.")


# ------------------------------------------------------------------ workbooks and databases


def open_workbook(path: Path, name: str, reading: Reading) -> Loaded:
    """Open a sheet, of which the first row names the columns."""
    reading.refuse("a workbook")
    library = require("python_calamine", "reading workbooks", "'sotdd[excel]'")
    with reading_file(path, "a workbook"):
        book = library.CalamineWorkbook.from_path(str(path))
        sheet = _choose_name(book.sheet_names, reading.table, path, "sheet")
        header, *rows = book.get_sheet_by_name(sheet).to_python() or [[]]
        names = [str(title).strip() for title in header]
        columns = [[None if value == "" else value for value in column] for column in zip(*rows, strict=True)]
        return _load_columns(names, columns, name, reading)


def open_database(path: Path, name: str, reading: Reading) -> Loaded:
    """Open a table of SQLite or DuckDB, or what a query selects; nothing is written."""
    reading.refuse("a database")
    with reading_file(path, "a database of SQLite or DuckDB"):
        with path.open("rb") as file:
            is_duckdb = file.read(12)[8:] == b"DUCK"
        return (_open_duckdb if is_duckdb else _open_sqlite)(path, name, reading)


def _open_sqlite(path: Path, name: str, reading: Reading) -> Loaded:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        listed = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
        query = reading.query or _select([row[0] for row in database.execute(listed)], reading, path)
        cursor = database.execute(query)
        names = [column[0] for column in cursor.description or ()]
        return _load_columns(names, list(zip(*cursor.fetchall(), strict=True)), name, reading)


def _open_duckdb(path: Path, name: str, reading: Reading) -> Loaded:
    library = require("duckdb", "reading databases of DuckDB", "duckdb")
    with closing(library.connect(str(path), read_only=True)) as database:
        names = [row[0] for row in database.execute("SHOW TABLES").fetchall()]
        found = database.sql(reading.query or _select(names, reading, path)).to_arrow_table()
        return load_table(ArrowRows.of(found), name, reading)


def _select(names: Sequence[str], reading: Reading, path: Path) -> str:
    quoted = _choose_name(names, reading.table, path, "table").replace('"', '""')
    return f'SELECT * FROM "{quoted}"'


def _choose_name(names: Sequence[str], asked: str | None, path: Path, what: str) -> str:
    """The table that was asked for, or the only one."""
    if asked in names or (asked is None and len(names) == 1):
        return names[0] if asked is None else asked
    known = join_names([*map(repr, names)]) or "none"
    raise SotddError(f"{path} has {what}s {known}: name one with table=.")


def _load_columns(names: Sequence[str], columns: Sequence[Sequence[Any]], name: str, reading: Reading) -> Loaded:
    """The dataset that columns of Python's values make."""
    if not columns:
        raise SotddError(f"{name} has no rows: expected at least one.")
    if len(set(names)) < len(names):
        twice = next(title for place, title in enumerate(names) if title in names[:place])
        raise SotddError(f"{name} has two columns named {twice!r}: rename one.")
    table = arrow().table({title: make_column(values) for title, values in zip(names, columns, strict=True)})
    return load_table(ArrowRows.of(table), name, reading)
