"""Laws of directions, of moment orders and of labels, and the projections that are sampled from them."""

from sotdd.projections.convolution import Convolution, Layer
from sotdd.projections.directions import DirectionLaw, Hadamard, ImportanceSampled, Orthogonal, Sphere
from sotdd.projections.label_laws import ClassQuantiles, ClassSummary, LabelLaw, Quantiles, Summaries
from sotdd.projections.labels import LabelTerms, Moments, Polynomials, UniformOrders, ZeroTruncatedPoisson
from sotdd.projections.maps import Directions, PointMap
from sotdd.projections.projections import Projections
from sotdd.projections.rotations import HadamardDirections

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
