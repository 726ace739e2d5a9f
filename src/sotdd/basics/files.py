"""Files that are read and written whole, at a path or at an address such as ``s3://bucket/train.ref``."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import url2pathname, urlopen

from sotdd.basics.errors import SotddError, describe, first_line, require
from sotdd.basics.text import quote

# What pyarrow reads and writes by itself; everything else goes by way of fsspec.
_OF_PYARROW = ("file", "s3", "gs", "gcs", "hdfs", "abfs", "abfss")
# Seconds to wait for a server that does not answer.
_PATIENCE = 60


def write_whole(path: str | os.PathLike[str], content: bytes | memoryview, *, private: bool = False) -> None:
    """Write a draft beside the file, then move it there: readers see the old file or the new one, never a part.

    What a link points to is replaced, not the link, and keeps its mode; a new file that is ``private`` can be read by
    its owner alone. Folders, devices and pipes are refused. An object store shows an object only when it is complete,
    so there is no draft.

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
    with explain_failure("write", path, "choose another path") as target:
        if isinstance(target, str):
            system, inside = _find_writable(target)
            with system.open_output_stream(inside) as file:
                file.write(content)
            return
        final, draft = _name_draft(target)
        try:
            with open(
                draft, "xb", opener=lambda name, flags: os.open(name, flags, 0o600 if private else 0o666)
            ) as file:
                if final.exists():
                    draft.chmod(final.stat().st_mode & 0o777)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(final)
            _sync_folder(final.parent)
        finally:
            draft.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Write a folder's entries to disk, where the system can: a new name is lost with the power otherwise."""
    with suppress(OSError):
        entries = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(entries)
        finally:
            os.close(entries)


def lock_file(file: int, *, wait: bool = True) -> bool:
    """Lock an open file until it is closed; False where another process holds it, or there are no locks."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(file, 1 << 30, os.SEEK_SET)  # a byte that nobody reads
            msvcrt.locking(file, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def refuse_unwritable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that cannot be written to, before doing the work whose result goes there."""
    with explain_failure("write", path, "choose another path") as target:
        if isinstance(target, str):
            _find_writable(target)
        else:
            draft = _name_draft(target)[1]
            draft.touch(exist_ok=False)
            draft.unlink(missing_ok=True)


def read_whole(path: str | os.PathLike[str], expected: str, missing: bytes | None = None) -> bytes:
    """The content of a file, or an error that says what was expected there; ``missing`` where there is no file."""
    with explain_failure("read", path, f"expected {expected}") as target:
        try:
            with open_address(target) as file:
                return bytes(file.read())
        except FileNotFoundError:
            if missing is None:
                raise
            return missing


def check_path(path: object, expected: str = "the path of a file") -> Path | str:
    """Return a path that a system could have, or the text of an address, or refuse; ``file://`` is a path.

    Examples
    --------
    >>> from sotdd.basics.files import check_path
    >>> check_path("s3://bucket/train.ref"), check_path("file:///data/train.ref").name
    ('s3://bucket/train.ref', 'train.ref')
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
    if is_remote(text) and _find_scheme(text) != "file":
        return str(text)
    return Path(url2pathname(urlsplit(text).path) if is_remote(text) else text)


def reason(error: Exception) -> str:
    """Why the operating system or a store refused, in its own words."""
    number = getattr(error, "errno", None)
    return os.strerror(number).lower() if number else first_line(error)


@contextmanager
def explain_failure(verb: str, path: str | os.PathLike[str], advice: str) -> Iterator[Path | str]:
    """Yield a path or an address, and say in one line what goes wrong with the file there."""
    target = check_path(path)
    try:
        yield target
    except (SotddError, MemoryError):
        raise
    except Exception as error:  # of whatever library talks to the store
        if isinstance(error, HTTPError):
            error.close()
        raise SotddError(f"cannot {verb} {quote(target)} ({reason(error)}): {advice}.") from error


def _name_draft(path: Path) -> tuple[Path, Path]:
    """The file to write, at the end of all links, and a new name beside it, however long its own is."""
    if path.is_dir():
        raise OSError("is a directory")
    _refuse_device(path)
    target = Path(os.path.realpath(path))
    return target, target.with_name(f".sotdd-{secrets.token_hex(8)}.part")


def _refuse_device(path: Path) -> None:
    """Refuse a device or a pipe: to replace it would take it from everyone, and to read it may never end."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError("it is a device or a pipe")


# ------------------------------------------------------------------ addresses


def is_remote(path: str) -> bool:
    """Whether a path is the address of something elsewhere."""
    return "://" in path


def find_file_name(path: str) -> str:
    """The name of a file at a path or an address, without what an address asks for behind it."""
    return PurePosixPath(path.partition("?")[0] if is_remote(path) else path).name


def is_web(url: str) -> bool:
    """Whether this is the address of a web page or file, which Python reads by itself."""
    return _find_scheme(url) in ("http", "https")


def open_address(target: Path | str) -> Any:  # noqa: ANN401  # something that reads like a file
    """Open a file, or what is at an address, to read it once."""
    if isinstance(target, Path):
        _refuse_device(target)
        return target.open("rb")
    if is_web(target):
        return urlopen(target, timeout=_PATIENCE)
    system, path = find_store(target)
    return system.open_input_stream(path)


def find_store(url: str) -> tuple[Any, str]:
    """A file system of pyarrow's, and the path within it."""
    stores = require("pyarrow.fs", f"opening {url}", "'sotdd[inputs]'")
    if _find_scheme(url) in _OF_PYARROW:
        try:
            return stores.FileSystem.from_uri(url)  # type: ignore[no-any-return]  # a pair
        except (OSError, ValueError, NotImplementedError):  # such as a pyarrow built without that store
            pass
    fsspec = require("fsspec", f"opening {url}", "fsspec")
    try:
        system, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:  # which says what to install
        raise SotddError(f"cannot open {url} ({first_line(error)}): expected an address that fsspec knows.") from error
    return stores.PyFileSystem(stores.FSSpecHandler(system)), path


def _find_writable(url: str) -> tuple[Any, str]:
    """A store to write to, as far as can be told without writing."""
    if is_web(url):
        raise OSError("web servers are only read")
    if url.endswith("/"):
        raise OSError("is a directory")
    return find_store(url)


def _find_scheme(url: str) -> str:
    """What an address begins with."""
    return url.partition("://")[0].lower()
