"""Data as people have it, opened as labelled datasets."""

from sotdd.inputs.opening import name_sources, open_all, open_dataset, open_pair

__all__ = ["name_sources", "open_all", "open_dataset", "open_pair"]
