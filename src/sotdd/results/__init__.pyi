from .distance import Distance as Distance
from .explanation import Explanation as Explanation
from .flow import Flow as Flow
from .matrix import DistanceMatrix as DistanceMatrix
from .noise import NoiseFloor as NoiseFloor
from .ranking import Ranked as Ranked
from .ranking import Ranking as Ranking
from .two_sample import TwoSampleTest as TwoSampleTest
