"""Label laws that were tried beside those of the package, written as a user would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.projections import ClassSummary, Summaries

Values = NDArray[np.float32]  # (B, m) projected points of one class
Drawn = NDArray[np.float64]  # (B, q)


@dataclass(frozen=True)
class Candidate:
    """Weight one for the feature; for the class a function of its points and of q drawn numbers.

    The first ``spherical`` numbers are drawn on the sphere of radius √spherical, so that each has
    mean square one; then come ``normal`` Gaussian and ``uniform`` uniform numbers. The term is
    multiplied by ``weight``.
    """

    name: str
    function: ClassSummary
    spherical: int = 1
    normal: int = 0
    uniform: int = 0
    weight: float = 1.0

    def describe(self) -> Mapping[str, object]:
        """Name the law."""
        return {"law": self.name, "weight": self.weight}

    def draw(self, rng: np.random.Generator, n_projections: int) -> Summaries:
        """Draw the numbers that the function takes."""
        sphere = rng.standard_normal((n_projections, self.spherical))
        sphere *= self.weight * np.sqrt(self.spherical) / np.linalg.norm(sphere, axis=1, keepdims=True)
        others = rng.standard_normal((n_projections, self.normal)), rng.random((n_projections, self.uniform))
        return Summaries(np.ones(n_projections), np.concatenate([sphere, *others], axis=1), self.function)


def centroid(values: Values, drawn: Drawn) -> Drawn:
    """± the mean of the class: its mean square is the squared difference of means."""
    return drawn[:, 0] * values.mean(axis=1)


def mean_and_deviation(values: Values, drawn: Drawn) -> Drawn:
    """Mean and standard deviation: the mean square is W_2² between Gaussians fitted to the classes."""
    return drawn[:, 0] * values.mean(axis=1) + drawn[:, 1] * values.std(axis=1)


def rooted_moments(values: Values, drawn: Drawn) -> Drawn:
    """Mean and central moments of orders 2 to 4, each rooted so that it has the unit of the features."""
    mean = values.mean(axis=1, dtype=np.float64)
    apart = values - mean[:, None].astype(np.float32)
    squares = apart * apart
    central = [np.mean(power, axis=1) for power in (squares, squares * apart, squares * squares)]
    rooted = [np.sign(m) * np.abs(m) ** (1 / order) for order, m in zip((2, 3, 4), central, strict=True)]
    return np.einsum("bk,kb->b", drawn, np.stack([mean, *rooted]))


def cosine(values: Values, drawn: Drawn) -> Drawn:
    """√2 cos(ω t + b): the mean square is the squared MMD with a Gaussian kernel. Bounded; sums merge."""
    angles = values * drawn[:, 1:2] + 2 * np.pi * drawn[:, 2:3]
    return drawn[:, 0] * np.sqrt(2) * np.cos(angles).mean(axis=1)


def ramp(values: Values, drawn: Drawn) -> Drawn:
    """Tanh(t − τ), τ Gaussian: between a mean and a threshold. Bounded; sums merge."""
    return drawn[:, 0] * np.tanh(values - drawn[:, 1:2]).mean(axis=1)


CENTROID = Candidate("class means", centroid)
GAUSSIAN = Candidate("class means and deviations", mean_and_deviation, spherical=2)
ROOTED = Candidate("class means and rooted central moments", rooted_moments, spherical=4)
COSINE = Candidate("cosines", cosine, normal=1, uniform=1)
RAMP = Candidate("ramps", ramp, normal=1)
