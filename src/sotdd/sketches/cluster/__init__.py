"""Sketches made by the workers of a Dask cluster, where the data are."""
