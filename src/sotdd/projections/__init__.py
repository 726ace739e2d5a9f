"""Laws of directions, of moment orders and of labels, and the recipe made of them."""

from sotdd.projections.convolution import Convolution, Layer
from sotdd.projections.directions import DirectionLaw, Directions, Orthogonal, PointMap, Sphere
from sotdd.projections.labels import ClassSummary, LabelLaw, LabelTerms, Moments
from sotdd.projections.moments import MomentLaw, UniformOrders, ZeroTruncatedPoisson
from sotdd.projections.recipe import Projections

__all__ = [
    "ClassSummary",
    "Convolution",
    "DirectionLaw",
    "Directions",
    "LabelLaw",
    "LabelTerms",
    "Layer",
    "MomentLaw",
    "Moments",
    "Orthogonal",
    "PointMap",
    "Projections",
    "Sphere",
    "UniformOrders",
    "ZeroTruncatedPoisson",
]
