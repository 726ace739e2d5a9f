"""Distances that torch can differentiate, and datasets that move down their slope."""
