"""Plots of results, and the report page. Results call the plots through `sotdd.measure.drawing`."""
