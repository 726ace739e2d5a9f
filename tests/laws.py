"""A law that several test files use: one that a user might write."""

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
    def summary(values, parameters):
        return parameters[:, 0] * np.median(values, axis=1)
