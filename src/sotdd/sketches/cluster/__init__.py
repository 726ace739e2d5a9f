"""Sketches made where the data are, by the workers of a Dask cluster."""
