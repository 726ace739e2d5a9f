"""Gaussians fitted to points, and the Fréchet distance of datasets (Heusel et al., 2017)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sotdd.basics.progress import Report
from sotdd.inputs.data import LabelledData
from sotdd.peers.call import Distances, Pairs, peer
from sotdd.peers.loading import Loaded
from sotdd.peers.points import Doubles
from sotdd.projections.scaler import Scale


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
    loaded = Loaded.of(datasets, scale=scale, seed=seed, max_points=max_points)
    fitted = [Gaussian.fit(points.features) for points in loaded.points]
    distances = {}
    for done, (i, j) in enumerate(pairs, 1):
        value = math.sqrt(fitted[i].squared_distance(fitted[j]))
        distances[i, j] = loaded.distance((i, j), value, "Fréchet")
        report(done, len(pairs))
    return distances


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
