"""How a loop is compiled, and the arrays that loops take."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar, cast

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


_compiled = partial(numba.njit, nogil=True, error_model="numpy")


def kernel(function: _F) -> _F:
    """Compile a loop on first use, without the GIL, cached on disk where that is possible."""
    return _cached(function, _FAST_SUMS)


def exact_kernel(function: _F) -> _F:
    """As `kernel`, for loops whose sums are formed in the order in which they are written."""
    return _cached(function, set())


def step(function: _F) -> _F:
    """Compile a part of kernels, into each of them.

    A part that is called has two versions, its own and one beside the kernel's, which sum in another order. Which
    of them runs depends on whether the kernel was compiled in this process or comes from the cache; so the first
    run would differ from later ones in the last bits.
    """
    return cast("_F", _compiled(fastmath=_FAST_SUMS, forceinline=True)(function))


def exact_step(function: _F) -> _F:
    """As `step`, with sums formed in the order in which they are written."""
    return cast("_F", _compiled(fastmath=set(), forceinline=True)(function))


def _cached(function: _F, liberties: set[str]) -> _F:
    try:
        return cast("_F", _compiled(fastmath=liberties, cache=True)(function))
    except RuntimeError:  # no writable place for the cache: compile in every process instead
        return cast("_F", _compiled(fastmath=liberties)(function))
