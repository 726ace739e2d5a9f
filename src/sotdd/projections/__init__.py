"""Laws of directions, of moment orders and of labels, and the recipe made of them."""

from sotdd.projections.convolution import Convolution, Layer
from sotdd.projections.directions import DirectionLaw, Directions, Hadamard, Orthogonal, PointMap, Sphere, Tilted
from sotdd.projections.labels import ClassQuantiles, ClassSummary, LabelLaw, Quantiles, Summaries
from sotdd.projections.moments import Moments, Polynomials, UniformOrders, ZeroTruncatedPoisson
from sotdd.projections.recipe import Projections
from sotdd.projections.turns import TurnedDirections

__all__ = [
    "ClassQuantiles",
    "ClassSummary",
    "Convolution",
    "DirectionLaw",
    "Directions",
    "Hadamard",
    "LabelLaw",
    "Layer",
    "Moments",
    "Orthogonal",
    "PointMap",
    "Polynomials",
    "Projections",
    "Quantiles",
    "Sphere",
    "Summaries",
    "Tilted",
    "TurnedDirections",
    "UniformOrders",
    "ZeroTruncatedPoisson",
]
