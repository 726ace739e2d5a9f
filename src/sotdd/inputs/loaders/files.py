"""Files that hold tables, each read as record batches: CSV, Parquet, Arrow, JSON lines, workbooks and databases.

And NumPy's own: every array is mapped before anything of it is read, so that its header cannot ask for more memory than
the file has bytes, and pickled objects are refused. And folders of images, whose class is the sub-folder they are in.
"""

from __future__ import annotations

import codecs
import functools
import os
import re
import shutil
import sqlite3
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import SotddError, first_line, require
from sotdd.basics.files import find_store, is_remote
from sotdd.basics.remarks import Remark
from sotdd.basics.text import join_names
from sotdd.inputs.arrays import Labels, check_features
from sotdd.inputs.data import Origin
from sotdd.inputs.features import HELD_BYTES
from sotdd.inputs.loaders.tables import Read, load_table, make_column, read_whole
from sotdd.inputs.loaders.values import Batch, arrow, find_kind
from sotdd.inputs.preparation import IMAGES, Items, Loaded, fit_image, is_grey
from sotdd.inputs.reading import Reading
from sotdd.inputs.sampling import sample_rows
from sotdd.inputs.sources import (
    SPLITS,
    access_error,
    exists,
    files_below,
    make_copy_folder,
    reading_file,
    refuse_irregular,
)

Schema = Any
# The names of columns, or None for all.
Columns = Sequence[str] | None
# Reads some columns of one file.
ReadOne = Callable[[str, Columns], Iterable[Batch]]

_CSV = "a CSV file with a header and the same columns in every line, in UTF-8 unless an encoding is given"
_BLOCK_BYTES = 4 << 20
# What may stand between fields, the most usual first.
_SEPARATORS = ",;\t|"
# What lists the tables of a database, and its views, which are queries of whoever made it.
_TABLES = "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
# What a table or view of a database may take: seconds, rows, and bytes of a single value.
_MOST_SECONDS, _MOST_ROWS, _MOST_VALUE_BYTES = 60, 20_000_000, 1 << 24
# Cells of a sheet between its outermost cells, which are all held in memory.
_MOST_CELLS = 50_000_000
# Rows read at a time.
_BATCH_ROWS = 1 << 14
# Arrays beyond this many bytes that compress by more than this factor are taken for a zip bomb: data never do.
_LARGE = 1 << 30
_SQUEEZED = 100
# How the names of images end.
_IMAGES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}


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

    def read_one(path: str, columns: Columns) -> Iterator[Batch]:
        names = dataset.dataset(path, format=dataset.CsvFileFormat(parse, read_options=lines)).schema.names
        texts = csv.ConvertOptions(column_types=dict.fromkeys(names, arrow().large_string()))
        form = dataset.CsvFileFormat(parse, read_options=lines, convert_options=texts)
        return _read_dataset(path, columns, form)

    return load_table(read_files(plain, read_one, _CSV), name, reading, in_text=True)


def _read_header(path: str, reading: Reading) -> tuple[str, str]:
    """The first line of a file, and how it is encoded."""
    with arrow().input_stream(path) as stream:
        head: bytes = stream.read(_BLOCK_BYTES)
    encoding = reading.encoding or ("utf-16" if head.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8")
    header, found, _ = codecs.getincrementaldecoder(encoding)().decode(head).partition("\n")
    if not found and len(head) == _BLOCK_BYTES:
        raise SotddError(f"{path} has a first line of more than {_BLOCK_BYTES >> 20} MB: write it as Parquet instead.")
    return header, encoding


def _transcode(path: str, encoding: str) -> str:
    """A copy of a file in UTF-8."""
    target = make_copy_folder() / "copy.csv"
    with arrow().input_stream(path) as stream, target.open("w", encoding="utf-8", newline="") as copy:
        shutil.copyfileobj(codecs.getreader(encoding)(stream), copy)
    return str(target)


def _open_tables(read_one: ReadOne, expected: str, paths: Sequence[str], name: str, reading: Reading) -> Loaded:
    reading.refuse("a table")
    return load_table(read_files(paths, read_one, expected), name, reading)


def read_files(paths: Sequence[str], read_one: ReadOne, expected: str) -> Read:
    """How files are read one after another; one whose columns differ from those of the first is refused."""

    def read(columns: Columns) -> Iterator[Batch]:
        first: Schema = None
        for path in paths:
            with reading_file(path, expected):
                for number, batch in enumerate(read_one(path, columns)):
                    batch.validate(full=True)  # Arrow trusts the offsets of a file, and reads wherever they point
                    if first is None:
                        first = batch.schema
                    elif number == 0:
                        _refuse_other_columns(path, batch.schema, paths[0], first)
                    yield batch

    return read


def _refuse_other_columns(path: str, schema: Schema, first: str, wanted: Schema) -> None:
    """Refuse a file whose columns have other names or hold something else than those of the first."""
    names = set(schema.names)
    for column in wanted.names:
        if column not in names:
            raise SotddError(f"{path} has no column {column!r}, which {first} has: expected it in all.")
        own, other = (find_kind(one.field(column).type) for one in (schema, wanted))
        if own != other and "empty" not in (own, other):
            raise SotddError(f"column {column!r} holds {own} in {path} but {other} in {first}: expected one.")


def _read_dataset(path: str, columns: Columns, form: Any = "json") -> Iterator[Batch]:  # noqa: ANN401  # of Arrow
    """Some columns of a text file; those that it does not have are missed later."""
    found = require("pyarrow.dataset", "reading files", "'sotdd[inputs]'").dataset(path, format=form)
    wanted = set(found.schema.names if columns is None else columns)
    yield from found.to_batches(columns=[one for one in found.schema.names if one in wanted])


def _read_arrow(path: str, columns: Columns) -> Iterator[Batch]:
    """Some columns of a file of batches with a footer, or else of a stream of them."""
    ipc = require("pyarrow.ipc", "reading Arrow files", "'sotdd[inputs]'")
    source = arrow().memory_map(path)
    try:
        file = ipc.open_file(source)
        batches = map(file.get_batch, range(file.num_record_batches))
    except arrow().ArrowInvalid:
        source.seek(0)
        batches = ipc.open_stream(source)
    for batch in batches:
        wanted = set(batch.schema.names if columns is None else columns)
        yield batch.select([one for one in batch.schema.names if one in wanted])


def _read_parquet(path: str, columns: Columns) -> Iterator[Batch]:
    """Some columns of a file or URL; without buffers ahead of time a row group is decoded page by page."""
    parquet = require("pyarrow.parquet", "reading Parquet files", "'sotdd[inputs]'")
    system, inside = find_store(path) if is_remote(path) else (None, path)
    with parquet.ParquetFile(inside, filesystem=system, pre_buffer=False, buffer_size=1 << 20) as file:
        names = None if columns is None else list(columns)
        yield from file.iter_batches(_BATCH_ROWS, columns=names, use_threads=False)


open_json = partial(_open_tables, _read_dataset, "JSON lines with the same fields in each")
open_arrow = partial(_open_tables, _read_arrow, "an Arrow file")
open_parquet = partial(_open_tables, _read_parquet, "a Parquet file")


# ------------------------------------------------------------------ workbooks and databases


def open_workbook(paths: Sequence[str], name: str, reading: Reading) -> Loaded:
    """Open a sheet, of which the first row names the columns."""
    reading.refuse("a workbook")
    path = Path(paths[0])
    _refuse_wide_sheets(path)
    library = require("python_calamine", "reading workbooks", "'sotdd[excel]'")
    with reading_file(path, "a workbook"):
        book = library.CalamineWorkbook.from_path(str(path))
        sheet = _choose_name(book.sheet_names, reading.table, path, "sheet")
        header, *rows = book.get_sheet_by_name(sheet).to_python() or [[]]
        names = [str(title).strip() for title in header]
        columns = [[None if value == "" else value for value in column] for column in zip(*rows, strict=True)]
        return _load_columns(names, columns, name, reading)


def _refuse_wide_sheets(path: Path) -> None:
    """Refuse a workbook with a cell so far out that all cells before it would not fit in memory."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if not re.fullmatch(r"xl/worksheets/[^/]*\.xml", member):
                continue
            rows, columns = 0, 0
            with archive.open(member) as sheet:
                for text in iter(lambda: sheet.read(_BLOCK_BYTES) + sheet.readline(64), b""):
                    for letters, digits in re.findall(rb' r="([A-Z]{1,3})(\d{1,7})"', text):
                        columns = max(columns, functools.reduce(lambda n, c: 26 * n + c - 64, letters, 0))
                        rows = max(rows, int(digits))
            if rows * columns > _MOST_CELLS:
                raise SotddError(
                    f"{path} has a sheet of {rows:,} × {columns:,} cells: expected at most {_MOST_CELLS:,}; write the "
                    "part with data as CSV or Parquet."
                )


def open_database(paths: Sequence[str], name: str, reading: Reading) -> Loaded:
    """Open a table of SQLite or DuckDB, or a view that is named; nothing is written, and no other file is read."""
    reading.refuse("a database")
    path = Path(paths[0])
    with reading_file(path, "a database of SQLite or DuckDB"):
        with path.open("rb") as file:
            is_duckdb = file.read(12)[8:] == b"DUCK"
        if is_duckdb:
            closed: dict[str, Any] = {"enable_external_access": False, "autoload_known_extensions": False}
            library = require("duckdb", "reading databases of DuckDB", "duckdb")
            connection = library.connect(str(path), read_only=True, config=closed)
        else:
            connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_VALUE_BYTES)
        with closing(connection) as database, _interrupt_late(connection):
            kinds = dict(database.execute(_TABLES).fetchall())
            views = [one for one, kind in kinds.items() if kind == "view"]
            table = _choose_name([*kinds], reading.table, path, "table", views).replace('"', '""')
            query = f'SELECT * FROM "{table}" LIMIT {_MOST_ROWS + 1}'
            if is_duckdb:
                found = database.sql(query).to_arrow_table()
                _refuse_many_rows(found.num_rows, path)
                return load_table(read_whole(found), name, reading)
            cursor = database.execute(query)
            names, rows = [column[0] for column in cursor.description or ()], cursor.fetchall()
            _refuse_many_rows(len(rows), path)
            return _load_columns(names, list(zip(*rows, strict=True)), name, reading)


def _refuse_many_rows(count: int, path: Path) -> None:
    if count > _MOST_ROWS:
        raise SotddError(f"{path} gives more than {_MOST_ROWS:,} rows: write them as Parquet instead.")


@contextmanager
def _interrupt_late(connection: Any) -> Iterator[None]:  # noqa: ANN401  # of either library
    """Interrupt a query that takes too long, as one that never ends."""
    timer = threading.Timer(_MOST_SECONDS, connection.interrupt)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _choose_name(names: Sequence[str], asked: str | None, path: Path, what: str, views: Sequence[str] = ()) -> str:
    """The table that was asked for, or the only one that is no view."""
    if asked is not None and asked in names:
        return asked
    tables = [name for name in names if name not in views]
    if asked is None and len(tables) == 1:
        return tables[0]
    known = join_names([*map(repr, names)]) or "none"
    raise SotddError(f"{path} has {what}s {known}: name one", by=("table",))


def _load_columns(names: Sequence[str], columns: Sequence[Sequence[Any]], name: str, reading: Reading) -> Loaded:
    """The dataset that columns of Python's values make."""
    table = arrow().table([make_column(values) for values in columns], names=names[: len(columns)])
    return load_table(read_whole(table), name, reading)


# ------------------------------------------------------------------ NumPy's own files


def open_npy(paths: Sequence[str], name: str, reading: Reading) -> Loaded:
    """Open features without reading them, and read labels from the file that ``label`` names."""
    reading.refuse("an .npy file")
    path = Path(paths[0])
    if reading.label_column is None and not reading.unlabelled:
        raise SotddError(f"{path} holds features only: name the labels, {path}::label=LABELS.npy, or pass label=None.")
    features = check_features(_read_array(path), name)
    if reading.label_column is None:
        return Loaded(features, None)
    named = Path(str(reading.label_column))  # as it is, or in the folder of the features
    labels = _read_array(named if named.is_absolute() or exists(named) else path.parent / named)
    return Loaded(features, Labels.of(labels, len(features), name))


def _read_array(path: Path, what: object = None) -> NDArray[Any]:
    """The array in an .npy file, which messages call ``what``; a large one stays mapped."""
    refuse_irregular(path)
    with reading_file(what or path, "an array of numbers or texts, as numpy.save writes it"):
        array = np.lib.format.open_memmap(path, "r")
        if array.offset + array.nbytes != path.stat().st_size:
            raise ValueError("its header declares another size")
        return array if array.nbytes > HELD_BYTES else np.array(array)


def open_npz(paths: Sequence[str], name: str, reading: Reading) -> Loaded:
    """Read the features X and the labels y, of one split where there are several, or arrays of other names."""
    reading.refuse("an .npz file")
    path = Path(paths[0])
    if reading.features is not None and len(reading.features) > 1:
        raise SotddError(f"features of {path} are {len(reading.features)} names: expected one array.")
    labels, origin = None, Origin()
    with reading_file(path, "an .npz file of arrays"), zipfile.ZipFile(path) as archive:
        wanted, label = _find_members([one.removesuffix(".npy") for one in archive.namelist()], path, reading)
        features = _read_member(archive, wanted, path)
        if reading.label_is_auto and f"{label}.npy" not in archive.NameToInfo:
            origin = origin.also(Remark("no labels", names=(label,)))
        elif not reading.unlabelled:
            labels = _read_member(archive, label, path)
    checked = check_features(features, name)
    return Loaded(checked, None if labels is None else Labels.of(labels, len(checked), name), origin=origin)


def _find_members(names: Sequence[str], path: Path, reading: Reading) -> tuple[str, str]:
    """What the arrays of features and of labels are called: X and y, or X_train and y_train, in upper or lower case."""
    known = {name[:1].lower() + name[1:]: name for name in reversed(names)}
    splits = sorted(name[2:] for name in known if name.startswith("x_") and name[2:].lower() in SPLITS)
    split = reading.split or (splits[0] if "x" not in known and len(splits) == 1 else None)
    must_choose = "x" not in known and reading.features is None and len(splits) > 1
    if split not in splits if split is not None else must_choose:
        raise SotddError(f"{path} has the splits {join_names([*map(repr, splits)]) or 'none'}: name one", by=("split",))
    end = "" if split is None else f"_{split}"
    features, label = known.get(f"x{end}", "X"), known.get(f"y{end}", "y")
    return (
        features if reading.features is None else str(reading.features[0]),
        label if reading.label_column is None else str(reading.label_column),
    )


def _read_member(archive: zipfile.ZipFile, name: str, path: Path) -> NDArray[Any]:
    """One array of an archive, unpacked into a file of its own; a bomb is refused before."""
    if f"{name}.npy" not in archive.NameToInfo:
        names = [member.removesuffix(".npy") for member in archive.namelist()]
        known = join_names([*map(repr, names)]) or "none"
        raise SotddError(f"{path} has no array {name!r}, only {known}: name others", by=("features", "label"))
    member = archive.getinfo(f"{name}.npy")
    if archive.namelist().count(member.filename) > 1:
        raise SotddError(f"{path} has two arrays {name!r}: save it again with numpy.savez.")
    if member.file_size > _LARGE and member.file_size > _SQUEEZED * member.compress_size:
        sizes = f"{member.compress_size / 1e6:,.1f} MB and would become {member.file_size / 1e9:,.1f} GB"
        raise SotddError(f"array {name!r} of {path} takes {sizes}, as a zip bomb does: save it with numpy.savez.")
    return _read_array(Path(archive.extract(member, make_copy_folder())), f"array {name!r} of {path}")


# ------------------------------------------------------------------ folders of images


def open_folder(folder: Path, name: str, reading: Reading) -> Loaded:
    """Find the images of a folder; they are read when they are wanted."""
    reading.refuse("a folder")
    if reading.label_column is not None:  # the class of a file is its sub-folder
        reading.refuse("a folder", "label")
    paths, classes = _list_images(folder, reading.unlabelled)
    if not paths:
        raise SotddError(f"{folder} has no sub-folders with images: expected one per class, or pass label=None.")
    pillow = require("PIL.Image", f"reading images of {folder}", "'sotdd[inputs]'")
    count, chosen = len(paths), None
    if reading.max_points is not None and reading.max_points < count:
        chosen = sample_rows(count, reading.max_points, reading.seed)
        paths, classes = [paths[row] for row in chosen], [classes[row] for row in chosen]
    with warnings.catch_warnings():
        warnings.simplefilter("error", pillow.DecompressionBombWarning)
        modes = {_read_image(path, lambda image: image.mode) for path in paths}
    mode, size = reading.image_mode or ("L" if all(map(is_grey, modes)) else "RGB"), reading.image_size

    def decode(row: int) -> Any:  # noqa: ANN401  # an image
        image = _read_image(paths[row], lambda image: image.copy())
        return image if size is None else fit_image(image, size, mode)

    def read(rows: NDArray[np.integer]) -> list[Any]:
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as threads:
            return list(threads.map(decode, rows))

    labels = Labels.of(classes, len(classes), name)
    return Loaded(Items(len(paths), read, IMAGES), labels, rows=chosen, origin=Origin(rows_seen=count), image_mode=mode)


def _read_image(path: Path, use: Callable[[Any], Any]) -> Any:  # noqa: ANN401  # of an image
    """What is made of an image."""
    refuse_irregular(path)
    try:
        with require("PIL.Image", "reading images", "'sotdd[inputs]'").open(path) as image:
            return use(image)
    except PermissionError as error:
        raise access_error(path, error) from error
    except MemoryError:
        raise
    except Exception as error:  # of whatever decoder, and for more pixels than Pillow considers safe
        raise SotddError(f"the image {path} is broken ({first_line(error)}): mend or remove it.") from error


def _list_images(folder: Path, unlabelled: bool) -> tuple[list[Path], list[str]]:
    """Images, and the names of their classes, sorted by class and then by path.

    Links that should lead to a file are among them: what cannot be read is reported when it is opened. A link back to
    this folder, or to one above it, is no class.
    """
    own = folder.resolve()
    inside = (path for path in folder.iterdir() if not path.name.startswith(".") and path.is_dir())
    groups = sorted(path for path in inside if not own.is_relative_to(path.resolve()))
    pairs = sorted(
        (path, "all" if unlabelled else group.name)
        for group in ([folder] if unlabelled else groups)
        for path in files_below(group)
        if path.suffix.lower() in _IMAGES and not path.name.startswith(".")
    )
    return [path for path, _ in pairs], [group for _, group in pairs]
