"""Whatever goes wrong while a file is read, told in one line."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from sotdd.checks import first_line
from sotdd.errors import SotddError

# All that was seen to come out of damaged, encrypted or foreign files.
UNREADABLE = (
    OSError,
    ValueError,
    TypeError,
    LookupError,
    EOFError,
    MemoryError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


@contextmanager
def reading(path: object, expected: str) -> Iterator[None]:
    """Turn the errors of a reader into one that names the file and what was expected."""
    try:
        yield
    except SotddError:
        raise
    except FileNotFoundError as error:
        raise SotddError(f"there is no file {path}: check the path.") from error
    except UNREADABLE as error:
        raise SotddError(f"cannot read {path} ({first_line(error)}): expected {expected}.") from error
