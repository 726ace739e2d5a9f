"""Maximum mean discrepancy: how far apart the means of a Gaussian kernel are (Gretton et al., 2012)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sotdd.basics.checks import check_positive
from sotdd.basics.errors import SotddError
from sotdd.basics.progress import Report
from sotdd.engines.cpu.workers import Workers
from sotdd.inputs.data import LabelledData
from sotdd.peers.call import Distances, Pairs, peer
from sotdd.peers.loading import Loaded
from sotdd.peers.points import Doubles, Points, costs
from sotdd.projections.scaler import Scale


@peer
def mmd(
    datasets: Sequence[LabelledData],
    pairs: Pairs,
    report: Report,
    *,
    scale: Scale = None,
    seed: int = 0,
    bandwidth: float | None = None,
    max_points: int | None = None,
) -> Distances:
    """Maximum mean discrepancy of the features with a Gaussian kernel; labels are ignored.

    The value is the root of the biased estimate, which is zero between a dataset and itself.

    Parameters
    ----------
    a, b, scale, seed, max_points
        As in `otdd`.
    bandwidth
        The width of the kernel, in units of the features; None for the median distance within a sample of
        all points.

    Examples
    --------
    >>> import sotdd
    >>> sotdd.peers.mmd([[0.0]], [[1.0]], bandwidth=1.0)
    0.8871 (MMD, bandwidth 1, p=2)
    """
    loaded = Loaded.of(datasets, scale=scale, seed=seed, max_points=max_points)
    if bandwidth is None:
        width = _median_distance(loaded.points, seed)
    else:
        width = check_positive(bandwidth, "bandwidth", "a positive number, in units of the features")
    if not 1e-120 < width < 1e120:
        raise SotddError(f"bandwidth is {width:.3g}, whose square leaves float64: scale the features.")
    own = [_mean_kernel(points.features, points.features, width) for points in loaded.points]
    distances = {}
    for done, (i, j) in enumerate(pairs, 1):
        across = _mean_kernel(loaded.points[i].features, loaded.points[j].features, width)
        value = math.sqrt(max(0.0, own[i] + own[j] - 2 * across))
        distances[i, j] = loaded.distance((i, j), value, f"MMD, bandwidth {width:.4g}")
        report(done, len(pairs))
    return distances


def _median_distance(points: Sequence[Points], seed: int, most: int = 1000) -> float:
    """The usual bandwidth: the median distance within a sample of all points; 1 if that is 0."""
    share = -(-most // len(points))  # of each dataset, so that their order does not matter
    rows = [np.random.default_rng(seed).permutation(len(part))[:share] for part in points]
    sample = np.concatenate([part.features[chosen] for part, chosen in zip(points, rows, strict=True)])
    distances = np.sqrt(costs(sample, sample, 2))
    upper = distances[np.triu_indices(len(sample), 1)]
    return float(np.median(upper)) if upper.size and np.median(upper) > 0 else 1.0


def _mean_kernel(a: Doubles, b: Doubles, bandwidth: float, rows: int = 512) -> float:
    """Mean of exp(−|x − x'|² / 2h²) over all pairs of points, a block of rows at a time."""
    blocks = [a[start : start + rows] for start in range(0, len(a), rows)]
    with Workers() as workers:
        sums = workers.each(lambda part: float(np.sum(np.exp(costs(part, b, 2) / (-2 * bandwidth**2)))), blocks)
    return math.fsum(sums) / (len(a) * len(b))
