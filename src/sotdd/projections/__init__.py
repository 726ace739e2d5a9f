"""Laws of directions, of moment orders and of labels, and the recipe made of them."""

from sotdd.projections.convolution import Convolution, Layer
from sotdd.projections.directions import DirectionLaw, Hadamard, ImportanceSampled, Orthogonal, Sphere
from sotdd.projections.labels import ClassQuantiles, LabelLaw
from sotdd.projections.maps import Directions, PointMap
from sotdd.projections.moments import Moments, UniformOrders, ZeroTruncatedPoisson
from sotdd.projections.recipe import Projections
from sotdd.projections.rotations import HadamardDirections
from sotdd.projections.terms import ClassSummary, LabelTerms, Polynomials, Quantiles, Summaries

__all__ = [
    "ClassQuantiles",
    "ClassSummary",
    "Convolution",
    "DirectionLaw",
    "Directions",
    "Hadamard",
    "HadamardDirections",
    "ImportanceSampled",
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
    "UniformOrders",
    "ZeroTruncatedPoisson",
]
