"""Files, here and elsewhere: what a path or an address means, and one line for whatever goes wrong in reading it.

A folder means every Parquet file below it (``.parquet`` or ``.pq``, in any case), but for those that writers keep for
their own use: names, and folders below it, that begin with a dot or an underscore. So partitions
(``year=2024/part-0.parquet``) are read, and ``_metadata``, ``_temporary/`` and ``.part.crc`` are not. A pattern means
what it matches; folders that it matches are read as folders.

Of addresses (``s3://``, ``gs://``, ``hf://``, ``https://`` and whatever else fsspec knows) Parquet files are read where
they are, a part at a time. Anything else is copied into a temporary folder first.
"""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.request import urlopen

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError, require
from sotdd.basics.files import reason

SUFFIXES = (".parquet", ".pq")

# What pyarrow reads by itself; everything else goes by way of fsspec.
_OF_PYARROW = ("file", "s3", "gs", "gcs", "hdfs", "abfs", "abfss")
# Seconds to wait for a server that does not answer.
_PATIENCE = 60

_AnyPath = TypeVar("_AnyPath", bound=PurePath)


@contextmanager
def reading(path: object, expected: str) -> Iterator[None]:
    """Turn the errors of a reader into a `SotddError` that names the file and what was expected."""
    try:
        yield
    except (SotddError, MemoryError):
        raise
    except FileNotFoundError as error:
        raise SotddError(f"there is no file {path}: check the path.") from error
    except Exception as error:  # of whatever library, for files that are damaged, encrypted or something else
        raise SotddError(f"cannot read {path} ({first_line(error)}): expected {expected}.") from error


def reading_parquet(path: str) -> AbstractContextManager[None]:
    """Turn the errors of pyarrow into one line."""
    return reading(path, "a Parquet file")


def unreadable(path: object, error: OSError) -> SotddError:
    """The error for a file or folder that the system does not let us read."""
    return SotddError(f"cannot read {path} ({reason(error)}): check who may read it.")


def exists(path: Path) -> bool:
    """Whether something is there; a name that no file system takes is not. Who may not look is told so."""
    try:
        return path.exists()
    except PermissionError as error:
        raise unreadable(path, error) from error
    except (OSError, ValueError):  # too long, a NUL inside, a lone surrogate, links in a circle
        return False


def refuse_missing(path: Path, what: str = "file") -> None:
    """Refuse a path where there is nothing."""
    if not exists(path):
        raise SotddError(f"there is no {what} {path}: check the path.")


def files_below(folder: Path) -> Iterator[Path]:
    """Every file in a folder and its sub-folders, but for hidden ones.

    A folder that cannot be read is refused: its data would be missing.
    """

    def refuse(error: OSError) -> None:
        raise unreadable(error.filename, error) from error

    for root, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(root, name) for name in names)


def parquet_files(path: str) -> list[str]:
    """The files that a file, a folder, a pattern or a URL means, in the order of their names."""
    if is_remote(path):
        return _in_store(path)
    if is_pattern(path):
        return matching(path)
    refuse_missing(Path(path), "file or folder")
    return in_folder(Path(path)) if Path(path).is_dir() else [path]


def is_magic(path: str) -> bool:
    """Whether a path has characters of a pattern in it; question marks of addresses are none."""
    return glob.has_magic(path.replace("?", "") if is_remote(path) else path)


def is_pattern(path: str) -> bool:
    """Whether this is a pattern of paths, and not itself the path of something."""
    return glob.has_magic(path) and not exists(Path(path))


def in_folder(folder: Path) -> list[str]:
    """The Parquet files of a folder."""
    return [str(folder / inside) for inside in _data(file.relative_to(folder) for file in files_below(folder))]


def matching(pattern: str) -> list[str]:
    """The Parquet files that a pattern matches; one that matches other files is refused."""
    files: list[str] = []
    for match in sorted(map(Path, glob.glob(pattern, recursive=True))):
        if match.is_dir():
            files += [] if "**" in pattern else in_folder(match)  # ** goes into folders by itself
        elif match.suffix.lower() not in SUFFIXES:
            raise SotddError(f"{match} is not a Parquet file: several files at once are opened as Parquet only.")
        else:
            files.append(str(match))
    return files


def _in_store(url: str) -> list[str]:
    """The files that an address means: one file, those of a folder, or those that a pattern matches."""
    files = require("pyarrow.fs", "reading Parquet files", "'sotdd[inputs]'")
    plain, pattern = (url, None) if not is_magic(url) else _folder_of(url)
    with reading_parquet(url):
        system, path = store_of(plain)
        kind = system.get_file_info(path).type
        if kind == files.FileType.Directory:
            listed = system.get_file_info(files.FileSelector(path, recursive=True))
            root = PurePosixPath(path.lstrip("/"))
            inside = _data(PurePosixPath(entry.path.lstrip("/")).relative_to(root) for entry in listed if entry.is_file)
            chosen = [file for file in inside if pattern is None or fnmatchcase(str(file), pattern)]
            return [f"{plain.rstrip('/')}/{file}" for file in chosen]
    if kind == files.FileType.NotFound:
        raise SotddError(f"there is no file or folder {plain}: check the address.")
    return [url]


def _folder_of(url: str) -> tuple[str, str]:
    """The folder that a pattern begins in, and the rest of it."""
    scheme, _, path = url.partition("://")
    parts = path.split("/")
    first = next(place for place, part in enumerate(parts) if is_magic(part))
    return f"{scheme}://{'/'.join(parts[:first])}", "/".join(parts[first:])


def _data(inside: Iterable[_AnyPath]) -> list[_AnyPath]:
    """Those of the paths within a folder that hold data, in order."""
    return sorted(
        path
        for path in inside
        if path.suffix.lower() in SUFFIXES and not any(part.startswith((".", "_")) for part in path.parts)
    )


def is_remote(path: str) -> bool:
    """Whether a path is the address of something elsewhere."""
    return "://" in path


def is_web(url: str) -> bool:
    """Whether this is the address of a web page or file, which Python reads by itself."""
    return _scheme(url) in ("http", "https")


def store_of(url: str) -> tuple[Any, str]:
    """A file system of pyarrow's, and the path within it."""
    stores = require("pyarrow.fs", f"reading {url}", "'sotdd[inputs]'")
    if _scheme(url) in _OF_PYARROW:
        try:
            return stores.FileSystem.from_uri(url)  # type: ignore[no-any-return]  # a pair
        except (OSError, ValueError, NotImplementedError) as error:  # such as a pyarrow built without that store
            if _scheme(url) == "file":
                raise SotddError(f"cannot read {url} ({first_line(error)}): check the address.") from error
    fsspec = require("fsspec", f"reading {url}", "fsspec")
    try:
        system, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:  # which says what to install
        raise SotddError(
            f"cannot read {url} ({first_line(error)}): expected s3://, gs://, hf://, https:// or another address that "
            "fsspec knows."
        ) from error
    return stores.PyFileSystem(stores.FSSpecHandler(system)), path


def downloaded(url: str) -> Path:
    """A copy of a remote file in a temporary folder, which is removed when the process ends."""
    name = PurePosixPath(url.partition("?")[0]).name
    target = Path(tempfile.mkdtemp(dir=_folder().name)) / name
    try:
        with _open_address(url) as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
    except SotddError:
        raise
    except Exception as error:  # of whatever library talks to the store
        if isinstance(error, HTTPError):
            error.close()
        raise SotddError(
            f"cannot read {url} ({type(error).__name__}: {first_line(error)}): check the address, the connection and "
            "who may read it."
        ) from error
    return target


def _open_address(url: str) -> Any:  # noqa: ANN401  # something that reads like a file
    if is_web(url):
        return urlopen(url, timeout=_PATIENCE)
    system, path = store_of(url)
    return system.open_input_stream(path)


def _scheme(url: str) -> str:
    """What an address begins with."""
    return url.partition("://")[0].lower()


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Where copies are kept as long as the process lasts."""
    return tempfile.TemporaryDirectory(prefix="sotdd-")
