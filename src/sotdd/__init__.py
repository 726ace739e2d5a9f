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
from sotdd.data import LabelledData
from sotdd.distance import distance
from sotdd.errors import SotddError
from sotdd.flow import flow
from sotdd.flow_result import Flow
from sotdd.matrix import DistanceMatrix
from sotdd.pairwise import pairwise
from sotdd.projections import (
    Convolution,
    Moments,
    Orthogonal,
    Projections,
    Sphere,
    UniformOrders,
    ZeroTruncatedPoisson,
)
from sotdd.result import Distance
from sotdd.scaling import Scaler
from sotdd.span import Span, onto_span

if TYPE_CHECKING:
    from sotdd import peers, torch

__version__ = "0.1.0"

__all__ = [
    "Convolution",
    "Distance",
    "DistanceMatrix",
    "Flow",
    "LabelledData",
    "Moments",
    "Orthogonal",
    "Projections",
    "Scaler",
    "SotddError",
    "Span",
    "Sphere",
    "UniformOrders",
    "ZeroTruncatedPoisson",
    "__version__",
    "distance",
    "flow",
    "onto_span",
    "pairwise",
    "peers",
    "projections",
    "torch",
]


def __getattr__(name: str) -> ModuleType:
    """Load what needs the compiled loops when it is first used."""
    if name in {"peers", "torch"}:
        return import_module(f"sotdd.{name}")
    raise AttributeError(f"module 'sotdd' has no attribute {name!r}")
