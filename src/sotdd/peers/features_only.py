"""Points of reference that every user knows: distances of the features, labels ignored."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sotdd.basics.checks import check_positive
from sotdd.basics.errors import SotddError
from sotdd.basics.progress import Report
from sotdd.engines.cpu.workers import Workers
from sotdd.inputs.data import LabelledData, same_features
from sotdd.peers.common import Found, Pairs, load, plain, sliced
from sotdd.peers.label_distances import Gaussian
from sotdd.peers.points import Doubles, Points, costs
from sotdd.projections.scaler import Scale, scaler_for


def sliced_wasserstein(
    datasets: Sequence[LabelledData],
    pairs: Pairs,
    report: Report,
    *,
    n_projections: int = 1000,
    p: float = 2,
    scale: Scale = None,
    seed: int = 0,
) -> Found:
    """Sliced Wasserstein on the features alone."""
    same_features(datasets)
    scaler = scaler_for(scale, list(datasets))
    return sliced(
        datasets, datasets, datasets, pairs, report, p, scaler, "sliced Wasserstein",
        n_projections=n_projections, seed=seed, scale=scaler,
    )  # fmt: skip


def frechet(
    datasets: Sequence[LabelledData],
    pairs: Pairs,
    report: Report,
    *,
    max_samples: int | None = None,
    scale: Scale = None,
    seed: int = 0,
) -> Found:
    """Fréchet distance of Gaussians fitted to the features alone."""
    points, scaler = load(datasets, scale, max_samples, seed)
    fitted = [Gaussian.fit(data.features) for data in points]
    found = {}
    for done, (i, j) in enumerate(pairs, 1):
        value = math.sqrt(fitted[i].squared_distance(fitted[j]))
        found[i, j] = plain(datasets, points, (i, j), value, "Fréchet", scaler)
        report(done, len(pairs))
    return found


def mmd(
    datasets: Sequence[LabelledData],
    pairs: Pairs,
    report: Report,
    *,
    bandwidth: float | None = None,
    max_samples: int | None = None,
    scale: Scale = None,
    seed: int = 0,
) -> Found:
    """Maximum mean discrepancy of the features alone, with a Gaussian kernel."""
    points, scaler = load(datasets, scale, max_samples, seed)
    given = None if bandwidth is None else check_positive(bandwidth, "bandwidth", "a positive number, as features are")
    width = _median_distance(points, seed) if given is None else given
    if not 1e-120 < width < 1e120:
        raise SotddError(f"bandwidth is {width:.3g}, whose square leaves float64: scale the features.")
    own = [_mean_kernel(data.features, data.features, width) for data in points]
    found = {}
    for done, (i, j) in enumerate(pairs, 1):
        square = own[i] + own[j] - 2 * _mean_kernel(points[i].features, points[j].features, width)
        value = math.sqrt(max(0.0, square))
        found[i, j] = plain(datasets, points, (i, j), value, f"MMD, bandwidth {width:.4g}", scaler)
        report(done, len(pairs))
    return found


def _median_distance(points: Sequence[Points], seed: int, most: int = 1000) -> float:
    """The usual bandwidth: the median distance among a sample of all points."""
    share = -(-most // len(points))  # of each dataset, so that their order does not matter
    rows = [np.random.default_rng(seed).permutation(len(data))[:share] for data in points]
    sample = np.concatenate([data.features[chosen] for data, chosen in zip(points, rows, strict=True)])
    distances = np.sqrt(costs(sample, sample, 2))
    upper = distances[np.triu_indices(len(sample), 1)]
    return float(np.median(upper)) if upper.size and np.median(upper) > 0 else 1.0


def _mean_kernel(a: Doubles, b: Doubles, bandwidth: float, rows: int = 512) -> float:
    """Mean of exp(−|x − x'|² / 2h²) over all pairs, a block of rows at a time."""
    blocks = [a[start : start + rows] for start in range(0, len(a), rows)]
    with Workers() as workers:
        sums = workers.each(lambda part: float(np.sum(np.exp(costs(part, b, 2) / (-2 * bandwidth**2)))), blocks)
    return math.fsum(sums) / (len(a) * len(b))
