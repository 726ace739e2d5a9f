"""Files: whatever goes wrong while one is read is told in one line, and what a folder holds."""

from __future__ import annotations

import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError
from sotdd.basics.files import reason
from sotdd.basics.memory import beyond_memory, is_out_of_memory

# Everything that readers were seen to raise for damaged, encrypted or foreign files.
UNREADABLE = (
    OSError,
    ValueError,
    TypeError,
    LookupError,
    EOFError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)

# What to do about data that do not fit.
SMALLER = (
    "take a sample with max_points=, save numbers as .npy or Parquet files, which are read in blocks, or free memory"
)


@contextmanager
def reading(path: object, expected: str) -> Iterator[None]:
    """Turn the errors of a reader into a `SotddError` that names the file and what was expected."""
    try:
        yield
    except SotddError:
        raise
    except FileNotFoundError as error:
        raise SotddError(f"there is no file {path}: check the path.") from error
    except Exception as error:
        if is_out_of_memory(error):
            raise beyond_memory(str(path), error, SMALLER) from error
        if not isinstance(error, UNREADABLE):
            raise
        raise SotddError(f"cannot read {path} ({first_line(error)}): expected {expected}.") from error


def is_remote(path: str) -> bool:
    """Whether a path is the address of something elsewhere."""
    return "://" in path


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


def unreadable(path: object, error: OSError) -> SotddError:
    """The error for a file or folder that the system does not let us read."""
    return SotddError(f"cannot read {path} ({reason(error)}): check who may read it.")


# A folder with more files than this is hardly what the user meant.
_MOST_FILES = 5_000_000
_LOST = "lost+found"


def files_below(folder: Path) -> Iterator[Path]:
    """Every file in a folder and its sub-folders; one that cannot be read is refused: its data would be missing.

    Folders that hold no data are passed over if they cannot be read: those with a dot in front, and the one where
    file systems keep what they have found.
    """

    def refuse(error: OSError) -> None:
        place = Path(str(error.filename))
        if not any(part.startswith(".") or part == _LOST for part in place.parts[len(folder.parts) :]):
            raise unreadable(place, error) from error

    if folder.resolve() == Path("/"):  # it holds the system's own folders, some of which have no end
        raise SotddError(f"{folder} is the root of the file system: name the folder of the data itself.")
    seen = 0
    for root, _, names in os.walk(folder, onerror=refuse):
        seen += len(names)
        if seen > _MOST_FILES:
            raise SotddError(f"{folder} holds more than {_MOST_FILES:,} files: name the folder of the data itself.")
        yield from (Path(root, name) for name in names)
