"""What the calls return, in one place, for annotations; each class lives beside the call that makes it."""

from sotdd.compute.distance import Distance
from sotdd.compute.matrix import DistanceMatrix
from sotdd.compute.noise_floor import NoiseFloor
from sotdd.compute.ranking import Ranked, Ranking
from sotdd.drift.changes import Changes, ClassChange, ColumnChange
from sotdd.gradients.flow import Flow
from sotdd.measure.explanation.result import Explanation
from sotdd.measure.two_sample import TwoSampleTest

__all__ = [
    "Changes",
    "ClassChange",
    "ColumnChange",
    "Distance",
    "DistanceMatrix",
    "Explanation",
    "Flow",
    "NoiseFloor",
    "Ranked",
    "Ranking",
    "TwoSampleTest",
]
