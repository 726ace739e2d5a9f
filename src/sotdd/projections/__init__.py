"""Laws of directions, of moment orders and of labels, and the recipe made of them."""

from sotdd.projections.convolution import Convolution, Layer
from sotdd.projections.directions import DirectionLaw, Hadamard, Orthogonal, Sphere, Tilted
from sotdd.projections.labels import ClassQuantiles, LabelLaw
from sotdd.projections.maps import Directions, PointMap
from sotdd.projections.moments import Moments, UniformOrders, ZeroTruncatedPoisson
from sotdd.projections.recipe import Projections
from sotdd.projections.terms import ClassSummary, LabelTerms, Polynomials, Quantiles, Summaries
from sotdd.projections.turns import TurnedDirections

__all__ = [
    "ClassQuantiles",
    "ClassSummary",
    "Convolution",
    "DirectionLaw",
    "Directions",
    "Hadamard",
    "LabelLaw",
    "LabelTerms",
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
