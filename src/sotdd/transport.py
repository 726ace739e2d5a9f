"""Exact one-dimensional transport between sorted samples of any two sizes.

Between equally weighted samples W_p^p is the integral of |F⁻¹ - G⁻¹|^p over [0, 1], where
both inverse distribution functions are steps of width 1/n and 1/m. Which steps overlap
depends on n and m alone, never on the data, and is found in integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd import kernels


@dataclass(frozen=True, eq=False)
class Overlaps:
    """Which of n steps meets which of m steps, and on how much of [0, 1].

    Examples
    --------
    >>> from sotdd.transport import Overlaps
    >>> thirds_and_halves = Overlaps.of(3, 2)
    >>> thirds_and_halves.left.tolist(), thirds_and_halves.right.tolist()
    ([0, 1, 1, 2], [0, 0, 1, 1])
    """

    left: NDArray[np.integer]
    right: NDArray[np.integer]
    width: NDArray[np.float64]

    @classmethod
    def of(cls, n: int, m: int) -> Overlaps:
        """Walk along both staircases at once."""
        most = n + m - math.gcd(n, m)
        index = np.dtype(np.int32 if most < 2**31 else np.int64)
        left, right, width = np.empty(most, index), np.empty(most, index), np.empty(most)
        kernels.align(n, m, left, right, width)
        return cls(left, right, width)


def transport_rows(
    a: NDArray[np.float32], b: NDArray[np.float32], p: float, overlaps: Overlaps | None
) -> NDArray[np.float64]:
    """W_p^p between each sorted row of a (B, n) and of b (B, m); no overlaps are needed if n = m.

    Examples
    --------
    >>> import numpy as np
    >>> from sotdd.transport import Overlaps, transport_rows
    >>> a, b = np.float32([[0, 0, 3]]), np.float32([[0, 3]])
    >>> print(transport_rows(a, b, 1.0, Overlaps.of(3, 2)).round(6))
    [0.5]
    """
    out = np.empty(len(a))
    if overlaps is None:
        kernels.transport_equal(a, b, p, out)
    else:
        kernels.transport_aligned(a, b, overlaps.left, overlaps.right, overlaps.width, p, out)
    return out
