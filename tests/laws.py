"""Laws that several test files use: such as a user might write."""

import numpy as np

from sotdd.projections import Summaries


class Medians:
    """A label law of one's own: a class is its median."""

    def describe(self):
        return {"law": "medians"}

    def draw(self, rng, n_projections):
        angle = rng.uniform(0, 2 * np.pi, n_projections)
        return Summaries(np.cos(angle), np.sin(angle)[:, None], self.summary)

    @staticmethod
    def summary(values, coefficients):
        return coefficients[:, 0] * np.median(values, axis=1)


class Circles:
    """A law that is not linear: distances from random centres (a spherical Radon transform)."""

    def __init__(self, spread=1.0):
        self.spread = spread

    def describe(self):
        return {"law": "circles", "spread": self.spread}

    def draw(self, rng, n_projections, n_features):
        centres = rng.normal(0, self.spread, size=(n_projections, n_features))
        return lambda points: np.linalg.norm(points[None] - centres[:, None], axis=2)
