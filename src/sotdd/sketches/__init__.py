"""Sketches of datasets: made once, then merged, saved, searched and compared without the data."""
