"""Errors of LanceDB, told in one line that says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sotdd.basics.checks import first_line
from sotdd.basics.errors import SotddError
from sotdd.basics.files import shown
from sotdd.basics.memory import beyond_memory, is_out_of_memory
from sotdd.sketches.catalog.object_store import fault_of_store, is_remote

# LanceDB appends where in its own sources it stopped.
_SOURCE = re.compile(r",? \S*\.rs:\d+(:\d+)?.*$")
_SYSTEM = re.compile(r"([A-Z][\w -]*) \(os error \d+\)")
# LanceDB checks the size of a blob before it commits the row; a full disk leaves the blob too short.
# LanceDB repeats what it was given, however long that was.
_MOST = 300
_SHORT = "exceeds blob object size"


@contextmanager
def one_line_errors(doing: str, location: str) -> Iterator[None]:
    """Turn errors of LanceDB and of the system into one line."""
    try:
        yield
    except SotddError:
        raise
    except (RuntimeError, ValueError, OSError, MemoryError) as error:
        if is_out_of_memory(error):
            raise beyond_memory(f"what is read of the catalog {shown(location)}", error, "free memory first") from error
        of_store = fault_of_store(str(error)) if is_remote(location) else None
        told, advice = of_store or (cause(error), _advice(error))
        raise SotddError(f"cannot {doing} the catalog {shown(location)} ({told}): {advice}.") from error


def cause(error: BaseException) -> str:
    """What went wrong, without the place in LanceDB's sources.

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
    text = _SOURCE.sub("", text).rstrip(".")
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"


def is_conflict(error: BaseException) -> bool:
    """Whether another process changed the table in the meantime, so that a retry may help."""
    text = str(error).lower()
    return any(word in text for word in ("commit conflict", "concurrent", "preempted", "please retry"))


def is_of_condition(error: BaseException) -> bool:
    """Whether a condition is to blame: it cannot be read, or cannot be computed for some entry."""
    return isinstance(error, ValueError) or "Error applying filter expression" in str(error)


def _advice(error: BaseException) -> str:
    if is_conflict(error):
        return "other processes keep writing to it; try again"
    return "check the path, its permissions and the space left; earlier entries are unchanged"
