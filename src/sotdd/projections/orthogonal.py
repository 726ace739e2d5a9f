"""Directions that are orthogonal to their neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from sotdd.basics.checks import check_draw
from sotdd.projections.directions import Directions
from sotdd.projections.restorable import Settings


@dataclass(frozen=True)
class Orthogonal:
    """Directions uniform on the sphere that are orthogonal to their neighbours.

    Every draw is cut into blocks of at most ``n_features`` rows, each the first rows of a
    Haar-distributed rotation: every single direction is exactly uniform, and together they
    cover the sphere more evenly than independent ones.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> theta = sotdd.Orthogonal().draw(np.random.default_rng(0), 3, 3).theta
    >>> bool(np.allclose(theta @ theta.T, np.eye(3)))
    True
    """

    law: ClassVar[str] = "orthogonal"

    def describe(self) -> Mapping[str, object]:
        """Name the law."""
        return {"law": self.law}

    @classmethod
    def restore(cls, _settings: Settings) -> Self:
        """Make the law again from its description."""
        return cls()

    def draw(self, rng: np.random.Generator, n_projections: int, n_features: int) -> Directions:
        """Orthonormalise Gaussian blocks; the signs of R make the factor Haar (Mezzadri 2007)."""
        check_draw(rng, n_projections, n_features)
        blocks = []
        for start in range(0, n_projections, n_features):
            rows = min(n_features, n_projections - start)
            basis, triangle = np.linalg.qr(rng.standard_normal((rows, n_features)).T)
            signs = np.where(np.diagonal(triangle) < 0, -1.0, 1.0)
            blocks.append((basis * signs).T)
        return Directions(np.concatenate(blocks))
