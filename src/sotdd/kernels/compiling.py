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


def kernel(function: _F) -> _F:
    """Compile a loop on first use, without the GIL, cached on disk where that is possible."""
    return _compiled(function, _FAST_SUMS)


def exact_kernel(function: _F) -> _F:
    """As `kernel`, for loops whose sums are formed in the order in which they are written."""
    return _compiled(function, set())


def _compiled(function: _F, liberties: set[str]) -> _F:
    compiled = partial(numba.njit, nogil=True, fastmath=liberties, error_model="numpy")
    try:
        return cast("_F", compiled(cache=True)(function))
    except RuntimeError:  # no writable place for the cache: compile in every process instead
        return cast("_F", compiled()(function))
