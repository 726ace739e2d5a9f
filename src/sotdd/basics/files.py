"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from sotdd.basics.checks import described, first_line
from sotdd.basics.errors import SotddError


def path_text(path: object) -> str:
    """A path as text, as it was given; anything that is no path is refused."""
    try:
        text = os.fspath(path)  # type: ignore[call-overload]  # what is no path raises
    except Exception:  # noqa: BLE001  # a path may be an object of the user's, which raises what it likes
        text = None
    if not isinstance(text, str) or not text:
        raise SotddError(f"the path is {described(path)}: expected the name of a file, as text or a pathlib.Path.")
    return text


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a draft beside the file, then move it there: readers see the old file or the new one, never a part.

    What a link points to is replaced, not the link. Folders, devices and pipes are refused.

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
    target = _target(path)
    draft = _draft(target)
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from error
    finally:
        with suppress(OSError):  # if it cannot be removed, it could not be written
            draft.unlink(missing_ok=True)


def refuse_unwritable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that cannot be written to, before doing the work whose result goes there."""
    draft = _draft(_target(path))
    try:
        draft.touch(exist_ok=False)
        draft.unlink()
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from error


def reason(error: OSError) -> str:
    """Why the operating system refused, in its own words."""
    return (error.strerror or first_line(error)).lower()


def _target(path: str | os.PathLike[str]) -> Path:
    """The file itself, at the end of any links; a draft moved over a device would take its place."""
    text = path_text(path)
    try:
        target = Path(os.path.realpath(text))
        mode = target.stat().st_mode
    except FileNotFoundError:
        return target
    except (OSError, ValueError) as error:  # such as names that no file system takes
        raise _unwritable(text, error) from error
    if stat.S_ISDIR(mode):
        raise _unwritable(text, IsADirectoryError(0, "is a directory"))
    if not stat.S_ISREG(mode):
        raise _unwritable(text, OSError(0, "is a device or a pipe, not a file"))
    return target


def _draft(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")


def _unwritable(path: object, error: OSError | ValueError) -> SotddError:
    why = reason(error) if isinstance(error, OSError) else first_line(error)
    return SotddError(f"cannot write {str(path)!r} ({why}): choose another path.")
