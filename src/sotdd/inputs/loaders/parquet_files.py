"""Which Parquet files a path means: the same for all that read them.

A folder means every file below it whose name ends in ``.parquet`` or ``.pq``, in any case, but for those that
writers keep for their own use: names, and folders below it, that begin with a dot or an underscore. So
partitions (``year=2024/part-0.parquet``) are read, and ``_metadata``, ``_temporary/`` and ``.part.crc`` are not.
A pattern means what it matches; folders that it matches are read as folders.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable
from contextlib import AbstractContextManager
from fnmatch import fnmatchcase
from pathlib import Path, PurePath, PurePosixPath
from typing import TypeVar

from sotdd.basics.errors import SotddError, require
from sotdd.inputs.reading import exists, files_below, is_remote, reading, refuse_missing
from sotdd.inputs.remote import store_of

SUFFIXES = (".parquet", ".pq")

_AnyPath = TypeVar("_AnyPath", bound=PurePath)


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


def reading_parquet(path: str) -> AbstractContextManager[None]:
    """Turn the errors of pyarrow into one line."""
    return reading(path, "a Parquet file")


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
