"""Files that are written completely or not at all, and the paths that they are at."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sotdd.basics.checks import describe, first_line
from sotdd.basics.errors import SotddError
from sotdd.basics.text import quote


def write_whole(path: str | os.PathLike[str], content: bytes | memoryview) -> None:
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
    with _open_target(path) as target:
        draft = _name_draft(target)
        try:
            with draft.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)


def refuse_unwritable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that cannot be written to, before doing the work whose result goes there."""
    with _open_target(path) as target:
        draft = _name_draft(target)
        draft.touch(exist_ok=False)
        draft.unlink(missing_ok=True)


def _name_draft(target: Path) -> Path:
    """A new name beside a file, however long the name of the file is."""
    return target.with_name(f".sotdd-{secrets.token_hex(8)}.part")


def read_whole(path: str | os.PathLike[str], expected: str) -> bytes:
    """The content of a file, or an error that says what was expected there."""
    target = check_path(path)
    try:
        return target.read_bytes()
    except OSError as error:
        raise SotddError(f"cannot read {quote(target)} ({reason(error)}): expected {expected}.") from error


def check_path(path: object, expected: str = "the path of a file") -> Path:
    """Return a path that a system could have, or refuse.

    Examples
    --------
    >>> from sotdd.basics.files import check_path
    >>> try:
    ...     check_path("")
    ... except ValueError as error:
    ...     print(error)
    path is '': expected the path of a file.
    """
    try:
        text = os.fspath(path)  # type: ignore[call-overload]  # what is no path raises
        usable = isinstance(text, str) and text != "" and b"\0" not in os.fsencode(text)
    except Exception:  # noqa: BLE001  # a path may be an object of the user's, which raises what it likes
        usable = False
    if not usable:
        raise SotddError(f"is {describe(path)}: expected {expected}.", setting="path")
    return Path(text)


def reason(error: OSError) -> str:
    """Why the operating system refused, in its own words."""
    return (error.strerror or first_line(error)).lower()


@contextmanager
def _open_target(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the file to write, the end of all links; refuse what is none, and say in one line what goes wrong."""
    target = check_path(path)
    try:
        if target.is_dir():
            raise SotddError(f"cannot write {quote(target)} (is a directory): choose another path.")
        if target.exists() and not target.is_file():  # to replace a device or a pipe would take it from everyone
            raise SotddError(f"cannot write {quote(target)} (it is a device or a pipe): choose another path.")
        yield Path(os.path.realpath(target))
    except OSError as error:
        raise SotddError(f"cannot write {quote(target)} ({reason(error)}): choose another path.") from error
