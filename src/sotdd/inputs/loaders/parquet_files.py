"""Which Parquet files a path means: the same for all that read them.

A folder means every file below it whose name ends in ``.parquet`` or ``.pq``, in any case, but for those that
writers keep for their own use: names, and folders below it, that begin with a dot or an underscore. So
partitions (``year=2024/part-0.parquet``) are read, and ``_metadata``, ``_temporary/`` and ``.part.crc`` are not.
A pattern means what it matches; folders that it matches are read as folders.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath, PurePosixPath
from typing import TypeVar

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError, require
from sotdd.inputs.reading import files_below

SUFFIXES = (".parquet", ".pq")

# What pyarrow raises for files that are not there, cut off, damaged or of another kind.
_UNREADABLE = (OSError, ValueError, TypeError, NotImplementedError, KeyError)

_AnyPath = TypeVar("_AnyPath", bound=PurePath)


def parquet_files(path: str) -> list[str]:
    """The files that a file, a folder, a pattern or a URL means, in an order of their names alone."""
    if "://" in path:
        return _far(path)
    place = Path(path)
    if place.is_dir():
        return in_folder(place)
    if is_pattern(path):
        return matching(path)
    if not place.exists():
        raise SotddError(f"there is no file or folder {path}: check the path.")
    return [path]


def is_pattern(path: str) -> bool:
    """Whether this is no path itself but a pattern of paths."""
    return glob.has_magic(path) and not Path(path).exists()


def in_folder(folder: Path) -> list[str]:
    """The Parquet files of a folder."""
    return [str(folder / inside) for inside in _data(found.relative_to(folder) for found in files_below(folder))]


def matching(pattern: str) -> list[str]:
    """The Parquet files that a pattern matches; one that matches other files is refused."""
    found: list[str] = []
    for place in sorted(map(Path, glob.glob(pattern, recursive=True))):
        if place.is_dir():
            found += [] if "**" in pattern else in_folder(place)  # ** goes into folders by itself
        elif place.suffix.lower() not in SUFFIXES:
            raise SotddError(f"{place} is not a Parquet file: several files at once are opened as Parquet only.")
        else:
            found.append(str(place))
    return found


@contextmanager
def reading_parquet(path: str) -> Iterator[None]:
    """Turn the errors of pyarrow into one line."""
    try:
        yield
    except SotddError:
        raise
    except _UNREADABLE as error:
        raise SotddError(f"cannot read {path} ({first_line(error)}): expected a Parquet file.") from error


def _far(url: str) -> list[str]:
    files = require("pyarrow.fs", "reading Parquet files", "'sotdd[cluster]'")
    with reading_parquet(url):
        system, path = files.FileSystem.from_uri(url)
        kind = system.get_file_info(path).type
        if kind == files.FileType.Directory:
            listed = system.get_file_info(files.FileSelector(path, recursive=True))
            inside = _data(PurePosixPath(entry.path).relative_to(path) for entry in listed if entry.is_file)
            return [f"{url.rstrip('/')}/{file}" for file in inside]
    if kind == files.FileType.NotFound:
        raise SotddError(f"there is no file or folder {url}: check the URL; patterns are for paths.")
    return [url]


def _data(inside: Iterable[_AnyPath]) -> list[_AnyPath]:
    """Of paths within a folder those that hold data, in order."""
    return sorted(
        path
        for path in inside
        if path.suffix.lower() in SUFFIXES and not any(part.startswith((".", "_")) for part in path.parts)
    )
