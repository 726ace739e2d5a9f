"""Data as people have it, opened as labelled datasets."""

from sotdd.inputs.opening import open_dataset
from sotdd.inputs.several import labelled, labelled_pair

__all__ = ["labelled", "labelled_pair", "open_dataset"]
