"""Distances of the features alone: Fréchet (Heusel et al., 2017), sliced Wasserstein, MMD (Gretton et al., 2012)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sotdd.basics.errors import SotddError, check_positive
from sotdd.basics.remarks import join_remarks
from sotdd.basics.resources import Report, Workers
from sotdd.compute.comparison import compare
from sotdd.inputs.data import LabelledData, same_features
from sotdd.peers.points import (
    Distances,
    Doubles,
    Measured,
    Pairs,
    PointSets,
    peer,
    point_costs,
    remarks_on,
)
from sotdd.projections.directions import Law
from sotdd.projections.labels import Polynomials
from sotdd.projections.scaler import Scale, Scaler, find_scaler
from sotdd.projections.settings import ProjectionSettings


@peer
def frechet(
    datasets: Sequence[LabelledData],
    pairs: Pairs,
    report: Report,
    *,
    scale: Scale = None,
    seed: int = 0,
    max_points: int | None = None,
) -> Distances:
    """Fréchet distance of Gaussians fitted to the features; labels are ignored.

    On Inception features its square is known as FID.

    Parameters
    ----------
    a, b, scale, seed, max_points
        As in `otdd`.

    Examples
    --------
    >>> import sotdd
    >>> sotdd.peers.frechet([[0.0], [2.0]], [[3.0], [5.0]])
    3 (Fréchet, p=2)
    """
    loaded = PointSets.load(datasets, scale=scale, seed=seed, max_points=max_points)
    fitted = [Gaussian.fit(points.rows(slice(None))) for points in loaded.points]
    return loaded.measure(
        pairs, report, "Fréchet", lambda i, j: Measured(math.sqrt(fitted[i].squared_distance(fitted[j])))
    )


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A mean and a covariance, which is kept as a factor of it: singular covariances need no special case."""

    mean: Doubles  # (d,)
    factor: Doubles  # (r, d), r = min(n, d): the covariance is factorᵀ factor

    @classmethod
    def fit(cls, features: Doubles) -> Gaussian:
        """Mean and covariance of points (n, d), each with weight 1/n."""
        mean = features.mean(axis=0)
        centred = (features - mean) / np.sqrt(len(features))
        if centred.shape[0] > centred.shape[1]:
            centred = np.linalg.qr(centred, mode="r")
        return cls(mean, centred)

    def squared_distance(self, other: Gaussian) -> float:
        """Bures–Wasserstein: |m − m'|² + tr C + tr C' − 2 tr (C^½ C' C^½)^½.

        The last trace is the sum of the singular values of F F'ᵀ, so no matrix root is taken.
        """
        gap = self.mean - other.mean
        traces = float(np.sum(self.factor**2) + np.sum(other.factor**2))
        shared = float(np.sum(np.linalg.svd(self.factor @ other.factor.T, compute_uv=False)))
        return max(0.0, float(gap @ gap) + traces - 2 * shared)


@peer
def sliced_wasserstein(
    datasets: Sequence[LabelledData],
    pairs: Pairs,
    report: Report,
    *,
    p: float = 2,
    n_projections: int = 1000,
    scale: Scale = None,
    seed: int = 0,
) -> Distances:
    """Sliced Wasserstein distance of the features; labels are ignored.

    Parameters
    ----------
    a, b, p, n_projections, seed
        As in `sotdd.distance`.
    scale
        As in `otdd`: None for features as they are.

    Examples
    --------
    >>> import sotdd
    >>> sotdd.peers.sliced_wasserstein([[0.0], [2.0]], [[3.0], [5.0]]).value
    3.0
    """
    same_features(datasets)
    scaler = find_scaler(scale, list(datasets))
    drawing = ProjectionSettings(n_projections=n_projections, scale=scaler, seed=seed)
    return slice_pairs(datasets, datasets, pairs, report, p, drawing, scaler, "sliced Wasserstein")


def slice_pairs(
    datasets: Sequence[LabelledData],
    projected: Sequence[LabelledData],
    pairs: Pairs,
    report: Report,
    p: float,
    drawing: ProjectionSettings,
    scaler: Scaler | None,
    method: str,
) -> Distances:
    """Distances through projections of what ``projected`` holds for each dataset, labels left out."""
    projections = replace(drawing, label_law=FeaturesOnly()).fit(projected)
    by_engine = compare(projected, pairs, projections, p, report, method=method)
    distances = {}
    for (i, j), distance in by_engine.items():
        pair = datasets[i], datasets[j]
        remarks = remarks_on(pair, (projected[i].n_points, projected[j].n_points), scaler)
        distances[i, j] = replace(
            distance,
            classes=(pair[0].classes, pair[1].classes),
            scaler=scaler,
            columns=pair[0].columns or pair[1].columns,
            remarks=join_remarks(remarks, distance.remarks),
        )
    return distances


@dataclass(frozen=True)
class FeaturesOnly(Law, name="features only"):
    """A label law without labels: the distance is sliced Wasserstein on the features."""

    def draw(self, rng: np.random.Generator, n_projections: int) -> Polynomials:  # nothing is random
        """Weight one for the feature, the zero polynomial for the label."""
        return Polynomials(np.ones(n_projections), np.zeros((n_projections, 1)))


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
    loaded = PointSets.load(datasets, scale=scale, seed=seed, max_points=max_points)
    features = [points.rows(slice(None)) for points in loaded.points]
    if bandwidth is None:
        width = _median_distance(features, seed)
    else:
        width = check_positive(bandwidth, "bandwidth", "a positive number, in units of the features")
    if not 1e-120 < width < 1e120:
        raise SotddError(f"is {width:.3g}, whose square leaves float64: scale the features.", setting="bandwidth")
    own = [_mean_kernel(points, points, width) for points in features]

    def between(i: int, j: int) -> Measured:
        return Measured(math.sqrt(max(0.0, own[i] + own[j] - 2 * _mean_kernel(features[i], features[j], width))))

    return loaded.measure(pairs, report, f"MMD, bandwidth {width:.4g}", between)


def _median_distance(points: Sequence[Doubles], seed: int, most: int = 1000) -> float:
    """The usual bandwidth: the median distance within a sample of all points; 1 if that is 0."""
    share = -(-most // len(points))  # of each dataset, so that their order does not matter
    rows = [np.random.default_rng(seed).permutation(len(part))[:share] for part in points]
    sample = np.concatenate([part[chosen] for part, chosen in zip(points, rows, strict=True)])
    distances = np.sqrt(point_costs(sample, sample, 2))
    upper = distances[np.triu_indices(len(sample), 1)]
    return float(np.median(upper)) if upper.size and np.median(upper) > 0 else 1.0


def _mean_kernel(a: Doubles, b: Doubles, bandwidth: float, rows: int = 512) -> float:
    """Mean of exp(−|x − x'|² / 2h²) over all pairs of points, a block of rows at a time."""
    blocks = [a[start : start + rows] for start in range(0, len(a), rows)]
    with Workers() as workers:
        sums = workers.each(lambda part: float(np.sum(np.exp(point_costs(part, b, 2) / (-2 * bandwidth**2)))), blocks)
    return math.fsum(sums) / (len(a) * len(b))
