"""How far apart are labelled datasets? The sliced optimal transport dataset distance.

>>> import numpy as np, sotdd
>>> rng = np.random.default_rng(0)
>>> a = rng.normal(size=(200, 4)), rng.integers(3, size=200)
>>> b = rng.normal(size=(300, 4)), rng.choice(["cat", "dog"], size=300)
>>> sotdd.distance(a, b)
0.09546 ± 0.00044 (s-OTDD, p=2, 1,000 projections)
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from sotdd import projections
from sotdd.catalog.catalog import Catalog
from sotdd.data import LabelledData
from sotdd.distance import distance
from sotdd.drift import DriftReference
from sotdd.errors import SotddError
from sotdd.explain import explain
from sotdd.explanation import Explanation
from sotdd.flow import flow
from sotdd.flow_result import Flow
from sotdd.inputs import open_dataset
from sotdd.matrix import DistanceMatrix
from sotdd.noise import NoiseFloor
from sotdd.pairwise import pairwise
from sotdd.paper import paper
from sotdd.permutation import test
from sotdd.projections import (
    ClassQuantiles,
    Convolution,
    Moments,
    Orthogonal,
    Projections,
    Sphere,
    UniformOrders,
    ZeroTruncatedPoisson,
)
from sotdd.report import report
from sotdd.result import Distance
from sotdd.run_length import DriftMonitor
from sotdd.scaling import Scaler, ScaleStatistics
from sotdd.sketches.builder import SketchBuilder
from sotdd.sketches.making import sketch
from sotdd.sketches.sketch import Sketch
from sotdd.sketches.statistics import ClassStatistics
from sotdd.sketches.streaming import sketch_stream
from sotdd.span import Span, onto_span
from sotdd.two_sample import TwoSampleTest
from sotdd.version import __version__

if TYPE_CHECKING:
    from sotdd import cluster, peers, torch

__all__ = [
    "Catalog",
    "ClassQuantiles",
    "ClassStatistics",
    "Convolution",
    "Distance",
    "DistanceMatrix",
    "DriftMonitor",
    "DriftReference",
    "Explanation",
    "Flow",
    "LabelledData",
    "Moments",
    "NoiseFloor",
    "Orthogonal",
    "Projections",
    "ScaleStatistics",
    "Scaler",
    "Sketch",
    "SketchBuilder",
    "SotddError",
    "Span",
    "Sphere",
    "TwoSampleTest",
    "UniformOrders",
    "ZeroTruncatedPoisson",
    "__version__",
    "cluster",
    "distance",
    "explain",
    "flow",
    "onto_span",
    "open_dataset",
    "pairwise",
    "paper",
    "peers",
    "projections",
    "report",
    "sketch",
    "sketch_stream",
    "test",
    "torch",
]


def __getattr__(name: str) -> ModuleType:
    """Load what needs the compiled loops when it is first used."""
    if name in {"cluster", "peers", "torch"}:
        return import_module(f"sotdd.{name}")
    raise AttributeError(f"module 'sotdd' has no attribute {name!r}")
