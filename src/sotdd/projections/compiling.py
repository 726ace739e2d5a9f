"""How a loop is compiled, where the compiled code is kept, and the arrays that loops take."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Integers = NDArray[np.integer]

_F = TypeVar("_F", bound=Callable[..., object])

# Sums may be reordered into vector lanes and products fused; NaN and infinity keep their
# meaning, since the engine looks for them to report overflow.
_FAST_SUMS = {"contract", "reassoc", "nsz"}

_config: Any = numba.config  # whose settings are set by name

# What every loop is compiled with, whatever it calls.
_COMPILER = (__file__,)


def kernel(function: _F) -> _F:
    """Compile a loop on first use, without the GIL, cached on disk where that is possible."""
    return _compile_cached(function, _FAST_SUMS)


def exact_kernel(function: _F) -> _F:
    """As `kernel`, for loops whose sums are formed in the order in which they are written."""
    return _compile_cached(function)


def step(function: _F) -> _F:
    """Make a part of kernels, written out in each of them before it is compiled: its sums are as the kernel's.

    A part that is called has two versions, its own and one beside the kernel's, which sum in another order. Which
    of them runs depends on whether the kernel was compiled in this process or comes from the cache; so the first
    run would differ from later ones in the last bits. To compile a part once more for itself takes as long again.
    """
    return cast("_F", numba.njit(inline="always", nogil=True, error_model="numpy")(function))


def _compile_cached(function: _F, fastmath: bool | set[str] = False) -> _F:
    """Numba's decorator, which reads where its cache is from its settings: they are ours only while it does."""
    folder, before = _find_code_folder(function), _config.CACHE_DIR
    _config.CACHE_DIR = before if folder is None else str(folder)
    try:
        decorate = numba.njit(cache=folder is not None, nogil=True, error_model="numpy", fastmath=fastmath)
        dispatcher: Any = decorate(function)
    finally:
        _config.CACHE_DIR = before
    if folder is not None and hasattr(dispatcher, "_cache"):  # a version without it has its own cache alone
        dispatcher._cache = _CheckedCache(dispatcher._cache)
    return cast("_F", dispatcher)


class _CheckedCache:
    """Numba's cache of one loop, without its faults: what cannot be loaded is compiled anew, and replaced.

    A damaged file would fail every call. Two processes that compile the same loop for different arguments at the same
    moment can name both results alike: then Numba loads, and runs, code for other types than it was asked for.
    """

    def __init__(self, numbas: Any) -> None:  # noqa: ANN401  # of no public type
        self._numbas = numbas

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._numbas, name)

    def load_overload(self, sig: Any, target_context: Any) -> Any:  # noqa: ANN401
        """The code for these arguments; None where there is none that can be used."""
        try:
            found = self._numbas.load_overload(sig, target_context)
            signature = getattr(found, "signature", None)
            if signature is None or tuple(signature.args) == tuple(sig):
                return found
        except Exception:  # noqa: BLE001  # a damaged pickle may raise anything
            with suppress(OSError):
                self._numbas.flush()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:  # noqa: ANN401
        """Keep the code for later processes; a full disk is no reason to fail."""
        with suppress(OSError):
            self._numbas.save_overload(sig, data)


# --------------------------------------------------------------------------- where compiled code is kept


def find_cache() -> Path | None:
    """The folder of compiled code, made if it is missing; None where there can be none, and every process compiles.

    ``NUMBA_CACHE_DIR`` where it is set; otherwise in the user's cache, or among temporary files. What lies there is
    run, so the last two must belong to this user, and no other may write to them.
    """
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(given) if _can_write(Path(given)) else None
    user = os.getuid() if hasattr(os, "getuid") else "cache"  # on Windows temporary files are the user's own
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folders = Path(home) / "sotdd", Path(tempfile.gettempdir()) / f"sotdd-{user}"
    return next((one for one in folders if one.is_absolute() and _can_write(one) and _is_private(one)), None)


def _find_code_folder(function: Callable[..., object]) -> Path | None:
    """Where Numba keeps the code of a loop: another folder for other versions of the sources that are compiled into it.

    Numba itself notices changes in the loop's own file alone.
    """
    folder, sources, left = find_cache(), set(_COMPILER), [function]
    while left:
        found = left.pop()
        if found.__code__.co_filename not in sources:
            sources.add(found.__code__.co_filename)
            left += [value.py_func for value in found.__globals__.values() if hasattr(value, "py_func")]
    if folder is None or not all(map(os.path.exists, sources)):
        return None
    stamp = hashlib.sha256(f"{numba.__version__} {_config.BOUNDSCHECK}".encode())
    for source in sorted(sources):
        stamp.update(Path(source).read_bytes())
    path = folder / f"loops-{stamp.hexdigest()[:16]}"
    if not path.exists():
        _say_that_it_compiles()
    return path


@cache
def _say_that_it_compiles() -> None:
    """Say once why the first call of an installation takes seconds, where somebody is watching."""
    if sys.stderr.isatty() or "ipykernel" in sys.modules:
        sys.stderr.write("sotdd: compiling loops, once for this installation; this takes some seconds …\n")


def _can_write(folder: Path) -> bool:
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.access(folder, os.W_OK | os.X_OK)
    return False


def _is_private(folder: Path) -> bool:
    """Whether a folder belongs to this user, and no other can write to it."""
    found = folder.lstat()
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)
