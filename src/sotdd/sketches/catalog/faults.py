"""LanceDB's errors in one line that says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError

# Where in its own sources the library stopped.
_SOURCE = re.compile(r",? \S*\.rs:\d+(:\d+)?.*$")
_SYSTEM = re.compile(r"([A-Z][\w -]*) \(os error \d+\)")
# A blob is measured before its row is committed; it is short where the disk became full.
_SHORT = "exceeds blob object size"


@contextmanager
def told(doing: str, place: str) -> Iterator[None]:
    """Turn errors of LanceDB and of the system into one line."""
    try:
        yield
    except SotddError:
        raise
    except (RuntimeError, ValueError, OSError) as error:
        raise SotddError(f"cannot {doing} the catalog {place!r} ({cause(error)}): {_advice(error)}.") from error


def cause(error: BaseException) -> str:
    """What went wrong, without where in the library.

    Examples
    --------
    >>> from sotdd.sketches.catalog.faults import cause
    >>> cause(RuntimeError("lance error: LanceError(IO): Read-only file system (os error 30) at path x, /a/b.rs:1:2"))
    'read-only file system'
    """
    text = first_line(error)
    if _SHORT in text:
        return "no space left on the disk"
    system = _SYSTEM.search(text)
    if system:
        return system.group(1).lower()
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return _SOURCE.sub("", text).rstrip(".")


def is_conflict(error: BaseException) -> bool:
    """Whether another process changed the table in the meantime, so that trying again may help."""
    text = str(error).lower()
    return any(word in text for word in ("commit conflict", "concurrent", "preempted", "please retry"))


def _advice(error: BaseException) -> str:
    if is_conflict(error):
        return "other processes write to it without a pause; try again"
    return "check the place, its permissions and the space left; earlier entries are as they were"
