"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError


def write_whole(path: Path, content: bytes) -> None:
    """Write beside the place, then move there: readers see the old file or the new one, never a part.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sotdd.basics.files import write_whole
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = pathlib.Path(folder) / "numbers"
    ...     write_whole(place, b"123")
    ...     place.read_bytes(), [file.name for file in pathlib.Path(folder).iterdir()]
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
        raise SotddError(f"cannot write {str(path)!r} ({reason(error)}): choose another place.") from error
    finally:
        with suppress(OSError):  # where nothing can be removed nothing was written either
            draft.unlink(missing_ok=True)


def refuse_unwritable(path: Path) -> None:
    """Refuse a place where no file can be written, before the work that would end there."""
    if path.is_dir():
        raise SotddError(f"cannot write {str(path)!r} (is a directory): choose another place.")
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    try:
        draft.touch(exist_ok=False)
        draft.unlink()
    except (OSError, ValueError) as error:
        why = reason(error) if isinstance(error, OSError) else first_line(error)
        raise SotddError(f"cannot write {str(path)!r} ({why}): choose another place.") from error


def reason(error: OSError) -> str:
    """Why the system refused, in its words."""
    return (error.strerror or first_line(error)).lower()
