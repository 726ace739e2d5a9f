"""Where compiled loops are kept between runs, and how damaged files are told from whole ones.

Numba's own cache gives up where the installation cannot be written and there is no home. It unpickles whatever lies in
a file, and two processes that compile at the same time can mix up its files.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from numba import __version__ as numba_version
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from sotdd.basics import __version__
from sotdd.basics.errors import SotddError
from sotdd.basics.files import write_whole

# The source of the decorators: options of the compiler, and instructions that loops may call.
COMPILER = str(Path(__file__).with_name("compiling.py"))


class LoopCache(NullCache):
    """Keeps what one function was compiled to, in a file for every signature and processor.

    Before Numba's own cache loads a function, it imports all that the function could have been compiled against: a
    third of a second in every process. A function that ``allocates`` arrays needs the counting of references, the
    others nothing of it.
    """

    def __init__(self, function: Callable[..., object], allocates: bool) -> None:
        self._function, self._allocates = function, allocates
        self._source = function.__code__.co_filename

    def load_overload(self, sig: Any, target_context: Any) -> Any:  # noqa: ANN401  # as Numba calls it
        """What was compiled before; None where there is nothing, or nothing that can be used."""
        if self._allocates:
            rtsys.initialize(target_context)
        name, stamp = self._name(sig, target_context.codegen()), self._stamp()
        for folder in find_folders(self._source):
            content = _read(folder / name)
            if content[:32] == hashlib.sha256(stamp + content[32:]).digest():
                return CompileResult._rebuild(target_context, *pickle.loads(content[32:]))  # type: ignore[no-untyped-call]
        return None

    def save_overload(self, sig: Any, data: Any) -> None:  # noqa: ANN401
        """Keep what was compiled, in the first folder that can be written; without one it is compiled by every run."""
        name, content = self._name(sig, data.codegen), dumps(data._reduce())  # type: ignore[no-untyped-call]
        digest = hashlib.sha256(self._stamp() + content).digest()
        for folder in find_folders(self._source, make=True):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                write_whole(folder / name, digest + content)
                return
            except (OSError, SotddError):
                continue

    def _name(self, sig: object, codegen: Any) -> str:  # noqa: ANN401
        """One name whatever the code is, so that new code replaces old."""
        kind = sig, codegen.magic_tuple(), os.environ.get("NUMBA_BOUNDSCHECK"), sys.implementation.cache_tag
        which = hashlib.sha256(repr(kind).encode()).hexdigest()[:16]
        return f"{Path(self._source).stem}.{self._function.__name__}-{which}.nbc"

    def _stamp(self) -> bytes:
        """What the code depends on: versions, how loops are compiled, and the sources of all that this one may call."""
        called = [getattr(value, "py_func", None) for value in self._function.__globals__.values()]
        steps = (step.__code__.co_filename for step in called if step is not None)
        sources = sorted({self._source, COMPILER, *steps})
        versions, code = f"{__version__} {numba_version}".encode(), self._function.__code__.co_code
        return hashlib.sha256(b"".join([versions, code, *map(_read, map(Path, sources))])).digest()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def find_folders(source: str, *, make: bool = False) -> Iterator[Path]:
    """Where compiled loops of a source file may be kept, the first choice first.

    ``NUMBA_CACHE_DIR`` where it is set; otherwise beside the source, in the user's cache, or among temporary files.
    What lies there is run, so the last two are left out where others can write to them, or ``make`` cannot make them.
    """
    parent = Path(source).resolve().parent
    name = f"{parent.name}-{hashlib.sha256(str(parent).encode()).hexdigest()[:16]}"
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(given) / name
        return
    yield parent / "__pycache__"
    user = os.getuid() if hasattr(os, "getuid") else "cache"  # on Windows temporary files are the user's own
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for folder in (Path(home) / "sotdd", Path(tempfile.gettempdir()) / f"sotdd-{user}"):
        if folder.is_absolute() and _is_private(folder, make):
            yield folder / name


def _is_private(folder: Path, make: bool) -> bool:
    """Whether there is a folder that belongs to this user, and that no other can write to."""
    try:
        if make:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)
