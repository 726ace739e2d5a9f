"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError


def write_whole(path: Path, content: bytes) -> None:
    """Write a draft beside the file, then move it there: readers see the old file or the new one, never a part.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sotdd.basics.files import write_whole
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "numbers"
    ...     write_whole(path, b"123")
    ...     path.read_bytes(), [file.name for file in pathlib.Path(folder).iterdir()]
    (b'123', ['numbers'])
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise SotddError(f"cannot write {str(path)!r} ({reason(error)}): choose another path.") from error
    finally:
        with suppress(OSError):  # if it cannot be removed, it could not be written
            draft.unlink(missing_ok=True)


def refuse_unwritable(path: Path) -> None:
    """Refuse a path that cannot be written to, before doing the work whose result goes there."""
    if path.is_dir():
        raise SotddError(f"cannot write {str(path)!r} (is a directory): choose another path.")
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    try:
        draft.touch(exist_ok=False)
        draft.unlink()
    except (OSError, ValueError) as error:
        why = reason(error) if isinstance(error, OSError) else first_line(error)
        raise SotddError(f"cannot write {str(path)!r} ({why}): choose another path.") from error


def reason(error: OSError) -> str:
    """Why the operating system refused, in its own words."""
    return (error.strerror or first_line(error)).lower()
