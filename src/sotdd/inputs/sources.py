"""Sources: what a path, an address or a text with options means, and one line for whatever goes wrong in reading it.

A folder means the tables of one kind below it, but for those that writers keep for their own use: names, and folders
below it, that begin with a dot or an underscore. So partitions (``year=2024/part-0.parquet``) are read, and
``_metadata``, ``_temporary/`` and ``.part.crc`` are not. A pattern means what it matches; folders that it matches are
read as folders. Other folders hold images.

Of addresses (``s3://``, ``gs://``, ``hf://``, ``https://`` and whatever else fsspec knows) Parquet files are read where
they are, a part at a time. Anything else is copied into a temporary folder first.
"""

from __future__ import annotations

import glob
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, Any
from urllib.error import HTTPError

from sotdd.basics.errors import SotddError, first_line, require
from sotdd.basics.files import find_file_name, find_store, is_remote, is_web, lock_file, open_address, reason
from sotdd.basics.text import join_names
from sotdd.inputs.preparation import Loaded
from sotdd.inputs.reading import OPTIONS, Reading

# What reads a file, by how its name ends.
_LOADERS = {
    ".npz": "open_npz", ".npy": "open_npy",
    ".csv": "open_csv", ".tsv": "open_csv",
    ".parquet": "open_parquet", ".pq": "open_parquet",
    ".arrow": "open_arrow", ".feather": "open_arrow", ".ipc": "open_arrow",
    ".jsonl": "open_json", ".ndjson": "open_json",
    ".xlsx": "open_workbook", ".xls": "open_workbook", ".ods": "open_workbook",
    ".db": "open_database", ".sqlite": "open_database", ".sqlite3": "open_database", ".duckdb": "open_database",
}  # fmt: skip
# How the names of tables end of which a folder may hold several.
_IN_FOLDERS = (".parquet", ".pq", ".csv", ".tsv", ".arrow", ".feather", ".jsonl", ".ndjson")
# Text files may be compressed.
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
# What `save_to_disk` of Hugging Face's library writes beside the tables.
_SAVED = ("dataset_info.json", "state.json")
# Copies that are removed when what is being opened is open.
_COPIES: ContextVar[ExitStack] = ContextVar("copies")
# What stands for standard input.
_STDIN = "-"

# What folders are called that hold a part of a dataset.
SPLITS = {"train", "training", "test", "testing", "val", "valid", "validation", "dev", "eval", "holdout"}


def parse_source(text: str) -> tuple[str, dict[str, Any]]:
    """Read ``PATH`` or ``PATH::KEY=VALUE,KEY=VALUE``: the path, and the options that follow it.

    Examples
    --------
    >>> from sotdd.inputs.sources import parse_source
    >>> parse_source("table.csv::label=species,features=length+width,max_points=1000")
    ('table.csv', {'label': 'species', 'features': ['length', 'width'], 'max_points': 1000})
    """
    path, options = split_options(text)
    if not path:
        raise SotddError(f"the source {text!r} has no path: expected the name of a file or folder.")
    values: dict[str, Any] = {}
    for option in filter(None, options.split(",")):
        key, equals, value = option.partition("=")
        if (key not in OPTIONS and key != "name") or not equals or not (value or key == "label"):
            raise SotddError(f"cannot read {option!r} in {text!r}: write FILE::features=NAME,label=NAME.")
        values[key] = value if key == "name" else OPTIONS[key].parse(value)
    return path, values


def split_options(text: str) -> tuple[str, str]:
    """Split ``PATH::OPTIONS``; a file that is there may have such a name itself."""
    path, mark, options = text.partition("::")
    while mark and exists(Path(longer := f"{path}::{options.partition('::')[0]}")):
        path, (_, mark, options) = longer, options.partition("::")
    return path, options


def write_source(source: str, **options: Any) -> str:  # noqa: ANN401  # values of any kind
    """A source with options written behind it; those that it has itself come last, and win.

    Examples
    --------
    >>> from sotdd.inputs.sources import write_source
    >>> write_source("a.csv::max_points=9", label="kind", exclude=["id", "note"], one_hot=False)
    'a.csv::label=kind,exclude=id+note,one_hot=false,max_points=9'
    """
    path, own = split_options(source)
    written = [f"{name}={OPTIONS[name].write(value)}" for name, value in options.items()]
    together = ",".join([*written, *filter(None, [own])])
    return f"{path}::{together}" if together else path


def open_path(path: str, name: str, reading: Reading) -> Loaded:
    """Open a file or folder by what it is."""
    with ExitStack() as copies:
        previous = _COPIES.set(copies)
        try:
            return _open_there(path, name, reading)
        except PermissionError as error:
            raise access_error(error.filename or path, error) from error
        finally:
            _COPIES.reset(previous)


def _open_there(path: str, name: str, reading: Reading) -> Loaded:
    """Open standard input, a file, files or a folder."""
    if path == _STDIN:
        return _open_files([str(_copy(sys.stdin.buffer, "stdin.csv"))], name, reading)
    target = Path(path)
    is_there = not is_remote(path) and exists(target)
    if not is_there or not target.is_dir():
        return _open_files(list_files(str(target) if is_there else path), name, reading)
    if reading.split is not None:
        target, reading = _find_split(target, reading.split), replace(reading, split=None)
    if all((target / known).is_file() for known in _SAVED) and find_spec("datasets") is not None:
        from sotdd.inputs.loaders.datasets import open_saved

        return open_saved(target, name, reading)
    if not reading.unlabelled:
        _refuse_splits(target)
    files = list_files(str(target))
    if files:
        return _open_files(files, name, reading)
    from sotdd.inputs.loaders.files import open_folder

    return open_folder(target, name, reading)


def _open_files(paths: list[str], name: str, reading: Reading) -> Loaded:
    """Open files by how their names end, which are alike."""
    if not paths:
        raise SotddError(f"no file matches {name}: check the pattern.")
    suffix = find_suffix(paths[0])
    if suffix is None:
        known = ", ".join(_LOADERS)
        raise SotddError(f"cannot tell what {paths[0]} is: expected {known}, or a folder.")
    from sotdd.inputs.loaders import files

    local = []
    for path in paths:
        in_place = is_remote(path) and _LOADERS[suffix] == "open_parquet" and not is_web(path)
        local.append(path if in_place else _take_local(path))
    load: Callable[..., Loaded] = getattr(files, _LOADERS[suffix])
    return load(local, name, reading)


def _take_local(path: str) -> str:
    """A file on this machine, which a remote one is copied to; a device or a pipe is refused."""
    local = str(download(path)) if is_remote(path) else path
    refuse_irregular(Path(local))
    return os.path.abspath(local) if ":" in local else local  # Arrow would take word:x.parquet for an address


def find_suffix(path: str) -> str | None:
    """How the name of a file ends, by which it is read; None for what is not known."""
    lower = find_file_name(path).lower()
    for end in _COMPRESSED:
        if lower.removesuffix(end).endswith((".csv", ".tsv", ".jsonl", ".ndjson")):
            lower = lower.removesuffix(end)
    return next((suffix for suffix in _LOADERS if lower.endswith(suffix)), None)


def _refuse_splits(folder: Path) -> None:
    """Refuse a folder that holds nothing but splits of a dataset, which is one level too high."""
    below = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith((".", "_")))
    # A split has folders of its own, as one of images has, or tables.
    inside = (find_suffix(path.name) in _IN_FOLDERS or path.is_dir() for split in below for path in split.iterdir())
    if len(below) > 1 and all(path.name.lower() in SPLITS for path in below) and any(inside):
        names = ", ".join(repr(path.name) for path in below)
        raise SotddError(f"{folder} holds {names}, which look like splits rather than classes: name one", by=("split",))


def _find_split(folder: Path, split: str) -> Path:
    """The folder of a split."""
    inside = {path.name: path for path in folder.iterdir() if path.is_dir()}
    if split not in inside:
        known = join_names(sorted(map(repr, inside))) or "none"
        raise SotddError(f"{folder} has no folder {split!r}, only {known}: name one", by=("split",))
    return inside[split]


@contextmanager
def reading_file(path: object, expected: str) -> Iterator[None]:
    """Turn the errors of a reader into a `SotddError` that names the file and what was expected."""
    try:
        yield
    except (SotddError, MemoryError) as error:
        if type(error).__name__ != "ArrowMemoryError":  # which a damaged size causes as well
            raise
        raise SotddError(f"{path} needs more memory than there is ({first_line(error)}): is it damaged?") from error
    except FileNotFoundError as error:
        raise SotddError(f"there is no file {path}: check the path.") from error
    except Exception as error:  # of whatever library, for files that are damaged, encrypted or something else
        raise SotddError(f"cannot read {path} ({first_line(error)}): expected {expected}.") from error


def access_error(path: object, error: OSError) -> SotddError:
    """The error for a file or folder that the system does not let us read."""
    return SotddError(f"cannot read {path} ({reason(error)}): check who may read it.")


def exists(path: Path) -> bool:
    """Whether something is there; a name that no file system takes is not. Who may not look is told so."""
    try:
        return path.exists()
    except PermissionError as error:
        raise access_error(path, error) from error
    except (OSError, ValueError):  # too long, a NUL inside, a lone surrogate, links in a circle
        return False


def refuse_irregular(path: Path) -> None:
    """Refuse a device or a pipe, which may be read for ever."""
    if exists(path) and not path.is_file():
        raise SotddError(f"{path} is no regular file: expected one.")


def files_below(folder: Path) -> Iterator[Path]:
    """Every file in a folder and its sub-folders, but for hidden ones.

    A folder that cannot be read is refused: its data would be missing.
    """

    def refuse(error: OSError) -> None:
        raise access_error(error.filename, error) from error

    for root, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(root, name) for name in names)


def list_files(path: str) -> list[str]:
    """The tables that a file, a folder, a pattern or a URL means, in the order of their names."""
    if is_remote(path):
        return [path] if is_web(path) else _list_store(path)
    if not glob.has_magic(path) or exists(Path(path)):
        if not exists(Path(path)):
            raise SotddError(f"there is no file {Path(path)}: check the path.")
        return _list_folder(Path(path)) if Path(path).is_dir() else [path]
    files: list[str] = []
    for match in sorted(map(Path, glob.glob(path, recursive=True))):
        if match.is_dir():
            files += [] if "**" in path else _list_folder(match)  # ** goes into folders by itself
        else:
            files.append(str(match))
    return _refuse_mixed(files, path)


def _list_folder(folder: Path) -> list[str]:
    """The tables of a folder."""
    tables = _choose_tables((file.relative_to(folder) for file in files_below(folder)), str(folder))
    return _refuse_mixed(tables, str(folder))


def _refuse_mixed(files: list[str], path: str) -> list[str]:
    """Refuse files of several kinds, which would be several datasets."""
    kinds = {_LOADERS[suffix] if (suffix := find_suffix(file)) in _IN_FOLDERS else None: file for file in files}
    if len(kinds) > 1 or None in kinds:
        raise SotddError(f"{path} means {', '.join(kinds.values())}: expected tables of one kind.")
    return files


def _list_store(url: str) -> list[str]:
    """The files that an address means: one file, those of a folder, or those that a pattern matches."""
    files = require("pyarrow.fs", f"reading {url}", "'sotdd[inputs]'")
    parts = url.split("/")
    first = next((place for place, part in enumerate(parts) if glob.has_magic(part.replace("?", ""))), len(parts))
    plain, pattern = "/".join(parts[:first]), "/".join(parts[first:]) or "*"
    with reading_file(url, "a table"):
        system, path = find_store(plain)
        kind = system.get_file_info(path).type
        if kind == files.FileType.Directory:
            listed = system.get_file_info(files.FileSelector(path, recursive=True))
            root = PurePosixPath(path.lstrip("/"))
            inside = (PurePosixPath(one.path.lstrip("/")).relative_to(root) for one in listed if one.is_file)
            matching = (path for path in inside if fnmatchcase(str(path), pattern))
            return _refuse_mixed(_choose_tables(matching, plain), url)
    if kind == files.FileType.NotFound:
        raise SotddError(f"there is no file or folder {plain}: check the address.")
    return [url]


def _choose_tables(inside: Iterable[PurePath], folder: str) -> list[str]:
    """The tables among the files within a folder, in the order of their names."""
    tables = (path for path in inside if find_suffix(str(path)) in _IN_FOLDERS)
    shown = (path for path in tables if not any(part.startswith((".", "_")) for part in path.parts))
    return [f"{folder.rstrip('/')}/{path.as_posix()}" for path in sorted(shown)]


def download(url: str) -> Path:
    """A copy of a remote file, which is removed once the dataset is open."""
    try:
        with open_address(url) as source:
            return _copy(source, find_file_name(url))
    except SotddError:
        raise
    except Exception as error:  # of whatever library talks to the store
        if isinstance(error, HTTPError):
            error.close()
        cause = f"{type(error).__name__}: {first_line(error)}"
        raise SotddError(f"cannot read {url} ({cause}): check the address, the connection and access.") from error


def _copy(source: Any, name: str) -> Path:  # noqa: ANN401  # something that reads like a file
    """A copy of what can be read only once."""
    target = make_copy_folder() / name
    with target.open("wb") as copy:
        shutil.copyfileobj(source, copy, 1 << 20)
    return target


def make_copy_folder() -> Path:
    """A folder for a copy, which is removed once the dataset is open; what is mapped then stays readable."""
    folder = tempfile.TemporaryDirectory(dir=_own_folder()[0].name, ignore_cleanup_errors=True)
    return Path(_COPIES.get().enter_context(folder))


@cache
def _own_folder() -> tuple[tempfile.TemporaryDirectory[str], IO[bytes]]:
    """Where the copies of this process are; those of processes that were killed are removed.

    A process holds a lock in its folder, which comes second, as long as it lives.
    """
    for lock in Path(tempfile.gettempdir()).glob("sotdd-copies-*/lock"):
        with suppress(OSError), lock.open("ab") as file:
            if lock_file(file.fileno(), wait=False):
                shutil.rmtree(lock.parent, ignore_errors=True)
    folder = tempfile.TemporaryDirectory(prefix="sotdd-copies-", ignore_cleanup_errors=True)
    file = (Path(folder.name) / "lock").open("ab")
    lock_file(file.fileno(), wait=False)
    return folder, file
