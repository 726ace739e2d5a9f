"""The results that calls return: frozen values that print and draw themselves."""

from sotdd.results.distance import Distance
from sotdd.results.explanation import Explanation
from sotdd.results.flow import Flow
from sotdd.results.matrix import DistanceMatrix
from sotdd.results.noise import NoiseFloor
from sotdd.results.ranking import Ranked, Ranking
from sotdd.results.two_sample import TwoSampleTest

__all__ = ["Distance", "DistanceMatrix", "Explanation", "Flow", "NoiseFloor", "Ranked", "Ranking", "TwoSampleTest"]
