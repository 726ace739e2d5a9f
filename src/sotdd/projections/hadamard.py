"""Directions by fast transforms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sotdd.basics.checks import check_draw
from sotdd.projections.directions import Directions, InSpace, Sphere
from sotdd.projections.turns import FEWEST_FEATURES, Turn, TurnedDirections, drawn_turn


@dataclass(frozen=True)
class Hadamard(InSpace):
    """Directions that stand in for those uniform on the sphere, projected along by fast Hadamard transforms.

    A turn of D ≥ d dimensions, a power of two, is a product of three Hadamard transforms and three rows of random
    signs. Its D rows, seen in the first d coordinates and brought to length one, are the directions. D projections of a
    point take about 3·D·log₂ D additions in place of 2·d·D operations: the more features, the more is saved. Distances
    agree with those of `Sphere` within its noise; see docs/decisions/0025-structured-directions.md. With fewer than
    128 features, where nothing would be saved, the directions are those of `Sphere`.

    Parameters
    ----------
    ambient
        As in `Sphere`.

    Examples
    --------
    >>> import numpy as np, sotdd
    >>> x = np.random.default_rng(0).normal(size=(200, 500))
    >>> fast = sotdd.distance(x, x + 0.1, directions=sotdd.Hadamard())
    >>> usual = sotdd.distance(x, x + 0.1, directions=sotdd.Sphere())
    >>> abs(fast.value - usual.value) < 4 * (fast.stderr + usual.stderr)
    True
    """

    law: ClassVar[str] = "hadamard"
    structured: ClassVar[bool] = True

    def draw(self, rng: np.random.Generator, n_projections: int, n_features: int) -> TurnedDirections | Directions:
        """Draw as many turns as it takes."""
        check_draw(rng, n_projections, n_features)
        if n_features < FEWEST_FEATURES:
            return Sphere(self.ambient).draw(rng, n_projections, n_features)
        return TurnedDirections.drawn(lambda: self.turn(rng, n_features), n_projections, n_features)

    def turn(self, rng: np.random.Generator, n_features: int) -> Turn:
        """Draw one turn."""
        self.check_space(n_features)
        return drawn_turn(rng, n_features, self.ambient)
