"""The plots that results draw, by name. Importing this module imports matplotlib."""

from __future__ import annotations

from sotdd.pictures.distance_plots import draw_distance
from sotdd.pictures.feature_plots import draw_features
from sotdd.pictures.heat_maps import draw_explanation, draw_matrix
from sotdd.pictures.matrix_plots import draw_dendrogram, draw_map

__all__ = ["draw_dendrogram", "draw_distance", "draw_explanation", "draw_features", "draw_map", "draw_matrix"]
