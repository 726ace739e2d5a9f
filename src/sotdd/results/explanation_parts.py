"""Features and labels: how much of what is beyond noise is due to each."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sotdd.results.distance import Distance

# Deviations of a two-sided interval of 95 %, and of a one-sided test at 5 %.
_TWO_SIDED = 1.96
_ONE_SIDED = 1.645


@dataclass(frozen=True)
class Parts:
    """How much of a distance beyond noise is due to features, and how much to labels.

    Attributes
    ----------
    features
        The share of the excess that is left when labels are forgotten; NaN where the whole is within noise.
    stderr
        Its standard error: over samples of these sizes, and over the choice of projections.
    whole_beyond, features_beyond, labels_beyond
        Whether the distance, what is left of it without labels, and what labels add are beyond noise.
    """

    features: float
    stderr: float
    whole_beyond: bool
    features_beyond: bool
    labels_beyond: bool

    @classmethod
    def of(cls, distance: Distance, unlabelled: Distance, resampled: NDArray[np.float64]) -> Parts:
        """Take the floors off a distance, and off the same with labels forgotten; see `Explanation.resampled`."""
        whole, features = _excess(distance), _excess(unlabelled)
        beyond = distance.within_noise is False and whole > 0
        if unlabelled is distance:  # there are no labels
            return cls(1.0 if beyond else math.nan, 0.0 if beyond else math.nan, beyond, beyond, False)
        share = features / whole if beyond else math.nan
        error = _error(distance, unlabelled, resampled, share) / whole if beyond else math.nan
        added = whole - features > _ONE_SIDED * _error(distance, unlabelled, resampled, 1.0)
        return cls(share, error, beyond, unlabelled.within_noise is False, beyond and added)

    @property
    def labels(self) -> float:
        """The share that labels add."""
        return 1.0 - self.features

    @property
    def features_interval(self) -> tuple[float, float]:
        """An interval of 95 % for the share of the features."""
        reach = _TWO_SIDED * self.stderr
        return self.features - reach, self.features + reach

    @property
    def labels_interval(self) -> tuple[float, float]:
        """The same for the share of the labels."""
        low, high = self.features_interval
        return 1.0 - high, 1.0 - low


def _excess(distance: Distance) -> float:
    """What is beyond the floor; what is below it is noise, and counts as nothing."""
    return max(distance.excess or 0.0, 0.0)


def _error(distance: Distance, unlabelled: Distance, resampled: NDArray[np.float64], share: float) -> float:
    """Standard error of unlabelled - share × distance, both to the power p: over samples, and over projections.

    What both have in common cancels: halves and projections are the same for both.
    """
    halves = resampled[1] - share * resampled[0]
    sampled = float(np.std(halves, ddof=1)) if len(halves) > 1 else 0.0
    a, b = distance.contributions, unlabelled.contributions
    if a is None or b is None or len(a) < 2:
        return sampled
    unit = float(np.abs(a).max()) or 1.0
    rest = (b - share * a) / unit
    return math.hypot(sampled, unit * float(np.std(rest, ddof=1)) / math.sqrt(len(rest)))
