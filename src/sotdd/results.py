"""What the calls return, in one place, for annotations; each class lives beside the call that makes it."""

from sotdd.compute.distance import Distance, NoiseFloor
from sotdd.compute.matrix import DistanceMatrix, Ranked, Ranking
from sotdd.compute.resampling import TooAlike
from sotdd.gradients.flow import Flow
from sotdd.measure.changes import Aspect, Changes, ClassChange, ColumnChange, CorrelationChange, TwoSampleTest
from sotdd.measure.copies import Copies
from sotdd.measure.explanation import Explanation
from sotdd.measure.mix import LeftOver, Mixture, SourceGroup

__all__ = [
    "Aspect",
    "Changes",
    "ClassChange",
    "ColumnChange",
    "Copies",
    "CorrelationChange",
    "Distance",
    "DistanceMatrix",
    "Explanation",
    "Flow",
    "LeftOver",
    "Mixture",
    "NoiseFloor",
    "Ranked",
    "Ranking",
    "SourceGroup",
    "TooAlike",
    "TwoSampleTest",
]
