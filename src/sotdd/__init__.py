"""How far apart are labelled datasets? The sliced optimal transport dataset distance.

>>> import numpy as np, sotdd
>>> rng = np.random.default_rng(0)
>>> a = rng.normal(size=(200, 4)), rng.integers(3, size=200)
>>> b = rng.normal(size=(300, 4)), rng.choice(["cat", "dog"], size=300)
>>> sotdd.distance(a, b)
0.09546 ± 0.00044 (s-OTDD, p=2, 1,000 projections)
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sotdd.basics.errors import SotddError
from sotdd.basics.version import __version__

if TYPE_CHECKING:
    from sotdd import cluster, peers, projections, torch
    from sotdd.gradients.flow import flow
    from sotdd.inputs import open_dataset
    from sotdd.inputs.data import LabelledData
    from sotdd.measure.distance import distance, paper
    from sotdd.measure.drift import DriftReference
    from sotdd.measure.drift_monitor import DriftMonitor
    from sotdd.measure.explain import explain
    from sotdd.measure.pairwise import pairwise, rank
    from sotdd.measure.permutation import test
    from sotdd.pictures.report import report
    from sotdd.projections import (
        ClassQuantiles,
        Convolution,
        Hadamard,
        Moments,
        Orthogonal,
        Projections,
        Sphere,
        UniformOrders,
        ZeroTruncatedPoisson,
    )
    from sotdd.projections.scale_statistics import ScaleStatistics
    from sotdd.projections.scaler import Scaler
    from sotdd.results.distance import Distance
    from sotdd.results.explanation import Explanation
    from sotdd.results.flow import Flow
    from sotdd.results.matrix import DistanceMatrix
    from sotdd.results.noise import NoiseFloor
    from sotdd.results.ranking import Ranked, Ranking
    from sotdd.results.two_sample import TwoSampleTest
    from sotdd.sketches.builder import SketchBuilder
    from sotdd.sketches.catalog.catalog import Catalog
    from sotdd.sketches.making import sketch, sketch_stream
    from sotdd.sketches.private import PrivateBuilder
    from sotdd.sketches.sketch import Sketch
    from sotdd.sketches.statistics import ClassStatistics
    from sotdd.sketches.window import SketchWindow

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
    "Hadamard",
    "LabelledData",
    "Moments",
    "NoiseFloor",
    "Orthogonal",
    "PrivateBuilder",
    "Projections",
    "Ranked",
    "Ranking",
    "ScaleStatistics",
    "Scaler",
    "Sketch",
    "SketchBuilder",
    "SketchWindow",
    "SotddError",
    "Sphere",
    "TwoSampleTest",
    "UniformOrders",
    "ZeroTruncatedPoisson",
    "__version__",
    "cluster",
    "distance",
    "explain",
    "flow",
    "open_dataset",
    "pairwise",
    "paper",
    "peers",
    "projections",
    "rank",
    "report",
    "sketch",
    "sketch_stream",
    "test",
    "torch",
]

# Where the public names live. Each is loaded when it is first used, so that importing takes no time, and the command
# line can answer an interruption, or a lack of memory, in one line from its beginning.
_HOMES = {
    "flow": "sotdd.gradients.flow",
    "open_dataset": "sotdd.inputs",
    "LabelledData": "sotdd.inputs.data",
    "distance": "sotdd.measure.distance",
    "DriftReference": "sotdd.measure.drift",
    "DriftMonitor": "sotdd.measure.drift_monitor",
    "explain": "sotdd.measure.explain",
    "pairwise": "sotdd.measure.pairwise",
    "paper": "sotdd.measure.distance",
    "test": "sotdd.measure.permutation",
    "rank": "sotdd.measure.pairwise",
    "report": "sotdd.pictures.report",
    "ClassQuantiles": "sotdd.projections",
    "Convolution": "sotdd.projections",
    "Hadamard": "sotdd.projections",
    "Moments": "sotdd.projections",
    "Orthogonal": "sotdd.projections",
    "Projections": "sotdd.projections",
    "Sphere": "sotdd.projections",
    "UniformOrders": "sotdd.projections",
    "ZeroTruncatedPoisson": "sotdd.projections",
    "ScaleStatistics": "sotdd.projections.scale_statistics",
    "Scaler": "sotdd.projections.scaler",
    "Distance": "sotdd.results.distance",
    "Explanation": "sotdd.results.explanation",
    "Flow": "sotdd.results.flow",
    "DistanceMatrix": "sotdd.results.matrix",
    "NoiseFloor": "sotdd.results.noise",
    "Ranked": "sotdd.results.ranking",
    "Ranking": "sotdd.results.ranking",
    "TwoSampleTest": "sotdd.results.two_sample",
    "SketchBuilder": "sotdd.sketches.builder",
    "SketchWindow": "sotdd.sketches.window",
    "Catalog": "sotdd.sketches.catalog.catalog",
    "sketch": "sotdd.sketches.making",
    "PrivateBuilder": "sotdd.sketches.private",
    "Sketch": "sotdd.sketches.sketch",
    "ClassStatistics": "sotdd.sketches.statistics",
    "sketch_stream": "sotdd.sketches.making",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401  # functions, classes and modules
    """Load what is first used."""
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    if not name.startswith("_") and find_spec(f"sotdd.{name}") is not None:
        return import_module(f"sotdd.{name}")
    raise AttributeError(f"module 'sotdd' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted({*globals(), *__all__})
