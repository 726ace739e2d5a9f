"""The label law of methods that ignore labels, or have put them among the features."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sotdd.projections.moments import Polynomials


class FeaturesOnly:
    """A label law without labels: the distance is sliced Wasserstein on the features."""

    def describe(self) -> Mapping[str, object]:
        """Name the law."""
        return {"law": "features only"}

    def draw(self, rng: np.random.Generator, n_projections: int) -> Polynomials:  # nothing is random
        """Weight one for the feature, the zero polynomial for the label."""
        return Polynomials(np.ones(n_projections), np.zeros((n_projections, 1)))
