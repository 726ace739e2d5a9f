"""Where quantile functions are cut into parts, each of which a sketch keeps the mean of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sotdd.basics.errors import check_count

# How many numbers a sketch keeps of each projection, unless it is asked for more.
QUANTILES = 384

# More are a mistake, or meant to fill the memory.
MOST_QUANTILES = 1 << 20

# Half of the parts are spread evenly over probability, and half over this many standard deviations of a normal law on
# either side of its mean: a few points in a million are in the last part.
_REACH = 5.0
_HALVINGS = 60  # of an interval, until neighbouring numbers are left


@dataclass(frozen=True)
class Levels:
    """How probability is cut into parts.

    Attributes
    ----------
    count
        How many parts there are.
    smooth
        Whether parts are finer towards both ends, where quantile functions rise steeply, and functions are put together
        again between the means, as in all sketches. Otherwise parts have equal probability, as in label terms.

    Examples
    --------
    >>> from sotdd.sketches.quantiles import Levels
    >>> Levels(4, smooth=False).edges.tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    >>> Levels(4).edges.round(3).tolist()
    [0.0, 0.118, 0.5, 0.882, 1.0]
    """

    count: int
    smooth: bool = True

    @property
    def edges(self) -> NDArray[np.float64]:
        """(count + 1,) where parts begin and end, from 0 to 1."""
        return _compute_edges(self.count, self.smooth)

    @property
    def shares(self) -> NDArray[np.float64]:
        """(count,) the probability of each part."""
        return np.diff(self.edges)

    def means(self, rows: NDArray[np.float32], places: NDArray[np.float64] | None = None) -> NDArray[np.float32]:
        """Means (B, count) over the parts of ascending rows (B, n), of points or of parts with edges ``places``."""
        from sotdd.compute.kernels.quantiles import part_means

        out = np.empty((len(rows), self.count), np.float32)
        part_means(rows, place_points(rows.shape[1]) if places is None else places, self.edges, out)
        return out


def check_quantiles(n_quantiles: object) -> Levels:
    """Return the levels of this many quantiles, or refuse."""
    return Levels(check_count(n_quantiles, "n_quantiles", MOST_QUANTILES))


def place_points(count: int) -> NDArray[np.float64]:
    """(count + 1,) where sorted points begin and end on the scale of probability."""
    return np.arange(count + 1) / count


@lru_cache(maxsize=64)
def _compute_edges(count: int, smooth: bool) -> NDArray[np.float64]:
    wanted = place_points(count)
    if smooth:
        from scipy.special import ndtr

        low, high = np.full(count + 1, -_REACH), np.full(count + 1, _REACH)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            reached = (ndtr(middle) + (middle + _REACH) / (2 * _REACH)) / 2 < wanted
            low, high = np.where(reached, middle, low), np.where(reached, high, middle)
        wanted = ndtr(low)
        wanted[0], wanted[-1] = 0.0, 1.0
    wanted.flags.writeable = False
    return wanted
