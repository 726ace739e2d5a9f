"""Sketches made by the workers of a Dask cluster, where the data are."""

from sotdd.sketches.cluster.sketching import sketch

__all__ = ["sketch"]
