"""Sketches made where the data are, by the workers of a Dask cluster."""

from sotdd.sketches.cluster.sketching import sketch

__all__ = ["sketch"]
