"""What a sketch has lost of its data, and how far off its distances may be for it.

Of each projection three numbers are kept, the columns of ``lost`` (L, 3). With F the quantile function of the
projected points and m its means over Q parts:

1. at least the mean of |F − m|,
2. the root of the mean of |F − m|²,
3. how far F itself may be off, in W_2, where values were counted in bins (streams) or rounded (half-size files).

Log-convexity of norms gives ‖F − m‖_p for p between 1 and 2. The distance is a p-norm over probabilities and
projections together, so by the triangle inequality it is off by at most the sum over both sketches. For p = 2
more is known: F − m is orthogonal to all that is constant on parts, hence true² = (of the means)² + (lost)².
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Lost = NDArray[np.float64]  # (L, 3)

# A bound beyond this share of the value is told.
_TOLERATED = 0.05


def nothing_lost(n_projections: int) -> Lost:
    """Of a sketch that keeps every value."""
    return np.zeros((n_projections, 3))


def lost_by(rows: NDArray[np.float32], means: NDArray[np.float32], before: Lost) -> Lost:
    """What is lost once rows (L, n), which had lost something before, are reduced to means (L, Q) of them."""
    from sotdd.kernels.quantiles import bin_losses

    now = np.empty((len(rows), 2))
    bin_losses(rows, means, now)
    return np.column_stack([before[:, 0] + now[:, 0], np.hypot(before[:, 1], now[:, 1]), before[:, 2]])


def most_off(a: Lost | None, b: Lost | None, value: float, p: float) -> tuple[float, float] | None:
    """How far a distance of two sketches may be off, and how much of that is not due to the number of quantiles.

    None where no bound is known: for p above 2, or where a sketch does not say what it lost.
    """
    if a is None or b is None or p > 2:
        return None
    share = 2 / p - 1  # 1/p = share / 1 + (1 - share) / 2
    in_a, in_b = (part[:, 0] ** share * part[:, 1] ** (1 - share) for part in (a, b))
    reduced = _mean_norm(in_a + in_b, p)
    moved = _mean_norm(a[:, 2] + b[:, 2], p)
    above = math.hypot(value, reduced) - value if p == 2 else reduced
    return above + moved, moved


def remark_of(error: float, moved: float, value: float) -> tuple[str, ...]:
    """Say when what was lost is no longer small beside the value, and what to do about it."""
    if error <= _TOLERATED * value:
        return ()
    cause, advice = (
        ("the bins that values were counted in", "sketch the data whole, not as a stream or in a half-size file")
        if 2 * moved > error
        else ("the quantiles kept", "sketch with more n_quantiles")
    )
    return (f"{cause} are coarse for a difference this small: the value may be off by up to {error:.2g}; {advice}",)


def _mean_norm(numbers: NDArray[np.float64], p: float) -> float:
    """The p-norm of numbers over projections."""
    largest = float(np.max(numbers)) or 1.0
    return float(largest * np.mean((numbers / largest) ** p) ** (1 / p))
