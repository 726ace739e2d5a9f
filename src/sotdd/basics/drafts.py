"""Drafts of files: written beside the file they become, locked while someone writes, swept up once nobody does.

A process that is killed leaves its draft behind. The next one that writes to the same folder removes it. A draft is
known by its name, and a live writer by its lock, which the system takes away with the process.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # Windows, which removes no file that is open
    _HAS_LOCKS = False
else:
    _HAS_LOCKS = True

_NAME = re.compile(r"\.sotdd-([0-9a-f]{8})-[0-9a-f]{12}\.part")

# Locks may not reach other machines, nor earlier boots of this one: their drafts are left alone for this many seconds.
_ABANDONED = 24 * 3600.0


@contextmanager
def drafted(path: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A new draft beside a file, open and locked, and its path; removed at the end if it is still there."""
    sweep(path.parent)
    draft = path.with_name(draft_name())
    file = _opened(draft)
    try:
        yield file, draft
    finally:
        with suppress(OSError):  # closing writes what is left in the buffer, for which there was no room before
            file.close()
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def draft_name() -> str:
    """A name for a draft, however long the name of the file is."""
    return f".sotdd-{_machine()}-{secrets.token_hex(6)}.part"


def sweep(folder: Path) -> None:
    """Remove the drafts in a folder whose writers are gone."""
    with suppress(OSError), os.scandir(folder) as entries:
        for name in [entry.name for entry in entries if _NAME.fullmatch(entry.name)]:
            with suppress(OSError):  # it is not ours to remove, or another process did so first
                _remove_if_abandoned(folder / name)


def _opened(draft: Path) -> BinaryIO:
    """Make a draft, and lock it before anyone could take it for an abandoned one."""
    while True:
        file = draft.open("xb")
        if not _HAS_LOCKS:
            return file
        with suppress(OSError):  # some network drives have no locks; nobody sweeps there either
            flock(file, LOCK_EX)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), draft.stat()):
                return file
        file.close()  # swept up between the two: begin again


def _remove_if_abandoned(draft: Path) -> None:
    match = _NAME.fullmatch(draft.name)
    here = match is not None and match.group(1) == _machine() and _HAS_LOCKS
    if not here and time.time() - draft.stat().st_mtime < _ABANDONED:
        return
    with draft.open("rb") as file:
        if _HAS_LOCKS:
            flock(file, LOCK_EX | LOCK_NB)  # raises where a writer holds it
        draft.unlink()


def _machine() -> str:
    """A name for the machine since it was started: what its locks reach."""
    try:
        started = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        started = socket.gethostname()
    return hashlib.sha256(started.encode()).hexdigest()[:8]
