"""What is left of a correlation when a third quantity is held fixed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from experiments.correlate import Correlation

_RESAMPLES = 2000


def partial_spearman(x: ArrayLike, y: ArrayLike, given: ArrayLike, seed: int = 0) -> Correlation:
    """Spearman's ρ of x and y given a third, with a percentile interval by bootstrap over the points.

    Ranks of x and y, each less what a straight line in the ranks of the third says of it, are correlated.

    Examples
    --------
    >>> import numpy as np
    >>> z = np.arange(50.0)
    >>> wave = np.sin(z)
    >>> bool(partial_spearman(z + wave, z - wave, z).value < -0.5)
    True
    """
    columns = np.stack([np.asarray(part, float) for part in (x, y, given)])
    drawn = np.random.default_rng(seed).integers(columns.shape[1], size=(_RESAMPLES, columns.shape[1]))
    samples = _partial(columns[:, drawn])
    low, high = np.nanpercentile(samples, [2.5, 97.5]) if np.isfinite(samples).any() else (np.nan, np.nan)
    return Correlation(float(_partial(columns[:, None])[0]), float(low), float(high))


def _partial(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of (3, samples, points): one coefficient per sample."""
    ranks = rankdata(columns, axis=2)
    ranks = ranks - ranks.mean(axis=2, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        norms = np.sqrt(np.sum(ranks**2, axis=2))
        xy, xz, yz = (np.sum(ranks[a] * ranks[b], axis=1) / (norms[a] * norms[b]) for a, b in ((0, 1), (0, 2), (1, 2)))
        found: NDArray[np.float64] = (xy - xz * yz) / np.sqrt((1 - xz**2) * (1 - yz**2))
    return found
